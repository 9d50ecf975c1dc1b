//! One request and its answer, as HTTP.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Instant;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, VARY};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use percent_encoding::percent_decode_str;

use crate::alarm::Alarm;
use crate::fault::Fault;
use crate::quiet::Quiet;
use crate::reply::Reply;
use crate::route::Call;
use crate::shared::Shared;
use crate::stamp;

/// Keystone's `[oslo_middleware] max_request_body_size`.
const MOST_BODY_BYTES: usize = 114_688;
/// Shows the counts, to callers on this machine only.
const COUNTS_PATH: &str = "/loadstone/counts";

/// Where a connection comes from and goes to.
pub(crate) struct Ends {
    /// Which connection it is.
    pub(crate) number: u64,
    /// `host:port` of the service, for callers that name no host.
    pub(crate) here: String,
    pub(crate) is_local: bool,
    /// The timer of its thread.
    pub(crate) alarm: Rc<Alarm>,
    pub(crate) quiet: Quiet,
}

pub(crate) async fn exchange(
    shared: &Shared,
    ends: &Ends,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let host = text(&head, HOST.as_str()).unwrap_or(&ends.here);
    let base = format!("{}://{host}", scheme(&head));
    let decoded = percent_decode_str(head.uri.path()).decode_utf8_lossy();
    let (method, path) = (head.method.as_str(), &*decoded);
    if ends.is_local && path == COUNTS_PATH {
        let counts = serde_json::to_value(shared.counts()).unwrap_or_default();
        return Ok(response(Reply::json(200, &counts), &base));
    }
    let body = match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let is_long = error.downcast_ref::<LengthLimitError>().is_some();
            let fault =
                if is_long { Fault::TooLarge } else { Fault::bad("The body is incomplete.") };
            return Ok(response(shared.refuse(method, path, fault), &base));
        }
    };
    // From here until its answer the connection waits for us, not we for its client.
    let _busy = ends.quiet.busy();
    let call = Call {
        method,
        path,
        query: head.uri.query().unwrap_or_default(),
        token: text(&head, "x-auth-token"),
        subject: text(&head, "x-subject-token"),
        authorization: text(&head, AUTHORIZATION.as_str()),
        cookie: text(&head, COOKIE.as_str()),
        body: &body,
        base: &base,
        connection: ends.number,
        now_us: stamp::now_us(),
    };
    if let Some(until) = shared.delay(&call) {
        ends.alarm.sleep_until(until).await;
    }
    let answer = shared.answer(&call);
    if let Some(due) = answer.due {
        ends.alarm.sleep_until(due).await;
        shared.lateness.saw(Instant::now().saturating_duration_since(due));
    }
    Ok(response(answer.reply, &base))
}

/// How callers reach the service: behind a proxy that ends TLS, by https.
fn scheme(head: &Parts) -> &'static str {
    match text(head, "x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    }
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

fn response(reply: Reply, base: &str) -> Response<Full<Bytes>> {
    let is_empty = reply.body.is_empty();
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = reply.status.try_into().unwrap_or_default();
    let headers = response.headers_mut();
    if !is_empty {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    headers.insert(VARY, HeaderValue::from_static("X-Auth-Token"));
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set("x-openstack-request-id", &request_id());
    if let Some(token) = &reply.token {
        set("x-subject-token", token);
    }
    if let Some(retry_after_s) = reply.retry_after_s {
        set("retry-after", &format!("{:.0}", retry_after_s.ceil().max(1.0)));
    }
    if reply.asks_for_credentials {
        set("www-authenticate", &format!("Keystone uri=\"{base}/v3\""));
    }
    let content_type = CONTENT_TYPE.as_str();
    if reply.headers.iter().any(|(name, _)| *name == content_type) {
        headers.remove(CONTENT_TYPE);
    }
    for (name, value) in &reply.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    response
}

/// req-UUID; it only tells requests apart, so any random bits will do.
fn request_id() -> String {
    let id = stamp::hex(fastrand::u128(..));
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    format!("req-{}", parts.join("-"))
}
