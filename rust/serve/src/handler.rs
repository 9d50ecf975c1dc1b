//! HTTP handler: converts requests and replies of the API.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Instant;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, VARY};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use percent_encoding::percent_decode_str;

use crate::api_error::ApiError;
use crate::idle::IdleTracker;
use crate::reply::Reply;
use crate::request;
use crate::shared::Shared;
use crate::timer::Timer;
use crate::{ids, timestamp};

/// Keystone's `[oslo_middleware] max_request_body_size`.
const MAX_BODY_BYTES: usize = 114_688;
/// Path of the counts, for clients on this machine only.
const COUNTS_PATH: &str = "/loadstone/counts";

/// Connection that a request came on.
pub(crate) struct ConnectionContext {
    /// Number of the connection.
    pub(crate) number: u64,
    /// `host:port` of the service, for requests without a Host header.
    pub(crate) local_addr: String,
    pub(crate) is_local: bool,
    /// Timer of the thread.
    pub(crate) timer: Rc<Timer>,
    pub(crate) idle: IdleTracker,
}

pub(crate) async fn handle(
    shared: &Shared,
    connection: &ConnectionContext,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let host = text(&head, HOST.as_str()).unwrap_or(&connection.local_addr);
    let base = format!("{}://{host}", scheme(&head));
    let decoded = percent_decode_str(head.uri.path()).decode_utf8_lossy();
    let (method, path) = (head.method.as_str(), &*decoded);
    if connection.is_local && path == COUNTS_PATH {
        let _busy = connection.idle.busy();
        let counts = serde_json::to_value(shared.counts()).unwrap_or_default();
        return Ok(response(Reply::json(200, &counts), &base));
    }
    let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let is_long = error.downcast_ref::<LengthLimitError>().is_some();
            let fault = if is_long {
                ApiError::TooLarge
            } else {
                ApiError::bad_request("The body is incomplete.")
            };
            return Ok(response(shared.refuse(method, path, fault), &base));
        }
    };
    // Until the response is sent, the connection is not idle.
    let _busy = connection.idle.busy();
    let request = request::Request {
        method,
        path,
        query: head.uri.query().unwrap_or_default(),
        token: text(&head, "x-auth-token"),
        subject: text(&head, "x-subject-token"),
        authorization: text(&head, AUTHORIZATION.as_str()),
        cookie: text(&head, COOKIE.as_str()),
        body: &body,
        base: &base,
        connection: connection.number,
        now_us: timestamp::now_us(),
    };
    if let Some(until) = shared.delay(&request) {
        connection.timer.sleep_until(until).await;
    }
    let due_reply = shared.handle(&request);
    if let Some(due) = due_reply.due {
        connection.timer.sleep_until(due).await;
        shared.lateness.record(Instant::now().saturating_duration_since(due));
    }
    Ok(response(due_reply.reply, &base))
}

/// Returns the scheme that clients use: https behind a proxy that terminates TLS.
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

/// Returns a request id. It need not be a secret, so a fast generator suffices.
fn request_id() -> String {
    let id = ids::hex(fastrand::u128(..));
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    format!("req-{}", parts.join("-"))
}
