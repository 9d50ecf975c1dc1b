//! How far an iteration has come: what its steps captured, and how they ended.

use super::{Act, Request, Script, Step};
use crate::capture::{Captured, Listener};
use crate::connection::Answer;
use crate::samples::Outcome;

/// One iteration's course; used again for the next one.
pub(crate) struct Course {
    captured: Captured,
    /// For each step; 0 where it was left out, or without an answer.
    statuses: Vec<u16>,
    has_failed: bool,
}

impl Course {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            captured: Captured::new(script.places.len()),
            statuses: vec![0; script.steps.len()],
            has_failed: false,
        }
    }

    /// Forgets the iteration before.
    pub(crate) fn begin(&mut self) {
        self.captured.values.iter_mut().for_each(Vec::clear);
        self.statuses.fill(0);
        self.has_failed = false;
    }

    /// Whether the step is to be done.
    pub(crate) fn has_next(&self, step: &Step) -> bool {
        let is_asked_for = step
            .only_if
            .as_ref()
            .is_none_or(|condition| condition.status.contains(&self.statuses[condition.step]));
        (step.always || !self.has_failed)
            && is_asked_for
            && step.needs.iter().all(|&capture| !self.captured.values[capture].is_empty())
    }

    pub(crate) fn values(&self) -> &[Vec<u8>] {
        &self.captured.values
    }

    pub(crate) fn listen<'a>(&'a mut self, request: &'a Request) -> Listener<'a> {
        self.captured.listen(&request.captures)
    }

    /// Takes note of a step's answer: how the step ended.
    pub(crate) fn judge(&mut self, script: &Script, step: usize, answer: &Answer) -> Outcome {
        let outcome = match (&script.steps[step].act, answer.fault) {
            (Act::Request(request), Some(fault)) => {
                // Part of an answer: a header may be there, but is not to be relied upon.
                self.captured.forget(&request.captures);
                fault
            }
            (Act::Request(request), None) => {
                let has_captured = script.keep_what_fits(request, &mut self.captured.values);
                self.statuses[step] = answer.status;
                if !request.expect_status.contains(&answer.status) {
                    Outcome::HttpStatus
                } else if self.captured.is_too_long {
                    Outcome::TooLong
                } else if has_captured {
                    Outcome::Ok
                } else {
                    Outcome::BadHttp
                }
            }
            (Act::Pause(_), fault) => fault.unwrap_or(Outcome::Ok),
        };
        self.has_failed |= outcome != Outcome::Ok;
        outcome
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }
}
