//! Per-request work without sockets, for `cargo bench`.

use crate::Error;
use crate::pacer::Arrival;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::response::HeadReader;
use crate::samples::Sample;
use crate::script::{Script, StepKind};

/// Renderer of a plan's requests.
pub struct RequestRenderer {
    script: Script,
    captured: Vec<Vec<u8>>,
    out: Vec<u8>,
}

impl RequestRenderer {
    /// Compiles the plan; all captures have the value `token`.
    pub fn new(plan: &Plan, token: &[u8]) -> Result<Self, Error> {
        let script = Script::new(plan)?;
        let counts = script.steps.iter().map(|step| match &step.kind {
            StepKind::Request(request) => request.captures.len(),
            StepKind::Pause(_) => 0,
        });
        let captured = vec![token.to_vec(); counts.sum()];
        Ok(Self { script, captured, out: Vec::new() })
    }

    /// Renders all requests of an iteration and returns their length in bytes.
    pub fn render(&mut self, iteration: u32) -> usize {
        let mut length = 0;
        for step in &self.script.steps {
            if let StepKind::Request(request) = &step.kind {
                length += self
                    .script
                    .render(request, iteration, &self.captured, None, &mut self.out)
                    .len();
            }
        }
        length
    }
}

/// Parses a response. Returns its status, and whether its body is complete.
pub fn parse(response: &[u8]) -> Option<(u16, bool)> {
    let mut head = HeadReader::default().read(response, false, |_, _| {}).ok()??;
    head.body.consume(&response[head.length..], |_| {}).ok()?;
    Some((head.status, head.body.is_complete()))
}

/// Records this many samples and returns their number.
pub fn record(rows: u32) -> usize {
    let mut recorder = Recorder::new(rows as usize, 0, None, None);
    for iteration in 0..rows {
        let due_ns = i64::from(iteration) * 1000;
        let sample = Sample::not_sent(Arrival { iteration, due_ns }, 0);
        let (sent_ns, first_byte_ns, done_ns) = (due_ns + 100, due_ns + 200, due_ns + 300);
        recorder.push(&Sample { sent_ns, first_byte_ns, done_ns, status: 201, ..sample });
    }
    recorder.finish().len()
}
