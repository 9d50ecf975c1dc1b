//! One-time codes of this moment: TOTP (RFC 6238) with SHA-1, six digits and periods of 30 s.

use ring::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, sign};

const PERIOD_S: u64 = 30;
const MODULUS: u32 = 1_000_000;

/// Six digits.
pub(crate) type Code = [u8; 6];

/// Secrets of a column.
pub(crate) struct OneTimeCodes {
    keys: Vec<Key>,
}

impl OneTimeCodes {
    /// Decodes secrets in base32; an error is the number of the row that is none.
    pub(crate) fn new(secrets: &[String]) -> Result<Self, usize> {
        let key = |(row, secret): (usize, &String)| match decode_base32(secret) {
            Some(bytes) => Ok(Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &bytes)),
            None => Err(row),
        };
        Ok(Self { keys: secrets.iter().enumerate().map(key).collect::<Result<_, _>>()? })
    }

    /// Returns the code of an iteration's row at a Unix time; rows repeat.
    pub(crate) fn at(&self, iteration: u32, unix_s: u64) -> Code {
        let key = &self.keys[iteration as usize % self.keys.len()];
        let mac = sign(key, &(unix_s / PERIOD_S).to_be_bytes());
        // Dynamic truncation (RFC 4226 5.3).
        let mac = mac.as_ref();
        let at = usize::from(mac[mac.len() - 1] & 0xf);
        let word = u32::from_be_bytes([mac[at], mac[at + 1], mac[at + 2], mac[at + 3]]);
        let mut number = (word & 0x7fff_ffff) % MODULUS;
        let mut code = [b'0'; 6];
        for digit in code.iter_mut().rev() {
            *digit += u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
        code
    }
}

/// Decodes base32 (RFC 4648 6), with or without padding.
fn decode_base32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut buffer, mut bits) = (0_u32, 0);
    for symbol in text.trim_end_matches('=').bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a',
            b'2'..=b'7' => symbol - b'2' + 26,
            _ => return None,
        };
        buffer = (buffer << 5) | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((buffer >> bits) & 0xff).unwrap_or_default());
            buffer &= (1 << bits) - 1;
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "12345678901234567890" in base32: the secret of RFC 6238, appendix B.
    const SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

    #[test]
    fn codes_are_those_of_the_rfc() {
        let codes = OneTimeCodes::new(&[SECRET.to_owned()]).unwrap();
        // The last six of the eight digits that the appendix lists.
        for (unix_s, code) in [
            (59, b"287082"),
            (1_111_111_109, b"081804"),
            (1_111_111_111, b"050471"),
            (1_234_567_890, b"005924"),
            (2_000_000_000, b"279037"),
            (20_000_000_000, b"353130"),
        ] {
            assert_eq!(&codes.at(7, unix_s), code);
        }
    }

    #[test]
    fn the_row_that_is_no_base32_is_named() {
        let rows = [SECRET.to_owned(), "1".to_owned()];
        assert_eq!(OneTimeCodes::new(&rows).err(), Some(1));
    }
}
