//! Ids and secrets in Keystone's formats.

/// Returns a secret random number.
pub(crate) fn secret() -> u128 {
    let mut bytes = [0; 16];
    // The kernel's generator fails only before the machine has booted.
    getrandom::getrandom(&mut bytes).expect("the kernel gives random numbers");
    u128::from_le_bytes(bytes)
}

/// Formats an id or a token as 32 hexadecimal digits.
pub(crate) fn hex(value: u128) -> String {
    format!("{value:032x}")
}

/// Parses the output of `hex`; none for any other text.
pub(crate) fn from_hex(text: &str) -> Option<u128> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if text.len() != 32 || !text.as_bytes().iter().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// Formats an audit id as 22 characters of URL-safe base64.
pub(crate) fn base64(value: u128) -> String {
    base64_of(&value.to_be_bytes())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes URL-safe base64 without padding (RFC 4648 5).
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

/// Decodes URL-safe base64 without padding; none for any other text.
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
    fn only_the_output_of_hex_is_parsed() {
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
