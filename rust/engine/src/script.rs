//! Requests laid out beforehand: bytes, and holes that are filled as they are sent.

use std::collections::BTreeMap;

use crate::Refusal;
use crate::capture::Rule;
use crate::plan::Plan;

mod layout;

use layout::Names;

/// What one iteration sends.
pub(crate) struct Script {
    pub requests: Vec<Request>,
    /// For each capture, the strictest place that it fills.
    places: Vec<Place>,
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
    pub captures: Vec<Rule>,
}

enum Piece {
    Bytes(Vec<u8>),
    Column(usize),
    Capture(usize),
    BodyLength,
}

/// Where a hole stands decides which bytes may fill it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        let mut names = Names {
            columns: &plan.columns,
            captures: BTreeMap::new(),
            places: Vec::new(),
            reuse: plan.connection,
        };
        let mut requests = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            requests.push(names.request(&format!("steps[{index}]"), step, &plan.origin)?);
        }
        let columns = plan.columns.values();
        let columns =
            columns.map(|rows| rows.iter().map(|row| row.as_bytes().to_vec()).collect()).collect();
        Ok(Self { requests, places: names.places, columns })
    }

    /// How many values an iteration captures.
    pub(crate) fn captures(&self) -> usize {
        self.places.len()
    }

    /// Everything that the request's answer should hold was found, and fits where it is to go.
    pub(crate) fn has_captured(&self, request: &Request, values: &[Vec<u8>]) -> bool {
        request.captures.iter().all(|rule| {
            let (value, place) = (&values[rule.capture], self.places[rule.capture]);
            !value.is_empty() && value.iter().all(|&byte| place.allows(byte))
        })
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
