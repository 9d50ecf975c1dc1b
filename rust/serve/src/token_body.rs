//! Body of a token in Keystone's format. Serialised without an intermediate JSON tree, because it
//! is most of the cost of a response.

use serde::Serialize;

use crate::directory::Directory;
use crate::reply::Reply;
use crate::request::Request;
use crate::resources::{Kind, Resource};
use crate::tokens::{Methods, Scope, Token};
use crate::{ids, timestamp};

#[derive(Serialize)]
struct Body<'a> {
    token: TokenBody<'a>,
}

#[derive(Serialize)]
struct TokenBody<'a> {
    methods: &'static [&'static str],
    user: TokenUser<'a>,
    audit_ids: Vec<String>,
    expires_at: String,
    issued_at: String,
    #[serde(flatten)]
    scoped: Option<Scoped<'a>>,
}

#[derive(Serialize)]
struct TokenUser<'a> {
    #[serde(flatten)]
    user: Reference<'a>,
    /// null: passwords do not expire.
    password_expires_at: (),
}

/// Fields of a token for a project or a domain.
#[derive(Serialize)]
struct Scoped<'a> {
    #[serde(flatten)]
    scope: ScopeBody<'a>,
    roles: Vec<Reference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog: Option<Catalog<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ScopeBody<'a> {
    Project { project: Reference<'a>, is_domain: bool },
    Domain { domain: Reference<'a> },
}

/// Reference to a resource in tokens and role assignments.
#[derive(Serialize)]
pub(crate) struct Reference<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    id: &'a str,
    name: &'a str,
}

pub(crate) type Catalog<'a> = [Service<'a>; 1];

#[derive(Serialize)]
pub(crate) struct Service<'a> {
    id: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    endpoints: [Endpoint<'a>; 3],
}

#[derive(Serialize)]
struct Endpoint<'a> {
    id: &'static str,
    interface: &'static str,
    region: &'static str,
    region_id: &'static str,
    url: &'a str,
}

impl<'a> Reference<'a> {
    pub(crate) fn bare(id: &'a str) -> Self {
        Self { id, name: None, domain: None }
    }

    /// Creates a reference with name and domain.
    pub(crate) fn full(directory: &'a Directory, kind: Kind, id: &'a str) -> Self {
        directory
            .of(kind)
            .get(id)
            .map_or(Self::bare(id), |resource| Self::named(directory, resource))
    }

    fn named(directory: &'a Directory, resource: &'a Resource) -> Self {
        let domain = directory.domains.get(&resource.domain);
        Self {
            id: &resource.id,
            name: Some(&resource.name),
            domain: domain.map(|domain| Named { id: &domain.id, name: &domain.name }),
        }
    }
}

/// Returns the reply with a token's body.
pub(crate) fn reply(
    status: u16,
    directory: &Directory,
    request: &Request<'_>,
    token: &Token,
) -> Reply {
    let url = request.url("");
    let scope = match &token.scope {
        Scope::Nothing => None,
        Scope::Project(id) => Some(ScopeBody::Project {
            project: Reference::full(directory, Kind::Project, id),
            is_domain: false,
        }),
        Scope::Domain(id) => {
            Some(ScopeBody::Domain { domain: Reference::full(directory, Kind::Domain, id) })
        }
    };
    let roles = || {
        let roles = directory.roles_at(&token.user, &token.scope).into_iter();
        roles.map(|role| Reference::named(directory, role)).collect()
    };
    let has_catalog = !request.query_pairs().iter().any(|(name, _)| name == "nocatalog");
    let audits = std::iter::once(token.audit).chain(token.parent_audit);
    let token = TokenBody {
        methods: match token.methods {
            Methods::Password => &["password"],
            Methods::Token => &["token", "password"],
        },
        user: TokenUser {
            user: Reference::full(directory, Kind::User, &token.user),
            password_expires_at: (),
        },
        audit_ids: audits.map(ids::base64).collect(),
        expires_at: timestamp::iso(token.expires_us),
        issued_at: timestamp::iso(token.issued_us),
        scoped: scope.map(|scope| Scoped {
            scope,
            roles: roles(),
            catalog: has_catalog.then(|| catalog(&url)),
        }),
    };
    Reply::json(status, &Body { token })
}

/// Returns a catalog with this service, at the URL that the client uses.
pub(crate) fn catalog(url: &str) -> Catalog<'_> {
    let endpoint = |id, interface| Endpoint {
        id,
        interface,
        region: "RegionOne",
        region_id: "RegionOne",
        url,
    };
    [Service {
        id: "00000000000000000000000000000001",
        kind: "identity",
        name: "keystone",
        endpoints: [
            endpoint("00000000000000000000000000000002", "public"),
            endpoint("00000000000000000000000000000003", "internal"),
            endpoint("00000000000000000000000000000004", "admin"),
        ],
    }]
}
