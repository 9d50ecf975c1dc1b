//! Values with a secret key that expire, up to a limit.

use std::collections::{BTreeSet, HashMap};

use crate::ids;

/// Values by key. Above the limit, the one that expires first is evicted.
#[derive(Debug)]
pub(crate) struct Expiring<T> {
    by_key: HashMap<u128, (i64, T)>,
    by_expiry: BTreeSet<(i64, u128)>,
    limit: usize,
    /// Number of values that were evicted before they expired.
    pub(crate) evicted: u64,
}

impl<T> Expiring<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { by_key: HashMap::new(), by_expiry: BTreeSet::new(), limit, evicted: 0 }
    }

    /// Stores a value under a new secret key.
    pub(crate) fn store(&mut self, value: T, now_us: i64, life_us: i64) -> u128 {
        let key = ids::secret();
        self.store_as(key, value, now_us, life_us);
        key
    }

    pub(crate) fn store_as(&mut self, key: u128, value: T, now_us: i64, life_us: i64) {
        while let Some((expires_us, key)) = self.by_expiry.first().copied() {
            let is_expired = expires_us <= now_us;
            if !is_expired && self.by_expiry.len() < self.limit {
                break;
            }
            self.evicted += u64::from(!is_expired);
            self.by_expiry.pop_first();
            self.by_key.remove(&key);
        }
        self.by_expiry.insert((now_us + life_us, key));
        self.by_key.insert(key, (now_us + life_us, value));
    }

    /// Returns a value and when it expires.
    pub(crate) fn find(&self, key: u128, now_us: i64) -> Option<(&T, i64)> {
        let (expires_us, value) = self.by_key.get(&key)?;
        (*expires_us > now_us).then_some((value, *expires_us))
    }

    /// Removes a value.
    pub(crate) fn take(&mut self, key: u128, now_us: i64) -> Option<T> {
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
        let mut values = Expiring::new(10);
        let (first, second) = (values.store("a", 0, 5), values.store("b", 0, 5));
        assert_eq!(values.find(first, 4), Some((&"a", 5)));
        assert_eq!(values.find(first, 5), None);
        assert_eq!(values.take(second, 1), Some("b"));
        assert_eq!(values.take(second, 1), None);
    }

    #[test]
    fn above_the_limit_the_value_that_expires_first_is_evicted() {
        let mut values = Expiring::new(2);
        let keys = [9, 5, 7].map(|life| values.store(life, 0, life));
        assert_eq!(keys.map(|key| values.find(key, 1).is_some()), [true, false, true]);
        assert_eq!(values.evicted, 1);
        values.store(1, 8, 1);
        assert_eq!((values.by_key.len(), values.evicted), (2, 1));
        // A value that was taken makes room for another.
        assert_eq!(values.take(keys[0], 8), Some(9));
        values.store(1, 8, 1);
        assert_eq!((values.by_key.len(), values.evicted), (2, 1));
    }
}
