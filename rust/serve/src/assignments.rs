//! Routes for role assignments.

use serde_json::json;

use crate::api_error::{ApiError, Result};
use crate::crud;
use crate::directory::Directory;
use crate::reply::Reply;
use crate::request::{Request, allow};
use crate::resources::Kind;
use crate::state::State;
use crate::token_body::Reference;
use crate::tokens::Scope;

/// Adds, checks, removes or lists a user's roles in a scope.
pub(crate) fn handle(
    state: &mut State,
    request: &Request<'_>,
    scope: (&str, &str),
    user: &str,
    role: &[&str],
) -> Result<Reply> {
    let directory = &mut state.directory;
    let scope = match scope {
        ("projects", id) => Scope::Project(directory.projects.expect(id)?.id.clone()),
        (_, id) => Scope::Domain(directory.domains.expect(id)?.id.clone()),
    };
    let user = directory.users.expect(user)?.id.clone();
    let [role] = role else {
        if !role.is_empty() {
            return Err(ApiError::UnknownUrl);
        }
        allow(request, &["GET", "HEAD"])?;
        let roles = directory.grants.roles(&user, &scope);
        let found = roles.filter_map(|role| directory.roles.get(role));
        return Ok(crud::listing(request, Kind::Role, found));
    };
    let role = directory.roles.expect(role)?.id.clone();
    match request.method {
        "PUT" => directory.grants.add(user, scope, role),
        "GET" | "HEAD" if directory.grants.roles(&user, &scope).any(|known| *known == role) => {}
        "DELETE" if directory.grants.remove(&user, &scope, &role) => {}
        "GET" | "HEAD" | "DELETE" => return Err(ApiError::not_found("role assignment", &role)),
        _ => return Err(ApiError::MethodNotAllowed),
    }
    Ok(Reply::empty())
}

/// Lists grants; the query filters by user, scope and role.
pub(crate) fn list(directory: &Directory, request: &Request<'_>) -> Reply {
    let query = request.query_pairs();
    let fits = |name: &str, id: &str| query.iter().all(|(key, value)| key != name || value == id);
    let with_names = query.iter().any(|(key, value)| {
        key == "include_names" && !matches!(value.as_str(), "0" | "false" | "False")
    });
    let reference = |kind: Kind, id| {
        if with_names { Reference::full(directory, kind, id) } else { Reference::bare(id) }
    };
    let mut all = Vec::new();
    for (user, scope, role) in directory.grants.all() {
        let (kind, id) = match scope {
            Scope::Nothing => continue,
            Scope::Project(id) => (Kind::Project, id),
            Scope::Domain(id) => (Kind::Domain, id),
        };
        let other = if kind == Kind::Project { "scope.domain.id" } else { "scope.project.id" };
        let is_wanted = fits("user.id", user)
            && fits("role.id", role)
            && fits(&format!("scope.{}.id", kind.word()), id)
            && query.iter().all(|(key, _)| key != other);
        if is_wanted {
            let path = format!("/{}/{id}/users/{user}/roles/{role}", kind.plural());
            all.push(json!({
                "links": {"assignment": request.url(&path)},
                "role": reference(Kind::Role, role),
                "scope": {kind.word(): reference(kind, id)},
                "user": reference(Kind::User, user),
            }));
        }
    }
    crud::list_of(request, "role_assignments", &all)
}
