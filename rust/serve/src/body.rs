//! What a token says, as Keystone writes it. Written straight from what is kept, without a tree of
//! JSON between: this is most of what an answer costs.

use serde::Serialize;

use crate::directory::Directory;
use crate::reply::Reply;
use crate::route::Call;
use crate::stamp;
use crate::things::{Kind, Thing};
use crate::tokens::{Methods, Scope, Token};

#[derive(Serialize)]
struct Body<'a> {
    token: Said<'a>,
}

#[derive(Serialize)]
struct Said<'a> {
    methods: &'static [&'static str],
    user: Holder<'a>,
    audit_ids: Vec<String>,
    expires_at: String,
    issued_at: String,
    #[serde(flatten)]
    scoped: Option<Scoped<'a>>,
}

#[derive(Serialize)]
struct Holder<'a> {
    #[serde(flatten)]
    user: Reference<'a>,
    /// Never.
    password_expires_at: (),
}

/// What only a token for a project or a domain says.
#[derive(Serialize)]
struct Scoped<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    roles: Vec<Reference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog: Option<Catalog<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Place<'a> {
    Project { project: Reference<'a>, is_domain: bool },
    Domain { domain: Reference<'a> },
}

/// How tokens and assignments name a thing.
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

    /// With its name and its domain.
    pub(crate) fn to(directory: &'a Directory, kind: Kind, id: &'a str) -> Self {
        directory.of(kind).get(id).map_or(Self::bare(id), |thing| Self::named(directory, thing))
    }

    fn named(directory: &'a Directory, thing: &'a Thing) -> Self {
        let domain = directory.domains.get(&thing.domain);
        Self {
            id: &thing.id,
            name: Some(&thing.name),
            domain: domain.map(|domain| Named { id: &domain.id, name: &domain.name }),
        }
    }
}

/// The answer to who asks for a token, or about one.
pub(crate) fn reply(status: u16, directory: &Directory, call: &Call<'_>, token: &Token) -> Reply {
    let url = call.url("");
    let place = match &token.scope {
        Scope::Nothing => None,
        Scope::Project(id) => Some(Place::Project {
            project: Reference::to(directory, Kind::Project, id),
            is_domain: false,
        }),
        Scope::Domain(id) => {
            Some(Place::Domain { domain: Reference::to(directory, Kind::Domain, id) })
        }
    };
    let roles = || {
        let roles = directory.roles_at(&token.user, &token.scope).into_iter();
        roles.map(|role| Reference::named(directory, role)).collect()
    };
    let is_catalog_asked = !call.asked().iter().any(|(name, _)| name == "nocatalog");
    let audits = std::iter::once(token.audit).chain(token.parent_audit);
    let said = Said {
        methods: match token.methods {
            Methods::Password => &["password"],
            Methods::Token => &["token", "password"],
        },
        user: Holder {
            user: Reference::to(directory, Kind::User, &token.user),
            password_expires_at: (),
        },
        audit_ids: audits.map(stamp::base64).collect(),
        expires_at: stamp::iso(token.expires_us),
        issued_at: stamp::iso(token.issued_us),
        scoped: place.map(|place| Scoped {
            place,
            roles: roles(),
            catalog: is_catalog_asked.then(|| catalog(&url)),
        }),
    };
    Reply::json(status, &Body { token: said })
}

/// One service, this one, where the caller found it.
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
