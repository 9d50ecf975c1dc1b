//! Domains, projects, users and roles: made, shown, listed, changed, removed.

use serde_json::{Value, json};

use crate::auth;
use crate::directory::{DEFAULT_DOMAIN, Directory};
use crate::fault::Fault;
use crate::reply::Reply;
use crate::route::{Call, State};
use crate::things::{Fields, Kind, Thing, text};
use crate::tokens::{Id, Scope, Token};

/// What a list can be asked for by.
const FILTERS: [&str; 6] =
    ["name", "domain_id", "enabled", "parent_id", "is_domain", "default_project_id"];

pub(crate) fn answer(
    state: &mut State,
    call: &Call<'_>,
    kind: Kind,
    rest: &[&str],
) -> Result<Reply, Fault> {
    match (kind, rest, call.method) {
        (_, [], "GET" | "HEAD") => {
            require_admin(state, call, action(kind, "list"))?;
            Ok(list(&state.directory, call, kind))
        }
        (_, [], "POST") => create(state, call, kind),
        (_, [id], "GET" | "HEAD") => {
            if !is_own(kind, id, auth::caller(state, call)?) {
                require_admin(state, call, action(kind, "get"))?;
            }
            Ok(one(200, kind, state.directory.of(kind).expect(id)?, call))
        }
        (_, [id], "PATCH") => change(state, call, kind, id),
        (_, [id], "DELETE") => {
            require_admin(state, call, action(kind, "delete"))?;
            state.directory.remove(kind, id)?;
            Ok(Reply::empty())
        }
        (Kind::User, [id, "projects"], "GET" | "HEAD") => {
            if &*auth::caller(state, call)?.user != *id {
                require_admin(state, call, "identity:list_user_projects")?;
            }
            let user = state.directory.users.expect(id)?.id.clone();
            Ok(places(&state.directory, call, Kind::Project, &user))
        }
        (Kind::User, [id, "password"], "POST") => change_own_password(state, call, id),
        (_, [] | [_], _) | (Kind::User, [_, "projects" | "password"], _) => {
            Err(Fault::MethodNotAllowed)
        }
        _ => Err(Fault::UnknownUrl),
    }
}

/// Whether it is the token's user, or the project that the token is for.
fn is_own(kind: Kind, id: &str, token: &Token) -> bool {
    match (kind, &token.scope) {
        (Kind::User, _) => *token.user == *id,
        (Kind::Project, Scope::Project(project)) => **project == *id,
        _ => false,
    }
}

/// Refuses a caller without the role admin.
pub(crate) fn require_admin(
    state: &State,
    call: &Call<'_>,
    action: impl Into<String>,
) -> Result<(), Fault> {
    let token = auth::caller(state, call)?;
    if auth::is_admin(state, token) { Ok(()) } else { Err(Fault::Forbidden(action.into())) }
}

/// The projects or domains in which a user has a role.
pub(crate) fn places(directory: &Directory, call: &Call<'_>, kind: Kind, user: &Id) -> Reply {
    let mine = directory.grants.places(user).filter_map(|place| match (place, kind) {
        (Scope::Project(id), Kind::Project) => directory.projects.get(id),
        (Scope::Domain(id), Kind::Domain) => directory.domains.get(id),
        _ => None,
    });
    listing(call, kind, mine)
}

fn list(directory: &Directory, call: &Call<'_>, kind: Kind) -> Reply {
    let mut asked = call.asked();
    asked.retain(|(name, _)| FILTERS.contains(&name.as_str()));
    let fits = |thing: &&Thing| {
        asked.iter().all(|(name, wanted)| match thing.fields.get(name) {
            Some(Value::String(value)) => value == wanted,
            Some(Value::Bool(value)) => {
                *value == !matches!(wanted.as_str(), "0" | "false" | "False")
            }
            _ => false,
        })
    };
    // A name within a domain is looked up: lists of thousands would be the load of every look-up.
    let exact =
        |wanted: &str| asked.iter().find(|(name, _)| name == wanted).map(|(_, v)| v.as_str());
    let domain_id = if kind.is_in_domain() { exact("domain_id") } else { Some("") };
    if let (Some(name), Some(domain_id)) = (exact("name"), domain_id) {
        let found = directory.of(kind).named(domain_id, name);
        return listing(call, kind, found.into_iter().filter(fits));
    }
    listing(call, kind, directory.of(kind).all().filter(fits))
}

fn create(state: &mut State, call: &Call<'_>, kind: Kind) -> Result<Reply, Fault> {
    require_admin(state, call, action(kind, "create"))?;
    let mut given = given(call, kind)?;
    if kind.is_in_domain() {
        place(state, call, kind, &mut given)?;
    }
    let password = taken_password(kind, &mut given)?;
    let made = state.directory.of_mut(kind).make(None, given)?;
    let (id, reply) = (made.id.clone(), one(201, kind, made, call));
    if let Some(password) = password {
        state.directory.set_password(&id, &password, call.now_us);
    }
    Ok(reply)
}

/// Puts a new thing into its domain.
fn place(state: &State, call: &Call<'_>, kind: Kind, given: &mut Fields) -> Result<(), Fault> {
    let domain_id = match given.get("domain_id").and_then(Value::as_str) {
        Some(id) => state.directory.domains.expect(id)?.id.to_string(),
        None => home(state, call)?,
    };
    if kind == Kind::Project {
        given.entry("parent_id").or_insert_with(|| json!(domain_id));
    }
    given.insert("domain_id".into(), json!(domain_id));
    Ok(())
}

/// The domain of the caller's scope.
fn home(state: &State, call: &Call<'_>) -> Result<String, Fault> {
    Ok(match &auth::caller(state, call)?.scope {
        Scope::Nothing => DEFAULT_DOMAIN.to_owned(),
        Scope::Domain(id) => id.to_string(),
        Scope::Project(id) => state.directory.projects.expect(id)?.domain.to_string(),
    })
}

fn change(state: &mut State, call: &Call<'_>, kind: Kind, id: &str) -> Result<Reply, Fault> {
    require_admin(state, call, action(kind, "update"))?;
    let known = state.directory.of(kind).expect(id)?.id.clone();
    let mut given = given(call, kind)?;
    if given.contains_key("domain_id") || given.contains_key("is_domain") {
        return Err(Fault::bad("Cannot change the domain of what is there."));
    }
    let password = taken_password(kind, &mut given)?;
    let mut shown = shown(kind, state.directory.of_mut(kind).change(&known, given)?, call);
    if kind.is_in_domain() {
        // Keystone shows what it keeps of unknown fields here, and nowhere else.
        shown["extra"] = json!({});
    }
    if let Some(password) = password {
        state.directory.set_password(&known, &password, call.now_us);
    }
    Ok(Reply::json(200, &json!({kind.word(): shown})))
}

/// Needs no token: the old password is the proof.
fn change_own_password(state: &mut State, call: &Call<'_>, id: &str) -> Result<Reply, Fault> {
    let given = given(call, Kind::User)?;
    let Some(user) = state.directory.users.get(id).map(|user| user.id.clone()) else {
        return Err(Fault::Unauthorized);
    };
    if !state.directory.is_password(&user, text(&given, "original_password")) {
        return Err(Fault::Unauthorized);
    }
    let password = text(&given, "password");
    if password.is_empty() {
        return Err(Fault::bad("'password' is a required property"));
    }
    state.directory.set_password(&user, password, call.now_us);
    Ok(Reply::empty())
}

/// The object of a request's body.
fn given(call: &Call<'_>, kind: Kind) -> Result<Fields, Fault> {
    let mut body: Value =
        serde_json::from_slice(call.body).map_err(|_| Fault::bad("The body is no JSON object."))?;
    match body.get_mut(kind.word()).map(Value::take) {
        Some(Value::Object(mut fields)) => {
            fields.remove("id");
            fields.remove("links");
            Ok(fields)
        }
        _ => Err(Fault::bad(format!("'{}' is a required property", kind.word()))),
    }
}

/// Takes a user's password out of what is kept and shown.
fn taken_password(kind: Kind, given: &mut Fields) -> Result<Option<String>, Fault> {
    if kind != Kind::User {
        return Ok(None);
    }
    match given.remove("password") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(password)) if !password.is_empty() => Ok(Some(password)),
        Some(_) => Err(Fault::bad("Invalid input for field 'password': it must be text")),
    }
}

fn one(status: u16, kind: Kind, thing: &Thing, call: &Call<'_>) -> Reply {
    Reply::json(status, &json!({kind.word(): shown(kind, thing, call)}))
}

pub(crate) fn listing<'a>(
    call: &Call<'_>,
    kind: Kind,
    found: impl Iterator<Item = &'a Thing>,
) -> Reply {
    let all: Vec<Value> = found.map(|thing| shown(kind, thing, call)).collect();
    list_of(call, kind.plural(), &all)
}

/// A list as Keystone gives it.
pub(crate) fn list_of(call: &Call<'_>, word: &str, all: &[Value]) -> Reply {
    let mut url = format!("{}{}", call.base, call.path);
    if !call.query.is_empty() {
        url = format!("{url}?{}", call.query);
    }
    let links = json!({"next": null, "self": url, "previous": null});
    Reply::json(200, &json!({word: all, "links": links}))
}

fn shown(kind: Kind, thing: &Thing, call: &Call<'_>) -> Value {
    let mut shown = thing.fields.clone();
    let url = call.url(&format!("/{}/{}", kind.plural(), thing.id));
    shown.insert("links".into(), json!({"self": url}));
    Value::Object(shown)
}

/// As Keystone's policy calls it.
fn action(kind: Kind, verb: &str) -> String {
    let plural = if verb == "list" { "s" } else { "" };
    format!("identity:{verb}_{}{plural}", kind.word())
}
