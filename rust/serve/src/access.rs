//! Authentication and authorisation of requests.

use crate::api_error::{ApiError, Result};
use crate::request::Request;
use crate::state::State;
use crate::tokens::Token;

/// Returns the token that authenticates a request.
pub(crate) fn caller<'a>(state: &'a State, request: &Request<'_>) -> Result<&'a Token> {
    request
        .token
        .and_then(|text| find_valid(state, text, request.now_us))
        .ok_or(ApiError::Unauthorized)
}

/// Whether a token has one of these roles.
pub(crate) fn has_role(state: &State, token: &Token, names: &[&str]) -> bool {
    let roles = state.directory.roles_at(&token.user, &token.scope);
    roles.iter().any(|role| names.contains(&role.name.as_str()))
}

/// Finds a token that is valid.
pub(crate) fn find_valid<'a>(state: &'a State, text: &str, now_us: i64) -> Option<&'a Token> {
    state.tokens.find(text, now_us).filter(|token| state.directory.still_holds(token))
}

/// Refuses a caller without the role admin.
pub(crate) fn require_admin(
    state: &State,
    request: &Request<'_>,
    action: impl Into<String>,
) -> Result<()> {
    let token = caller(state, request)?;
    let is_admin = has_role(state, token, &["admin"]);
    if is_admin { Ok(()) } else { Err(ApiError::Forbidden(action.into())) }
}
