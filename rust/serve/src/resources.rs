//! Domains, projects, users and roles: JSON objects with an id and a unique name.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::api_error::{ApiError, Result};
use crate::ids;
use crate::tokens::Id;

pub(crate) type Fields = Map<String, Value>;

/// Kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Domain,
    Project,
    User,
    Role,
}

impl Kind {
    /// Parses the word in a path.
    pub(crate) fn from_path(plural: &str) -> Option<Self> {
        [Self::Domain, Self::Project, Self::User, Self::Role]
            .into_iter()
            .find(|kind| kind.plural() == plural)
    }

    pub(crate) fn word(self) -> &'static str {
        self.plural().trim_end_matches('s')
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Domain => "domains",
            Self::Project => "projects",
            Self::User => "users",
            Self::Role => "roles",
        }
    }

    pub(crate) fn is_in_domain(self) -> bool {
        matches!(self, Self::Project | Self::User)
    }

    /// Returns the default fields of a new resource.
    pub(crate) fn defaults(self) -> Fields {
        let fields = match self {
            Self::Domain => json!({"description": "", "enabled": true, "tags": [], "options": {}}),
            Self::Project => json!({
                "description": "", "enabled": true, "is_domain": false, "tags": [], "options": {},
            }),
            Self::User => json!({"enabled": true, "password_expires_at": null, "options": {}}),
            Self::Role => json!({"description": null, "domain_id": null, "options": {}}),
        };
        fields.as_object().cloned().unwrap_or_default()
    }

    fn longest_name(self) -> usize {
        match self {
            Self::Domain | Self::Project => 64,
            Self::User | Self::Role => 255,
        }
    }
}

/// Resource. Fields that every login needs are also kept separately.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: Id,
    pub(crate) name: String,
    /// "" if its kind is not in a domain.
    pub(crate) domain: Id,
    pub(crate) is_enabled: bool,
    pub(crate) fields: Fields,
}

/// All resources of a kind.
#[derive(Debug)]
pub(crate) struct Resources {
    kind: Kind,
    by_id: HashMap<Id, Resource>,
    /// By domain, then by name.
    by_name: HashMap<Id, HashMap<String, Id>>,
}

impl Resources {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, by_id: HashMap::new(), by_name: HashMap::new() }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Resource> {
        self.by_id.get(id)
    }

    pub(crate) fn expect(&self, id: &str) -> Result<&Resource> {
        self.get(id).ok_or_else(|| ApiError::not_found(self.kind.word(), id))
    }

    pub(crate) fn named(&self, domain_id: &str, name: &str) -> Option<&Resource> {
        self.get(self.by_name.get(domain_id)?.get(name)?)
    }

    /// Returns all resources, ordered by id, so that lists are stable.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Resource> {
        let mut all: Vec<_> = self.by_id.values().collect();
        all.sort_unstable_by_key(|resource| &resource.id);
        all.into_iter()
    }

    /// Returns the ids of the resources in a domain.
    pub(crate) fn within(&self, domain_id: &str) -> Vec<Id> {
        self.by_name.get(domain_id).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Creates a resource with this id, or a new one.
    pub(crate) fn create(&mut self, id: Option<&str>, values: Fields) -> Result<&Resource> {
        let mut fields = self.kind.defaults();
        fields.extend(values);
        let id: Id = id.map_or_else(|| ids::hex(ids::secret()).into(), Into::into);
        fields.insert("id".into(), json!(*id));
        let created = self.validated(id.clone(), fields)?;
        self.reserve_name(&created)?;
        Ok(self.by_id.entry(id).or_insert(created))
    }

    /// Updates a resource, whose domain does not change.
    pub(crate) fn update(&mut self, id: &str, changes: Fields) -> Result<&Resource> {
        let old = self.expect(id)?;
        let (id, name) = (old.id.clone(), old.name.clone());
        let mut fields = old.fields.clone();
        fields.extend(changes);
        let new = self.validated(id.clone(), fields)?;
        if new.name != name {
            self.reserve_name(&new)?;
            self.release_name(&new.domain, &name);
        }
        self.by_id.insert(id.clone(), new);
        self.expect(&id)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(removed) = self.by_id.remove(id) {
            self.release_name(&removed.domain, &removed.name);
        }
    }

    fn reserve_name(&mut self, resource: &Resource) -> Result<()> {
        let names = self.by_name.entry(resource.domain.clone()).or_default();
        if names.contains_key(&resource.name) {
            return Err(ApiError::Conflict { kind: self.kind.word(), name: resource.name.clone() });
        }
        names.insert(resource.name.clone(), resource.id.clone());
        Ok(())
    }

    fn release_name(&mut self, domain: &Id, name: &str) {
        if let Some(names) = self.by_name.get_mut(domain) {
            names.remove(name);
            if names.is_empty() {
                self.by_name.remove(domain);
            }
        }
    }

    fn validated(&self, id: Id, fields: Fields) -> Result<Resource> {
        let Some(name) = fields.get("name") else {
            return Err(ApiError::bad_request("'name' is a required property"));
        };
        let length = name.as_str().map_or(0, |name| name.trim().chars().count());
        if length == 0 || length > self.kind.longest_name() {
            return Err(ApiError::bad_request(format!(
                "Invalid input for field 'name': it must be 1 to {} characters",
                self.kind.longest_name()
            )));
        }
        if fields.get("enabled").is_some_and(|enabled| !enabled.is_boolean()) {
            return Err(ApiError::bad_request(
                "Invalid input for field 'enabled': it must be true or false",
            ));
        }
        let domain = if self.kind.is_in_domain() { text(&fields, "domain_id") } else { "" };
        // Resources in a domain share its id, which saves memory and cache misses.
        let domain =
            self.by_name.get_key_value(domain).map_or_else(|| domain.into(), |(id, _)| id.clone());
        let name = text(&fields, "name").to_owned();
        let is_enabled = fields.get("enabled").and_then(Value::as_bool).unwrap_or(true);
        Ok(Resource { id, name, domain, is_enabled, fields })
    }
}

/// Returns a string field; "" for any other.
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or("")
}
