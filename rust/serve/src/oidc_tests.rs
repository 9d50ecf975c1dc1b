use serde_json::{Value, json};

use super::*;
use crate::shared::Shared;
use crate::shared_tests;

const BACK: &str = "http://127.0.0.1/callback";
// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const CLIENT: [(&str, &str); 2] = [("client_id", "load"), ("client_secret", "a b:c")];

fn service() -> Shared {
    shared_tests::service(&json!({"capacity": shared_tests::capacity(),
        "oidc": {"client_id": "load", "client_secret": "a b:c", "redirect_uri": BACK,
            "users": [["ann", "her&pw"], ["bob", "his"]]}}))
}

struct Ask<'a> {
    method: &'a str,
    link: String,
    form: Vec<(&'a str, &'a str)>,
    authorization: Option<&'a str>,
    cookie: Option<&'a str>,
}

impl<'a> Ask<'a> {
    fn get(link: &str) -> Self {
        let link = link.to_owned();
        Self { method: "GET", link, form: Vec::new(), authorization: None, cookie: None }
    }

    fn post(link: &str, form: &[(&'a str, &'a str)]) -> Self {
        Self { method: "POST", form: form.to_vec(), ..Self::get(link) }
    }

    fn at_s(&self, shared: &Shared, later_s: i64) -> Reply {
        let (path, query) = self.link.split_once('?').unwrap_or((&self.link, ""));
        let body =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.form).finish();
        let request = Request {
            method: self.method,
            path,
            query,
            token: None,
            subject: None,
            authorization: self.authorization,
            cookie: self.cookie,
            body: body.as_bytes(),
            base: "http://here",
            connection: 1,
            now_us: timestamp::now_us() + later_s * 1_000_000,
        };
        shared.handle(&request).reply
    }

    fn of(&self, shared: &Shared) -> Reply {
        self.at_s(shared, 0)
    }
}

fn token(shared: &Shared, form: &[(&str, &str)]) -> Reply {
    Ask::post("/oidc/token", &[&CLIENT[..], form].concat()).of(shared)
}

fn body(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

fn word(reply: &Reply, name: &str) -> String {
    body(reply)[name].as_str().unwrap_or_default().to_owned()
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply.headers.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

fn authorize(changes: &[(&str, &str)]) -> String {
    let mut given = BTreeMap::from([
        ("response_type", "code"),
        ("client_id", "load"),
        ("redirect_uri", BACK),
        ("scope", "openid"),
        ("state", "s&t"),
        ("nonce", "n"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ]);
    given.extend(changes.iter().copied());
    with_query("/oidc/authorize", &given.into_iter().collect::<Vec<_>>())
}

/// Posts the form of the login page with its cookie.
fn log_in(shared: &Shared, name: &str, password: &str) -> Reply {
    let page = Ask::get(&authorize(&[])).of(shared);
    let html = String::from_utf8(page.body.clone()).unwrap();
    let action = html.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    let cookie = header(&page, "set-cookie").split(';').next().unwrap();
    let form = [("username", name), ("password", password)];
    Ask { cookie: Some(cookie), ..Ask::post(&action.replace("&amp;", "&"), &form) }.of(shared)
}

/// The tokens of a login, and the cookie of its session.
fn logged_in(shared: &Shared) -> (Reply, String) {
    let reply = log_in(shared, "ann", "her&pw");
    let location = header(&reply, "location").to_owned();
    let query: HashMap<String, String> =
        form_urlencoded::parse(location.split_once('?').unwrap().1.as_bytes())
            .into_owned()
            .collect();
    assert_eq!((&*query["state"], &*query["iss"]), ("s&t", "http://here"));
    let session = header(&reply, "set-cookie").split(';').next().unwrap().to_owned();
    (exchange(shared, &query["code"], VERIFIER), session)
}

fn exchange(shared: &Shared, code: &str, verifier: &str) -> Reply {
    let grant = [("grant_type", "authorization_code"), ("code", code)];
    token(shared, &[&grant[..], &[("redirect_uri", BACK), ("code_verifier", verifier)]].concat())
}

fn is_active(shared: &Shared, access: &str) -> bool {
    let form = [&CLIENT[..], &[("token", access)]].concat();
    let reply = Ask::post("/oidc/introspect", &form).of(shared);
    assert_eq!(reply.status, 200);
    body(&reply)["active"] == true
}

#[test]
fn a_login_returns_a_code_that_is_exchanged_for_tokens() {
    let shared = service();
    let (reply, _) = logged_in(&shared);
    let access = word(&reply, "access_token");
    assert!(is_active(&shared, &access));
    let bearer = format!("Bearer {access}");
    let info = Ask { authorization: Some(&bearer), ..Ask::get("/oidc/userinfo") }.of(&shared);
    assert_eq!(body(&info)["sub"], "ann");
    let claims = word(&reply, "id_token");
    let claims = ids::from_base64(claims.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["nonce"], &claims["aud"]), (&json!("n"), &json!("load")));
}

#[test]
fn a_code_can_be_exchanged_once_and_only_with_its_verifier() {
    let shared = service();
    let code =
        |reply: &Reply| header(reply, "location").split("code=").nth(1).unwrap()[..32].to_owned();
    let first = code(&log_in(&shared, "ann", "her&pw"));
    assert_eq!(exchange(&shared, &first, VERIFIER).status, 200);
    assert_eq!(exchange(&shared, &first, VERIFIER).status, 400);
    let second = code(&log_in(&shared, "ann", "her&pw"));
    assert_eq!(exchange(&shared, &second, "other").status, 400);
    assert_eq!(exchange(&shared, &second, VERIFIER).status, 400);
}

#[test]
fn a_wrong_password_shows_the_form_again_and_a_missing_cookie_ends_the_login() {
    let shared = service();
    for (name, password) in [("ann", "his"), ("nobody", "his")] {
        let reply = log_in(&shared, name, password);
        assert_eq!(reply.status, 200);
        assert!(String::from_utf8_lossy(&reply.body).contains("Invalid username or password."));
    }
    let form = [("username", "ann"), ("password", "her&pw")];
    assert_eq!(Ask::post("/oidc/login?login=1", &form).of(&shared).status, 400);
}

#[test]
fn a_user_with_a_session_gets_a_code_without_a_password() {
    let shared = service();
    let (_, session) = logged_in(&shared);
    let again = Ask { cookie: Some(&session), ..Ask::get(&authorize(&[])) }.of(&shared);
    assert_eq!(again.status, 302);
    assert!(header(&again, "location").contains("code="));
    assert_eq!(shared.counts().grants["single_sign_on"], 1);
}

#[test]
fn an_invalid_authorization_request_is_refused_before_the_login_page() {
    let shared = service();
    for wrong in [[("client_id", "other")], [("redirect_uri", "http://evil/")]] {
        assert_eq!(Ask::get(&authorize(&wrong)).of(&shared).status, 400);
    }
    for wrong in [[("response_type", "token")], [("code_challenge_method", "plain")]] {
        let reply = Ask::get(&authorize(&wrong)).of(&shared);
        assert_eq!(reply.status, 302);
        assert!(header(&reply, "location").starts_with(&format!("{BACK}?error=")));
    }
}

#[test]
fn a_refresh_token_can_be_used_once_and_reuse_ends_the_session() {
    let shared = service();
    let (reply, _) = logged_in(&shared);
    let refresh = |token_: &str| {
        token(&shared, &[("grant_type", "refresh_token"), ("refresh_token", token_)])
    };
    let first = word(&reply, "refresh_token");
    let renewed = refresh(&first);
    let second = word(&renewed, "refresh_token");
    assert_ne!(first, second);
    assert!(is_active(&shared, &word(&renewed, "access_token")));
    assert_eq!(refresh(&first).status, 400);
    assert_eq!(refresh(&second).status, 400);
    assert!(!is_active(&shared, &word(&renewed, "access_token")));
    assert_eq!(refresh("é".repeat(32).as_str()).status, 400);
}

#[test]
fn a_logout_ends_the_session_that_its_hint_names() {
    let shared = service();
    let (reply, session) = logged_in(&shared);
    let hint = word(&reply, "id_token");
    let out = |hint: &str, back: &str| {
        let pairs = [("id_token_hint", hint), ("post_logout_redirect_uri", back), ("state", "x")];
        Ask::get(&with_query("/oidc/logout", &pairs)).of(&shared)
    };
    assert_eq!(out("", BACK).status, 200);
    assert_eq!(out(&hint, "http://evil/").status, 400);
    assert!(is_active(&shared, &word(&reply, "access_token")));
    let gone = out(&hint, BACK);
    assert_eq!((gone.status, header(&gone, "location")), (302, &*format!("{BACK}?state=x")));
    assert!(!is_active(&shared, &word(&reply, "access_token")));
    let again = Ask { cookie: Some(&session), ..Ask::get(&authorize(&[])) }.of(&shared);
    assert_eq!(again.status, 200);
}

#[test]
fn clients_authenticate_by_header_or_body() {
    let shared = service();
    let grant = [("grant_type", "client_credentials")];
    // load:a+b%3Ac, as RFC 6749 2.3.1 encodes it.
    let basic = Some("Basic bG9hZDphK2IlM0Fj");
    let by_header = Ask { authorization: basic, ..Ask::post("/oidc/token", &grant) }.of(&shared);
    assert_eq!(by_header.status, 200);
    assert!(is_active(&shared, &word(&by_header, "access_token")));
    assert_eq!(token(&shared, &grant).status, 200);
    assert_eq!(Ask::post("/oidc/token", &grant).of(&shared).status, 401);
    let wrong = [("client_id", "load"), ("client_secret", "x")];
    assert_eq!(Ask::post("/oidc/introspect", &wrong).of(&shared).status, 401);
    assert_eq!(token(&shared, &[("grant_type", "implicit")]).status, 400);
    let password = [("grant_type", "password"), ("username", "bob"), ("password", "her&pw")];
    assert_eq!(token(&shared, &password).status, 400);
    assert!(!is_active(&shared, "unknown"));
}

#[test]
fn tokens_expire() {
    let shared = service();
    let (reply, _) = logged_in(&shared);
    let bearer = format!("Bearer {}", word(&reply, "access_token"));
    let ask = Ask { authorization: Some(&bearer), ..Ask::get("/oidc/userinfo") };
    assert_eq!(ask.at_s(&shared, 59).status, 200);
    let late = ask.at_s(&shared, 61);
    assert_eq!((late.status, late.body.len()), (401, 0));
}

#[test]
fn exactly_one_request_of_each_flow_needs_a_worker() {
    let shared = service();
    let (reply, _) = logged_in(&shared);
    assert_eq!(shared.counts().worked, 1);
    let refresh = word(&reply, "refresh_token");
    token(&shared, &[("grant_type", "refresh_token"), ("refresh_token", &refresh)]);
    token(&shared, &[("grant_type", "client_credentials")]);
    is_active(&shared, "unknown");
    Ask::get("/.well-known/openid-configuration").of(&shared);
    Ask::get("/oidc/jwks").of(&shared);
    Ask::get("/oidc/logout").of(&shared);
    assert_eq!(shared.counts().worked, 5);
    let counts = shared.counts();
    assert_eq!(counts.requests["GET /.well-known/openid-configuration"], 1);
    assert_eq!(counts.grants["login"], 1);
}

#[test]
fn without_an_openid_provider_its_paths_are_unknown() {
    let shared = shared_tests::service(&json!({}));
    assert_eq!(Ask::get("/.well-known/openid-configuration").of(&shared).status, 404);
    let counts = serde_json::to_value(shared.counts()).unwrap();
    assert_eq!(counts.get("grants"), None);
}
