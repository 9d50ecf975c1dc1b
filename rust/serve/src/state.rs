//! State that is kept between requests.

use crate::directory::Directory;
use crate::oidc::Oidc;
use crate::tokens::Tokens;

/// Users, tokens and sessions.
pub(crate) struct State {
    pub(crate) directory: Directory,
    pub(crate) tokens: Tokens,
    pub(crate) token_life_us: i64,
    pub(crate) oidc: Option<Oidc>,
}
