//! Steps laid out beforehand: bytes, and holes that are filled as they are sent.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Refusal;
use crate::capture::Rule;
use crate::check::positive;
use crate::clock::nanos;
use crate::cookies::Jar;
use crate::page::Site;
use crate::plan::Plan;
use crate::random::draw;

mod chain;
pub(crate) mod course;
mod layout;

use chain::Chain;
use layout::Names;

/// What one iteration does.
pub(crate) struct Script {
    /// Those of all scripts, one after another.
    pub steps: Vec<Step>,
    scripts: Vec<Weighted>,
    /// For each capture, the strictest place that it fills.
    places: Vec<Place>,
    columns: Vec<Column>,
    chains: Vec<Chain>,
    pub has_cookies: bool,
    seed: u64,
}

/// The values of one column, end to end: iterations take row after row, so that the processor can
/// read ahead what thousands of users bring.
struct Column {
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl Column {
    fn of(rows: &[String]) -> Self {
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        Self { ends: ends.collect(), bytes: rows.concat().into_bytes() }
    }

    /// The row of an iteration; the rows are taken again from the first when all were.
    fn row(&self, iteration: u32) -> &[u8] {
        let row = iteration as usize % self.ends.len();
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }
}

/// One script of a mix.
struct Weighted {
    steps: Range<usize>,
    /// The captures that its chains fill, and which chain.
    taken: Vec<(usize, usize)>,
    /// The weights of those before it, and its own.
    up_to: f64,
}

/// Something to do, and when to leave it out.
pub(crate) struct Step {
    pub act: Act,
    only_if: Option<Condition>,
    always: bool,
    /// The captures without which it cannot be done.
    needs: Vec<usize>,
}

/// What is done.
pub(crate) enum Act {
    Request(Box<Request>),
    Pause(Pause),
}

/// Holds when that step ended with one of these statuses.
struct Condition {
    step: usize,
    status: Vec<u16>,
}

/// A time between two bounds.
pub(crate) struct Pause {
    min_s: f64,
    max_s: f64,
    /// Keeps its draws apart from those of other pauses.
    stream: u64,
}

/// One request and what is expected of its answer.
pub(crate) struct Request {
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// All of it, when it has no holes.
    fixed: Option<Vec<u8>>,
    /// Its head is the same in every iteration, but for the length of the body.
    pub has_fixed_head: bool,
    pub is_head: bool,
    pub expect_status: Vec<u16>,
    pub captures: Vec<Rule>,
}

enum Piece {
    Bytes(Vec<u8>),
    Column(usize),
    Capture(usize),
    Iteration,
    BodyLength,
    /// The header with the iteration's cookies, as a whole line.
    Cookies,
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
    /// Lays out the steps of a plan, and refuses what would not be HTTP.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Refusal> {
        if plan.steps.is_empty() || plan.steps.len() > usize::from(u8::MAX) {
            return Err(Refusal::plan("steps", "must be 1 to 255"));
        }
        let mut names = Names {
            columns: &plan.columns,
            captures: BTreeMap::new(),
            actions: BTreeMap::new(),
            places: Vec::new(),
            reuse: plan.connection,
            http: plan.placement.http,
            site: Site::new(&plan.origin),
            has_cookies: plan.cookies,
        };
        let mut scripts = scripts(plan)?;
        let mut steps = Vec::new();
        for script in &mut scripts {
            // What one script captures is not another's.
            names.captures.clear();
            names.actions.clear();
            let taken = names.chains(plan.chains.keys());
            for index in script.steps.clone() {
                steps.push(names.step(index, &plan.steps[index], &plan.origin)?);
            }
            let of_script: &[Step] = &steps[script.steps.clone()];
            script.taken = taken
                .filter(|(capture, _)| of_script.iter().any(|step| step.needs.contains(capture)))
                .collect();
        }
        let part = (usize::from(plan.placement.part), usize::from(plan.placement.parts));
        let chains = plan.chains.values().map(|values| Chain::new(values, part)).collect();
        let columns = plan.columns.values().map(|rows| Column::of(rows)).collect();
        Ok(Self {
            steps,
            scripts,
            places: names.places,
            columns,
            chains,
            has_cookies: plan.cookies,
            seed: plan.seed,
        })
    }

    /// Which script an iteration follows.
    fn script_of(&self, iteration: u32) -> &Weighted {
        let last = self.scripts.last().expect("a plan has at least one script");
        if self.scripts.len() == 1 {
            return last;
        }
        let drawn = draw(self.seed, MIX, iteration) * last.up_to;
        self.scripts.iter().find(|script| drawn < script.up_to).unwrap_or(last)
    }

    /// Which steps an iteration takes.
    pub(crate) fn steps_of(&self, iteration: u32) -> Range<usize> {
        self.script_of(iteration).steps.clone()
    }

    /// Whether everything that the request's answer must hold was found and fits where it is to
    /// go; what does not fit is forgotten.
    fn keep_what_fits(&self, request: &Request, values: &mut [Vec<u8>]) -> bool {
        let mut is_complete = true;
        for rule in &request.captures {
            let (value, place) = (&mut values[rule.capture], self.places[rule.capture]);
            if value.is_empty() {
                is_complete &= rule.optional;
            } else if !value.iter().all(|&byte| place.allows(byte)) {
                value.clear();
                is_complete = false;
            }
        }
        is_complete
    }

    /// How long an iteration's pause is.
    pub(crate) fn length_ns(&self, pause: &Pause, iteration: u32) -> i64 {
        let share = draw(self.seed, pause.stream, iteration);
        nanos(pause.min_s + share * (pause.max_s - pause.min_s))
    }

    /// The bytes of a request, written into `out` unless they are the same every time.
    pub(crate) fn fill<'a>(
        &'a self,
        request: &'a Request,
        iteration: u32,
        captured: &[Vec<u8>],
        jar: Option<&Jar>,
        out: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        if let Some(fixed) = &request.fixed {
            return fixed;
        }
        let mut digits = Digits::default();
        let number = digits.of(iteration as usize);
        let value = |piece| -> Option<&[u8]> {
            match piece {
                &Piece::Column(column) => Some(self.columns[column].row(iteration)),
                Piece::Bytes(bytes) => Some(bytes),
                Piece::Capture(capture) => Some(&captured[*capture]),
                Piece::Iteration => Some(number),
                Piece::BodyLength | Piece::Cookies => None,
            }
        };
        out.clear();
        for piece in request.head.iter().chain(&request.body) {
            if let Some(bytes) = value(piece) {
                out.extend_from_slice(bytes);
            } else if let Piece::Cookies = piece {
                if let Some(jar) = jar {
                    let path = path_of(out).to_vec();
                    jar.write(&path, out);
                }
            } else {
                let length = request.body.iter().filter_map(value).map(<[u8]>::len).sum();
                out.extend_from_slice(Digits::default().of(length));
            }
        }
        out
    }
}

/// The stream that the mix is drawn from; pauses have those of their steps, from 1.
const MIX: u64 = 0;

fn scripts(plan: &Plan) -> Result<Vec<Weighted>, Refusal> {
    if plan.mix.is_empty() {
        return Ok(vec![Weighted { steps: 0..plan.steps.len(), taken: Vec::new(), up_to: 1.0 }]);
    }
    let (mut scripts, mut next, mut up_to) = (Vec::new(), 0, 0.0);
    for (index, share) in plan.mix.iter().enumerate() {
        positive(&format!("mix[{index}].weight"), share.weight)?;
        let steps = next..share.steps.saturating_add(next);
        if steps.is_empty() || steps.end > plan.steps.len() {
            let reason = format!("must be from 1 to what is left of {} steps", plan.steps.len());
            return Err(Refusal::plan(format!("mix[{index}].steps"), reason));
        }
        next = steps.end;
        up_to += share.weight;
        scripts.push(Weighted { steps, taken: Vec::new(), up_to });
    }
    if next < plan.steps.len() {
        return Err(Refusal::plan("mix", format!("takes {next} of {} steps", plan.steps.len())));
    }
    Ok(scripts)
}

/// The path of a request line, without its query.
fn path_of(request: &[u8]) -> &[u8] {
    let path = request.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    path.split(|&byte| byte == b'?').next().unwrap_or_default()
}

/// Room for a number in decimal.
#[derive(Default)]
struct Digits([u8; 20]);

impl Digits {
    fn of(&mut self, mut value: usize) -> &[u8] {
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
