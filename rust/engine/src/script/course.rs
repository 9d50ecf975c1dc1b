//! How far an iteration has come: what its steps captured, and how they ended.

use super::{Act, Request, Script, Step};
use crate::capture::{Captured, Listener};
use crate::connection::Answer;
use crate::cookies::Jar;
use crate::samples::Outcome;

/// One iteration's course; used again for the next one.
pub(crate) struct Course {
    captured: Captured,
    /// For each step; 0 where it was left out, or without an answer.
    statuses: Vec<u16>,
    has_failed: bool,
    /// Values taken from chains, each with its capture and its chain.
    held: Vec<Held>,
    /// The service refused the last request for the time being, without carrying it out.
    is_put_off: bool,
}

struct Held {
    capture: usize,
    chain: usize,
    value: Vec<u8>,
}

impl Course {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            captured: Captured::new(script.places.len(), script.has_cookies),
            statuses: vec![0; script.steps.len()],
            has_failed: false,
            held: Vec::new(),
            is_put_off: false,
        }
    }

    /// Forgets the iteration before, and takes values of chains; false if one has none free.
    pub(crate) fn begin(&mut self, script: &Script, iteration: u32) -> bool {
        self.captured.clear();
        self.statuses.fill(0);
        (self.has_failed, self.is_put_off) = (false, false);
        if script.chains.is_empty() {
            return true;
        }
        for &(capture, chain) in &script.script_of(iteration).taken {
            let Some(value) = script.chains[chain].take() else { return false };
            self.captured.values[capture].clone_from(&value);
            self.held.push(Held { capture, chain, value });
        }
        true
    }

    /// Gives values of chains back: renewed ones, or those that were surely not used. A value of
    /// which nobody knows whether it was used is dropped.
    pub(crate) fn end(&mut self, script: &Script) {
        for Held { capture, chain, value } in self.held.drain(..) {
            let renewed = &self.captured.values[capture];
            if !renewed.is_empty() {
                script.chains[chain].give_back(renewed.clone());
            } else if self.is_put_off || !self.has_failed {
                script.chains[chain].give_back(value);
            }
        }
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

    pub(crate) fn jar(&self) -> Option<&Jar> {
        self.captured.jar.as_ref()
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
                    self.is_put_off = is_put_off(answer.status);
                    Outcome::HttpStatus
                } else if self.captured.is_unexpected {
                    Outcome::WrongContent
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

/// Whether a status says that the service did not carry the request out: overloaded or rate-limited.
fn is_put_off(status: u16) -> bool {
    matches!(status, 429 | 503)
}
