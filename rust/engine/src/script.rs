//! Requests laid out beforehand: bytes, and holes that are filled as they are sent.

use std::collections::BTreeMap;

use crate::Refusal;
use crate::plan::{Origin, Part, Plan, Reuse, Scheme, Step};

/// What one iteration sends.
pub(crate) struct Script {
    pub requests: Vec<Request>,
    /// How many values the iteration captures.
    pub captures: usize,
    columns: Vec<Vec<Vec<u8>>>,
}

/// One request and what is expected of its answer.
pub(crate) struct Request {
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// All of it, when it has no holes.
    fixed: Option<Vec<u8>>,
    pub is_head: bool,
    /// RFC 9110 9.2.2: doing it twice is doing it once.
    pub is_idempotent: bool,
    pub expect_status: Vec<u16>,
    /// Header names, and which capture keeps the value.
    pub captures: Vec<(String, usize)>,
}

enum Piece {
    Bytes(Vec<u8>),
    Column(usize),
    Capture(usize),
    BodyLength,
}

/// Where a hole stands decides which bytes may fill it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Header,
    Body,
}

impl Place {
    fn allows(self, byte: u8) -> bool {
        match self {
            Self::Path => byte > b' ' && byte < 0x7f && byte != b'#',
            Self::Header => byte == b'\t' || (byte >= b' ' && byte != 0x7f),
            Self::Body => true,
        }
    }
}

impl Script {
    /// Lays out the requests of a plan, and refuses what would not be HTTP.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Refusal> {
        if plan.steps.is_empty() || plan.steps.len() > usize::from(u8::MAX) {
            return Err(Refusal::plan("steps", "must be 1 to 255"));
        }
        let mut names =
            Names { columns: &plan.columns, captures: BTreeMap::new(), reuse: plan.connection };
        let mut requests = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            requests.push(names.request(&format!("steps[{index}]"), step, &plan.origin)?);
        }
        let columns = plan.columns.values();
        let columns =
            columns.map(|rows| rows.iter().map(|row| row.as_bytes().to_vec()).collect()).collect();
        Ok(Self { requests, captures: names.captures.len(), columns })
    }

    /// The bytes of a request, written into `out` unless they are the same every time.
    pub(crate) fn fill<'a>(
        &'a self,
        request: &'a Request,
        iteration: u32,
        captured: &[Vec<u8>],
        out: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        if let Some(fixed) = &request.fixed {
            return fixed;
        }
        let value = |piece: &'a Piece| -> Option<&[u8]> {
            match piece {
                Piece::Bytes(bytes) => Some(bytes),
                Piece::Column(column) => {
                    let rows = &self.columns[*column];
                    Some(&rows[iteration as usize % rows.len()])
                }
                Piece::Capture(capture) => Some(&captured[*capture]),
                Piece::BodyLength => None,
            }
        };
        out.clear();
        for piece in request.head.iter().chain(&request.body) {
            if let Some(bytes) = value(piece) {
                out.extend_from_slice(bytes);
            } else {
                let length = request.body.iter().filter_map(value).map(<[u8]>::len).sum();
                push_decimal(out, length);
            }
        }
        out
    }
}

fn push_decimal(out: &mut Vec<u8>, mut value: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789"[value % 10];
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// What the holes of a plan may refer to.
struct Names<'a> {
    columns: &'a BTreeMap<String, Vec<String>>,
    captures: BTreeMap<String, usize>,
    reuse: Reuse,
}

impl Names<'_> {
    fn request(&mut self, at: &str, step: &Step, origin: &Origin) -> Result<Request, Refusal> {
        if !is_token(&step.method) {
            return Err(Refusal::plan(format!("{at}.method"), "must be an HTTP method"));
        }
        if step.expect_status.is_empty()
            || step.expect_status.iter().any(|status| !(200..=999).contains(status))
        {
            let reason = "must name at least one status from 200 to 999";
            return Err(Refusal::plan(format!("{at}.expect_status"), reason));
        }
        let head = self.head(at, step, origin)?;
        let body = self.pieces(&format!("{at}.body"), &step.body, Place::Body)?;
        let captures = self.captures(at, step)?;
        Ok(Request {
            fixed: fixed(&head, &body),
            head,
            body,
            is_head: step.method == "HEAD",
            is_idempotent: matches!(&*step.method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS"),
            expect_status: step.expect_status.clone(),
            captures,
        })
    }

    fn head(&self, at: &str, step: &Step, origin: &Origin) -> Result<Vec<Piece>, Refusal> {
        let path_at = format!("{at}.path");
        let starts_well =
            matches!(step.path.first(), Some(Part::Text(text)) if text.starts_with('/'));
        if !starts_well {
            return Err(Refusal::plan(path_at, "must start with a text that starts with /"));
        }
        let mut head = vec![bytes(&format!("{} ", step.method))];
        head.extend(self.pieces(&path_at, &step.path, Place::Path)?);
        head.push(bytes(" HTTP/1.1\r\n"));
        for (name, value) in default_headers(origin, self.reuse) {
            if !step.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                head.push(bytes(&format!("{name}: {value}\r\n")));
            }
        }
        for (name, value) in &step.headers {
            let header_at = format!("{at}.headers.{name}");
            if !is_token(name) {
                return Err(Refusal::plan(header_at, "is no header name"));
            }
            if ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase()) {
                return Err(Refusal::plan(header_at, "is written by the engine; leave it out"));
            }
            head.push(bytes(&format!("{name}: ")));
            head.extend(self.pieces(&header_at, value, Place::Header)?);
            head.push(bytes("\r\n"));
        }
        if !step.body.is_empty() || matches!(&*step.method, "POST" | "PUT" | "PATCH") {
            head.extend([bytes("Content-Length: "), Piece::BodyLength, bytes("\r\n")]);
        }
        head.push(bytes("\r\n"));
        Ok(head)
    }

    fn pieces(&self, at: &str, parts: &[Part], place: Place) -> Result<Vec<Piece>, Refusal> {
        parts.iter().map(|part| self.piece(at, part, place)).collect()
    }

    fn piece(&self, at: &str, part: &Part, place: Place) -> Result<Piece, Refusal> {
        let refuse = |reason: String| Err(Refusal::plan(at, reason));
        match part {
            Part::Text(text) if text.bytes().all(|byte| place.allows(byte)) => Ok(bytes(text)),
            Part::Text(_) => refuse("holds a byte that HTTP does not allow there".to_owned()),
            Part::Column(name) => {
                let Some(index) = self.columns.keys().position(|column| column == name) else {
                    return refuse(format!("needs the column {name:?}, which the plan lacks"));
                };
                let rows = &self.columns[name];
                if rows.is_empty() {
                    return refuse(format!("needs the column {name:?}, which is empty"));
                }
                match rows.iter().position(|row| !row.bytes().all(|byte| place.allows(byte))) {
                    // The value itself may be a secret.
                    Some(row) => refuse(format!(
                        "is filled from column {name:?}, whose row {row} holds a byte that HTTP \
                         does not allow there"
                    )),
                    None => Ok(Piece::Column(index)),
                }
            }
            Part::Capture(name) => match self.captures.get(name) {
                // A header's value may hold spaces, which would end the path.
                Some(_) if place == Place::Path => {
                    refuse(format!("cannot be filled from the capture {name:?}; a header can"))
                }
                Some(&capture) => Ok(Piece::Capture(capture)),
                None => refuse(format!("needs the capture {name:?}, which no earlier step makes")),
            },
        }
    }

    fn captures(&mut self, at: &str, step: &Step) -> Result<Vec<(String, usize)>, Refusal> {
        let mut captures = Vec::new();
        for capture in &step.captures {
            if !is_token(&capture.header) {
                let field = format!("{at}.captures.{}", capture.name);
                return Err(Refusal::plan(field, "names no header"));
            }
            let next = self.captures.len();
            let index = *self.captures.entry(capture.name.clone()).or_insert(next);
            captures.push((capture.header.clone(), index));
        }
        Ok(captures)
    }
}

fn default_headers(origin: &Origin, reuse: Reuse) -> Vec<(&'static str, String)> {
    let agent = concat!("loadstone/", env!("CARGO_PKG_VERSION"));
    let mut headers = vec![
        ("Host", host(origin)),
        ("User-Agent", agent.to_owned()),
        ("Accept", "*/*".to_owned()),
    ];
    if reuse == Reuse::Request {
        headers.push(("Connection", "close".to_owned()));
    }
    headers
}

fn host(origin: &Origin) -> String {
    let Origin { scheme, host, port, .. } = origin;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    match (scheme, port) {
        (Scheme::Http, 80) | (Scheme::Https, 443) => host,
        _ => format!("{host}:{port}"),
    }
}

fn bytes(text: &str) -> Piece {
    Piece::Bytes(text.as_bytes().to_vec())
}

fn fixed(head: &[Piece], body: &[Piece]) -> Option<Vec<u8>> {
    let mut length = 0;
    for piece in body {
        let Piece::Bytes(bytes) = piece else { return None };
        length += bytes.len();
    }
    let mut whole = Vec::new();
    for piece in head.iter().chain(body) {
        match piece {
            Piece::Bytes(bytes) => whole.extend_from_slice(bytes),
            Piece::BodyLength => push_decimal(&mut whole, length),
            Piece::Column(_) | Piece::Capture(_) => return None,
        }
    }
    Some(whole)
}

/// RFC 9110 5.6.2: what methods and header names are made of.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
