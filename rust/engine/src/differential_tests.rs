//! Odd responses, parsed by our parser and by hyper's. Where they differ, `DIFFERENCES` says why
//! ours is right for a load generator; a difference that is not listed fails the test.

use std::collections::BTreeMap;

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::task::LocalSet;

use crate::response::{Body, HeadReader};
use crate::system;

/// Result of a parser for a response after which the server closed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parsed {
    Response {
        status: u16,
        body: Vec<u8>,
    },
    /// Invalid HTTP, or truncated.
    Failed,
}

fn ours(bytes: &[u8]) -> Parsed {
    let mut rest = bytes;
    let mut head = loop {
        match HeadReader::default().read(rest, false, |_, _| {}) {
            Ok(Some(head)) if head.is_interim() => rest = &rest[head.length..],
            Ok(Some(head)) => break head,
            Ok(None) | Err(_) => return Parsed::Failed,
        }
    };
    let mut body = Vec::new();
    let skipped = head.body.consume(&rest[head.length..], |piece| body.extend_from_slice(piece));
    let is_complete = head.body.is_complete() || head.body == Body::UntilClose;
    if skipped.is_ok() && is_complete {
        Parsed::Response { status: head.status, body }
    } else {
        Parsed::Failed
    }
}

async fn hypers(bytes: &[u8]) -> Parsed {
    let (client, mut server) = duplex(1 << 20);
    let serve = async {
        let mut request = [0; 1024];
        let _ = server.read(&mut request).await;
        let _ = server.write_all(bytes).await;
        let _ = server.shutdown().await;
    };
    let ask = async {
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(client)).await;
        let (mut sender, connection) = shaken.unwrap();
        tokio::task::spawn_local(connection);
        let request = hyper::Request::get("/").header("host", "a").body(Empty::<&[u8]>::new());
        let response = sender.send_request(request.unwrap()).await.ok()?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.ok()?.to_bytes().to_vec();
        Some(Parsed::Response { status, body })
    };
    let ((), parsed) = tokio::join!(serve, ask);
    parsed.unwrap_or(Parsed::Failed)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Name and response. `{c}` stands for the head of a chunked response.
const CORPUS: &[(&str, &str)] = &[
    // Status lines.
    ("plain", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
    ("empty reason", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"),
    ("reason beyond ASCII", "HTTP/1.1 200 Gr\u{fc}n\r\nContent-Length: 2\r\n\r\nok"),
    ("reason with tab", "HTTP/1.1 200 a\tb\r\nContent-Length: 2\r\n\r\nok"),
    ("reason with NUL", "HTTP/1.1 200 a\0b\r\nContent-Length: 2\r\n\r\nok"),
    ("two spaces before the status", "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("status 000", "HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\nok"),
    ("status 099", "HTTP/1.1 099 None\r\nContent-Length: 2\r\n\r\nok"),
    ("status 600", "HTTP/1.1 600 Other\r\nContent-Length: 2\r\n\r\nok"),
    ("status 999", "HTTP/1.1 999 Other\r\nContent-Length: 2\r\n\r\nok"),
    ("status with letters", "HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\nok"),
    ("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("HTTP/0.9", "HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("HTTP/1", "HTTP/1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("http in small letters", "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("ICY", "ICY 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("a page without a head", "<html></html>"),
    ("SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
    ("nothing", ""),
    ("an empty line first", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("a space first", " HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("cut off in the status line", "HTTP/1.1 20"),
    ("cut off in a header", "HTTP/1.1 200 OK\r\nContent-"),
    ("cut off before the empty line", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
    // Line ends and headers.
    ("bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    ("bare carriage returns", "HTTP/1.1 200 OK\rContent-Length: 2\r\rok"),
    ("mixed line ends", "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok"),
    ("space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok"),
    ("space in a name", "HTTP/1.1 200 OK\r\nContent Length: 2\r\n\r\nok"),
    ("no colon", "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\nok"),
    ("empty name", "HTTP/1.1 200 OK\r\n: 2\r\n\r\nok"),
    ("folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok"),
    ("folded first header", "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 2\r\n\r\nok"),
    ("NUL in a value", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok"),
    ("CR in a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok"),
    ("value beyond ASCII", "HTTP/1.1 200 OK\r\nX: \u{e9}\r\nContent-Length: 2\r\n\r\nok"),
    ("name beyond ASCII", "HTTP/1.1 200 OK\r\nX\u{e9}: 1\r\nContent-Length: 2\r\n\r\nok"),
    // Lengths.
    ("no length", "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
    ("length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("length with spaces", "HTTP/1.1 200 OK\r\nContent-Length:   2  \r\n\r\nok"),
    ("length in capitals", "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 2\r\n\r\nok"),
    ("length with a plus", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"),
    ("negative length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"),
    ("length in hexadecimal", "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok"),
    ("length with leading zeros", "HTTP/1.1 200 OK\r\nContent-Length: 0002\r\n\r\nok"),
    ("length of 20 zeros", "HTTP/1.1 200 OK\r\nContent-Length: 00000000000000000002\r\n\r\nok"),
    ("empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok"),
    ("length above 2^64", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nok"),
    (
        "the same length twice",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    ),
    ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nok"),
    ("the same length in a list", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"),
    ("two lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 2, 1\r\n\r\nok"),
    ("body shorter than its length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"),
    ("body longer than its length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"),
    // Transfer codings.
    ("chunked", "{c}2\r\nok\r\n0\r\n\r\n"),
    (
        "chunked in HTTP/1.0",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "chunked in capitals",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "chunked after gzip",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "chunked before gzip",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "chunked in a second header",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "chunked twice",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    ("unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nuntil the end"),
    ("identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nuntil the end"),
    (
        "chunked and a length",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n\
         2\r\nok\r\n0\r\n\r\n",
    ),
    (
        "unknown coding and a length",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nContent-Length: 2\r\n\r\nokmore",
    ),
    ("chunk size in capitals", "{c}A\r\n0123456789\r\n0\r\n\r\n"),
    ("chunk size with zeros", "{c}0002\r\nok\r\n000\r\n\r\n"),
    ("chunk size of 17 digits", "{c}00000000000000002\r\nok\r\n0\r\n\r\n"),
    ("chunk size above 2^64", "{c}ffffffffffffffff1\r\nok\r\n0\r\n\r\n"),
    ("chunk size with 0x", "{c}0x2\r\nok\r\n0\r\n\r\n"),
    ("negative chunk size", "{c}-2\r\nok\r\n0\r\n\r\n"),
    ("empty chunk size", "{c}\r\nok\r\n0\r\n\r\n"),
    ("space after the chunk size", "{c}2 \r\nok\r\n0\r\n\r\n"),
    ("space before the chunk size", "{c} 2\r\nok\r\n0\r\n\r\n"),
    ("letters after a space in the chunk size", "{c}2 x\r\nok\r\n0\r\n\r\n"),
    ("chunk extension", "{c}2;a=b\r\nok\r\n0\r\n\r\n"),
    ("chunk extension in quotes", "{c}2;a=\"b;c\"\r\nok\r\n0\r\n\r\n"),
    ("chunk extension with a line feed", "{c}2;a\nok\r\n0\r\n\r\n"),
    ("chunk extension with a carriage return", "{c}2;a\rb\r\nok\r\n0\r\n\r\n"),
    ("chunk size ends with a line feed", "{c}2\nok\r\n0\r\n\r\n"),
    ("chunk ends with a line feed", "{c}2\r\nok\n0\r\n\r\n"),
    ("chunk longer than its size", "{c}2\r\nokay\r\n0\r\n\r\n"),
    ("no last chunk", "{c}2\r\nok\r\n"),
    ("no empty line at the end", "{c}2\r\nok\r\n0\r\n"),
    ("a trailer", "{c}2\r\nok\r\n0\r\nX: y\r\n\r\n"),
    ("a trailer that is no header", "{c}2\r\nok\r\n0\r\nno colon\r\n\r\n"),
    ("a trailer with line feeds", "{c}2\r\nok\r\n0\r\nX: y\n\n"),
    ("a length in the trailer", "{c}2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n"),
    ("bytes after the last chunk", "{c}2\r\nok\r\n0\r\n\r\nmore"),
    // Responses without a body, and several responses.
    ("204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"),
    (
        "204 with chunks",
        "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    ("304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n"),
    ("205 with a length", "HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\nok"),
    ("100 first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    (
        "103 with headers first",
        "HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ),
    ("only 100", "HTTP/1.1 100 Continue\r\n\r\n"),
    ("101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    (
        "another response after the first",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\n\r\n",
    ),
];

/// Where the parsers differ, and why ours does what it does.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "chunked in HTTP/1.0",
        "Faulty framing (RFC 9112 6.1). Clients such as curl read it all the same, so users of the \
         service get their response; the connection is closed afterwards, as the RFC asks.",
    ),
    (
        "chunk size of 17 digits",
        "The number of digits is bounded, as every length is. No server fills up with zeros.",
    ),
    (
        "a trailer that is no header",
        "Trailers are skipped without parsing; only their length is bounded. No figure needs them.",
    ),
    (
        "a trailer with line feeds",
        "A recipient may take a line feed alone as the end of a line (RFC 9112 2.2).",
    ),
    ("101", "No request asks for another protocol, so it is no response to the request."),
];

#[test]
fn our_parser_differs_from_hypers_only_where_that_is_justified() {
    let runtime = system::runtime().expect("an event loop");
    let justified: BTreeMap<_, _> = DIFFERENCES.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, text) in CORPUS {
        let bytes = text.replace("{c}", CHUNKED).into_bytes();
        let mine = ours(&bytes);
        let theirs = LocalSet::new().block_on(&runtime, hypers(&bytes));
        if (mine != theirs) != justified.contains_key(name) {
            wrong.push(format!("{name}: ours {mine:?}, hyper's {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "not as listed:\n{}", wrong.join("\n"));
}

#[test]
fn each_listed_difference_is_in_the_corpus() {
    for (name, _) in DIFFERENCES {
        assert!(CORPUS.iter().any(|(known, _)| known == name), "{name}");
    }
}
