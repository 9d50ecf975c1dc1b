//! All that the service knows of users and what they may.

use std::collections::HashMap;

use serde_json::json;

use crate::fault::Fault;
use crate::grants::Grants;
use crate::settings::Admin;
use crate::things::{Fields, Kind, Thing, Things};
use crate::tokens::{Id, Scope, Token};

/// Each role of the chain implies the next, as `keystone-manage bootstrap` sets them up.
const CHAIN: [&str; 4] = ["admin", "manager", "member", "reader"];
pub(crate) const DEFAULT_DOMAIN: &str = "default";

/// A password as it is compared, and since when the user has it.
struct Password {
    value: String,
    since_us: i64,
}

/// Domains, projects, users, roles and grants.
pub(crate) struct Directory {
    pub(crate) domains: Things,
    pub(crate) projects: Things,
    pub(crate) users: Things,
    pub(crate) roles: Things,
    pub(crate) grants: Grants,
    passwords: HashMap<Id, Password>,
}

impl Directory {
    /// The default domain, the roles, and an administrator with a project.
    pub(crate) fn new(admin: &Admin, now_us: i64) -> Result<Self, Fault> {
        let mut made = Self {
            domains: Things::new(Kind::Domain),
            projects: Things::new(Kind::Project),
            users: Things::new(Kind::User),
            roles: Things::new(Kind::Role),
            grants: Grants::default(),
            passwords: HashMap::new(),
        };
        made.domains.make(Some(DEFAULT_DOMAIN), named("Default", None))?;
        for role in CHAIN.into_iter().chain(["service"]) {
            let mut role = named(role, None);
            role.insert("options".into(), json!({"immutable": true}));
            made.roles.make(None, role)?;
        }
        let mut project = named(&admin.project, Some(DEFAULT_DOMAIN));
        project.insert("parent_id".into(), json!(DEFAULT_DOMAIN));
        let project = made.projects.make(None, project)?.id.clone();
        let user = made.users.make(None, named(&admin.user, Some(DEFAULT_DOMAIN)))?.id.clone();
        made.set_password(&user, &admin.password, now_us);
        if let Some(role) = made.roles.named("", CHAIN[0]) {
            made.grants.give(user, Scope::Project(project), role.id.clone());
        }
        Ok(made)
    }

    pub(crate) fn of(&self, kind: Kind) -> &Things {
        match kind {
            Kind::Domain => &self.domains,
            Kind::Project => &self.projects,
            Kind::User => &self.users,
            Kind::Role => &self.roles,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut Things {
        match kind {
            Kind::Domain => &mut self.domains,
            Kind::Project => &mut self.projects,
            Kind::User => &mut self.users,
            Kind::Role => &mut self.roles,
        }
    }

    /// Tokens that were issued before die with the old password.
    pub(crate) fn set_password(&mut self, user: &Id, value: &str, since_us: i64) {
        self.passwords.insert(user.clone(), Password { value: value.to_owned(), since_us });
    }

    /// Compared as it stands: there is no hash, whose cost is most of a real Keystone's login.
    pub(crate) fn is_password(&self, user: &str, given: &str) -> bool {
        self.passwords.get(user).is_some_and(|password| password.value == given)
    }

    /// Roles of a user somewhere, with those that they imply.
    pub(crate) fn roles_at(&self, user: &Id, place: &Scope) -> Vec<&Thing> {
        let mut found: Vec<&Thing> = Vec::new();
        for role in self.grants.of(user, place).filter_map(|role| self.roles.get(role)) {
            let implied = CHAIN.iter().skip_while(|link| **link != role.name).skip(1);
            let implied = implied.filter_map(|link| self.roles.named("", link));
            for role in std::iter::once(role).chain(implied) {
                if found.iter().all(|known| known.id != role.id) {
                    found.push(role);
                }
            }
        }
        found
    }

    /// Whether user, scope and grant of a token are still there.
    pub(crate) fn still_holds(&self, token: &Token) -> bool {
        let since_us = self.passwords.get(&token.user).map_or(0, |password| password.since_us);
        token.issued_us >= since_us
            && self.is_usable_user(&token.user)
            && self.is_usable_scope(&token.user, &token.scope)
    }

    pub(crate) fn is_usable_user(&self, user: &str) -> bool {
        self.users.get(user).is_some_and(|user| self.is_usable(user))
    }

    /// Whether the scope is there, enabled, and the user has a role in it.
    pub(crate) fn is_usable_scope(&self, user: &Id, scope: &Scope) -> bool {
        let is_there = match scope {
            Scope::Nothing => return true,
            Scope::Domain(id) => self.is_usable_domain(id),
            Scope::Project(id) => self.projects.get(id).is_some_and(|it| self.is_usable(it)),
        };
        is_there && self.grants.of(user, scope).next().is_some()
    }

    fn is_usable(&self, user_or_project: &Thing) -> bool {
        user_or_project.is_enabled && self.is_usable_domain(&user_or_project.domain)
    }

    fn is_usable_domain(&self, id: &str) -> bool {
        self.domains.get(id).is_some_and(|domain| domain.is_enabled)
    }

    /// Removes a thing and all that stands on it.
    pub(crate) fn remove(&mut self, kind: Kind, id: &str) -> Result<(), Fault> {
        let thing = self.of(kind).expect(id)?;
        let known = thing.id.clone();
        if kind == Kind::Domain {
            if thing.is_enabled {
                return Err(Fault::Refused(
                    "Cannot delete a domain that is enabled, please disable it first.".into(),
                ));
            }
            for inside in [Kind::User, Kind::Project] {
                for id in self.of(inside).within(&known) {
                    self.remove(inside, &id)?;
                }
            }
        }
        self.of_mut(kind).remove(&known);
        self.grants.forget(&known);
        self.passwords.remove(&known);
        Ok(())
    }
}

fn named(name: &str, domain_id: Option<&str>) -> Fields {
    let mut fields = Fields::new();
    fields.insert("name".into(), json!(name));
    if let Some(domain_id) = domain_id {
        fields.insert("domain_id".into(), json!(domain_id));
    }
    fields
}
