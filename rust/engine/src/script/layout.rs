//! Compiler of a plan's steps to bytes and placeholders; refuses requests that are not valid HTTP.

use std::collections::BTreeMap;

use super::step::{Condition, DecimalBuffer, Pause, Piece, Position, Step, StepKind, Template};
use crate::Error;
use crate::capture::{CaptureRule, Pointer, Source};
use crate::check::seconds;
use crate::links::LinkOrigin;
use crate::one_time_code::OneTimeCodes;
use crate::plan::{self, Http, Origin, Part, Reuse, Scheme, StatusCondition};

/// Names that placeholders may refer to, and settings of the plan.
pub(super) struct LayoutContext<'a> {
    pub columns: &'a BTreeMap<String, Vec<String>>,
    pub captures: BTreeMap<String, usize>,
    /// Last step of each action.
    pub actions: BTreeMap<String, usize>,
    /// For each capture, the strictest position that it is used in.
    pub positions: Vec<Position>,
    pub codes: Vec<OneTimeCodes>,
    pub reuse: Reuse,
    pub http: Http,
    /// Origin that captured links must lead to.
    pub origin: LinkOrigin,
    pub has_cookies: bool,
}

/// Connection-specific headers, which HTTP/2 forbids (RFC 9113 8.2.2).
const CONNECTION_HEADERS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];

impl LayoutContext<'_> {
    /// Declares a capture for each chain. Returns the captures with their chains.
    pub(super) fn chains<'b>(
        &mut self,
        names: impl Iterator<Item = &'b String>,
    ) -> std::vec::IntoIter<(usize, usize)> {
        let mut chained = Vec::new();
        for (chain, name) in names.enumerate() {
            let capture = self.positions.len();
            self.positions.push(Position::Body);
            self.captures.insert(name.clone(), capture);
            chained.push((capture, chain));
        }
        chained.into_iter()
    }

    pub(super) fn step(
        &mut self,
        index: usize,
        step: &plan::Step,
        origin: &Origin,
    ) -> Result<Step, Error> {
        let at = format!("steps[{index}]");
        let (action, step) = match step {
            plan::Step::Request(request) => {
                let only_if = self.condition(&at, request.only_if.as_ref())?;
                let template = self.request(&at, index, request, origin)?;
                let needs = template.needs();
                let kind = StepKind::Request(Box::new(template));
                (&request.action, Step { kind, only_if, always: request.always, needs })
            }
            plan::Step::Pause(pause) => {
                let only_if = self.condition(&at, pause.only_if.as_ref())?;
                let kind = StepKind::Pause(compile_pause(&at, index, pause)?);
                (&pause.action, Step { kind, only_if, always: pause.always, needs: Vec::new() })
            }
        };
        self.actions.insert(action.clone(), index);
        Ok(step)
    }

    fn condition(
        &self,
        at: &str,
        condition: Option<&StatusCondition>,
    ) -> Result<Option<Condition>, Error> {
        let Some(StatusCondition { action, status }) = condition else { return Ok(None) };
        let Some(&step) = self.actions.get(action) else {
            let reason = format!("hangs on the action {action:?}, which no earlier step has");
            return Err(Error::plan(format!("{at}.only_if"), reason));
        };
        Ok(Some(Condition { step, status: status.clone() }))
    }

    fn request(
        &mut self,
        at: &str,
        index: usize,
        step: &plan::Request,
        origin: &Origin,
    ) -> Result<Template, Error> {
        if !is_token(&step.method) {
            return Err(Error::plan(format!("{at}.method"), "must be an HTTP method"));
        }
        if step.expect_status.is_empty()
            || step.expect_status.iter().any(|status| !(200..=999).contains(status))
        {
            let reason = "must name at least one status from 200 to 999";
            return Err(Error::plan(format!("{at}.expect_status"), reason));
        }
        let head = self.head(at, step, origin)?;
        let body = self.pieces(&format!("{at}.body"), &step.body, Position::Body)?;
        let captures = self.captures(at, step)?;
        let fixed = concat_fixed(&head, &body);
        Ok(Template {
            trace_at: fixed.as_deref().map_or(0, end_of_headers),
            fixed,
            index,
            has_fixed_head: head
                .iter()
                .all(|piece| matches!(piece, Piece::Bytes(_) | Piece::BodyLength | Piece::Trace)),
            head,
            body,
            is_head: step.method == "HEAD",
            expect_status: step.expect_status.clone(),
            captures,
        })
    }

    fn head(
        &mut self,
        at: &str,
        step: &plan::Request,
        origin: &Origin,
    ) -> Result<Vec<Piece>, Error> {
        let path_at = format!("{at}.path");
        let starts_with_slash =
            matches!(step.path.first(), Some(Part::Text(text)) if text.starts_with('/'));
        if !starts_with_slash {
            return Err(Error::plan(path_at, "must start with a text that starts with /"));
        }
        let mut head = vec![bytes(&format!("{} ", step.method))];
        head.extend(self.pieces(&path_at, &step.path, Position::Path)?);
        head.push(bytes(" HTTP/1.1\r\n"));
        for (name, value) in default_headers(origin, self.reuse) {
            if !step.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name)) {
                head.push(bytes(&format!("{name}: {value}\r\n")));
            }
        }
        for (name, value) in &step.headers {
            let header_at = format!("{at}.headers.{name}");
            if !is_token(name) {
                return Err(Error::plan(header_at, "is no header name"));
            }
            if ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase()) {
                return Err(Error::plan(header_at, "is written by the engine; leave it out"));
            }
            if self.http == Http::Two && CONNECTION_HEADERS.contains(&&*name.to_ascii_lowercase()) {
                return Err(Error::plan(header_at, "does not exist in HTTP/2; leave it out"));
            }
            head.push(bytes(&format!("{name}: ")));
            head.extend(self.pieces(&header_at, value, Position::Header)?);
            head.push(bytes("\r\n"));
        }
        if self.has_cookies {
            head.push(Piece::Cookies);
        }
        if !step.body.is_empty() || matches!(&*step.method, "POST" | "PUT" | "PATCH") {
            head.extend([bytes("Content-Length: "), Piece::BodyLength, bytes("\r\n")]);
        }
        head.extend([Piece::Trace, bytes("\r\n")]);
        Ok(head)
    }

    fn pieces(
        &mut self,
        at: &str,
        parts: &[Part],
        position: Position,
    ) -> Result<Vec<Piece>, Error> {
        let mut pieces = Vec::new();
        for part in parts {
            pieces.push(self.piece(at, part, position)?);
            if let Part::Iteration(_) = part {
                pieces.push(Piece::Iteration);
            }
        }
        Ok(pieces)
    }

    fn piece(&mut self, at: &str, part: &Part, position: Position) -> Result<Piece, Error> {
        let refuse = |reason: String| Err(Error::plan(at, reason));
        match part {
            Part::Text(text) | Part::Iteration(text)
                if text.bytes().all(|byte| position.allows(byte)) =>
            {
                Ok(bytes(text))
            }
            Part::Text(_) | Part::Iteration(_) => {
                refuse("holds a byte that HTTP does not allow there".to_owned())
            }
            Part::Column(name) => {
                let Some(index) = self.columns.keys().position(|column| column == name) else {
                    return refuse(format!("needs the column {name:?}, which the plan lacks"));
                };
                let rows = &self.columns[name];
                if rows.is_empty() {
                    return refuse(format!("needs the column {name:?}, which is empty"));
                }
                match rows.iter().position(|row| !row.bytes().all(|byte| position.allows(byte))) {
                    // The message omits the value, which may be a secret.
                    Some(row) => refuse(format!(
                        "is filled from column {name:?}, whose row {row} holds a byte that HTTP \
                         does not allow there"
                    )),
                    None => Ok(Piece::Column(index)),
                }
            }
            Part::OneTimeCode(name) => {
                let Some(secrets) = self.columns.get(name).filter(|rows| !rows.is_empty()) else {
                    return refuse(format!("needs the column {name:?}, which the plan lacks"));
                };
                match OneTimeCodes::new(secrets) {
                    Ok(codes) => {
                        self.codes.push(codes);
                        Ok(Piece::OneTimeCode(self.codes.len() - 1))
                    }
                    // The message omits the value, which is a secret.
                    Err(row) => refuse(format!("needs base32 in row {row} of the column {name:?}")),
                }
            }
            Part::Capture(name) => match self.captures.get(name) {
                Some(&capture) => {
                    self.positions[capture] = self.positions[capture].min(position);
                    Ok(Piece::Capture(capture))
                }
                None => refuse(format!("needs the capture {name:?}, which no earlier step makes")),
            },
        }
    }

    fn captures(&mut self, at: &str, step: &plan::Request) -> Result<Vec<CaptureRule>, Error> {
        let mut rules = Vec::new();
        for capture in &step.captures {
            let refuse =
                |reason| Err(Error::plan(format!("{at}.captures.{}", capture.name), reason));
            let source = self.source(capture).or_else(refuse)?;
            let next = self.positions.len();
            let index = *self.captures.entry(capture.name.clone()).or_insert(next);
            if index == next {
                self.positions.push(Position::Body);
            }
            rules.push(CaptureRule {
                source,
                capture: index,
                optional: capture.optional,
                is_encoded: capture.encoded,
                equals: capture.equals.clone(),
            });
        }
        Ok(rules)
    }

    /// Returns the source of a capture; an error is the reason.
    fn source(&self, capture: &plan::Capture) -> Result<Source, &'static str> {
        let plan::Capture { header, pointer, link, form, parameter, .. } = capture;
        let header_name = header.as_ref().or(link.as_ref());
        if header_name.is_some_and(|name| !is_token(name)) {
            return Err("names no header");
        }
        match (header, pointer, link, form) {
            (Some(header), None, None, None) => Ok(Source::Header(header.clone())),
            (None, Some(pointer), None, None) => match Pointer::parse(pointer) {
                Some(pointer) => Ok(Source::Json(pointer)),
                None => Err("is no JSON pointer, as /token/user/id is"),
            },
            (None, None, Some(header), None) => Ok(match parameter {
                Some(parameter) => Source::Parameter(header.clone(), parameter.clone()),
                None => Source::Link(header.clone(), self.origin.clone()),
            }),
            (None, None, None, Some(number)) if capture.hidden => Ok(Source::Hidden(*number)),
            (None, None, None, Some(number)) => Ok(Source::Action(*number, self.origin.clone())),
            _ => Err("needs one of header, pointer, link and form"),
        }
    }
}

impl Template {
    /// Returns the captures that its placeholders need.
    fn needs(&self) -> Vec<usize> {
        let pieces = self.head.iter().chain(&self.body);
        let mut needs: Vec<_> = pieces
            .filter_map(
                |piece| if let Piece::Capture(capture) = piece { Some(*capture) } else { None },
            )
            .collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }
}

fn compile_pause(at: &str, index: usize, pause: &plan::Pause) -> Result<Pause, Error> {
    let &plan::Pause { min_s, max_s, .. } = pause;
    seconds(&format!("{at}.min_s"), min_s)?;
    seconds(&format!("{at}.max_s"), max_s)?;
    if min_s > max_s {
        let reason = format!("must be at most max_s ({max_s}), is {min_s}");
        return Err(Error::plan(format!("{at}.min_s"), reason));
    }
    Ok(Pause { min_s, max_s, stream: index as u64 + 1 })
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

/// Returns the whole request, if it has no placeholders.
fn concat_fixed(head: &[Piece], body: &[Piece]) -> Option<Vec<u8>> {
    let mut length = 0;
    for piece in body {
        let Piece::Bytes(bytes) = piece else { return None };
        length += bytes.len();
    }
    let mut whole = Vec::new();
    for piece in head.iter().chain(body) {
        match piece {
            Piece::Bytes(bytes) => whole.extend_from_slice(bytes),
            Piece::BodyLength => whole.extend_from_slice(DecimalBuffer::default().format(length)),
            Piece::Trace => {}
            Piece::Column(_)
            | Piece::Capture(_)
            | Piece::Iteration
            | Piece::OneTimeCode(_)
            | Piece::Cookies => return None,
        }
    }
    Some(whole)
}

/// Returns the offset of the empty line that ends the head of a request.
fn end_of_headers(request: &[u8]) -> usize {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    end.expect("a head ends with an empty line") + 2
}

/// Whether a text is a token, as methods and header names are (RFC 9110 5.6.2).
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
