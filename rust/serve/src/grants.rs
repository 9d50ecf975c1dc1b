//! Role assignments of users.

use std::collections::HashMap;

use crate::tokens::{Id, Scope};

/// Role assignments: for each user an ordered list of scopes and roles.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    by_user: HashMap<Id, Vec<(Scope, Id)>>,
}

impl Grants {
    pub(crate) fn add(&mut self, user: Id, scope: Scope, role: Id) {
        let grants = self.by_user.entry(user).or_default();
        let grant = (scope, role);
        if let Err(at) = grants.binary_search(&grant) {
            grants.insert(at, grant);
        }
    }

    /// Removes a grant. Returns whether there was one.
    pub(crate) fn remove(&mut self, user: &Id, scope: &Scope, role: &str) -> bool {
        let Some(grants) = self.by_user.get_mut(user) else { return false };
        let before = grants.len();
        grants.retain(|(at, what)| at != scope || **what != *role);
        grants.len() < before
    }

    /// Returns a user's roles in a scope.
    pub(crate) fn roles(&self, user: &Id, scope: &Scope) -> impl Iterator<Item = &Id> {
        let grants = self.by_user.get(user).map_or(&[][..], Vec::as_slice);
        let first = grants.partition_point(|(at, _)| at < scope);
        grants[first..].iter().take_while(move |(at, _)| at == scope).map(|(_, role)| role)
    }

    /// Returns the scopes in which a user has a role.
    pub(crate) fn scopes(&self, user: &Id) -> impl Iterator<Item = &Scope> {
        let grants = self.by_user.get(user).map_or(&[][..], Vec::as_slice);
        grants.chunk_by(|(one, _), (next, _)| one == next).map(|same| &same[0].0)
    }

    /// Returns all grants, ordered by user.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Id, &Scope, &Id)> {
        let mut users: Vec<_> = self.by_user.iter().collect();
        users.sort_unstable_by_key(|(user, _)| *user);
        users
            .into_iter()
            .flat_map(|(user, grants)| grants.iter().map(move |(scope, role)| (user, scope, role)))
    }

    /// Removes all grants of a resource that was deleted.
    pub(crate) fn remove_resource(&mut self, id: &Id) {
        self.by_user.remove(id);
        for grants in self.by_user.values_mut() {
            grants.retain(|(scope, role)| match scope {
                Scope::Nothing => role != id,
                Scope::Project(at) | Scope::Domain(at) => role != id && at != id,
            });
        }
    }
}
