//! Routing of requests.

use serde_json::json;

use crate::access::require_admin;
use crate::api_error::{ApiError, Result};
use crate::reply::Reply;
use crate::request::{Request, allow, segments};
use crate::resources::Kind;
use crate::state::State;
use crate::{assignments, auth, crud, oidc};

/// Whether a request needs a worker: all below /v3/auth, with any spelling of the path.
pub(crate) fn is_token_request(path: &str) -> bool {
    matches!(segments(path).as_slice(), ["v3", "auth", _, ..])
}

/// Executes a request.
pub(crate) fn handle(state: &mut State, request: &Request<'_>) -> Result<Reply> {
    let segments = segments(request.path);
    match segments.as_slice() {
        _ if oidc::is_oidc_path(&segments) => match &mut state.oidc {
            Some(oidc) => oidc.handle(request, &segments),
            None => Err(ApiError::UnknownUrl),
        },
        [] => allow(request, &["GET", "HEAD"]).map(|()| versions(request)),
        ["v3"] => allow(request, &["GET", "HEAD"])
            .map(|()| Reply::json(200, &json!({"version": version(request)}))),
        ["v3", "auth", rest @ ..] => auth::handle(state, request, rest),
        ["v3", "role_assignments"] => {
            allow(request, &["GET", "HEAD"])?;
            require_admin(state, request, "identity:list_role_assignments")?;
            Ok(assignments::list(&state.directory, request))
        }
        // There are no groups, but clients that clean up a domain list them.
        ["v3", "groups"] => {
            allow(request, &["GET", "HEAD"])?;
            require_admin(state, request, "identity:list_groups")?;
            Ok(crud::list_of(request, "groups", &[]))
        }
        ["v3", place @ ("projects" | "domains"), id, "users", user, "roles", role @ ..] => {
            require_admin(state, request, "identity:check_grant")?;
            assignments::handle(state, request, (place, id), user, role)
        }
        ["v3", plural, rest @ ..] => match Kind::from_path(plural) {
            Some(kind) => crud::handle(state, request, kind, rest),
            None => Err(ApiError::UnknownUrl),
        },
        _ => Err(ApiError::UnknownUrl),
    }
}

fn versions(request: &Request<'_>) -> Reply {
    Reply::json(300, &json!({"versions": {"values": [version(request)]}}))
}

fn version(request: &Request<'_>) -> serde_json::Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": request.url("/")}],
        "media-types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.identity-v3+json",
        }],
    })
}
