//! Routes that create, show, list, update and delete domains, projects, users and roles.

use serde_json::{Value, json};

use crate::access::{caller, require_admin};
use crate::api_error::{ApiError, Result};
use crate::directory::{DEFAULT_DOMAIN, Directory};
use crate::reply::Reply;
use crate::request::Request;
use crate::resources::{Fields, Kind, Resource, text};
use crate::state::State;
use crate::tokens::{Id, Scope, Token};

/// Query parameters that filter a list.
const FILTERS: [&str; 6] =
    ["name", "domain_id", "enabled", "parent_id", "is_domain", "default_project_id"];

pub(crate) fn handle(
    state: &mut State,
    request: &Request<'_>,
    kind: Kind,
    rest: &[&str],
) -> Result<Reply> {
    match (kind, rest, request.method) {
        (_, [], "GET" | "HEAD") => {
            require_admin(state, request, action(kind, "list"))?;
            Ok(list(&state.directory, request, kind))
        }
        (_, [], "POST") => create(state, request, kind),
        (_, [id], "GET" | "HEAD") => {
            if !is_own(kind, id, caller(state, request)?) {
                require_admin(state, request, action(kind, "get"))?;
            }
            Ok(one(200, kind, state.directory.of(kind).expect(id)?, request))
        }
        (_, [id], "PATCH") => update(state, request, kind, id),
        (_, [id], "DELETE") => {
            require_admin(state, request, action(kind, "delete"))?;
            state.directory.remove(kind, id)?;
            Ok(Reply::empty())
        }
        (Kind::User, [id, "projects"], "GET" | "HEAD") => {
            if &*caller(state, request)?.user != *id {
                require_admin(state, request, "identity:list_user_projects")?;
            }
            let user = state.directory.users.expect(id)?.id.clone();
            Ok(list_scopes(&state.directory, request, Kind::Project, &user))
        }
        (Kind::User, [id, "password"], "POST") => change_own_password(state, request, id),
        (_, [] | [_], _) | (Kind::User, [_, "projects" | "password"], _) => {
            Err(ApiError::MethodNotAllowed)
        }
        _ => Err(ApiError::UnknownUrl),
    }
}

/// Whether it is the token's user or project.
fn is_own(kind: Kind, id: &str, token: &Token) -> bool {
    match (kind, &token.scope) {
        (Kind::User, _) => *token.user == *id,
        (Kind::Project, Scope::Project(project)) => **project == *id,
        _ => false,
    }
}

/// Lists the projects or domains in which a user has a role.
pub(crate) fn list_scopes(
    directory: &Directory,
    request: &Request<'_>,
    kind: Kind,
    user: &Id,
) -> Reply {
    let scopes = directory.grants.scopes(user).filter_map(|scope| match (scope, kind) {
        (Scope::Project(id), Kind::Project) => directory.projects.get(id),
        (Scope::Domain(id), Kind::Domain) => directory.domains.get(id),
        _ => None,
    });
    listing(request, kind, scopes)
}

fn list(directory: &Directory, request: &Request<'_>, kind: Kind) -> Reply {
    let mut filters = request.query_pairs();
    filters.retain(|(name, _)| FILTERS.contains(&name.as_str()));
    let fits = |resource: &&Resource| {
        filters.iter().all(|(name, wanted)| match resource.fields.get(name) {
            Some(Value::String(value)) => value == wanted,
            Some(Value::Bool(value)) => {
                *value == !matches!(wanted.as_str(), "0" | "false" | "False")
            }
            _ => false,
        })
    };
    // A name within a domain is looked up in an index: a scan of thousands would be slow.
    let exact =
        |wanted: &str| filters.iter().find(|(name, _)| name == wanted).map(|(_, v)| v.as_str());
    let domain_id = if kind.is_in_domain() { exact("domain_id") } else { Some("") };
    if let (Some(name), Some(domain_id)) = (exact("name"), domain_id) {
        let found = directory.of(kind).named(domain_id, name);
        return listing(request, kind, found.into_iter().filter(fits));
    }
    listing(request, kind, directory.of(kind).all().filter(fits))
}

fn create(state: &mut State, request: &Request<'_>, kind: Kind) -> Result<Reply> {
    require_admin(state, request, action(kind, "create"))?;
    let mut fields = parse_body(request, kind)?;
    if kind.is_in_domain() {
        set_domain(state, request, kind, &mut fields)?;
    }
    let password = take_password(kind, &mut fields)?;
    let created = state.directory.of_mut(kind).create(None, fields)?;
    let (id, reply) = (created.id.clone(), one(201, kind, created, request));
    if let Some(password) = password {
        state.directory.set_password(&id, &password, request.now_us);
    }
    Ok(reply)
}

/// Sets the domain of a new resource.
fn set_domain(state: &State, request: &Request<'_>, kind: Kind, fields: &mut Fields) -> Result<()> {
    let domain_id = match fields.get("domain_id").and_then(Value::as_str) {
        Some(id) => state.directory.domains.expect(id)?.id.to_string(),
        None => caller_domain(state, request)?,
    };
    if kind == Kind::Project {
        fields.entry("parent_id").or_insert_with(|| json!(domain_id));
    }
    fields.insert("domain_id".into(), json!(domain_id));
    Ok(())
}

/// Returns the domain of the caller's scope.
fn caller_domain(state: &State, request: &Request<'_>) -> Result<String> {
    Ok(match &caller(state, request)?.scope {
        Scope::Nothing => DEFAULT_DOMAIN.to_owned(),
        Scope::Domain(id) => id.to_string(),
        Scope::Project(id) => state.directory.projects.expect(id)?.domain.to_string(),
    })
}

fn update(state: &mut State, request: &Request<'_>, kind: Kind, id: &str) -> Result<Reply> {
    require_admin(state, request, action(kind, "update"))?;
    let known = state.directory.of(kind).expect(id)?.id.clone();
    let mut fields = parse_body(request, kind)?;
    if fields.contains_key("domain_id") || fields.contains_key("is_domain") {
        return Err(ApiError::bad_request("Cannot change the domain of what is there."));
    }
    let password = take_password(kind, &mut fields)?;
    let mut shown = show(kind, state.directory.of_mut(kind).update(&known, fields)?, request);
    if kind.is_in_domain() {
        // Keystone shows unknown fields only here.
        shown["extra"] = json!({});
    }
    if let Some(password) = password {
        state.directory.set_password(&known, &password, request.now_us);
    }
    Ok(Reply::json(200, &json!({kind.word(): shown})))
}

/// Changes a password. The old password authenticates the user, so no token is needed.
fn change_own_password(state: &mut State, request: &Request<'_>, id: &str) -> Result<Reply> {
    let fields = parse_body(request, Kind::User)?;
    let Some(user) = state.directory.users.get(id).map(|user| user.id.clone()) else {
        return Err(ApiError::Unauthorized);
    };
    if !state.directory.is_password(&user, text(&fields, "original_password")) {
        return Err(ApiError::Unauthorized);
    }
    let password = text(&fields, "password");
    if password.is_empty() {
        return Err(ApiError::bad_request("'password' is a required property"));
    }
    state.directory.set_password(&user, password, request.now_us);
    Ok(Reply::empty())
}

/// Parses the resource in a request's body.
fn parse_body(request: &Request<'_>, kind: Kind) -> Result<Fields> {
    let mut body: Value = serde_json::from_slice(request.body)
        .map_err(|_| ApiError::bad_request("The body is no JSON object."))?;
    match body.get_mut(kind.word()).map(Value::take) {
        Some(Value::Object(mut fields)) => {
            fields.remove("id");
            fields.remove("links");
            Ok(fields)
        }
        _ => Err(ApiError::bad_request(format!("'{}' is a required property", kind.word()))),
    }
}

/// Removes a user's password from the fields, which are shown to clients.
fn take_password(kind: Kind, fields: &mut Fields) -> Result<Option<String>> {
    if kind != Kind::User {
        return Ok(None);
    }
    match fields.remove("password") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(password)) if !password.is_empty() => Ok(Some(password)),
        Some(_) => {
            Err(ApiError::bad_request("Invalid input for field 'password': it must be text"))
        }
    }
}

fn one(status: u16, kind: Kind, resource: &Resource, request: &Request<'_>) -> Reply {
    Reply::json(status, &json!({kind.word(): show(kind, resource, request)}))
}

pub(crate) fn listing<'a>(
    request: &Request<'_>,
    kind: Kind,
    found: impl Iterator<Item = &'a Resource>,
) -> Reply {
    let all: Vec<Value> = found.map(|resource| show(kind, resource, request)).collect();
    list_of(request, kind.plural(), &all)
}

/// Returns a list in Keystone's format.
pub(crate) fn list_of(request: &Request<'_>, word: &str, all: &[Value]) -> Reply {
    let mut url = format!("{}{}", request.base, request.path);
    if !request.query.is_empty() {
        url = format!("{url}?{}", request.query);
    }
    let links = json!({"next": null, "self": url, "previous": null});
    Reply::json(200, &json!({word: all, "links": links}))
}

fn show(kind: Kind, resource: &Resource, request: &Request<'_>) -> Value {
    let mut shown = resource.fields.clone();
    let url = request.url(&format!("/{}/{}", kind.plural(), resource.id));
    shown.insert("links".into(), json!({"self": url}));
    Value::Object(shown)
}

/// Returns the name of an action in Keystone's policy.
fn action(kind: Kind, verb: &str) -> String {
    let plural = if verb == "list" { "s" } else { "" };
    format!("identity:{verb}_{}{plural}", kind.word())
}
