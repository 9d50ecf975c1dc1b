//! Timestamps in Keystone's format.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Formats a time as Keystone does: 2026-01-31T12:00:00.000000Z.
pub(crate) fn iso(at_us: i64) -> String {
    let (seconds, micros) = (at_us.div_euclid(1_000_000), at_us.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Converts days since 1970 to year, month and day (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Converts seconds of the settings to microseconds.
#[expect(clippy::cast_possible_truncation, reason = "settings are checked to be at most a year")]
pub(crate) fn micros(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(iso(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(iso(1_798_761_599_999_999), "2026-12-31T23:59:59.999999Z");
    }
}
