//! Routes below /v3/auth: tokens are issued, validated and revoked.

use serde_json::{Value, json};

use crate::access::{caller, find_valid, has_role};
use crate::api_error::{ApiError, Result};
use crate::directory::Directory;
use crate::reply::Reply;
use crate::request::{Request, allow};
use crate::resources::{Kind, text};
use crate::state::State;
use crate::tokens::{Id, Methods, Scope, Token};
use crate::{crud, ids, token_body};

pub(crate) fn handle(state: &mut State, request: &Request<'_>, rest: &[&str]) -> Result<Reply> {
    match (rest, request.method) {
        (["tokens"], "POST") => issue(state, request),
        (["tokens"], "GET" | "HEAD") => validate(state, request),
        (["tokens"], "DELETE") => revoke(state, request),
        (["tokens"], _) => Err(ApiError::MethodNotAllowed),
        (["catalog"], _) => {
            allow(request, &["GET", "HEAD"])?;
            let token = caller(state, request)?;
            if token.scope == Scope::Nothing {
                return Err(ApiError::Refused("The token is unscoped: it has no catalog.".into()));
            }
            let (url, links) = (request.url(""), json!({"self": request.url("/auth/catalog")}));
            Ok(Reply::json(200, &json!({"catalog": token_body::catalog(&url), "links": links})))
        }
        ([place @ ("projects" | "domains")], _) => {
            allow(request, &["GET", "HEAD"])?;
            let kind = if *place == "projects" { Kind::Project } else { Kind::Domain };
            let user = caller(state, request)?.user.clone();
            Ok(crud::list_scopes(&state.directory, request, kind, &user))
        }
        _ => Err(ApiError::UnknownUrl),
    }
}

/// Returns the id of the user that a request claims to come from; none if it is unknown.
pub(crate) fn claimed_user(state: &State, request: &Request<'_>) -> Option<Id> {
    if request.method != "POST" {
        return Some(state.tokens.find(request.token?, request.now_us)?.user.clone());
    }
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let identity = body.get("auth")?.get("identity")?;
    if let Some(object) = identity.get("password") {
        return find_user(&state.directory, object.get("user")?).ok()?;
    }
    let id = identity.get("token")?.get("id")?.as_str()?;
    Some(state.tokens.find(id, request.now_us)?.user.clone())
}

/// Returns the token that a request is about. The caller needs one of these roles, or its user.
fn subject<'a>(
    state: &'a State,
    request: &Request<'_>,
    roles: &[&str],
    action: &str,
) -> Result<&'a Token> {
    let own = caller(state, request)?;
    let token = request
        .subject
        .and_then(|text| find_valid(state, text, request.now_us))
        .ok_or(ApiError::UnknownToken)?;
    if token.user != own.user && !has_role(state, own, roles) {
        return Err(ApiError::Forbidden(action.to_owned()));
    }
    Ok(token)
}

fn validate(state: &State, request: &Request<'_>) -> Result<Reply> {
    let token = subject(state, request, &["admin", "service"], "identity:validate_token")?;
    let mut reply = token_body::reply(200, &state.directory, request, token);
    reply.token = request.subject.map(str::to_owned);
    Ok(reply)
}

fn revoke(state: &mut State, request: &Request<'_>) -> Result<Reply> {
    subject(state, request, &["admin"], "identity:revoke_token")?;
    state.tokens.revoke(request.subject.unwrap_or_default());
    Ok(Reply::empty())
}

fn issue(state: &mut State, request: &Request<'_>) -> Result<Reply> {
    let body: Value = serde_json::from_slice(request.body)
        .map_err(|_| ApiError::bad_request("The body is no JSON object."))?;
    let auth = required(&body, "auth")?;
    let (user, from) = identify(state, request, required(auth, "identity")?)?;
    let scope = scope_of(&state.directory, &user, auth.get("scope"))?;
    if !state.directory.is_usable_user(&user) || !state.directory.is_usable_scope(&user, &scope) {
        return Err(ApiError::Unauthorized);
    }
    let token = Token {
        user,
        scope,
        methods: if from.is_some() { Methods::Token } else { Methods::Password },
        issued_us: request.now_us,
        expires_us: from
            .as_ref()
            .map_or(request.now_us + state.token_life_us, |from| from.expires_us),
        audit: ids::secret(),
        parent_audit: from.map(|from| from.parent_audit.unwrap_or(from.audit)),
    };
    let mut reply = token_body::reply(201, &state.directory, request, &token);
    reply.token = Some(state.tokens.store(token));
    Ok(reply)
}

/// Authenticates a user. Also returns the token, if it was by token.
fn identify(state: &State, request: &Request<'_>, identity: &Value) -> Result<(Id, Option<Token>)> {
    let methods = required(identity, "methods")?.as_array().map_or(&[][..], Vec::as_slice);
    match methods.iter().map(Value::as_str).collect::<Option<Vec<_>>>().as_deref() {
        Some(["password"]) => {
            let object = required(required(identity, "password")?, "user")?;
            let user = find_user(&state.directory, object)?.ok_or(ApiError::Unauthorized)?;
            let password = required(object, "password")?.as_str().unwrap_or_default();
            if !state.directory.is_password(&user, password) {
                return Err(ApiError::Unauthorized);
            }
            Ok((user, None))
        }
        Some(["token"]) => {
            let id = required(required(identity, "token")?, "id")?.as_str().unwrap_or_default();
            let from = find_valid(state, id, request.now_us).ok_or(ApiError::Unauthorized)?;
            Ok((from.user.clone(), Some(from.clone())))
        }
        _ => Err(ApiError::Unauthorized),
    }
}

fn find_user(directory: &Directory, object: &Value) -> Result<Option<Id>> {
    if let Some(id) = object.get("id").and_then(Value::as_str) {
        return Ok(directory.users.get(id).map(|user| user.id.clone()));
    }
    find_in_domain(directory, Kind::User, object)
}

fn scope_of(directory: &Directory, user: &Id, scope: Option<&Value>) -> Result<Scope> {
    let Some(scope) = scope else {
        return Ok(default_scope(directory, user));
    };
    if scope.as_str() == Some("unscoped") || scope.get("unscoped").is_some() {
        return Ok(Scope::Nothing);
    }
    let found = if let Some(project) = scope.get("project") {
        match project.get("id").and_then(Value::as_str) {
            Some(id) => directory.projects.get(id).map(|project| project.id.clone()),
            None => find_in_domain(directory, Kind::Project, project)?,
        }
        .map(Scope::Project)
    } else if let Some(domain) = scope.get("domain") {
        find_domain(directory, domain).map(Scope::Domain)
    } else {
        return Err(ApiError::bad_request("The scope must be a project, a domain or unscoped."));
    };
    found.ok_or(ApiError::Unauthorized)
}

/// Returns the user's default project, if it is usable.
fn default_scope(directory: &Directory, user: &Id) -> Scope {
    let project =
        directory.users.get(user).map_or("", |user| text(&user.fields, "default_project_id"));
    let Some(project) = directory.projects.get(project) else { return Scope::Nothing };
    let scope = Scope::Project(project.id.clone());
    if directory.is_usable_scope(user, &scope) { scope } else { Scope::Nothing }
}

fn find_in_domain(directory: &Directory, kind: Kind, object: &Value) -> Result<Option<Id>> {
    let name = required(object, "name")?.as_str().unwrap_or_default();
    let domain = find_domain(directory, required(object, "domain")?);
    let named = domain.and_then(|domain| directory.of(kind).named(&domain, name));
    Ok(named.map(|resource| resource.id.clone()))
}

fn find_domain(directory: &Directory, object: &Value) -> Option<Id> {
    let found = match object.get("id").and_then(Value::as_str) {
        Some(id) => directory.domains.get(id),
        None => directory.domains.named("", object.get("name")?.as_str()?),
    };
    found.map(|domain| domain.id.clone())
}

fn required<'a>(object: &'a Value, name: &str) -> Result<&'a Value> {
    object
        .get(name)
        .ok_or_else(|| ApiError::bad_request(format!("'{name}' is a required property")))
}
