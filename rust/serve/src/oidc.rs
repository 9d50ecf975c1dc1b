//! An OpenID provider with one client: enough of OpenID Connect Core 1.0, of its discovery and
//! logout, and of RFC 6749, 7636 and 7662 to be a target. Errors are told as Keycloak tells them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::Refusal;
use crate::fault::Fault;
use crate::reply::Reply;
use crate::route::{Call, only, segments};
use crate::settings::{OidcSettings, Settings};
use crate::shared::micros;
use crate::stamp;

mod expiring;
mod signing;

use expiring::Expiring;
use signing::Signing;

/// Time that a user has for the login page, and a client for a code.
const LOGIN_US: i64 = 300_000_000;
const CODE_US: i64 = 60_000_000;
const LOGIN_COOKIE: &str = "LOADSTONE_LOGIN";
const SESSION_COOKIE: &str = "LOADSTONE_SESSION";

/// Client, users, and what was granted.
pub(crate) struct Oidc {
    client: OidcSettings,
    users: HashMap<Arc<str>, String>,
    life_us: i64,
    signing: Signing,
    logins: Expiring<Asked>,
    codes: Expiring<Code>,
    sessions: Expiring<Session>,
    access: Expiring<Access>,
    /// Grants by their type, logins and logouts.
    pub(crate) grants: BTreeMap<&'static str, u64>,
}

/// The parameters of an authorization request.
#[derive(Clone)]
struct Asked {
    redirect_uri: String,
    state: String,
    nonce: String,
    scope: String,
    challenge: String,
}

/// A code that can be exchanged once.
struct Code {
    asked: Asked,
    session: u128,
}

/// A session, which begins with a login. Its refresh token is the session's key and `current`.
struct Session {
    user: Arc<str>,
    scope: String,
    nonce: String,
    current: u128,
}

/// The user and the session of an access token; a client's own token has neither.
struct Access {
    user: Option<Arc<str>>,
    session: Option<u128>,
    scope: String,
    issued_us: i64,
}

pub(crate) fn is_of_oidc(segments: &[&str]) -> bool {
    matches!(segments, [".well-known", "openid-configuration"] | ["oidc", ..])
}

/// Whether a request takes a worker. Exactly one request of each flow does, so that the capacity is
/// one of flows: of a login its password check, not the page before it nor the code after it.
pub(crate) fn is_work(call: &Call<'_>) -> bool {
    match segments(call.path).as_slice() {
        [".well-known", "openid-configuration"] | ["oidc", "introspect" | "userinfo"] => true,
        ["oidc", "login"] => call.method == "POST",
        ["oidc", "token"] => Form::of_body(call).get("grant_type") != "authorization_code",
        _ => false,
    }
}

/// The user that a request names.
pub(crate) fn claimed_user(call: &Call<'_>) -> Option<String> {
    Some(Form::of_body(call).get("username").to_owned()).filter(|name| !name.is_empty())
}

/// Why a request of a client is refused (RFC 6749 5.2).
fn refused(status: u16, error: &str, description: &str) -> Reply {
    Reply::json(status, &json!({"error": error, "error_description": description}))
        .with("cache-control", "no-store".to_owned())
}

/// Parameters of a query or a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn of_body(call: &Call<'_>) -> Self {
        Self(form_urlencoded::parse(call.body).into_owned().collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl Oidc {
    pub(crate) fn new(client: &OidcSettings, settings: &Settings) -> Result<Self, Refusal> {
        let users = client.users.iter().map(|(name, password)| (name.as_str().into(), password));
        let most = settings.max_tokens;
        Ok(Self {
            users: users.map(|(name, password)| (name, password.clone())).collect(),
            client: client.clone(),
            life_us: micros(settings.token_life_s),
            signing: Signing::new()?,
            logins: Expiring::new(most),
            codes: Expiring::new(most),
            sessions: Expiring::new(most),
            access: Expiring::new(most),
            grants: BTreeMap::new(),
        })
    }

    /// Values forgotten while they were valid.
    pub(crate) fn evicted(&self) -> u64 {
        // Nobody misses login pages and codes that were left unused.
        self.sessions.evicted + self.access.evicted
    }

    pub(crate) fn answer(&mut self, call: &Call<'_>, path: &[&str]) -> Result<Reply, Fault> {
        const READ: &[&str] = &["GET", "HEAD"];
        let methods = match path {
            ["oidc", "token" | "introspect" | "login"] => &["POST"][..],
            ["oidc", "userinfo" | "logout"] => &["GET", "POST"],
            _ => READ,
        };
        only(call, methods)?;
        match path {
            [".well-known", ..] => Ok(Reply::json(200, &metadata(call))),
            ["oidc", "jwks"] => Ok(Reply::json(200, &self.signing.key_set())),
            ["oidc", "authorize"] => Ok(self.authorize(call)),
            ["oidc", "login"] => Ok(self.log_in(call)),
            ["oidc", "token"] => Ok(self.token(call)),
            ["oidc", "introspect"] => Ok(self.introspect(call)),
            ["oidc", "userinfo"] => Ok(self.user_info(call)),
            ["oidc", "logout"] => Ok(self.log_out(call)),
            _ => Err(Fault::UnknownUrl),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.grants.entry(what).or_default() += 1;
    }

    /// The login page, or at once a code for whoever is logged in.
    fn authorize(&mut self, call: &Call<'_>) -> Reply {
        let given = Form(call.asked());
        // Nobody is sent to an address that is not known (RFC 6749 4.1.2.1).
        if given.get("client_id") != self.client.client_id {
            return Reply::page(400, page("Invalid parameter: client_id"));
        }
        if given.get("redirect_uri") != self.client.redirect_uri {
            return Reply::page(400, page("Invalid parameter: redirect_uri"));
        }
        let asked = Asked {
            redirect_uri: given.get("redirect_uri").to_owned(),
            state: given.get("state").to_owned(),
            nonce: given.get("nonce").to_owned(),
            scope: given.get("scope").to_owned(),
            challenge: given.get("code_challenge").to_owned(),
        };
        let wrong = if given.get("response_type") != "code" {
            Some(("unsupported_response_type", "Only the response type code is served"))
        } else if asked.challenge.is_empty() || given.get("code_challenge_method") != "S256" {
            Some(("invalid_request", "Missing parameter: code_challenge_method"))
        } else {
            None
        };
        if let Some((error, description)) = wrong {
            let told = [("error", error), ("error_description", description)];
            return Reply::redirect(asked.back(call, &told));
        }
        let known = cookie(call, SESSION_COOKIE).and_then(stamp::from_hex);
        if let Some(session) = known.filter(|key| self.sessions.find(*key, call.now_us).is_some()) {
            self.count("single_sign_on");
            return self.code(call, asked, session);
        }
        let login = self.logins.keep(asked, call.now_us, LOGIN_US);
        Reply::page(200, login_page(login, "")).with("set-cookie", cookie_of(LOGIN_COOKIE, login))
    }

    /// Handles the form that the login page posts.
    fn log_in(&mut self, call: &Call<'_>) -> Reply {
        let given = Form::of_body(call);
        let login = cookie(call, LOGIN_COOKIE).and_then(stamp::from_hex);
        let form = Form(call.asked());
        let is_same = login.is_some() && login == stamp::from_hex(form.get("login"));
        let Some(login) = login.filter(|_| is_same) else {
            return Reply::page(400, page("Cookie not found. Begin the login again."));
        };
        if self.logins.find(login, call.now_us).is_none() {
            return Reply::page(400, page("The login has expired. Begin it again."));
        }
        let Some(user) = self.user(given.get("username"), given.get("password")) else {
            return Reply::page(200, login_page(login, "Invalid username or password."));
        };
        let Some(asked) = self.logins.take(login, call.now_us) else {
            return Reply::page(400, page("The login has expired. Begin it again."));
        };
        self.count("login");
        let session = self.begin(call, user, &asked.scope, &asked.nonce);
        let cookie = cookie_of(SESSION_COOKIE, session);
        self.code(call, asked, session).with("set-cookie", cookie)
    }

    fn user(&self, name: &str, password: &str) -> Option<Arc<str>> {
        let (name, known) = self.users.get_key_value(name)?;
        (known == password).then(|| name.clone())
    }

    fn begin(&mut self, call: &Call<'_>, user: Arc<str>, scope: &str, nonce: &str) -> u128 {
        let (scope, nonce) = (scope.to_owned(), nonce.to_owned());
        let session = Session { user, scope, nonce, current: stamp::secret() };
        self.sessions.keep(session, call.now_us, self.life_us)
    }

    fn code(&mut self, call: &Call<'_>, asked: Asked, session: u128) -> Reply {
        let back = asked.clone();
        let code = self.codes.keep(Code { asked, session }, call.now_us, CODE_US);
        Reply::redirect(back.back(call, &[("code", &stamp::hex(code))]))
    }

    fn token(&mut self, call: &Call<'_>) -> Reply {
        let given = Form::of_body(call);
        if let Err(reply) = self.require_client(call, &given) {
            return reply;
        }
        match given.get("grant_type") {
            "client_credentials" => {
                self.count("client_credentials");
                let scope = given.get("scope").to_owned();
                let token = self.access(call, None, None, scope.clone());
                tokens(&json!({"access_token": token, "token_type": "Bearer", "scope": scope,
                    "expires_in": self.life_us / 1_000_000}))
            }
            "password" => match self.user(given.get("username"), given.get("password")) {
                None => refused(400, "invalid_grant", "Invalid user credentials"),
                Some(user) => {
                    self.count("password");
                    let session = self.begin(call, user, given.get("scope"), "");
                    self.granted(call, session)
                }
            },
            "authorization_code" => self.exchange(call, &given),
            "refresh_token" => self.refresh(call, given.get("refresh_token")),
            _ => refused(400, "unsupported_grant_type", "Unsupported grant_type"),
        }
    }

    /// RFC 6749 2.3.1: by HTTP Basic, or in the body.
    fn require_client(&self, call: &Call<'_>, given: &Form) -> Result<(), Reply> {
        let basic = call.authorization.and_then(basic);
        let (id, secret) = match &basic {
            Some((id, secret)) => (id.as_str(), secret.as_str()),
            None => (given.get("client_id"), given.get("client_secret")),
        };
        if id == self.client.client_id && secret == self.client.client_secret {
            return Ok(());
        }
        Err(refused(401, "invalid_client", "Invalid client or Invalid client credentials")
            .with("www-authenticate", "Basic realm=\"loadstone\"".to_owned()))
    }

    fn exchange(&mut self, call: &Call<'_>, given: &Form) -> Reply {
        let code = stamp::from_hex(given.get("code"));
        let Some(code) = code.and_then(|code| self.codes.take(code, call.now_us)) else {
            return refused(400, "invalid_grant", "Code not valid");
        };
        if given.get("redirect_uri") != code.asked.redirect_uri {
            return refused(400, "invalid_grant", "Incorrect redirect_uri");
        }
        let hash = digest(&SHA256, given.get("code_verifier").as_bytes());
        if stamp::base64_of(hash.as_ref()) != code.asked.challenge {
            return refused(400, "invalid_grant", "PKCE verification failed: Code mismatch");
        }
        if self.sessions.find(code.session, call.now_us).is_none() {
            return refused(400, "invalid_grant", "Session not active");
        }
        self.count("authorization_code");
        self.granted(call, code.session)
    }

    /// A refresh token can be used once; who uses it again ends the session.
    fn refresh(&mut self, call: &Call<'_>, token: &str) -> Reply {
        let halves = token.split_at_checked(32);
        let keys = halves.and_then(|(session, current)| {
            Some((stamp::from_hex(session)?, stamp::from_hex(current)?))
        });
        let Some((key, current)) = keys else {
            return refused(400, "invalid_grant", "Invalid refresh token");
        };
        let Some(mut session) = self.sessions.take(key, call.now_us) else {
            return refused(400, "invalid_grant", "Session not active");
        };
        if session.current != current {
            return refused(400, "invalid_grant", "Maximum allowed refresh token reuse exceeded");
        }
        session.current = stamp::secret();
        self.sessions.keep_as(key, session, call.now_us, self.life_us);
        self.count("refresh_token");
        self.granted(call, key)
    }

    fn access(
        &mut self,
        call: &Call<'_>,
        user: Option<Arc<str>>,
        session: Option<u128>,
        scope: String,
    ) -> String {
        let access = Access { user, session, scope, issued_us: call.now_us };
        stamp::hex(self.access.keep(access, call.now_us, self.life_us))
    }

    /// Tokens of a session.
    fn granted(&mut self, call: &Call<'_>, key: u128) -> Reply {
        let Some((session, _)) = self.sessions.find(key, call.now_us) else {
            return refused(400, "invalid_grant", "Session not active");
        };
        let (user, scope, nonce) =
            (session.user.clone(), session.scope.clone(), session.nonce.clone());
        let refresh = format!("{}{}", stamp::hex(key), stamp::hex(session.current));
        let mut told = json!({
            "access_token": self.access(call, Some(user.clone()), Some(key), scope.clone()),
            "token_type": "Bearer",
            "expires_in": self.life_us / 1_000_000,
            "refresh_token": refresh,
            "scope": scope,
        });
        if is_open_id(&scope) {
            let issued_s = call.now_us / 1_000_000;
            let mut claims = json!({"iss": call.base, "sub": &*user, "aud": self.client.client_id,
                "iat": issued_s, "exp": issued_s + self.life_us / 1_000_000,
                "sid": stamp::hex(key), "preferred_username": &*user});
            if !nonce.is_empty() {
                claims["nonce"] = json!(nonce);
            }
            told["id_token"] = json!(self.signing.sign(&claims));
        }
        tokens(&told)
    }

    /// An access token that is valid: its session has not ended.
    fn valid(&self, token: &str, now_us: i64) -> Option<(&Access, i64)> {
        let (access, expires_us) = self.access.find(stamp::from_hex(token)?, now_us)?;
        let is_over = access.session.is_some_and(|it| self.sessions.find(it, now_us).is_none());
        (!is_over).then_some((access, expires_us))
    }

    fn introspect(&mut self, call: &Call<'_>) -> Reply {
        let given = Form::of_body(call);
        if let Err(reply) = self.require_client(call, &given) {
            return reply;
        }
        let told = match self.valid(given.get("token"), call.now_us) {
            None => json!({"active": false}),
            Some((access, expires_us)) => json!({
                "active": true,
                "client_id": self.client.client_id,
                "sub": access.user.as_deref().unwrap_or(&self.client.client_id),
                "scope": access.scope,
                "iat": access.issued_us / 1_000_000,
                "exp": expires_us / 1_000_000,
                "iss": call.base,
                "token_type": "Bearer",
            }),
        };
        self.count(if told["active"] == true { "introspection" } else { "inactive" });
        Reply::json(200, &told)
    }

    fn user_info(&mut self, call: &Call<'_>) -> Reply {
        let token = call.authorization.and_then(|header| header.strip_prefix("Bearer "));
        let valid = token.and_then(|token| self.valid(token, call.now_us));
        let user = valid.filter(|(access, _)| is_open_id(&access.scope));
        let Some(user) = user.and_then(|(access, _)| access.user.clone()) else {
            let asks = "Bearer realm=\"loadstone\", error=\"invalid_token\"".to_owned();
            let reply = Reply { status: 401, ..Reply::empty() };
            return reply.with("www-authenticate", asks);
        };
        self.count("userinfo");
        Reply::json(200, &json!({"sub": &*user, "preferred_username": &*user, "name": &*user}))
    }

    fn log_out(&mut self, call: &Call<'_>) -> Reply {
        let given = Form(if call.method == "POST" { Form::of_body(call).0 } else { call.asked() });
        let claims = self.signing.verified(given.get("id_token_hint"));
        let session = claims.and_then(|it| stamp::from_hex(it["sid"].as_str()?));
        let Some(session) = session else {
            // Without the hint anybody could log somebody out.
            return Reply::page(200, page("Do you want to log out?"));
        };
        let back = given.get("post_logout_redirect_uri");
        if !back.is_empty() && back != self.client.redirect_uri {
            return Reply::page(400, page("Invalid redirect uri"));
        }
        if self.sessions.take(session, call.now_us).is_some() {
            self.count("logout");
        }
        if back.is_empty() {
            return Reply::page(200, page("You are logged out."));
        }
        let state = given.get("state");
        let told = [("state", state)];
        let link = with_query(back, if state.is_empty() { &[] } else { &told });
        let gone = format!("{SESSION_COOKIE}=; Path=/oidc; Max-Age=0");
        Reply::redirect(link).with("set-cookie", gone)
    }
}

impl Asked {
    /// Where the browser is sent back to.
    fn back(&self, call: &Call<'_>, told: &[(&str, &str)]) -> String {
        let mut pairs = told.to_vec();
        if !self.state.is_empty() {
            pairs.push(("state", &self.state));
        }
        pairs.push(("iss", call.base));
        with_query(&self.redirect_uri, &pairs)
    }
}

fn with_query(link: &str, pairs: &[(&str, &str)]) -> String {
    if pairs.is_empty() {
        return link.to_owned();
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    format!("{link}{}{query}", if link.contains('?') { '&' } else { '?' })
}

fn tokens(told: &Value) -> Reply {
    Reply::json(200, told).with("cache-control", "no-store".to_owned())
}

fn is_open_id(scope: &str) -> bool {
    scope.split(' ').any(|word| word == "openid")
}

/// OpenID Connect Discovery 1.0.
fn metadata(call: &Call<'_>) -> Value {
    let at = |path: &str| format!("{}/oidc/{path}", call.base);
    json!({
        "issuer": call.base,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "introspection_endpoint": at("introspect"),
        "userinfo_endpoint": at("userinfo"),
        "end_session_endpoint": at("logout"),
        "jwks_uri": at("jwks"),
        "grant_types_supported":
            ["authorization_code", "client_credentials", "password", "refresh_token"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "scopes_supported": ["openid", "offline_access"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn page(message: &str) -> String {
    format!("<!DOCTYPE html><title>loadstone serve</title><p>{message}</p>")
}

fn login_page(login: u128, message: &str) -> String {
    let login = stamp::hex(login);
    format!(
        "<!DOCTYPE html><title>Log in</title><p id=\"message\">{message}</p>\
         <form method=\"post\" action=\"/oidc/login?login={login}&amp;execution=1\">\
         <input type=\"hidden\" name=\"credentialId\" value=\"\">\
         <input name=\"username\"><input type=\"password\" name=\"password\">\
         <button>Log in</button></form>"
    )
}

/// The value of a cookie of the request.
fn cookie<'a>(call: &Call<'a>, name: &str) -> Option<&'a str> {
    let pairs = call.cookie?.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// With the attributes that Keycloak's have.
fn cookie_of(name: &str, key: u128) -> String {
    format!("{name}={}; Path=/oidc; Secure; HttpOnly; SameSite=None", stamp::hex(key))
}

/// Id and secret, which are form-encoded before they are base64-encoded (RFC 6749 2.3.1).
fn basic(header: &str) -> Option<(String, String)> {
    let text = header.strip_prefix("Basic ")?.trim_end_matches('=');
    // Standard base64 in place of the URL-safe one.
    let text = stamp::from_base64(&text.replace('+', "-").replace('/', "_"))?;
    let text = String::from_utf8(text).ok()?;
    let (id, secret) = text.split_once(':')?;
    let plain = |part: &str| {
        let part = part.replace('+', " ");
        percent_decode_str(&part).decode_utf8_lossy().into_owned()
    };
    Some((plain(id), plain(secret)))
}

#[cfg(test)]
#[path = "oidc_tests.rs"]
mod tests;
