//! Which user has which roles where.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::json;

use crate::auth;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::manage;
use crate::reply::Reply;
use crate::route::{Call, State, only};
use crate::things::Kind;
use crate::tokens::{Id, Scope};

/// User to project or domain to roles.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    roles: HashMap<Id, BTreeMap<Scope, BTreeSet<Id>>>,
}

impl Grants {
    pub(crate) fn give(&mut self, user: Id, place: Scope, role: Id) {
        self.roles.entry(user).or_default().entry(place).or_default().insert(role);
    }

    /// Whether there was such a grant.
    pub(crate) fn take(&mut self, user: &Id, place: &Scope, role: &str) -> bool {
        let Some(places) = self.roles.get_mut(user) else { return false };
        let Some(roles) = places.get_mut(place) else { return false };
        let was_there = roles.remove(role);
        if roles.is_empty() {
            places.remove(place);
        }
        was_there
    }

    pub(crate) fn of(&self, user: &Id, place: &Scope) -> impl Iterator<Item = &Id> {
        self.roles.get(user).and_then(|places| places.get(place)).into_iter().flatten()
    }

    /// Where a user has any role.
    pub(crate) fn places(&self, user: &Id) -> impl Iterator<Item = &Scope> {
        self.roles.get(user).into_iter().flat_map(BTreeMap::keys)
    }

    /// In the order of the users' ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Id, &Scope, &Id)> {
        let mut users: Vec<_> = self.roles.iter().collect();
        users.sort_unstable_by_key(|(user, _)| *user);
        users.into_iter().flat_map(|(user, places)| {
            places
                .iter()
                .flat_map(move |(place, roles)| roles.iter().map(move |role| (user, place, role)))
        })
    }

    /// Drops all grants to, on or of what is gone.
    pub(crate) fn forget(&mut self, id: &Id) {
        self.roles.remove(id);
        for places in self.roles.values_mut() {
            places.retain(|place, roles| {
                roles.remove(id);
                let is_there = match place {
                    Scope::Nothing => true,
                    Scope::Project(place) | Scope::Domain(place) => place != id,
                };
                is_there && !roles.is_empty()
            });
        }
    }
}

/// Gives, checks, takes or lists a user's roles in one place.
pub(crate) fn answer(
    state: &mut State,
    call: &Call<'_>,
    place: (&str, &str),
    user: &str,
    role: &[&str],
) -> Result<Reply, Fault> {
    let directory = &mut state.directory;
    let place = match place {
        ("projects", id) => Scope::Project(directory.projects.expect(id)?.0.clone()),
        (_, id) => Scope::Domain(directory.domains.expect(id)?.0.clone()),
    };
    let user = directory.users.expect(user)?.0.clone();
    let [role] = role else {
        if !role.is_empty() {
            return Err(Fault::UnknownUrl);
        }
        only(call, &["GET", "HEAD"])?;
        let roles = directory.grants.of(&user, &place);
        let found = roles.filter_map(|role| directory.roles.get(role)).map(|(_, fields)| fields);
        return Ok(manage::listing(call, Kind::Role, found));
    };
    let role = directory.roles.expect(role)?.0.clone();
    match call.method {
        "PUT" => directory.grants.give(user, place, role),
        "GET" | "HEAD" if directory.grants.of(&user, &place).any(|given| *given == role) => {}
        "DELETE" if directory.grants.take(&user, &place, &role) => {}
        "GET" | "HEAD" | "DELETE" => return Err(Fault::missing("role assignment", &role)),
        _ => return Err(Fault::MethodNotAllowed),
    }
    Ok(Reply::empty())
}

/// Lists grants; the query chooses by user, place and role.
pub(crate) fn list(directory: &Directory, call: &Call<'_>) -> Reply {
    let asked = call.asked();
    let fits = |name: &str, id: &str| asked.iter().all(|(key, value)| key != name || value == id);
    let with_names = asked.iter().any(|(key, value)| {
        key == "include_names" && !matches!(value.as_str(), "0" | "false" | "False")
    });
    let said = |kind: Kind, id: &Id| {
        if with_names { auth::reference(directory, kind, id) } else { json!({"id": &**id}) }
    };
    let mut all = Vec::new();
    for (user, place, role) in directory.grants.all() {
        let (kind, id) = match place {
            Scope::Nothing => continue,
            Scope::Project(id) => (Kind::Project, id),
            Scope::Domain(id) => (Kind::Domain, id),
        };
        let other = if kind == Kind::Project { "scope.domain.id" } else { "scope.project.id" };
        let is_asked = fits("user.id", user)
            && fits("role.id", role)
            && fits(&format!("scope.{}.id", kind.word()), id)
            && asked.iter().all(|(key, _)| key != other);
        if is_asked {
            let path = format!("/{}/{id}/users/{user}/roles/{role}", kind.plural());
            all.push(json!({
                "links": {"assignment": call.url(&path)},
                "role": said(Kind::Role, role),
                "scope": {kind.word(): said(kind, id)},
                "user": said(Kind::User, user),
            }));
        }
    }
    manage::list_of(call, "role_assignments", &all)
}
