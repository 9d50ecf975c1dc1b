//! Checks of a plan's numbers. An error names the field.

use crate::Error;
use crate::plan::{Http, Limits, Load, Placement, Plan, Reuse, Stage};

impl Plan {
    /// Checks the plan.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.origin.host.is_empty() {
            return Err(Error::plan("origin.host", "must not be empty"));
        }
        let limits = &self.limits;
        duration("limits.connect_timeout_s", limits.connect_timeout_s)?;
        duration("limits.request_timeout_s", limits.request_timeout_s)?;
        let most_s = limits.iteration_timeout_s;
        most_s.map_or(Ok(()), |value| duration("limits.iteration_timeout_s", value))?;
        seconds("limits.drain_s", limits.drain_s)?;
        let stopped_s = limits.stopped_drain_s;
        stopped_s.map_or(Ok(()), |value| seconds("limits.stopped_drain_s", value))?;
        limits.max_rate_rps.map_or(Ok(()), |value| positive("limits.max_rate_rps", value))?;
        limits.load_s.map_or(Ok(()), |value| duration("limits.load_s", value))?;
        at_least_one("limits.max_connections", u32::from(limits.max_connections))?;
        at_least_one("placement.threads", u32::from(self.placement.threads))?;
        if self.placement.threads > limits.max_connections {
            return Err(Error::plan("placement.threads", "must not exceed limits.max_connections"));
        }
        self.check_parts()?;
        if let Some(trace) = self.trace {
            if !(0.0..=1.0).contains(&trace.share) {
                return Err(Error::plan("trace.share", "must be from 0 to 1"));
            }
            if trace.key == 0 {
                return Err(Error::plan("trace.key", "must not be 0"));
            }
        }
        if self.placement.http == Http::Two && self.connection != Reuse::Kept {
            let reason = "must be kept with HTTP/2, where iterations share a connection";
            return Err(Error::plan("connection", reason));
        }
        self.load.check(limits)
    }

    /// Checks that the load can be divided into this number of parts.
    fn check_parts(&self) -> Result<(), Error> {
        let Placement { threads, part, parts, .. } = self.placement;
        at_least_one("placement.parts", u32::from(parts))?;
        if part >= parts {
            let reason = format!("must be below placement.parts ({parts}), is {part}");
            return Err(Error::plan("placement.part", reason));
        }
        if threads.checked_mul(parts).is_none() {
            let reason = format!("times placement.threads must be at most {}", u16::MAX);
            return Err(Error::plan("placement.parts", reason));
        }
        let most = match self.load {
            // The band is one number of running iterations, which cannot be divided.
            Load::Band { .. } => 1,
            Load::Closed { workers, .. } => workers.max(1),
            Load::Open { .. } | Load::Stages { .. } | Load::Replay { .. } => u32::MAX,
        };
        if u32::from(parts) > most {
            let reason = format!("must be at most {most} for this load, is {parts}");
            return Err(Error::plan("placement.parts", reason));
        }
        Ok(())
    }
}

impl Load {
    fn check(&self, limits: &Limits) -> Result<(), Error> {
        match *self {
            Self::Open { rate_rps, duration_s, iterations, .. } => {
                positive("load.rate_rps", rate_rps)?;
                duration("load.duration_s", duration_s)?;
                iterations.map_or(Ok(()), |value| at_least_one("load.iterations", value))?;
                countable("load.rate_rps", rate_rps, duration_s)
            }
            Self::Stages { ref stages, iterations, .. } => {
                iterations.map_or(Ok(()), |value| at_least_one("load.iterations", value))?;
                check_stages(stages)
            }
            Self::Replay { ref offsets_s } => check_offsets(offsets_s),
            Self::Closed { workers, duration_s, iterations, think_s, turn } => {
                at_least_one("load.workers", workers)?;
                if workers > u32::from(limits.max_connections) {
                    let most = limits.max_connections;
                    let reason =
                        format!("must not exceed limits.max_connections ({most}), is {workers}");
                    return Err(Error::plan("load.workers", reason));
                }
                if duration_s.is_none() && iterations.is_none() {
                    return Err(Error::plan("load", "needs duration_s or iterations"));
                }
                duration_s.map_or(Ok(()), |value| duration("load.duration_s", value))?;
                iterations.map_or(Ok(()), |value| at_least_one("load.iterations", value))?;
                turn.map_or(Ok(()), |value| at_least_one("load.turn", value))?;
                seconds("load.think_s", think_s)
            }
            Self::Band { low, high, fill_rps, ebb_rps, duration_s } => {
                if low >= high {
                    let reason = format!("must be below load.high ({high}), is {low}");
                    return Err(Error::plan("load.low", reason));
                }
                positive("load.fill_rps", fill_rps)?;
                not_negative("load.ebb_rps", ebb_rps)?;
                duration("load.duration_s", duration_s)?;
                countable("load.fill_rps", fill_rps.max(ebb_rps), duration_s)
            }
        }
    }
}

fn check_stages(stages: &[Stage]) -> Result<(), Error> {
    let (mut lasts_s, mut count) = (0.0, 0.0);
    for (index, stage) in stages.iter().enumerate() {
        duration(&format!("load.stages[{index}].duration_s"), stage.duration_s)?;
        not_negative(&format!("load.stages[{index}].from_rps"), stage.from_rps)?;
        not_negative(&format!("load.stages[{index}].to_rps"), stage.to_rps)?;
        lasts_s += stage.duration_s;
        count += stage.count();
    }
    if count == 0.0 {
        return Err(Error::plan("load.stages", "must have at least one with a rate above 0"));
    }
    duration("load.stages", lasts_s)?;
    countable("load.stages", count / lasts_s, lasts_s)
}

fn check_offsets(offsets_s: &[f64]) -> Result<(), Error> {
    let Some(last_s) = offsets_s.last() else {
        return Err(Error::plan("load.offsets_s", "must not be empty"));
    };
    for (index, pair) in offsets_s.windows(2).enumerate() {
        if pair[0].partial_cmp(&pair[1]).is_none_or(std::cmp::Ordering::is_gt) {
            let reason = "must not be before the one before it";
            return Err(Error::plan(format!("load.offsets_s[{}]", index + 1), reason));
        }
    }
    seconds("load.offsets_s[0]", offsets_s[0])?;
    seconds("load.offsets_s", *last_s)
}

/// Checks that iterations can be numbered in 32 bits.
fn countable(field: &str, rate_rps: f64, duration_s: f64) -> Result<(), Error> {
    if rate_rps * duration_s < f64::from(u32::MAX) {
        return Ok(());
    }
    let reason = format!("{rate_rps}/s for {duration_s} s is more than {} iterations", u32::MAX);
    Err(Error::plan(field, reason))
}

const YEAR_S: f64 = 365.0 * 86_400.0;

/// Checks a time that may be 0.
pub(crate) fn seconds(field: &str, value: f64) -> Result<(), Error> {
    if value > YEAR_S {
        return Err(Error::plan(field, format!("must be at most a year, not {value}")));
    }
    not_negative(field, value)
}

fn duration(field: &str, value: f64) -> Result<(), Error> {
    positive(field, value)?;
    if value > YEAR_S {
        return Err(Error::plan(field, format!("must be at most a year, not {value}")));
    }
    Ok(())
}

pub(crate) fn positive(field: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::plan(field, format!("must be positive and finite, not {value}")))
}

fn not_negative(field: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::plan(field, format!("must be zero or more and finite, not {value}")))
}

fn at_least_one(field: &str, value: u32) -> Result<(), Error> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::plan(field, "must be at least 1"))
}
