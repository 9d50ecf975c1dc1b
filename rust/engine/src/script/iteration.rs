//! State of an iteration: captured values, and results of its steps.

use super::{Script, Step, StepKind, Template};
use crate::capture::{CaptureSink, Captures};
use crate::cookies::CookieJar;
use crate::exchange::Response;
use crate::outcome::Outcome;
use crate::progress::IterationEnd;

/// State of an iteration; reused for the next one.
pub(crate) struct IterationState {
    captures: Captures,
    /// Status of each step; 0 if it was skipped, or without a response.
    statuses: Vec<u16>,
    has_failed: bool,
    /// The first failure is that the run ended.
    is_cut_off: bool,
    /// Values that were taken from chains.
    held: Vec<Held>,
    /// The service did not process the last request: it was overloaded, or nothing was sent.
    is_unused: bool,
}

/// Value that was taken from a chain.
struct Held {
    capture: usize,
    chain: usize,
    value: Vec<u8>,
}

impl IterationState {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            captures: Captures::new(script.positions.len(), script.has_cookies),
            statuses: vec![0; script.steps.len()],
            has_failed: false,
            is_cut_off: false,
            held: Vec::new(),
            is_unused: false,
        }
    }

    /// Resets the state and takes values from chains; false if a chain has none.
    pub(crate) fn begin(&mut self, script: &Script, iteration: u32) -> bool {
        self.captures.clear();
        self.statuses.fill(0);
        (self.has_failed, self.is_cut_off, self.is_unused) = (false, false, false);
        if script.chains.is_empty() {
            return true;
        }
        for &(capture, chain) in &script.script_for(iteration).chained {
            let Some(value) = script.chains[chain].take() else { return false };
            self.captures.values[capture].clone_from(&value);
            self.held.push(Held { capture, chain, value });
        }
        true
    }

    /// Gives values back to chains: renewed ones, or those that were certainly not used. A value
    /// that may have been used is dropped.
    pub(crate) fn end(&mut self, script: &Script) {
        for Held { capture, chain, value } in self.held.drain(..) {
            let renewed = &self.captures.values[capture];
            if !renewed.is_empty() {
                script.chains[chain].give_back(renewed.clone());
            } else if self.is_unused || !self.has_failed {
                script.chains[chain].give_back(value);
            }
        }
    }

    /// Whether the step is to be executed.
    pub(crate) fn has_next(&self, step: &Step) -> bool {
        let is_wanted = step
            .only_if
            .as_ref()
            .is_none_or(|condition| condition.status.contains(&self.statuses[condition.step]));
        (step.always || !self.has_failed)
            && is_wanted
            && step.needs.iter().all(|&capture| !self.captures.values[capture].is_empty())
    }

    pub(crate) fn values(&self) -> &[Vec<u8>] {
        &self.captures.values
    }

    pub(crate) fn jar(&self) -> Option<&CookieJar> {
        self.captures.jar.as_ref()
    }

    pub(crate) fn capture_sink<'a>(&'a mut self, template: &'a Template) -> CaptureSink<'a> {
        self.captures.sink(&template.captures)
    }

    /// Stores the response of a step and returns the outcome.
    pub(crate) fn judge(&mut self, script: &Script, step: usize, response: &Response) -> Outcome {
        let outcome = match (&script.steps[step].kind, response.failure) {
            (StepKind::Request(template), Some(failure)) => {
                // Values of an incomplete response are not used.
                self.captures.remove(&template.captures);
                // Nothing was sent: what the step would have used is unused.
                let is_first = self.statuses.iter().all(|&status| status == 0);
                self.is_unused |= response.sent_ns < 0 && is_first;
                failure
            }
            (StepKind::Request(template), None) => {
                let has_captured = script.validate_captures(template, &mut self.captures.values);
                self.statuses[step] = response.status;
                if !template.expect_status.contains(&response.status) {
                    self.is_unused = is_overload(response.status);
                    Outcome::HttpStatus
                } else if self.captures.is_unexpected {
                    Outcome::WrongContent
                } else if self.captures.is_too_long {
                    Outcome::TooLong
                } else if has_captured {
                    Outcome::Ok
                } else {
                    Outcome::BadHttp
                }
            }
            (StepKind::Pause(_), failure) => failure.unwrap_or(Outcome::Ok),
        };
        self.is_cut_off |= outcome == Outcome::NotSent && !self.has_failed;
        self.has_failed |= outcome != Outcome::Ok;
        outcome
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(crate) fn iteration_end(&self) -> IterationEnd {
        match (self.has_failed, self.is_cut_off) {
            (false, _) => IterationEnd::Ok,
            (true, false) => IterationEnd::Failed,
            (true, true) => IterationEnd::CutOff,
        }
    }
}

/// Whether a status means that the service did not process the request: overload or rate limit.
fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}
