//! Tokens in memory: what each opens, and until when.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::stamp;

/// The id of a user, project, domain or role.
pub(crate) type Id = Arc<str>;

/// What a token opens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scope {
    Nothing,
    Project(Id),
    Domain(Id),
}

/// How its holder was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Methods {
    Password,
    /// By a token that a password had brought.
    Token,
}

/// What is kept of a token; whether its user still may is looked up each time.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) user: Id,
    pub(crate) scope: Scope,
    pub(crate) methods: Methods,
    pub(crate) issued_us: i64,
    pub(crate) expires_us: i64,
    pub(crate) audit: u128,
    /// Of the first token of the chain that this one comes from.
    pub(crate) parent_audit: Option<u128>,
}

/// All tokens that are valid, up to a number.
#[derive(Debug)]
pub(crate) struct Tokens {
    by_key: HashMap<u128, Token>,
    by_expiry: BTreeSet<(i64, u128)>,
    most: usize,
    /// Tokens forgotten while they were valid.
    pub(crate) evicted: u64,
}

impl Tokens {
    pub(crate) fn new(most: usize) -> Self {
        Self { by_key: HashMap::new(), by_expiry: BTreeSet::new(), most, evicted: 0 }
    }

    /// Keeps a token under a text that nobody can guess. Expired and revoked ones take no room;
    /// when there are too many valid ones, the one that expires first is forgotten.
    pub(crate) fn keep(&mut self, token: Token) -> String {
        while let Some((expires_us, key)) = self.by_expiry.first().copied() {
            let is_expired = expires_us <= token.issued_us;
            if !is_expired && self.by_expiry.len() < self.most {
                break;
            }
            self.evicted += u64::from(!is_expired);
            self.by_expiry.pop_first();
            self.by_key.remove(&key);
        }
        let key = stamp::secret();
        self.by_expiry.insert((token.expires_us, key));
        self.by_key.insert(key, token);
        stamp::hex(key)
    }

    /// A token that has not expired.
    pub(crate) fn find(&self, text: &str, now_us: i64) -> Option<&Token> {
        let token = self.by_key.get(&stamp::from_hex(text)?)?;
        (token.expires_us > now_us).then_some(token)
    }

    pub(crate) fn revoke(&mut self, text: &str) {
        if let Some(key) = stamp::from_hex(text)
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
        let (first, second) = (tokens.keep(token(0, 5)), tokens.keep(token(0, 5)));
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
    fn of_too_many_valid_tokens_the_first_to_expire_goes_and_is_counted() {
        let mut tokens = Tokens::new(2);
        let kept: Vec<String> = [9, 5, 7].map(|expires| tokens.keep(token(0, expires))).into();
        assert_eq!(found(&tokens, &kept), [true, false, true]);
        assert_eq!(tokens.evicted, 1);
    }

    #[test]
    fn revoked_tokens_make_room_for_others() {
        let mut tokens = Tokens::new(2);
        let first = tokens.keep(token(0, 5));
        let second = tokens.keep(token(0, 5));
        tokens.revoke(&second);
        let third = tokens.keep(token(0, 5));
        assert_eq!(found(&tokens, &[first, second, third]), [true, false, true]);
        assert_eq!(tokens.evicted, 0);
    }

    #[test]
    fn expired_tokens_take_no_room() {
        let mut tokens = Tokens::new(10);
        tokens.keep(token(0, 9));
        tokens.keep(token(0, 5));
        tokens.keep(token(5, 10));
        assert_eq!((tokens.by_key.len(), tokens.by_expiry.len()), (2, 2));
        assert_eq!(tokens.evicted, 0);
    }
}
