//! HTTP/1.1 answers: where the head ends, and how much follows. Does no I/O.

use std::mem::MaybeUninit;

use memchr::memmem;

/// Longest head, and longest trailer of a chunked body, in bytes (nginx and Apache stop at 8 kB).
pub(crate) const MAX_HEAD: usize = 64 * 1024;
pub(crate) const MAX_HEADERS: usize = 100;
const MAX_CHUNK_LINE: usize = 4096;

/// Not HTTP, or beyond the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadHttp;

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes up to and with the empty line.
    pub length: usize,
    pub status: u16,
    pub body: Body,
    /// Another request may follow on this connection.
    pub keep_alive: bool,
}

impl Head {
    /// 100 Continue, 103 Early Hints: the answer is still to come.
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Reads heads out of a growing buffer without reading each byte more than a few times.
#[derive(Debug, Default)]
pub(crate) struct HeadReader {
    /// Where the search for the empty line goes on.
    searched: usize,
    /// Length at which to parse even without an empty line, to find out what is no HTTP.
    try_at: usize,
}

impl HeadReader {
    /// The head at the start of `bytes`, once it is complete; `see` is shown each header of a final one.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        answers_head: bool,
        see: impl FnMut(&str, &[u8]),
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
        let head = parse(bytes, answers_head, see)?;
        if head.is_none() && bytes.len() >= MAX_HEAD {
            return Err(BadHttp);
        }
        Ok(head)
    }
}

fn parse(
    bytes: &[u8],
    answers_head: bool,
    mut see: impl FnMut(&str, &[u8]),
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
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.see(header.name, header.value)?;
    }
    // 101 would hand the connection to another protocol, which was not asked for.
    if status < 100 || status == 101 {
        return Err(BadHttp);
    }
    if status >= 200 {
        response.headers.iter().for_each(|header| see(header.name, header.value));
    }
    let body = if status < 200 || status == 204 || status == 304 || answers_head {
        Body::Empty
    } else {
        fields.body()
    };
    let keep_alive = match response.version {
        Some(1) => !fields.close,
        _ => fields.keep_alive && !fields.close,
    };
    // Both lengths at once is how requests are smuggled (RFC 9112 6.3), and HTTP/1.0 knows no
    // codings (6.1): believe one, then close.
    let is_old = response.version != Some(1);
    let ambiguous = fields.coding.is_some() && (is_old || fields.length.is_some());
    let keep_alive = keep_alive && !ambiguous && body != Body::UntilClose;
    Ok(Some(Head { length, status, body, keep_alive }))
}

/// The headers that say how long the body is and what becomes of the connection.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    coding: Option<Coding>,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn see(&mut self, name: &str, value: &[u8]) -> Result<(), BadHttp> {
        if name.eq_ignore_ascii_case("content-length") {
            // A list of equal lengths is what comes of several headers (RFC 9110 8.6).
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
            (Some(Coding::Chunked), _) => Body::Chunked(Chunks::FIRST),
            (Some(Coding::Other), _) | (None, None) => Body::UntilClose,
            (None, Some(0)) => Body::Empty,
            (None, Some(length)) => Body::Length(length),
        }
    }
}

/// The transfer coding applied last.
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
    // 20 digits may be more than 64 bits hold.
    if value.len() > 19 {
        return Err(BadHttp);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// What follows the head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Empty,
    /// Bytes still to come.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Body {
    /// Skips `bytes`: how many belong to the body; afterwards `is_complete` tells whether it ended.
    /// Its content is shown to `see`.
    pub(crate) fn skip(
        &mut self,
        bytes: &[u8],
        mut see: impl FnMut(&[u8]),
    ) -> Result<usize, BadHttp> {
        let skipped = match self {
            Self::Empty => 0,
            Self::Length(left) => skip_counted(left, bytes),
            Self::Chunked(chunks) => return chunks.skip(bytes, see),
            Self::UntilClose => bytes.len(),
        };
        see(&bytes[..skipped]);
        Ok(skipped)
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Empty | Self::Chunked(Chunks::Done) => true,
            Self::Length(left) => *left == 0,
            Self::Chunked(_) | Self::UntilClose => false,
        }
    }
}

fn skip_counted(left: &mut u64, bytes: &[u8]) -> usize {
    let skipped = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= skipped as u64;
    skipped
}

/// Where in a chunked body (RFC 9112 7.1) the reader stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chunks {
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

impl Chunks {
    const FIRST: Self = Self::Size { size: 0, digits: 0 };

    fn skip(&mut self, bytes: &[u8], mut see: impl FnMut(&[u8])) -> Result<usize, BadHttp> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Done {
            if let Self::Data { left } = self {
                let from = at;
                at += skip_counted(left, &bytes[at..]);
                see(&bytes[from..at]);
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
            // A line feed alone in an extension is how requests are smuggled.
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

fn after_size(size: u64, digits: u8, byte: u8) -> Result<Chunks, BadHttp> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        b'\r' if digits > 0 => return Ok(Chunks::SizeEnd { size }),
        b';' if digits > 0 => return Ok(Chunks::Extension { size, seen: 0 }),
        b' ' | b'\t' if digits > 0 => return Ok(Chunks::Space { size, seen: 0 }),
        _ => return Err(BadHttp),
    };
    if digits == 16 {
        return Err(BadHttp);
    }
    Ok(Chunks::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
