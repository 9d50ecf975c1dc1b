//! Values that are known by a secret until they expire, up to a number.

use std::collections::{BTreeSet, HashMap};

use crate::stamp;

/// Values by key; when there are too many, the one that expires first is forgotten.
pub(super) struct Expiring<T> {
    by_key: HashMap<u128, (i64, T)>,
    by_expiry: BTreeSet<(i64, u128)>,
    most: usize,
    /// Values forgotten before they expired.
    pub(super) evicted: u64,
}

impl<T> Expiring<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { by_key: HashMap::new(), by_expiry: BTreeSet::new(), most, evicted: 0 }
    }

    /// Keeps a value under a new key that nobody can guess.
    pub(super) fn keep(&mut self, value: T, now_us: i64, life_us: i64) -> u128 {
        let key = stamp::secret();
        self.keep_as(key, value, now_us, life_us);
        key
    }

    pub(super) fn keep_as(&mut self, key: u128, value: T, now_us: i64, life_us: i64) {
        while let Some((expires_us, key)) = self.by_expiry.first().copied() {
            let is_expired = expires_us <= now_us;
            if !is_expired && self.by_expiry.len() < self.most {
                break;
            }
            self.evicted += u64::from(!is_expired);
            self.by_expiry.pop_first();
            self.by_key.remove(&key);
        }
        self.by_expiry.insert((now_us + life_us, key));
        self.by_key.insert(key, (now_us + life_us, value));
    }

    /// The value and when it expires.
    pub(super) fn find(&self, key: u128, now_us: i64) -> Option<(&T, i64)> {
        let (expires_us, value) = self.by_key.get(&key)?;
        (*expires_us > now_us).then_some((value, *expires_us))
    }

    /// Removes a value.
    pub(super) fn take(&mut self, key: u128, now_us: i64) -> Option<T> {
        let (expires_us, value) = self.by_key.remove(&key)?;
        self.by_expiry.remove(&(expires_us, key));
        (expires_us > now_us).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_there_until_it_expires_or_is_taken() {
        let mut kept = Expiring::new(10);
        let (first, second) = (kept.keep("a", 0, 5), kept.keep("b", 0, 5));
        assert_eq!(kept.find(first, 4), Some((&"a", 5)));
        assert_eq!(kept.find(first, 5), None);
        assert_eq!(kept.take(second, 1), Some("b"));
        assert_eq!(kept.take(second, 1), None);
    }

    #[test]
    fn of_too_many_values_the_first_to_expire_goes_and_is_counted() {
        let mut kept = Expiring::new(2);
        let keys = [9, 5, 7].map(|life| kept.keep(life, 0, life));
        assert_eq!(keys.map(|key| kept.find(key, 1).is_some()), [true, false, true]);
        assert_eq!(kept.evicted, 1);
        kept.keep(1, 8, 1);
        assert_eq!((kept.by_key.len(), kept.evicted), (2, 1));
    }
}
