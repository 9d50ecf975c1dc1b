//! Tokens in memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::ids;

/// Id of a user, project, domain or role.
pub(crate) type Id = Arc<str>;

/// Scope of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scope {
    Nothing,
    Project(Id),
    Domain(Id),
}

/// Authentication method of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Methods {
    Password,
    /// By a token that was issued for a password.
    Token,
}

/// Token. Whether user and roles still exist is checked at each use.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) user: Id,
    pub(crate) scope: Scope,
    pub(crate) methods: Methods,
    pub(crate) issued_us: i64,
    pub(crate) expires_us: i64,
    pub(crate) audit: u128,
    /// Audit id of the first token of the chain that this one was issued from.
    pub(crate) parent_audit: Option<u128>,
}

/// Valid tokens, up to a limit.
#[derive(Debug)]
pub(crate) struct Tokens {
    by_key: HashMap<u128, Token>,
    by_expiry: BTreeSet<(i64, u128)>,
    limit: usize,
    /// Number of valid tokens that were evicted.
    pub(crate) evicted: u64,
}

impl Tokens {
    pub(crate) fn new(limit: usize) -> Self {
        Self { by_key: HashMap::new(), by_expiry: BTreeSet::new(), limit, evicted: 0 }
    }

    /// Stores a token and returns its secret id. Above the limit, the valid token that expires first is
    /// evicted.
    pub(crate) fn store(&mut self, token: Token) -> String {
        while let Some((expires_us, key)) = self.by_expiry.first().copied() {
            let is_expired = expires_us <= token.issued_us;
            if !is_expired && self.by_expiry.len() < self.limit {
                break;
            }
            self.evicted += u64::from(!is_expired);
            self.by_expiry.pop_first();
            self.by_key.remove(&key);
        }
        let key = ids::secret();
        self.by_expiry.insert((token.expires_us, key));
        self.by_key.insert(key, token);
        ids::hex(key)
    }

    /// Finds a token that has not expired.
    pub(crate) fn find(&self, text: &str, now_us: i64) -> Option<&Token> {
        let token = self.by_key.get(&ids::from_hex(text)?)?;
        (token.expires_us > now_us).then_some(token)
    }

    pub(crate) fn revoke(&mut self, text: &str) {
        if let Some(key) = ids::from_hex(text)
            && let Some(token) = self.by_key.remove(&key)
        {
            self.by_expiry.remove(&(token.expires_us, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(issued_us: i64, expires_us: i64) -> Token {
        Token {
            user: "u".into(),
            scope: Scope::Nothing,
            methods: Methods::Password,
            issued_us,
            expires_us,
            audit: 0,
            parent_audit: None,
        }
    }

    #[test]
    fn a_token_is_found_until_it_expires_or_is_revoked() {
        let mut tokens = Tokens::new(10);
        let (first, second) = (tokens.store(token(0, 5)), tokens.store(token(0, 5)));
        assert!(tokens.find(&first, 4).is_some());
        assert!(tokens.find(&first, 5).is_none());
        tokens.revoke(&second);
        assert!(tokens.find(&second, 1).is_none());
        assert!(tokens.find("unknown", 1).is_none());
    }

    fn found(tokens: &Tokens, kept: &[String]) -> Vec<bool> {
        kept.iter().map(|text| tokens.find(text, 1).is_some()).collect()
    }

    #[test]
    fn above_the_limit_the_token_that_expires_first_is_evicted() {
        let mut tokens = Tokens::new(2);
        let kept: Vec<String> = [9, 5, 7].map(|expires| tokens.store(token(0, expires))).into();
        assert_eq!(found(&tokens, &kept), [true, false, true]);
        assert_eq!(tokens.evicted, 1);
    }

    #[test]
    fn revoked_tokens_do_not_count_towards_the_limit() {
        let mut tokens = Tokens::new(2);
        let first = tokens.store(token(0, 5));
        let second = tokens.store(token(0, 5));
        tokens.revoke(&second);
        let third = tokens.store(token(0, 5));
        assert_eq!(found(&tokens, &[first, second, third]), [true, false, true]);
        assert_eq!(tokens.evicted, 0);
    }

    #[test]
    fn expired_tokens_are_removed() {
        let mut tokens = Tokens::new(10);
        tokens.store(token(0, 9));
        tokens.store(token(0, 5));
        tokens.store(token(5, 10));
        assert_eq!((tokens.by_key.len(), tokens.by_expiry.len()), (2, 2));
        assert_eq!(tokens.evicted, 0);
    }
}
