//! Tokens in memory: what each opens, and until when.

use std::collections::{HashMap, VecDeque};
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

/// All tokens that are alive.
#[derive(Debug)]
pub(crate) struct Tokens {
    by_key: HashMap<u128, Token>,
    /// In the order of their issue, revoked ones among them.
    issued: VecDeque<(i64, u128)>,
    most: usize,
}

impl Tokens {
    pub(crate) fn new(most: usize) -> Self {
        Self { by_key: HashMap::new(), issued: VecDeque::new(), most }
    }

    /// Keeps a token under a text that nobody can guess.
    pub(crate) fn keep(&mut self, token: Token) -> String {
        while self.issued.len() >= self.most
            || self.issued.front().is_some_and(|(expires_us, _)| *expires_us <= token.issued_us)
        {
            let Some((_, key)) = self.issued.pop_front() else { break };
            self.by_key.remove(&key);
        }
        let key = stamp::secret();
        self.issued.push_back((token.expires_us, key));
        self.by_key.insert(key, token);
        stamp::hex(key)
    }

    /// A token that has not expired.
    pub(crate) fn find(&self, text: &str, now_us: i64) -> Option<&Token> {
        let token = self.by_key.get(&stamp::from_hex(text)?)?;
        (token.expires_us > now_us).then_some(token)
    }

    pub(crate) fn revoke(&mut self, text: &str) {
        if let Some(key) = stamp::from_hex(text) {
            self.by_key.remove(&key);
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

    #[test]
    fn no_more_are_kept_than_was_said_and_the_oldest_go_first() {
        let mut tokens = Tokens::new(2);
        let kept: Vec<String> = (0..3).map(|_| tokens.keep(token(0, 5))).collect();
        let found: Vec<bool> = kept.iter().map(|text| tokens.find(text, 1).is_some()).collect();
        assert_eq!(found, [false, true, true]);
    }

    #[test]
    fn expired_tokens_take_no_room() {
        let mut tokens = Tokens::new(10);
        tokens.keep(token(0, 5));
        tokens.keep(token(5, 10));
        assert_eq!((tokens.by_key.len(), tokens.issued.len()), (1, 1));
    }
}
