//! Scripts: the steps of a plan, compiled before the run and rendered for each iteration.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Error;
use crate::check::positive;
use crate::clock::nanos;
use crate::cookies::CookieJar;
use crate::links::LinkOrigin;
use crate::one_time_code::{Code, OneTimeCodes};
use crate::plan::{Plan, Trace};
use crate::random::uniform;
use crate::trace::{HeaderLine, header};

mod chain;
pub(crate) mod iteration;
mod layout;
mod step;

use chain::Chain;
use layout::LayoutContext;
use step::{DecimalBuffer, Piece, Position};
pub(crate) use step::{Pause, Step, StepKind, Template};

/// All scripts of a plan.
pub(crate) struct Script {
    /// Steps of all scripts, one script after the other.
    pub steps: Vec<Step>,
    scripts: Vec<WeightedScript>,
    /// For each capture, the strictest position that it is used in.
    positions: Vec<Position>,
    columns: Vec<Column>,
    codes: Vec<OneTimeCodes>,
    chains: Vec<Chain>,
    pub has_cookies: bool,
    seed: u64,
    trace: Option<Trace>,
}

/// Values of a column in contiguous memory: iterations use row after row, so the CPU prefetches
/// them.
struct Column {
    bytes: Vec<u8>,
    /// End of each row.
    ends: Vec<usize>,
}

impl Column {
    fn new(rows: &[String]) -> Self {
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        Self { ends: ends.collect(), bytes: rows.concat().into_bytes() }
    }

    /// Returns the row of an iteration; rows repeat.
    fn row(&self, iteration: u32) -> &[u8] {
        let row = iteration as usize % self.ends.len();
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }
}

/// Script of a mix.
struct WeightedScript {
    steps: Range<usize>,
    /// Captures that are filled from chains, each with its chain.
    chained: Vec<(usize, usize)>,
    /// Sum of the weights up to this script.
    cumulative_weight: f64,
}

impl Script {
    /// Compiles the steps of a plan, and refuses requests that are not valid HTTP.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Error> {
        if plan.steps.is_empty() || plan.steps.len() > usize::from(u8::MAX) {
            return Err(Error::plan("steps", "must be 1 to 255"));
        }
        let mut context = LayoutContext {
            columns: &plan.columns,
            captures: BTreeMap::new(),
            actions: BTreeMap::new(),
            positions: Vec::new(),
            codes: Vec::new(),
            reuse: plan.connection,
            http: plan.placement.http,
            origin: LinkOrigin::new(&plan.origin),
            has_cookies: plan.cookies,
        };
        let mut scripts = scripts(plan)?;
        let mut steps = Vec::new();
        for script in &mut scripts {
            // Captures of one script are not visible in another.
            context.captures.clear();
            context.actions.clear();
            let chained = context.chains(plan.chains.keys());
            for index in script.steps.clone() {
                steps.push(context.step(index, &plan.steps[index], &plan.origin)?);
            }
            let of_script: &[Step] = &steps[script.steps.clone()];
            script.chained = chained
                .filter(|(capture, _)| of_script.iter().any(|step| step.needs.contains(capture)))
                .collect();
        }
        let part = (usize::from(plan.placement.part), usize::from(plan.placement.parts));
        let chains = plan.chains.values().map(|values| Chain::new(values, part)).collect();
        let columns = plan.columns.values().map(|rows| Column::new(rows)).collect();
        Ok(Self {
            steps,
            scripts,
            positions: context.positions,
            columns,
            codes: context.codes,
            chains,
            has_cookies: plan.cookies,
            seed: plan.seed,
            trace: plan.trace,
        })
    }

    /// Returns the script of an iteration.
    fn script_for(&self, iteration: u32) -> &WeightedScript {
        let last = self.scripts.last().expect("a plan has at least one script");
        if self.scripts.len() == 1 {
            return last;
        }
        let random = uniform(self.seed, MIX_STREAM, iteration) * last.cumulative_weight;
        self.scripts.iter().find(|script| random < script.cumulative_weight).unwrap_or(last)
    }

    /// Returns the indices of the steps of an iteration.
    pub(crate) fn steps_for(&self, iteration: u32) -> Range<usize> {
        self.script_for(iteration).steps.clone()
    }

    /// Returns whether all required values of a response were captured. Removes values that have
    /// bytes which are not allowed where the value is used.
    fn validate_captures(&self, request: &Template, values: &mut [Vec<u8>]) -> bool {
        let mut is_complete = true;
        for rule in &request.captures {
            let (value, position) = (&mut values[rule.capture], self.positions[rule.capture]);
            if value.is_empty() {
                is_complete &= rule.optional;
            } else if !value.iter().all(|&byte| position.allows(byte)) {
                value.clear();
                is_complete = false;
            }
        }
        is_complete
    }

    /// Returns the length of an iteration's pause.
    pub(crate) fn pause_ns(&self, pause: &Pause, iteration: u32) -> i64 {
        let random = uniform(self.seed, pause.stream, iteration);
        nanos(pause.min_s + random * (pause.max_s - pause.min_s))
    }

    /// Returns the header line of a request, if it is traced.
    fn trace_header(&self, request: &Template, iteration: u32) -> Option<HeaderLine> {
        header(self.trace.as_ref()?, request.index, iteration)
    }

    /// Whether other iterations send the same head, except for the length of the body.
    pub(crate) fn has_shared_head(&self, request: &Template, iteration: u32) -> bool {
        request.has_fixed_head && self.trace_header(request, iteration).is_none()
    }

    /// Returns the one-time code of this moment for an iteration's row of a column.
    fn code(&self, codes: usize, iteration: u32) -> Code {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let s = since_1970.as_secs().saturating_sub(CODE_AGE_S);
        self.codes[codes].at(iteration, s)
    }

    /// Renders a request into `out`, unless it is the same in every iteration.
    pub(crate) fn render<'a>(
        &'a self,
        request: &'a Template,
        iteration: u32,
        captured: &[Vec<u8>],
        jar: Option<&CookieJar>,
        out: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let trace = self.trace_header(request, iteration);
        if let Some(fixed) = &request.fixed {
            let Some(line) = trace else { return fixed };
            let (headers, rest) = fixed.split_at(request.trace_at);
            out.clear();
            for part in [headers, &line, rest] {
                out.extend_from_slice(part);
            }
            return out;
        }
        let mut digits = DecimalBuffer::default();
        let number = digits.format(iteration as usize);
        let value = |piece| -> Option<&[u8]> {
            match piece {
                &Piece::Column(column) => Some(self.columns[column].row(iteration)),
                Piece::Bytes(bytes) => Some(bytes),
                Piece::Capture(capture) => Some(&captured[*capture]),
                Piece::Iteration => Some(number),
                Piece::OneTimeCode(_) | Piece::BodyLength | Piece::Cookies | Piece::Trace => None,
            }
        };
        let length = |piece: &'a Piece| match piece {
            Piece::OneTimeCode(_) => size_of::<Code>(),
            _ => value(piece).map_or(0, <[u8]>::len),
        };
        out.clear();
        for piece in request.head.iter().chain(&request.body) {
            if let Some(bytes) = value(piece) {
                out.extend_from_slice(bytes);
            } else if let Piece::OneTimeCode(codes) = piece {
                out.extend_from_slice(&self.code(*codes, iteration));
            } else if let Piece::Cookies = piece {
                if let Some(jar) = jar {
                    let path = path_of(out).to_vec();
                    jar.write_header(&path, out);
                }
            } else if let Piece::Trace = piece {
                out.extend(trace.iter().flatten());
            } else {
                let body_length = request.body.iter().map(length).sum();
                out.extend_from_slice(DecimalBuffer::default().format(body_length));
            }
        }
        out
    }
}

/// Random stream of the mix; pauses have the streams from 1.
const MIX_STREAM: u64 = 0;
/// Age of one-time codes. Keystone accepts those of this period and the one before, so clocks may
/// differ by so much either way.
const CODE_AGE_S: u64 = 5;

fn scripts(plan: &Plan) -> Result<Vec<WeightedScript>, Error> {
    if plan.mix.is_empty() {
        return Ok(vec![WeightedScript {
            steps: 0..plan.steps.len(),
            chained: Vec::new(),
            cumulative_weight: 1.0,
        }]);
    }
    let (mut scripts, mut next, mut cumulative_weight) = (Vec::new(), 0, 0.0);
    for (index, share) in plan.mix.iter().enumerate() {
        positive(&format!("mix[{index}].weight"), share.weight)?;
        let steps = next..share.steps.saturating_add(next);
        if steps.is_empty() || steps.end > plan.steps.len() {
            let reason = format!("must be from 1 to what is left of {} steps", plan.steps.len());
            return Err(Error::plan(format!("mix[{index}].steps"), reason));
        }
        next = steps.end;
        cumulative_weight += share.weight;
        scripts.push(WeightedScript { steps, chained: Vec::new(), cumulative_weight });
    }
    if next < plan.steps.len() {
        return Err(Error::plan("mix", format!("takes {next} of {} steps", plan.steps.len())));
    }
    Ok(scripts)
}

/// Returns the path of a request line, without its query.
fn path_of(request: &[u8]) -> &[u8] {
    let path = request.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    path.split(|&byte| byte == b'?').next().unwrap_or_default()
}
