//! Request heads of HTTP/2, parsed from the bytes of an HTTP/1.1 request.

use std::cell::RefCell;

use http::uri::{PathAndQuery, Scheme as UriScheme};
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use crate::plan::Scheme;

/// Limit on headers of a request; plans have few.
const MAX_HEADERS: usize = 100;
/// Limit on cached heads: a few steps, each with a few lengths of its body.
const MAX_HEADS: usize = 32;

/// Cache of heads that repeat in every iteration.
#[derive(Default)]
pub(crate) struct HeadCache(RefCell<Vec<(Vec<u8>, Request<()>)>>);

impl HeadCache {
    /// Like [`parse`], with cached heads.
    pub(super) fn parse<'a>(
        &self,
        bytes: &'a [u8],
        scheme: Scheme,
    ) -> Option<(Request<()>, &'a [u8])> {
        let mut heads = self.0.borrow_mut();
        // A head ends with an empty line, so it is a prefix of no other.
        if let Some((head, request)) = heads.iter().find(|(head, _)| bytes.starts_with(head)) {
            return Some((request.clone(), &bytes[head.len()..]));
        }
        let (request, body) = parse(bytes, scheme)?;
        if heads.len() < MAX_HEADS {
            heads.push((bytes[..bytes.len() - body.len()].to_vec(), request.clone()));
        }
        Some((request, body))
    }
}

/// Parses head and body of a request. Returns none if a captured value made it invalid.
pub(super) fn parse(bytes: &[u8], scheme: Scheme) -> Option<(Request<()>, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = parsed.parse(bytes).ok()? else { return None };
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    let mut uri = Uri::builder()
        .scheme(match scheme {
            Scheme::Http => UriScheme::HTTP,
            Scheme::Https => UriScheme::HTTPS,
        })
        .path_and_query(PathAndQuery::try_from(parsed.path?).ok()?);
    for header in parsed.headers.iter() {
        if header.name.eq_ignore_ascii_case("host") {
            uri = uri.authority(header.value);
        } else {
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(header.value).ok()?);
        }
    }
    *request.uri_mut() = uri.build().ok()?;
    *request.version_mut() = http::Version::HTTP_2;
    Some((request, &bytes[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_2_head_has_the_fields_of_http_1() {
        let bytes = b"POST /v3/auth?a=b HTTP/1.1\r\nHost: [::1]:5000\r\nX-Auth-Token: t\r\n\
            Content-Length: 2\r\n\r\n{}";
        let (request, body) = parse(bytes, Scheme::Https).expect("it is well formed");
        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.uri().to_string(), "https://[::1]:5000/v3/auth?a=b");
        assert_eq!(request.headers()["x-auth-token"], "t");
        assert_eq!(request.headers()["content-length"], "2");
        assert!(!request.headers().contains_key("host"));
        assert_eq!(body, b"{}");
    }

    #[test]
    fn a_repeated_head_is_parsed_once() {
        let heads = HeadCache::default();
        for length in [1, 2, 1] {
            let body = &"{}"[..length];
            let bytes =
                format!("POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: {length}\r\n\r\n{body}");
            let (request, rest) = heads.parse(bytes.as_bytes(), Scheme::Http).expect("well formed");
            assert_eq!(request.uri().to_string(), "http://b/a");
            assert_eq!(request.headers()["content-length"], length.to_string());
            assert_eq!(rest, body.as_bytes());
        }
        assert_eq!(heads.0.borrow().len(), 2);
    }

    #[test]
    fn an_invalid_uri_is_rejected() {
        assert!(parse(b"GET /<x> HTTP/1.1\r\nHost: a\r\n\r\n", Scheme::Http).is_none());
    }
}
