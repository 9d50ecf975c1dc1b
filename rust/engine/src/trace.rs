//! W3C Trace Context: requests that carry the header `traceparent`, and its ids.
//!
//! They depend on the key, the step and the iteration only; `loadstone.plan.trace` computes the same
//! ids from samples.
//!
//! Format: <https://www.w3.org/TR/trace-context/>

use crate::plan::Trace;
use crate::random::{bits, uniform};

const NAME: &[u8] = b"traceparent: 00-";
const SAMPLED: &[u8] = b"-01\r\n";
const LINE: usize = NAME.len() + 32 + 1 + 16 + SAMPLED.len();

/// Header with its name and line end.
pub(crate) type HeaderLine = [u8; LINE];

/// Returns the header of a request, if it is traced.
pub(crate) fn header(trace: &Trace, step: usize, iteration: u32) -> Option<HeaderLine> {
    // Streams of their own, so that the ids of traced requests are uniform, as samplers expect.
    let stream = 3 * step as u64;
    if uniform(trace.key, stream, iteration) >= trace.share {
        return None;
    }
    let mut line = [b'-'; LINE];
    let (name, ids) = line.split_at_mut(NAME.len());
    name.copy_from_slice(NAME);
    write_hex(trace.key, &mut ids[..16]);
    write_hex(bits(trace.key, stream + 1, iteration), &mut ids[16..32]);
    // An id of zeros is invalid.
    write_hex(bits(trace.key, stream + 2, iteration).max(1), &mut ids[33..49]);
    ids[49..].copy_from_slice(SAMPLED);
    Some(line)
}

fn write_hex(value: u64, out: &mut [u8]) {
    for (digit, shift) in out.iter_mut().zip((0..16).rev()) {
        *digit = b"0123456789abcdef"[(value >> (4 * shift) & 15) as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_none_or_a_share_are_traced() {
        let count = |share| {
            let trace = Trace { share, key: 7 };
            (0..10_000).filter(|&iteration| header(&trace, 0, iteration).is_some()).count()
        };
        assert_eq!((count(0.0), count(1.0)), (0, 10_000));
        // The standard deviation is 30.
        assert!(count(0.1).abs_diff(1000) < 150);
    }

    #[test]
    fn the_line_is_a_header() {
        let trace = Trace { share: 1.0, key: 0x0102_0304_0506_0708 };
        let line = header(&trace, 0, 0).expect("all are traced");
        let text = str::from_utf8(&line).expect("ASCII");
        let value = text.strip_prefix("traceparent: ").and_then(|it| it.strip_suffix("\r\n"));
        let parts: Vec<_> = value.expect("a header").split('-').collect();
        assert_eq!((parts[0], parts[3], parts[1].len(), parts[2].len()), ("00", "01", 32, 16));
        assert!(parts[1].starts_with("0102030405060708"));
    }

    #[test]
    fn every_request_has_a_trace_of_its_own() {
        let trace = Trace { share: 1.0, key: 7 };
        let mut lines: Vec<_> =
            (0..3).flat_map(|step| (0..1000).map(move |i| header(&trace, step, i))).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 3000);
    }
}
