//! What is done for each request, without sockets, for `cargo bench`.

use crate::Refusal;
use crate::pacer::Arrival;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::response::HeadReader;
use crate::samples::Sample;
use crate::script::{Act, Script};

/// The requests of a plan, laid out.
pub struct Rendering {
    script: Script,
    captured: Vec<Vec<u8>>,
    out: Vec<u8>,
}

impl Rendering {
    /// Lays the requests out; captures are filled with `token`.
    pub fn new(plan: &Plan, token: &[u8]) -> Result<Self, Refusal> {
        let script = Script::new(plan)?;
        let counts = script.steps.iter().map(|step| match &step.act {
            Act::Request(request) => request.captures.len(),
            Act::Pause(_) => 0,
        });
        let captured = vec![token.to_vec(); counts.sum()];
        Ok(Self { script, captured, out: Vec::new() })
    }

    /// Writes all requests of an iteration: how many bytes they have.
    pub fn render(&mut self, iteration: u32) -> usize {
        let mut length = 0;
        for step in &self.script.steps {
            if let Act::Request(request) = &step.act {
                length +=
                    self.script.fill(request, iteration, &self.captured, None, &mut self.out).len();
            }
        }
        length
    }
}

/// Reads a whole answer: its status, and whether its body is complete.
pub fn parse(answer: &[u8]) -> Option<(u16, bool)> {
    let mut head = HeadReader::default().read(answer, false, |_, _| {}).ok()??;
    head.body.skip(&answer[head.length..], |_| {}).ok()?;
    Some((head.status, head.body.is_complete()))
}

/// Keeps as many samples as it was asked to, and tells their number.
pub fn record(rows: u32) -> usize {
    let mut recorder = Recorder::keeping(rows as usize, 0);
    for iteration in 0..rows {
        let due_ns = i64::from(iteration) * 1000;
        let mut sample = Sample::of(Arrival { iteration, due_ns }, 0);
        sample.sent_ns = due_ns + 100;
        sample.first_byte_ns = due_ns + 200;
        sample.done_ns = due_ns + 300;
        sample.status = 201;
        recorder.push(&sample);
    }
    recorder.finish().len()
}
