//! HTTP/1.1 response parser: head, and framing of the body. Does no I/O.

use std::mem::MaybeUninit;

use memchr::memmem;

/// Longest head, and longest trailer of a chunked body, in bytes (nginx and Apache stop at 8 kB).
pub(crate) const MAX_HEAD: usize = 64 * 1024;
pub(crate) const MAX_HEADERS: usize = 100;
const MAX_CHUNK_LINE: usize = 4096;

/// Error of a response that is not valid HTTP, or exceeds the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadHttp;

/// Head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Number of bytes, including the empty line.
    pub length: usize,
    pub status: u16,
    pub body: Body,
    /// The connection may be reused.
    pub keep_alive: bool,
}

impl Head {
    /// Whether the final response is still to come (100 Continue, 103 Early Hints).
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Parser of heads in a growing buffer that reads each byte only a few times.
#[derive(Debug, Default)]
pub(crate) struct HeadReader {
    /// Number of bytes searched for the empty line.
    searched: usize,
    /// Length at which to parse even without an empty line, to reject what is not HTTP.
    try_at: usize,
}

impl HeadReader {
    /// Parses a complete head. `on_header` is called for each header of a final response.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        is_head_request: bool,
        on_header: impl FnMut(&str, &[u8]),
    ) -> Result<Option<Head>, BadHttp> {
        let unsearched = &bytes[self.searched..];
        self.searched = bytes.len().saturating_sub(2);
        let is_due = bytes.len() >= self.try_at.min(MAX_HEAD)
            || memmem::find(unsearched, b"\n\r\n").is_some()
            || memmem::find(unsearched, b"\n\n").is_some();
        if !is_due {
            return Ok(None);
        }
        self.try_at = bytes.len() * 2;
        let head = parse(bytes, is_head_request, on_header)?;
        if head.is_none() && bytes.len() >= MAX_HEAD {
            return Err(BadHttp);
        }
        Ok(head)
    }
}

fn parse(
    bytes: &[u8],
    is_head_request: bool,
    mut on_header: impl FnMut(&str, &[u8]),
) -> Result<Option<Head>, BadHttp> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
        .map_err(|_| BadHttp)?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let status = response.code.ok_or(BadHttp)?;
    let mut fields = FramingHeaders::default();
    for header in response.headers.iter() {
        fields.add(header.name, header.value)?;
    }
    // 101 would switch to another protocol, which was not requested.
    if status < 100 || status == 101 {
        return Err(BadHttp);
    }
    if status >= 200 {
        response.headers.iter().for_each(|header| on_header(header.name, header.value));
    }
    let body = if status < 200 || status == 204 || status == 304 || is_head_request {
        Body::Empty
    } else {
        fields.body()
    };
    let keep_alive = match response.version {
        Some(1) => !fields.close,
        _ => fields.keep_alive && !fields.close,
    };
    // Both framings at once may be request smuggling (RFC 9112 6.3), and HTTP/1.0 has no transfer
    // codings (6.1): use one framing, then close.
    let is_old = response.version != Some(1);
    let ambiguous = fields.coding.is_some() && (is_old || fields.length.is_some());
    let keep_alive = keep_alive && !ambiguous && body != Body::UntilClose;
    Ok(Some(Head { length, status, body, keep_alive }))
}

/// Headers that define the length of the body and the reuse of the connection.
#[derive(Default)]
struct FramingHeaders {
    length: Option<u64>,
    coding: Option<Coding>,
    close: bool,
    keep_alive: bool,
}

impl FramingHeaders {
    fn add(&mut self, name: &str, value: &[u8]) -> Result<(), BadHttp> {
        if name.eq_ignore_ascii_case("content-length") {
            // Several headers may have been joined to a list of equal lengths (RFC 9110 8.6).
            for token in tokens(value) {
                let length = decimal(token)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(BadHttp);
                }
                self.length = Some(length);
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let is_chunked = tokens(value).next_back().is_some_and(|last| is(last, "chunked"));
            self.coding = Some(if is_chunked { Coding::Chunked } else { Coding::Other });
        } else if name.eq_ignore_ascii_case("connection") {
            self.close |= tokens(value).any(|token| is(token, "close"));
            self.keep_alive |= tokens(value).any(|token| is(token, "keep-alive"));
        }
        Ok(())
    }

    fn body(&self) -> Body {
        match (&self.coding, self.length) {
            (Some(Coding::Chunked), _) => Body::Chunked(ChunkedState::FIRST),
            (Some(Coding::Other), _) | (None, None) => Body::UntilClose,
            (None, Some(0)) => Body::Empty,
            (None, Some(length)) => Body::Length(length),
        }
    }
}

/// Transfer coding that was applied last.
enum Coding {
    Chunked,
    Other,
}

fn tokens(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn is(token: &[u8], word: &str) -> bool {
    token.eq_ignore_ascii_case(word.as_bytes())
}

fn decimal(value: &[u8]) -> Result<u64, BadHttp> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(BadHttp);
    }
    let zeros = value.iter().take_while(|&&digit| digit == b'0').count();
    let value = &value[zeros..];
    // 20 digits may not fit into 64 bits.
    if value.len() > 19 {
        return Err(BadHttp);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Body of a response, by its framing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Empty,
    /// Number of bytes still to come.
    Length(u64),
    Chunked(ChunkedState),
    UntilClose,
}

impl Body {
    /// Consumes `bytes` and returns how many belong to the body. Its content is passed to
    /// `on_data`.
    pub(crate) fn consume(
        &mut self,
        bytes: &[u8],
        mut on_data: impl FnMut(&[u8]),
    ) -> Result<usize, BadHttp> {
        let consumed = match self {
            Self::Empty => 0,
            Self::Length(left) => consume_counted(left, bytes),
            Self::Chunked(chunked) => return chunked.consume(bytes, on_data),
            Self::UntilClose => bytes.len(),
        };
        on_data(&bytes[..consumed]);
        Ok(consumed)
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Empty | Self::Chunked(ChunkedState::Done) => true,
            Self::Length(left) => *left == 0,
            Self::Chunked(_) | Self::UntilClose => false,
        }
    }
}

fn consume_counted(left: &mut u64, bytes: &[u8]) -> usize {
    let consumed = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= consumed as u64;
    consumed
}

/// State of a chunked body (RFC 9112 7.1).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChunkedState {
    Size { size: u64, digits: u8 },
    Space { size: u64, seen: usize },
    Extension { size: u64, seen: usize },
    SizeEnd { size: u64 },
    Data { left: u64 },
    DataEnd,
    DataEndLine,
    Trailer { line: usize, seen: usize },
    Done,
}

impl ChunkedState {
    const FIRST: Self = Self::Size { size: 0, digits: 0 };

    fn consume(&mut self, bytes: &[u8], mut on_data: impl FnMut(&[u8])) -> Result<usize, BadHttp> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Done {
            if let Self::Data { left } = self {
                let from = at;
                at += consume_counted(left, &bytes[at..]);
                on_data(&bytes[from..at]);
                if *left == 0 {
                    *self = Self::DataEnd;
                }
            } else {
                *self = self.after(bytes[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn after(&self, byte: u8) -> Result<Self, BadHttp> {
        match (self, byte) {
            (&Self::Size { size, digits }, _) => after_size(size, digits, byte),
            (&Self::Space { size, .. }, b';') => Ok(Self::Extension { size, seen: 0 }),
            (&Self::Space { size, seen }, b' ' | b'\t') if seen < MAX_CHUNK_LINE => {
                Ok(Self::Space { size, seen: seen + 1 })
            }
            (&(Self::Space { size, .. } | Self::Extension { size, .. }), b'\r') => {
                Ok(Self::SizeEnd { size })
            }
            (&Self::SizeEnd { size }, b'\n') => Ok(if size == 0 {
                Self::Trailer { line: 0, seen: 0 }
            } else {
                Self::Data { left: size }
            }),
            // A bare line feed in an extension may be request smuggling.
            (&Self::Extension { size, seen }, _) if byte != b'\n' && seen < MAX_CHUNK_LINE => {
                Ok(Self::Extension { size, seen: seen + 1 })
            }
            (Self::DataEnd, b'\r') => Ok(Self::DataEndLine),
            (Self::DataEndLine, b'\n') => Ok(Self::FIRST),
            (Self::Trailer { line: 0, .. }, b'\n') => Ok(Self::Done),
            (&Self::Trailer { seen, .. }, b'\n') => Ok(Self::Trailer { line: 0, seen: seen + 1 }),
            (&Self::Trailer { line, seen }, _) if seen < MAX_HEAD => {
                Ok(Self::Trailer { line: line + usize::from(byte != b'\r'), seen: seen + 1 })
            }
            _ => Err(BadHttp),
        }
    }
}

fn after_size(size: u64, digits: u8, byte: u8) -> Result<ChunkedState, BadHttp> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        b'\r' if digits > 0 => return Ok(ChunkedState::SizeEnd { size }),
        b';' if digits > 0 => return Ok(ChunkedState::Extension { size, seen: 0 }),
        b' ' | b'\t' if digits > 0 => return Ok(ChunkedState::Space { size, seen: 0 }),
        _ => return Err(BadHttp),
    };
    if digits == 16 {
        return Err(BadHttp);
    }
    Ok(ChunkedState::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
