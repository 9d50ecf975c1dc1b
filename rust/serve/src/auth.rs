//! /v3/auth: tokens issued, validated and revoked, and what they open.

use serde_json::{Value, json};

use crate::body;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::manage;
use crate::reply::Reply;
use crate::route::{Call, State, only};
use crate::stamp;
use crate::things::{Kind, text};
use crate::tokens::{Id, Methods, Scope, Token};

pub(crate) fn answer(state: &mut State, call: &Call<'_>, rest: &[&str]) -> Result<Reply, Fault> {
    match (rest, call.method) {
        (["tokens"], "POST") => issue(state, call),
        (["tokens"], "GET" | "HEAD") => validate(state, call),
        (["tokens"], "DELETE") => revoke(state, call),
        (["tokens"], _) => Err(Fault::MethodNotAllowed),
        (["catalog"], _) => {
            only(call, &["GET", "HEAD"])?;
            let token = caller(state, call)?;
            if token.scope == Scope::Nothing {
                return Err(Fault::Refused("The token is unscoped: it has no catalog.".into()));
            }
            let (url, links) = (call.url(""), json!({"self": call.url("/auth/catalog")}));
            Ok(Reply::json(200, &json!({"catalog": body::catalog(&url), "links": links})))
        }
        ([place @ ("projects" | "domains")], _) => {
            only(call, &["GET", "HEAD"])?;
            let kind = if *place == "projects" { Kind::Project } else { Kind::Domain };
            let user = caller(state, call)?.user.clone();
            Ok(manage::places(&state.directory, call, kind, &user))
        }
        _ => Err(Fault::UnknownUrl),
    }
}

/// The token that a request is made with.
pub(crate) fn caller<'a>(state: &'a State, call: &Call<'_>) -> Result<&'a Token, Fault> {
    call.token.and_then(|text| living(state, text, call.now_us)).ok_or(Fault::Unauthorized)
}

/// Whether a token carries the role that may do everything.
pub(crate) fn is_admin(state: &State, token: &Token) -> bool {
    has_one_of(state, token, &["admin"])
}

fn has_one_of(state: &State, token: &Token, names: &[&str]) -> bool {
    let roles = state.directory.roles_at(&token.user, &token.scope);
    roles.iter().any(|role| names.contains(&role.name.as_str()))
}

/// The user that a request claims to come from, as an id; none where it names no known user.
pub(crate) fn claimed_user(state: &State, call: &Call<'_>) -> Option<Id> {
    if call.method != "POST" {
        return Some(state.tokens.find(call.token?, call.now_us)?.user.clone());
    }
    let asked: Value = serde_json::from_slice(call.body).ok()?;
    let identity = asked.get("auth")?.get("identity")?;
    if let Some(given) = identity.get("password") {
        return find_user(&state.directory, given.get("user")?).ok()?;
    }
    let id = identity.get("token")?.get("id")?.as_str()?;
    Some(state.tokens.find(id, call.now_us)?.user.clone())
}

fn living<'a>(state: &'a State, text: &str, now_us: i64) -> Option<&'a Token> {
    state.tokens.find(text, now_us).filter(|token| state.directory.still_holds(token))
}

/// The token that a request is about, if it is the caller's own or one of these roles is.
fn subject<'a>(
    state: &'a State,
    call: &Call<'_>,
    roles: &[&str],
    action: &str,
) -> Result<&'a Token, Fault> {
    let asking = caller(state, call)?;
    let token = call
        .subject
        .and_then(|text| living(state, text, call.now_us))
        .ok_or(Fault::UnknownToken)?;
    if token.user != asking.user && !has_one_of(state, asking, roles) {
        return Err(Fault::Forbidden(action.to_owned()));
    }
    Ok(token)
}

fn validate(state: &State, call: &Call<'_>) -> Result<Reply, Fault> {
    let token = subject(state, call, &["admin", "service"], "identity:validate_token")?;
    let mut reply = body::reply(200, &state.directory, call, token);
    reply.token = call.subject.map(str::to_owned);
    Ok(reply)
}

fn revoke(state: &mut State, call: &Call<'_>) -> Result<Reply, Fault> {
    subject(state, call, &["admin"], "identity:revoke_token")?;
    state.tokens.revoke(call.subject.unwrap_or_default());
    Ok(Reply::empty())
}

fn issue(state: &mut State, call: &Call<'_>) -> Result<Reply, Fault> {
    let asked: Value =
        serde_json::from_slice(call.body).map_err(|_| Fault::bad("The body is no JSON object."))?;
    let auth = required(&asked, "auth")?;
    let (user, from) = identify(state, call, required(auth, "identity")?)?;
    let scope = scope_of(&state.directory, &user, auth.get("scope"))?;
    if !state.directory.is_usable_user(&user) || !state.directory.is_usable_scope(&user, &scope) {
        return Err(Fault::Unauthorized);
    }
    let token = Token {
        user,
        scope,
        methods: if from.is_some() { Methods::Token } else { Methods::Password },
        issued_us: call.now_us,
        expires_us: from.as_ref().map_or(call.now_us + state.token_life_us, |from| from.expires_us),
        audit: stamp::secret(),
        parent_audit: from.map(|from| from.parent_audit.unwrap_or(from.audit)),
    };
    let mut reply = body::reply(201, &state.directory, call, &token);
    reply.token = Some(state.tokens.keep(token));
    Ok(reply)
}

/// The user that proves to be one, and the token that was the proof.
fn identify(
    state: &State,
    call: &Call<'_>,
    identity: &Value,
) -> Result<(Id, Option<Token>), Fault> {
    let methods = required(identity, "methods")?.as_array().map_or(&[][..], Vec::as_slice);
    match methods.iter().map(Value::as_str).collect::<Option<Vec<_>>>().as_deref() {
        Some(["password"]) => {
            let given = required(required(identity, "password")?, "user")?;
            let user = find_user(&state.directory, given)?.ok_or(Fault::Unauthorized)?;
            let password = required(given, "password")?.as_str().unwrap_or_default();
            if !state.directory.is_password(&user, password) {
                return Err(Fault::Unauthorized);
            }
            Ok((user, None))
        }
        Some(["token"]) => {
            let id = required(required(identity, "token")?, "id")?.as_str().unwrap_or_default();
            let from = living(state, id, call.now_us).ok_or(Fault::Unauthorized)?;
            Ok((from.user.clone(), Some(from.clone())))
        }
        _ => Err(Fault::Unauthorized),
    }
}

fn find_user(directory: &Directory, given: &Value) -> Result<Option<Id>, Fault> {
    if let Some(id) = given.get("id").and_then(Value::as_str) {
        return Ok(directory.users.get(id).map(|user| user.id.clone()));
    }
    named_in_domain(directory, Kind::User, given)
}

fn scope_of(directory: &Directory, user: &Id, asked: Option<&Value>) -> Result<Scope, Fault> {
    let Some(asked) = asked else {
        return Ok(default_scope(directory, user));
    };
    if asked.as_str() == Some("unscoped") || asked.get("unscoped").is_some() {
        return Ok(Scope::Nothing);
    }
    let found = if let Some(project) = asked.get("project") {
        match project.get("id").and_then(Value::as_str) {
            Some(id) => directory.projects.get(id).map(|project| project.id.clone()),
            None => named_in_domain(directory, Kind::Project, project)?,
        }
        .map(Scope::Project)
    } else if let Some(domain) = asked.get("domain") {
        find_domain(directory, domain).map(Scope::Domain)
    } else {
        return Err(Fault::bad("The scope must be a project, a domain or unscoped."));
    };
    found.ok_or(Fault::Unauthorized)
}

/// The user's default project, where it can be used.
fn default_scope(directory: &Directory, user: &Id) -> Scope {
    let project =
        directory.users.get(user).map_or("", |user| text(&user.fields, "default_project_id"));
    let Some(project) = directory.projects.get(project) else { return Scope::Nothing };
    let scope = Scope::Project(project.id.clone());
    if directory.is_usable_scope(user, &scope) { scope } else { Scope::Nothing }
}

fn named_in_domain(directory: &Directory, kind: Kind, given: &Value) -> Result<Option<Id>, Fault> {
    let name = required(given, "name")?.as_str().unwrap_or_default();
    let domain = find_domain(directory, required(given, "domain")?);
    let named = domain.and_then(|domain| directory.of(kind).named(&domain, name));
    Ok(named.map(|thing| thing.id.clone()))
}

fn find_domain(directory: &Directory, given: &Value) -> Option<Id> {
    let found = match given.get("id").and_then(Value::as_str) {
        Some(id) => directory.domains.get(id),
        None => directory.domains.named("", given.get("name")?.as_str()?),
    };
    found.map(|domain| domain.id.clone())
}

fn required<'a>(given: &'a Value, name: &str) -> Result<&'a Value, Fault> {
    given.get(name).ok_or_else(|| Fault::bad(format!("'{name}' is a required property")))
}
