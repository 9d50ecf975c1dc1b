//! Which request means what.

use serde_json::json;

use crate::auth;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::grants;
use crate::manage;
use crate::oidc::{self, Oidc};
use crate::reply::Reply;
use crate::things::Kind;
use crate::tokens::Tokens;

/// All that is kept between requests.
pub(crate) struct State {
    pub(crate) directory: Directory,
    pub(crate) tokens: Tokens,
    pub(crate) token_life_us: i64,
    pub(crate) oidc: Option<Oidc>,
}

/// A request, as far as answers depend on it.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// X-Auth-Token.
    pub(crate) token: Option<&'a str>,
    /// X-Subject-Token.
    pub(crate) subject: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) cookie: Option<&'a str>,
    pub(crate) body: &'a [u8],
    /// Scheme, host and port by which the caller knows the service.
    pub(crate) base: &'a str,
    /// Which connection it came over.
    pub(crate) connection: u64,
    pub(crate) now_us: i64,
}

impl Call<'_> {
    /// The values that the query gives.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/v3{path}", self.base)
    }
}

/// Whether a request takes a worker: all below /v3/auth, however its path is spelled.
pub(crate) fn is_token_request(path: &str) -> bool {
    matches!(segments(path).as_slice(), ["v3", "auth", _, ..])
}

/// The parts of a path, without empty ones.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// Carries a request out.
pub(crate) fn answer(state: &mut State, call: &Call<'_>) -> Result<Reply, Fault> {
    let segments = segments(call.path);
    match segments.as_slice() {
        _ if oidc::is_of_oidc(&segments) => match &mut state.oidc {
            Some(oidc) => oidc.answer(call, &segments),
            None => Err(Fault::UnknownUrl),
        },
        [] => only(call, &["GET", "HEAD"]).map(|()| versions(call)),
        ["v3"] => only(call, &["GET", "HEAD"])
            .map(|()| Reply::json(200, &json!({"version": version(call)}))),
        ["v3", "auth", rest @ ..] => auth::answer(state, call, rest),
        ["v3", "role_assignments"] => {
            only(call, &["GET", "HEAD"])?;
            manage::require_admin(state, call, "identity:list_role_assignments")?;
            Ok(grants::list(&state.directory, call))
        }
        // There are none, and who looks for what is left in a domain asks.
        ["v3", "groups"] => {
            only(call, &["GET", "HEAD"])?;
            manage::require_admin(state, call, "identity:list_groups")?;
            Ok(manage::list_of(call, "groups", &[]))
        }
        ["v3", place @ ("projects" | "domains"), id, "users", user, "roles", role @ ..] => {
            manage::require_admin(state, call, "identity:check_grant")?;
            grants::answer(state, call, (place, id), user, role)
        }
        ["v3", plural, rest @ ..] => match Kind::of_path(plural) {
            Some(kind) => manage::answer(state, call, kind, rest),
            None => Err(Fault::UnknownUrl),
        },
        _ => Err(Fault::UnknownUrl),
    }
}

/// Refuses other methods.
pub(crate) fn only(call: &Call<'_>, methods: &[&str]) -> Result<(), Fault> {
    if methods.contains(&call.method) { Ok(()) } else { Err(Fault::MethodNotAllowed) }
}

fn versions(call: &Call<'_>) -> Reply {
    Reply::json(300, &json!({"versions": {"values": [version(call)]}}))
}

fn version(call: &Call<'_>) -> serde_json::Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": call.url("/")}],
        "media-types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.identity-v3+json",
        }],
    })
}
