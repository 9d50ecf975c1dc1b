//! Tokens in memory.

use std::sync::Arc;

use crate::expiring::Expiring;
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
pub(crate) struct Tokens(Expiring<Token>);

impl Tokens {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Expiring::new(limit))
    }

    /// Number of valid tokens that were evicted.
    pub(crate) fn evicted(&self) -> u64 {
        self.0.evicted
    }

    /// Stores a token and returns its id. Above the limit, evicts the one that expires first.
    pub(crate) fn store(&mut self, token: Token) -> String {
        let (now_us, life_us) = (token.issued_us, token.expires_us - token.issued_us);
        ids::hex(self.0.store(token, now_us, life_us))
    }

    /// Finds a token that has not expired.
    pub(crate) fn find(&self, text: &str, now_us: i64) -> Option<&Token> {
        self.0.find(ids::from_hex(text)?, now_us).map(|(token, _)| token)
    }

    pub(crate) fn revoke(&mut self, text: &str) {
        if let Some(key) = ids::from_hex(text) {
            self.0.take(key, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_until_it_expires_or_is_revoked() {
        let token = Token {
            user: "u".into(),
            scope: Scope::Nothing,
            methods: Methods::Password,
            issued_us: 0,
            expires_us: 5,
            audit: 0,
            parent_audit: None,
        };
        let mut tokens = Tokens::new(10);
        let (first, second) = (tokens.store(token.clone()), tokens.store(token));
        assert!(tokens.find(&first, 4).is_some());
        assert!(tokens.find(&first, 5).is_none());
        tokens.revoke(&second);
        assert!(tokens.find(&second, 1).is_none());
        assert!(tokens.find("unknown", 1).is_none());
    }
}
