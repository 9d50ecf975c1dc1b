//! Directory: domains, projects, users, roles and grants.

use std::collections::HashMap;

use serde_json::json;

use crate::api_error::{ApiError, Result};
use crate::grants::Grants;
use crate::resources::{Fields, Kind, Resource, Resources};
use crate::settings::Admin;
use crate::tokens::{Id, Scope, Token};

/// Roles of which each implies the next, as `keystone-manage bootstrap` creates them.
const ROLE_CHAIN: [&str; 4] = ["admin", "manager", "member", "reader"];
pub(crate) const DEFAULT_DOMAIN: &str = "default";

/// Password, and time since when it is valid.
struct Password {
    value: String,
    since_us: i64,
}

/// Domains, projects, users, roles and grants.
pub(crate) struct Directory {
    pub(crate) domains: Resources,
    pub(crate) projects: Resources,
    pub(crate) users: Resources,
    pub(crate) roles: Resources,
    pub(crate) grants: Grants,
    passwords: HashMap<Id, Password>,
}

impl Directory {
    /// Creates the default domain, the roles, and an administrator with a project.
    pub(crate) fn new(admin: &Admin, now_us: i64) -> Result<Self> {
        let mut made = Self {
            domains: Resources::new(Kind::Domain),
            projects: Resources::new(Kind::Project),
            users: Resources::new(Kind::User),
            roles: Resources::new(Kind::Role),
            grants: Grants::default(),
            passwords: HashMap::new(),
        };
        made.domains.create(Some(DEFAULT_DOMAIN), named("Default", None))?;
        for role in ROLE_CHAIN.into_iter().chain(["service"]) {
            let mut role = named(role, None);
            role.insert("options".into(), json!({"immutable": true}));
            made.roles.create(None, role)?;
        }
        let mut project = named(&admin.project, Some(DEFAULT_DOMAIN));
        project.insert("parent_id".into(), json!(DEFAULT_DOMAIN));
        let project = made.projects.create(None, project)?.id.clone();
        let user = made.users.create(None, named(&admin.user, Some(DEFAULT_DOMAIN)))?.id.clone();
        made.set_password(&user, &admin.password, now_us);
        if let Some(role) = made.roles.named("", ROLE_CHAIN[0]) {
            made.grants.add(user, Scope::Project(project), role.id.clone());
        }
        Ok(made)
    }

    pub(crate) fn of(&self, kind: Kind) -> &Resources {
        match kind {
            Kind::Domain => &self.domains,
            Kind::Project => &self.projects,
            Kind::User => &self.users,
            Kind::Role => &self.roles,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut Resources {
        match kind {
            Kind::Domain => &mut self.domains,
            Kind::Project => &mut self.projects,
            Kind::User => &mut self.users,
            Kind::Role => &mut self.roles,
        }
    }

    /// Sets a password, which invalidates tokens that were issued before.
    pub(crate) fn set_password(&mut self, user: &Id, value: &str, since_us: i64) {
        self.passwords.insert(user.clone(), Password { value: value.to_owned(), since_us });
    }

    /// Compares a password in clear: a hash would be most of the cost of a login.
    pub(crate) fn is_password(&self, user: &str, password: &str) -> bool {
        self.passwords.get(user).is_some_and(|known| known.value == password)
    }

    /// Returns the roles of a user in a scope, including implied ones.
    pub(crate) fn roles_at(&self, user: &Id, scope: &Scope) -> Vec<&Resource> {
        let mut found: Vec<&Resource> = Vec::new();
        for role in self.grants.roles(user, scope).filter_map(|role| self.roles.get(role)) {
            let implied = ROLE_CHAIN.iter().skip_while(|link| **link != role.name).skip(1);
            let implied = implied.filter_map(|link| self.roles.named("", link));
            for role in std::iter::once(role).chain(implied) {
                if found.iter().all(|known| known.id != role.id) {
                    found.push(role);
                }
            }
        }
        found
    }

    /// Whether user, scope and grants of a token still exist.
    pub(crate) fn still_holds(&self, token: &Token) -> bool {
        let since_us = self.passwords.get(&token.user).map_or(0, |password| password.since_us);
        token.issued_us >= since_us
            && self.is_usable_user(&token.user)
            && self.is_usable_scope(&token.user, &token.scope)
    }

    pub(crate) fn is_usable_user(&self, user: &str) -> bool {
        self.users.get(user).is_some_and(|user| self.is_usable(user))
    }

    /// Whether the scope exists and is enabled, and the user has a role in it.
    pub(crate) fn is_usable_scope(&self, user: &Id, scope: &Scope) -> bool {
        let is_enabled = match scope {
            Scope::Nothing => return true,
            Scope::Domain(id) => self.is_usable_domain(id),
            Scope::Project(id) => self.projects.get(id).is_some_and(|it| self.is_usable(it)),
        };
        is_enabled && self.grants.roles(user, scope).next().is_some()
    }

    fn is_usable(&self, user_or_project: &Resource) -> bool {
        user_or_project.is_enabled && self.is_usable_domain(&user_or_project.domain)
    }

    fn is_usable_domain(&self, id: &str) -> bool {
        self.domains.get(id).is_some_and(|domain| domain.is_enabled)
    }

    /// Deletes a resource and all that depends on it.
    pub(crate) fn remove(&mut self, kind: Kind, id: &str) -> Result<()> {
        let resource = self.of(kind).expect(id)?;
        let id = resource.id.clone();
        if kind == Kind::Domain {
            if resource.is_enabled {
                return Err(ApiError::Refused(
                    "Cannot delete a domain that is enabled, please disable it first.".into(),
                ));
            }
            for inside in [Kind::User, Kind::Project] {
                for id in self.of(inside).within(&id) {
                    self.remove(inside, &id)?;
                }
            }
        }
        self.of_mut(kind).remove(&id);
        self.grants.remove_resource(&id);
        self.passwords.remove(&id);
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
