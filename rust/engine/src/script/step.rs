//! Steps of a script, compiled to bytes and placeholders.

use crate::capture::CaptureRule;

/// Step of a script: a request or a pause, and when to skip it.
pub(crate) struct Step {
    pub kind: StepKind,
    pub only_if: Option<Condition>,
    pub always: bool,
    /// Captures that it needs.
    pub needs: Vec<usize>,
}

/// Kind of a step.
pub(crate) enum StepKind {
    Request(Box<Template>),
    Pause(Pause),
}

/// Condition that a step ended with one of these statuses.
pub(crate) struct Condition {
    pub step: usize,
    pub status: Vec<u16>,
}

/// Pause of a random length.
pub(crate) struct Pause {
    pub min_s: f64,
    pub max_s: f64,
    /// Random stream, other than those of other pauses.
    pub stream: u64,
}

/// Request with placeholders, and what is expected of its response.
pub(crate) struct Template {
    pub head: Vec<Piece>,
    pub body: Vec<Piece>,
    /// The whole request, if it has no placeholders.
    pub fixed: Option<Vec<u8>>,
    /// Offset in `fixed` at which the header of a traced request is inserted.
    pub trace_at: usize,
    /// Index of the step in the plan.
    pub index: usize,
    /// The head is the same in every iteration that is not traced, except for the length of the body.
    pub has_fixed_head: bool,
    pub is_head: bool,
    pub expect_status: Vec<u16>,
    pub captures: Vec<CaptureRule>,
}

/// Piece of a request: bytes or a placeholder.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Column(usize),
    Capture(usize),
    Iteration,
    /// Code of a list of `Script::codes`.
    OneTimeCode(usize),
    BodyLength,
    /// Cookie header of the iteration.
    Cookies,
    /// Header of a traced request.
    Trace,
}

/// Position of a placeholder, which determines the allowed bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Position {
    Path,
    Header,
    Body,
}

impl Position {
    pub(crate) fn allows(self, byte: u8) -> bool {
        match self {
            Self::Path => byte > b' ' && byte < 0x7f && byte != b'#',
            Self::Header => byte == b'\t' || (byte >= b' ' && byte != 0x7f),
            Self::Body => true,
        }
    }
}

/// Buffer for a number in decimal digits.
#[derive(Default)]
pub(crate) struct DecimalBuffer([u8; 20]);

impl DecimalBuffer {
    pub(crate) fn format(&mut self, mut value: usize) -> &[u8] {
        let mut at = self.0.len();
        loop {
            at -= 1;
            self.0[at] = b"0123456789"[value % 10];
            value /= 10;
            if value == 0 {
                return &self.0[at..];
            }
        }
    }
}
