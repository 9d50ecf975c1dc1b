//! Which user has which roles where.

use std::collections::HashMap;

use serde_json::json;

use crate::body::Reference;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::manage;
use crate::reply::Reply;
use crate::route::{Call, State, only};
use crate::things::Kind;
use crate::tokens::{Id, Scope};

/// What each user has: places with a role, in their order.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    by_user: HashMap<Id, Vec<(Scope, Id)>>,
}

impl Grants {
    pub(crate) fn give(&mut self, user: Id, place: Scope, role: Id) {
        let given = self.by_user.entry(user).or_default();
        let grant = (place, role);
        if let Err(at) = given.binary_search(&grant) {
            given.insert(at, grant);
        }
    }

    /// Whether there was such a grant.
    pub(crate) fn take(&mut self, user: &Id, place: &Scope, role: &str) -> bool {
        let Some(given) = self.by_user.get_mut(user) else { return false };
        let before = given.len();
        given.retain(|(at, what)| at != place || **what != *role);
        given.len() < before
    }

    /// Roles in one place.
    pub(crate) fn of(&self, user: &Id, place: &Scope) -> impl Iterator<Item = &Id> {
        let given = self.by_user.get(user).map_or(&[][..], Vec::as_slice);
        let first = given.partition_point(|(at, _)| at < place);
        given[first..].iter().take_while(move |(at, _)| at == place).map(|(_, role)| role)
    }

    /// Where a user has any role.
    pub(crate) fn places(&self, user: &Id) -> impl Iterator<Item = &Scope> {
        let given = self.by_user.get(user).map_or(&[][..], Vec::as_slice);
        given.chunk_by(|(one, _), (next, _)| one == next).map(|same| &same[0].0)
    }

    /// In the order of the users' ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Id, &Scope, &Id)> {
        let mut users: Vec<_> = self.by_user.iter().collect();
        users.sort_unstable_by_key(|(user, _)| *user);
        users
            .into_iter()
            .flat_map(|(user, given)| given.iter().map(move |(place, role)| (user, place, role)))
    }

    /// Drops all grants to, on or of what is gone.
    pub(crate) fn forget(&mut self, id: &Id) {
        self.by_user.remove(id);
        for given in self.by_user.values_mut() {
            given.retain(|(place, role)| match place {
                Scope::Nothing => role != id,
                Scope::Project(place) | Scope::Domain(place) => role != id && place != id,
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
        ("projects", id) => Scope::Project(directory.projects.expect(id)?.id.clone()),
        (_, id) => Scope::Domain(directory.domains.expect(id)?.id.clone()),
    };
    let user = directory.users.expect(user)?.id.clone();
    let [role] = role else {
        if !role.is_empty() {
            return Err(Fault::UnknownUrl);
        }
        only(call, &["GET", "HEAD"])?;
        let roles = directory.grants.of(&user, &place);
        let found = roles.filter_map(|role| directory.roles.get(role));
        return Ok(manage::listing(call, Kind::Role, found));
    };
    let role = directory.roles.expect(role)?.id.clone();
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
    let said = |kind: Kind, id| {
        if with_names { Reference::to(directory, kind, id) } else { Reference::bare(id) }
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
