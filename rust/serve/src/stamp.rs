//! Times and identifiers as Keystone writes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// 2026-01-31T12:00:00.000000Z
pub(crate) fn iso(at_us: i64) -> String {
    let (seconds, micros) = (at_us.div_euclid(1_000_000), at_us.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a day since 1970 (Hinnant, "chrono-compatible low-level date algorithms").
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

/// A number that nobody can guess.
pub(crate) fn secret() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before the machine has booted.
    getrandom::getrandom(&mut bytes).expect("the kernel gives random numbers");
    u128::from_le_bytes(bytes)
}

/// 32 hexadecimal digits, as ids and tokens are written.
pub(crate) fn hex(value: u128) -> String {
    format!("{value:032x}")
}

/// The number that `hex` wrote, of no other text.
pub(crate) fn from_hex(text: &str) -> Option<u128> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if text.len() != 32 || !text.as_bytes().iter().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// 22 characters of URL-safe base64, as audit ids are written.
pub(crate) fn base64(value: u128) -> String {
    base64_of(&value.to_be_bytes())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// URL-safe base64 without padding (RFC 4648 5).
pub(crate) fn base64_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(padded);
        for digit in 0..=three.len() {
            let place = (bits >> (18 - 6 * digit)) & 63;
            text.push(char::from(DIGITS[usize::try_from(place).unwrap_or(0)]));
        }
    }
    text
}

/// What `base64_of` wrote; none for any other text.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let value = match four.get(place) {
                Some(digit) => DIGITS.iter().position(|known| known == digit)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(value).unwrap_or(0);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(iso(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(iso(1_798_761_599_999_999), "2026-12-31T23:59:59.999999Z");
    }

    #[test]
    fn only_what_was_written_as_a_token_is_read_as_one() {
        assert_eq!(from_hex(&hex(7)), Some(7));
        assert_eq!(from_hex(&hex(u128::MAX)), Some(u128::MAX));
        for other in ["", "7", &"+".repeat(32), &"F".repeat(32), &"0".repeat(33)] {
            assert_eq!(from_hex(other), None, "{other}");
        }
    }

    #[test]
    fn audit_ids_are_base64_of_their_bytes() {
        assert_eq!(base64(0), "A".repeat(22));
        assert_eq!(base64(u128::MAX), format!("{}w", "_".repeat(21)));
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64_of(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(from_base64("Zg=="), None);
    }
}
