use proptest::prelude::*;

use super::*;

/// Feeds `bytes` in pieces of the given sizes, as a connection would.
fn feed(bytes: &[u8], sizes: &[usize]) -> Result<Option<(Head, usize)>, BadHttp> {
    let mut reader = HeadReader::default();
    let mut sizes = sizes.iter().copied().cycle();
    let mut have = 0;
    let mut head = loop {
        have = (have + sizes.next().unwrap_or(1)).min(bytes.len());
        if let Some(head) = reader.read(&bytes[..have], false, |_, _| {})? {
            break head;
        }
        if have == bytes.len() {
            return Ok(None);
        }
    };
    let mut at = head.length;
    while !head.body.is_complete() && at < bytes.len() {
        have = have.max(at + 1);
        at += head.body.consume(&bytes[at..have], |_| {})?;
        have = (have + sizes.next().unwrap_or(1)).min(bytes.len());
    }
    Ok(Some((head, at)))
}

fn whole(text: &str) -> Result<Option<(Head, usize)>, BadHttp> {
    feed(text.as_bytes(), &[text.len()])
}

fn complete(text: &str) -> Head {
    let (head, used) = whole(text).unwrap().unwrap();
    assert!(head.body.is_complete());
    assert_eq!(used, text.len());
    head
}

#[test]
fn a_body_ends_at_its_content_length() {
    let head = complete("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!((head.status, head.keep_alive), (201, true));
}

#[test]
fn a_chunked_body_ends_after_its_trailers() {
    complete(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\
         5\r\nhello\r\nA;name=value\r\n0123456789\r\n0\r\nChecksum: 1\r\n\r\n",
    );
}

#[test]
fn bytes_after_the_response_are_not_part_of_it() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500";
    let (_, used) = whole(text).unwrap().unwrap();
    assert_eq!(&text[used..], "HTTP/1.1 500");
}

#[test]
fn connection_reuse_depends_on_version_and_header() {
    for (head, kept) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true),
    ] {
        assert_eq!(complete(head).keep_alive, kept, "{head}");
    }
    let (head, _) = whole("HTTP/1.1 200 OK\r\n\r\n").unwrap().unwrap();
    assert_eq!((head.body, head.keep_alive), (Body::UntilClose, false));
}

#[test]
fn no_body_follows_204_304_and_head() {
    complete("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n");
    complete("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let head = HeadReader::default().read(response, true, |_, _| {}).unwrap().unwrap();
    assert_eq!(head.body, Body::Empty);
}

#[test]
fn interim_responses_are_recognised() {
    assert!(complete("HTTP/1.1 100 Continue\r\n\r\n").is_interim());
    assert!(!complete("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_interim());
}

#[test]
fn invalid_http_is_rejected() {
    for bad in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
    ] {
        assert_eq!(whole(bad), Err(BadHttp), "{bad}");
    }
}

#[test]
fn a_head_above_the_limit_is_rejected() {
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_HEAD)).into_bytes();
    for first in (1000..MAX_HEAD).step_by(777) {
        let mut reader = HeadReader::default();
        assert_eq!(reader.read(&endless[..first], false, |_, _| {}), Ok(None));
        let bounded = &endless[..=MAX_HEAD];
        assert_eq!(reader.read(bounded, false, |_, _| {}), Err(BadHttp), "{first}");
    }
}

#[test]
fn endless_heads_chunk_lines_and_trailers_are_rejected() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bad in [
        format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_HEAD)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(MAX_HEADERS + 1)),
        format!("{chunked}1;{}", "x".repeat(MAX_CHUNK_LINE + 1)),
        format!("{chunked}0\r\n{}", "X: y\r\n".repeat(MAX_HEAD)),
    ] {
        assert_eq!(whole(&bad), Err(BadHttp), "{}", &bad[..60]);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_response_or_rejected(
        bytes in proptest::collection::vec(any::<u8>(), 1..300),
        head in prop_oneof![
            Just(""),
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ],
        sizes in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let bytes = [head.as_bytes(), &bytes].concat();
        if let Ok(Some((_, used))) = feed(&bytes, &sizes) {
            prop_assert!(used <= bytes.len());
        }
    }

    #[test]
    fn a_response_is_parsed_the_same_in_any_pieces(
        chunks in proptest::collection::vec(1usize..70, 0..6),
        sizes in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for chunk in chunks {
            text = format!("{text}{chunk:x}\r\n{}\r\n", "d".repeat(chunk));
        }
        text += "0\r\n\r\n";
        let (head, used) = feed(text.as_bytes(), &sizes).unwrap().unwrap();
        prop_assert!(head.body.is_complete());
        prop_assert_eq!(used, text.len());
    }
}
