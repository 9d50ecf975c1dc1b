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

/// All of one kind.
#[derive(Debug)]
pub(crate) struct Things {
    kind: Kind,
    by_id: HashMap<Id, Fields>,
    /// (domain, name); kinds outside domains have them all in "".
    by_name: HashMap<(String, String), Id>,
}

impl Things {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, by_id: HashMap::new(), by_name: HashMap::new() }
    }

    pub(crate) fn get(&self, id: &str) -> Option<(&Id, &Fields)> {
        self.by_id.get_key_value(id)
    }

    pub(crate) fn expect(&self, id: &str) -> Result<(&Id, &Fields), Fault> {
        self.get(id).ok_or_else(|| Fault::missing(self.kind.word(), id))
    }

    pub(crate) fn named(&self, domain_id: &str, name: &str) -> Option<(&Id, &Fields)> {
        let id = self.by_name.get(&(domain_id.to_owned(), name.to_owned()))?;
        self.get(id)
    }

    /// In the order of their ids, so that one listing is as the other.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Fields> {
        let mut all: Vec<_> = self.by_id.iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, fields)| fields)
    }

    /// Ids of those in a domain.
    pub(crate) fn within(&self, domain_id: &str) -> Vec<Id> {
        let inside = |fields: &Fields| text(fields, "domain_id") == domain_id;
        self.by_id.iter().filter(|(_, fields)| inside(fields)).map(|(id, _)| id.clone()).collect()
    }

    /// Makes one under a new id, or under the one that is given.
    pub(crate) fn make(&mut self, id: Option<&str>, given: Fields) -> Result<&Fields, Fault> {
        let mut fields = self.kind.defaults();
        fields.extend(given);
        let id: Id = id.map_or_else(|| stamp::hex(stamp::secret()).into(), Into::into);
        fields.insert("id".into(), json!(*id));
        self.check(&fields)?;
        let key = self.key(&fields);
        if self.by_name.contains_key(&key) {
            return Err(self.conflict(&fields));
        }
        self.by_name.insert(key, id.clone());
        Ok(self.by_id.entry(id).or_insert(fields))
    }

    pub(crate) fn change(&mut self, id: &str, changes: Fields) -> Result<&Fields, Fault> {
        let (known, old) = self.expect(id)?;
        let (known, before) = (known.clone(), self.key(old));
        let mut fields = old.clone();
        fields.extend(changes);
        self.check(&fields)?;
        let after = self.key(&fields);
        if after != before {
            if self.by_name.contains_key(&after) {
                return Err(self.conflict(&fields));
            }
            self.by_name.remove(&before);
            self.by_name.insert(after, known.clone());
        }
        self.by_id.insert(known, fields);
        self.expect(id).map(|(_, fields)| fields)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Fields> {
        let fields = self.by_id.remove(id)?;
        self.by_name.remove(&self.key(&fields));
        Some(fields)
    }

    fn key(&self, fields: &Fields) -> (String, String) {
        let domain_id = if self.kind.is_in_domain() { text(fields, "domain_id") } else { "" };
        (domain_id.to_owned(), text(fields, "name").to_owned())
    }

    fn conflict(&self, fields: &Fields) -> Fault {
        Fault::Conflict { kind: self.kind.word(), name: text(fields, "name").to_owned() }
    }

    fn check(&self, fields: &Fields) -> Result<(), Fault> {
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
        Ok(())
    }
}

/// A field that is text, else "".
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or("")
}

pub(crate) fn is_enabled(fields: &Fields) -> bool {
    fields.get("enabled").and_then(Value::as_bool).unwrap_or(true)
}
