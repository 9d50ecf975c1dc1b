//! Domains, projects, users and roles: JSON objects with an id, and a name that is theirs alone.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::stamp;
use crate::tokens::Id;

pub(crate) type Fields = Map<String, Value>;

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Domain,
    Project,
    User,
    Role,
}

impl Kind {
    /// By the word in a path.
    pub(crate) fn of_path(plural: &str) -> Option<Self> {
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

    /// What a new one says of itself where its maker says nothing.
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

/// One of a kind: its fields and, apart from them, those that every login asks for.
#[derive(Debug)]
pub(crate) struct Thing {
    pub(crate) id: Id,
    pub(crate) name: String,
    /// "" where its kind is in no domain.
    pub(crate) domain: Id,
    pub(crate) is_enabled: bool,
    pub(crate) fields: Fields,
}

/// All of one kind.
#[derive(Debug)]
pub(crate) struct Things {
    kind: Kind,
    by_id: HashMap<Id, Thing>,
    /// By domain, then by name.
    by_name: HashMap<Id, HashMap<String, Id>>,
}

impl Things {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, by_id: HashMap::new(), by_name: HashMap::new() }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Thing> {
        self.by_id.get(id)
    }

    pub(crate) fn expect(&self, id: &str) -> Result<&Thing, Fault> {
        self.get(id).ok_or_else(|| Fault::missing(self.kind.word(), id))
    }

    pub(crate) fn named(&self, domain_id: &str, name: &str) -> Option<&Thing> {
        self.get(self.by_name.get(domain_id)?.get(name)?)
    }

    /// In the order of their ids, so that one listing is as the other.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Thing> {
        let mut all: Vec<_> = self.by_id.values().collect();
        all.sort_unstable_by_key(|thing| &thing.id);
        all.into_iter()
    }

    /// Ids of those in a domain.
    pub(crate) fn within(&self, domain_id: &str) -> Vec<Id> {
        self.by_name.get(domain_id).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Makes one under a new id, or under the one that is given.
    pub(crate) fn make(&mut self, id: Option<&str>, given: Fields) -> Result<&Thing, Fault> {
        let mut fields = self.kind.defaults();
        fields.extend(given);
        let id: Id = id.map_or_else(|| stamp::hex(stamp::secret()).into(), Into::into);
        fields.insert("id".into(), json!(*id));
        let made = self.checked(id.clone(), fields)?;
        self.take_name(&made)?;
        Ok(self.by_id.entry(id).or_insert(made))
    }

    /// Its domain stays what it is.
    pub(crate) fn change(&mut self, id: &str, changes: Fields) -> Result<&Thing, Fault> {
        let old = self.expect(id)?;
        let (id, name) = (old.id.clone(), old.name.clone());
        let mut fields = old.fields.clone();
        fields.extend(changes);
        let new = self.checked(id.clone(), fields)?;
        if new.name != name {
            self.take_name(&new)?;
            self.leave_name(&new.domain, &name);
        }
        self.by_id.insert(id.clone(), new);
        self.expect(&id)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(gone) = self.by_id.remove(id) {
            self.leave_name(&gone.domain, &gone.name);
        }
    }

    fn take_name(&mut self, thing: &Thing) -> Result<(), Fault> {
        let names = self.by_name.entry(thing.domain.clone()).or_default();
        if names.contains_key(&thing.name) {
            return Err(Fault::Conflict { kind: self.kind.word(), name: thing.name.clone() });
        }
        names.insert(thing.name.clone(), thing.id.clone());
        Ok(())
    }

    fn leave_name(&mut self, domain: &Id, name: &str) {
        if let Some(names) = self.by_name.get_mut(domain) {
            names.remove(name);
            if names.is_empty() {
                self.by_name.remove(domain);
            }
        }
    }

    fn checked(&self, id: Id, fields: Fields) -> Result<Thing, Fault> {
        let Some(name) = fields.get("name") else {
            return Err(Fault::bad("'name' is a required property"));
        };
        let length = name.as_str().map_or(0, |name| name.trim().chars().count());
        if length == 0 || length > self.kind.longest_name() {
            return Err(Fault::bad(format!(
                "Invalid input for field 'name': it must be 1 to {} characters",
                self.kind.longest_name()
            )));
        }
        if fields.get("enabled").is_some_and(|enabled| !enabled.is_boolean()) {
            return Err(Fault::bad("Invalid input for field 'enabled': it must be true or false"));
        }
        let domain = if self.kind.is_in_domain() { text(&fields, "domain_id") } else { "" };
        // All in a domain share its id: what thousands of logins read is in one place.
        let domain =
            self.by_name.get_key_value(domain).map_or_else(|| domain.into(), |(id, _)| id.clone());
        let name = text(&fields, "name").to_owned();
        let is_enabled = fields.get("enabled").and_then(Value::as_bool).unwrap_or(true);
        Ok(Thing { id, name, domain, is_enabled, fields })
    }
}

/// A field that is text, else "".
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or("")
}
