//! OpenID provider with one client: the parts of OpenID Connect Core 1.0, Discovery and logout, and
//! of RFC 6749, 7636 and 7662 that load tests need. Error messages are Keycloak's.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::Error;
use crate::api_error::{ApiError, Result};
use crate::expiring::Expiring;
use crate::reply::Reply;
use crate::request::{Request, allow, segments};
use crate::settings::{OidcSettings, Settings};
use crate::{ids, timestamp};

mod signing;

use signing::Signing;

/// Lifetime of a login page, and of a code.
const LOGIN_US: i64 = 300_000_000;
const CODE_US: i64 = 60_000_000;
const LOGIN_COOKIE: &str = "LOADSTONE_LOGIN";
const SESSION_COOKIE: &str = "LOADSTONE_SESSION";

/// Client, users, and grants of the provider.
pub(crate) struct Oidc {
    client: OidcSettings,
    users: HashMap<Arc<str>, String>,
    life_us: i64,
    signing: Signing,
    logins: Expiring<AuthorizeParams>,
    codes: Expiring<Code>,
    sessions: Expiring<Session>,
    access: Expiring<Access>,
    /// Number of grants by type, logins and logouts.
    pub(crate) grants: BTreeMap<&'static str, u64>,
}

/// Parameters of an authorization request.
#[derive(Clone)]
struct AuthorizeParams {
    redirect_uri: String,
    state: String,
    nonce: String,
    scope: String,
    challenge: String,
}

/// Code that can be exchanged once.
struct Code {
    params: AuthorizeParams,
    session: u128,
}

/// Session of a user. Its refresh token consists of the session's key and `current`.
struct Session {
    user: Arc<str>,
    scope: String,
    nonce: String,
    current: u128,
}

/// Access token. One for the client itself has no user and no session.
struct Access {
    user: Option<Arc<str>>,
    session: Option<u128>,
    scope: String,
    issued_us: i64,
}

pub(crate) fn is_oidc_path(segments: &[&str]) -> bool {
    matches!(segments, [".well-known", "openid-configuration"] | ["oidc", ..])
}

/// Whether a request needs a worker. Exactly one request of each flow does, so that the capacity
/// counts flows: of a login the password check, not the page before or the code after it.
pub(crate) fn needs_worker(request: &Request<'_>) -> bool {
    match segments(request.path).as_slice() {
        [".well-known", "openid-configuration"] | ["oidc", "introspect" | "userinfo"] => true,
        ["oidc", "login"] => request.method == "POST",
        ["oidc", "token"] => Form::of_body(request).get("grant_type") != "authorization_code",
        _ => false,
    }
}

/// Returns the error reply to a client (RFC 6749 5.2).
fn error_reply(status: u16, error: &str, description: &str) -> Reply {
    Reply::json(status, &json!({"error": error, "error_description": description}))
        .with_header("cache-control", "no-store".to_owned())
}

/// Parameters of a query or a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn of_body(request: &Request<'_>) -> Self {
        Self(form_urlencoded::parse(request.body).into_owned().collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl Oidc {
    /// Returns the known user that a request names.
    pub(crate) fn claimed_user(&self, request: &Request<'_>) -> Option<String> {
        let form = Form::of_body(request);
        Some(form.get("username").to_owned()).filter(|name| self.users.contains_key(name.as_str()))
    }

    pub(crate) fn new(client: &OidcSettings, settings: &Settings) -> Result<Self, Error> {
        let users = client.users.iter().map(|(name, password)| (name.as_str().into(), password));
        let most = settings.max_tokens;
        Ok(Self {
            users: users.map(|(name, password)| (name, password.clone())).collect(),
            client: client.clone(),
            life_us: timestamp::micros(settings.token_life_s),
            signing: Signing::new()?,
            logins: Expiring::new(most),
            codes: Expiring::new(most),
            sessions: Expiring::new(most),
            access: Expiring::new(most),
            grants: BTreeMap::new(),
        })
    }

    /// Returns the number of valid tokens that were evicted.
    pub(crate) fn evicted(&self) -> u64 {
        // Unused login pages and codes do not count.
        self.sessions.evicted + self.access.evicted
    }

    pub(crate) fn handle(&mut self, request: &Request<'_>, path: &[&str]) -> Result<Reply> {
        const READ: &[&str] = &["GET", "HEAD"];
        let methods = match path {
            ["oidc", "token" | "introspect" | "login"] => &["POST"][..],
            ["oidc", "userinfo" | "logout"] => &["GET", "POST"],
            _ => READ,
        };
        allow(request, methods)?;
        match path {
            [".well-known", ..] => Ok(Reply::json(200, &metadata(request))),
            ["oidc", "jwks"] => Ok(Reply::json(200, &self.signing.key_set())),
            ["oidc", "authorize"] => Ok(self.authorize(request)),
            ["oidc", "login"] => Ok(self.log_in(request)),
            ["oidc", "token"] => Ok(self.token(request)),
            ["oidc", "introspect"] => Ok(self.introspect(request)),
            ["oidc", "userinfo"] => Ok(self.user_info(request)),
            ["oidc", "logout"] => Ok(self.log_out(request)),
            _ => Err(ApiError::UnknownUrl),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.grants.entry(what).or_default() += 1;
    }

    /// Returns the login page, or a code if the user is logged in.
    fn authorize(&mut self, request: &Request<'_>) -> Reply {
        let query = Form(request.query_pairs());
        // No redirect to an unknown address (RFC 6749 4.1.2.1).
        if query.get("client_id") != self.client.client_id {
            return Reply::page(400, page("Invalid parameter: client_id"));
        }
        if query.get("redirect_uri") != self.client.redirect_uri {
            return Reply::page(400, page("Invalid parameter: redirect_uri"));
        }
        let params = AuthorizeParams {
            redirect_uri: query.get("redirect_uri").to_owned(),
            state: query.get("state").to_owned(),
            nonce: query.get("nonce").to_owned(),
            scope: query.get("scope").to_owned(),
            challenge: query.get("code_challenge").to_owned(),
        };
        let wrong = if query.get("response_type") != "code" {
            Some(("unsupported_response_type", "Only the response type code is served"))
        } else if params.challenge.is_empty() || query.get("code_challenge_method") != "S256" {
            Some(("invalid_request", "Missing parameter: code_challenge_method"))
        } else {
            None
        };
        if let Some((error, description)) = wrong {
            let pairs = [("error", error), ("error_description", description)];
            return Reply::redirect(params.redirect_url(request, &pairs));
        }
        let known = cookie(request, SESSION_COOKIE).and_then(ids::from_hex);
        if let Some(session) =
            known.filter(|key| self.sessions.find(*key, request.now_us).is_some())
        {
            self.count("single_sign_on");
            return self.code(request, params, session);
        }
        let login = self.logins.store(params, request.now_us, LOGIN_US);
        Reply::page(200, login_page(login, ""))
            .with_header("set-cookie", cookie_of(LOGIN_COOKIE, login))
    }

    /// Handles the form of the login page.
    fn log_in(&mut self, request: &Request<'_>) -> Reply {
        let form = Form::of_body(request);
        let login = cookie(request, LOGIN_COOKIE).and_then(ids::from_hex);
        let query = Form(request.query_pairs());
        let is_same = login.is_some() && login == ids::from_hex(query.get("login"));
        let Some(login) = login.filter(|_| is_same) else {
            return Reply::page(400, page("Cookie not found. Begin the login again."));
        };
        if self.logins.find(login, request.now_us).is_none() {
            return Reply::page(400, page("The login has expired. Begin it again."));
        }
        let Some(user) = self.user(form.get("username"), form.get("password")) else {
            return Reply::page(200, login_page(login, "Invalid username or password."));
        };
        let Some(params) = self.logins.take(login, request.now_us) else {
            return Reply::page(400, page("The login has expired. Begin it again."));
        };
        self.count("login");
        let session = self.begin(request, user, &params.scope, &params.nonce);
        let cookie = cookie_of(SESSION_COOKIE, session);
        self.code(request, params, session).with_header("set-cookie", cookie)
    }

    fn user(&self, name: &str, password: &str) -> Option<Arc<str>> {
        let (name, known) = self.users.get_key_value(name)?;
        (known == password).then(|| name.clone())
    }

    fn begin(&mut self, request: &Request<'_>, user: Arc<str>, scope: &str, nonce: &str) -> u128 {
        let (scope, nonce) = (scope.to_owned(), nonce.to_owned());
        let session = Session { user, scope, nonce, current: ids::secret() };
        self.sessions.store(session, request.now_us, self.life_us)
    }

    fn code(&mut self, request: &Request<'_>, params: AuthorizeParams, session: u128) -> Reply {
        let back = params.clone();
        let code = self.codes.store(Code { params, session }, request.now_us, CODE_US);
        Reply::redirect(back.redirect_url(request, &[("code", &ids::hex(code))]))
    }

    fn token(&mut self, request: &Request<'_>) -> Reply {
        let form = Form::of_body(request);
        if let Err(reply) = self.require_client(request, &form) {
            return reply;
        }
        match form.get("grant_type") {
            "client_credentials" => {
                self.count("client_credentials");
                let scope = form.get("scope").to_owned();
                let token = self.access(request, None, None, scope.clone());
                token_reply(&json!({"access_token": token, "token_type": "Bearer", "scope": scope,
                    "expires_in": self.life_us / 1_000_000}))
            }
            "password" => match self.user(form.get("username"), form.get("password")) {
                None => error_reply(400, "invalid_grant", "Invalid user credentials"),
                Some(user) => {
                    self.count("password");
                    let session = self.begin(request, user, form.get("scope"), "");
                    self.granted(request, session)
                }
            },
            "authorization_code" => self.exchange(request, &form),
            "refresh_token" => self.refresh(request, form.get("refresh_token")),
            _ => error_reply(400, "unsupported_grant_type", "Unsupported grant_type"),
        }
    }

    /// Authenticates the client by HTTP Basic, or in the body (RFC 6749 2.3.1).
    fn require_client(&self, request: &Request<'_>, form: &Form) -> Result<(), Reply> {
        let basic = request.authorization.and_then(basic);
        let (id, secret) = match &basic {
            Some((id, secret)) => (id.as_str(), secret.as_str()),
            None => (form.get("client_id"), form.get("client_secret")),
        };
        if id == self.client.client_id && secret == self.client.client_secret {
            return Ok(());
        }
        Err(error_reply(401, "invalid_client", "Invalid client or Invalid client credentials")
            .with_header("www-authenticate", "Basic realm=\"loadstone\"".to_owned()))
    }

    fn exchange(&mut self, request: &Request<'_>, form: &Form) -> Reply {
        let code = ids::from_hex(form.get("code"));
        let Some(code) = code.and_then(|code| self.codes.take(code, request.now_us)) else {
            return error_reply(400, "invalid_grant", "Code not valid");
        };
        if form.get("redirect_uri") != code.params.redirect_uri {
            return error_reply(400, "invalid_grant", "Incorrect redirect_uri");
        }
        let hash = digest(&SHA256, form.get("code_verifier").as_bytes());
        if ids::base64_of(hash.as_ref()) != code.params.challenge {
            return error_reply(400, "invalid_grant", "PKCE verification failed: Code mismatch");
        }
        if self.sessions.find(code.session, request.now_us).is_none() {
            return error_reply(400, "invalid_grant", "Session not active");
        }
        self.count("authorization_code");
        self.granted(request, code.session)
    }

    /// Renews a session. A refresh token can be used once; a second use ends the session.
    fn refresh(&mut self, request: &Request<'_>, token: &str) -> Reply {
        let halves = token.split_at_checked(32);
        let keys = halves.and_then(|(session, current)| {
            Some((ids::from_hex(session)?, ids::from_hex(current)?))
        });
        let Some((key, current)) = keys else {
            return error_reply(400, "invalid_grant", "Invalid refresh token");
        };
        let Some(mut session) = self.sessions.take(key, request.now_us) else {
            return error_reply(400, "invalid_grant", "Session not active");
        };
        if session.current != current {
            return error_reply(
                400,
                "invalid_grant",
                "Maximum allowed refresh token reuse exceeded",
            );
        }
        session.current = ids::secret();
        self.sessions.store_as(key, session, request.now_us, self.life_us);
        self.count("refresh_token");
        self.granted(request, key)
    }

    fn access(
        &mut self,
        request: &Request<'_>,
        user: Option<Arc<str>>,
        session: Option<u128>,
        scope: String,
    ) -> String {
        let access = Access { user, session, scope, issued_us: request.now_us };
        ids::hex(self.access.store(access, request.now_us, self.life_us))
    }

    /// Returns new tokens of a session.
    fn granted(&mut self, request: &Request<'_>, key: u128) -> Reply {
        let Some((session, _)) = self.sessions.find(key, request.now_us) else {
            return error_reply(400, "invalid_grant", "Session not active");
        };
        let (user, scope, nonce) =
            (session.user.clone(), session.scope.clone(), session.nonce.clone());
        let refresh = format!("{}{}", ids::hex(key), ids::hex(session.current));
        let mut tokens = json!({
            "access_token": self.access(request, Some(user.clone()), Some(key), scope.clone()),
            "token_type": "Bearer",
            "expires_in": self.life_us / 1_000_000,
            "refresh_token": refresh,
            "scope": scope,
        });
        if is_open_id(&scope) {
            let issued_s = request.now_us / 1_000_000;
            let (issuer, client) = (request.base, &self.client.client_id);
            let mut claims = json!({"iss": issuer, "sub": &*user, "aud": client, "iat": issued_s,
                "exp": issued_s + self.life_us / 1_000_000,
                "sid": ids::hex(key), "preferred_username": &*user});
            if !nonce.is_empty() {
                claims["nonce"] = json!(nonce);
            }
            tokens["id_token"] = json!(self.signing.sign(&claims));
        }
        token_reply(&tokens)
    }

    /// Finds a valid access token whose session has not ended.
    fn find_valid(&self, token: &str, now_us: i64) -> Option<(&Access, i64)> {
        let (access, expires_us) = self.access.find(ids::from_hex(token)?, now_us)?;
        let is_over = access.session.is_some_and(|it| self.sessions.find(it, now_us).is_none());
        (!is_over).then_some((access, expires_us))
    }

    fn introspect(&mut self, request: &Request<'_>) -> Reply {
        let form = Form::of_body(request);
        if let Err(reply) = self.require_client(request, &form) {
            return reply;
        }
        let status = match self.find_valid(form.get("token"), request.now_us) {
            None => json!({"active": false}),
            Some((access, expires_us)) => json!({
                "active": true,
                "client_id": self.client.client_id,
                "sub": access.user.as_deref().unwrap_or(&self.client.client_id),
                "scope": access.scope,
                "iat": access.issued_us / 1_000_000,
                "exp": expires_us / 1_000_000,
                "iss": request.base,
                "token_type": "Bearer",
            }),
        };
        self.count(if status["active"] == true { "introspection" } else { "inactive" });
        Reply::json(200, &status)
    }

    fn user_info(&mut self, request: &Request<'_>) -> Reply {
        let token = request.authorization.and_then(|header| header.strip_prefix("Bearer "));
        let valid = token.and_then(|token| self.find_valid(token, request.now_us));
        let user = valid.filter(|(access, _)| is_open_id(&access.scope));
        let Some(user) = user.and_then(|(access, _)| access.user.clone()) else {
            let asks = "Bearer realm=\"loadstone\", error=\"invalid_token\"".to_owned();
            let reply = Reply { status: 401, ..Reply::empty() };
            return reply.with_header("www-authenticate", asks);
        };
        self.count("userinfo");
        Reply::json(200, &json!({"sub": &*user, "preferred_username": &*user, "name": &*user}))
    }

    fn log_out(&mut self, request: &Request<'_>) -> Reply {
        let form = Form(if request.method == "POST" {
            Form::of_body(request).0
        } else {
            request.query_pairs()
        });
        let claims = self.signing.verify(form.get("id_token_hint"));
        let session = claims.and_then(|it| ids::from_hex(it["sid"].as_str()?));
        let Some(session) = session else {
            // Without the hint, any site could log users out.
            return Reply::page(200, page("Do you want to log out?"));
        };
        let back = form.get("post_logout_redirect_uri");
        if !back.is_empty() && back != self.client.redirect_uri {
            return Reply::page(400, page("Invalid redirect uri"));
        }
        if self.sessions.take(session, request.now_us).is_some() {
            self.count("logout");
        }
        if back.is_empty() {
            return Reply::page(200, page("You are logged out."));
        }
        let state = form.get("state");
        let pairs = [("state", state)];
        let link = with_query(back, if state.is_empty() { &[] } else { &pairs });
        let gone = format!("{SESSION_COOKIE}=; Path=/oidc; Max-Age=0");
        Reply::redirect(link).with_header("set-cookie", gone)
    }
}

impl AuthorizeParams {
    /// Returns the URL that the browser is redirected to.
    fn redirect_url(&self, request: &Request<'_>, pairs: &[(&str, &str)]) -> String {
        let mut pairs = pairs.to_vec();
        if !self.state.is_empty() {
            pairs.push(("state", &self.state));
        }
        pairs.push(("iss", request.base));
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

fn token_reply(tokens: &Value) -> Reply {
    Reply::json(200, tokens).with_header("cache-control", "no-store".to_owned())
}

fn is_open_id(scope: &str) -> bool {
    scope.split(' ').any(|word| word == "openid")
}

/// Returns the metadata of OpenID Connect Discovery 1.0.
fn metadata(request: &Request<'_>) -> Value {
    let at = |path: &str| format!("{}/oidc/{path}", request.base);
    json!({
        "issuer": request.base,
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
    let login = ids::hex(login);
    format!(
        "<!DOCTYPE html><title>Log in</title><p id=\"message\">{message}</p>\
         <form method=\"post\" action=\"/oidc/login?login={login}&amp;execution=1\">\
         <input type=\"hidden\" name=\"credentialId\" value=\"\">\
         <input name=\"username\"><input type=\"password\" name=\"password\">\
         <button>Log in</button></form>"
    )
}

/// Returns the value of a cookie of the request.
fn cookie<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let pairs = request.cookie?.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Formats a Set-Cookie header with Keycloak's attributes.
fn cookie_of(name: &str, key: u128) -> String {
    format!("{name}={}; Path=/oidc; Secure; HttpOnly; SameSite=None", ids::hex(key))
}

/// Decodes id and secret, which are form-encoded, then base64-encoded (RFC 6749 2.3.1).
fn basic(header: &str) -> Option<(String, String)> {
    let text = header.strip_prefix("Basic ")?.trim_end_matches('=');
    // The header has standard base64, not URL-safe.
    let text = ids::from_base64(&text.replace('+', "-").replace('/', "_"))?;
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
