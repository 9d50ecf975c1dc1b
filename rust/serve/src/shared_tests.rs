//! Requests without sockets: authorisation, routes, and which requests need a worker.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::request::Request;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::timestamp;

/// Settings with changes, as JSON.
fn settings(changes: &Value) -> String {
    let mut settings = json!({
        "host": "127.0.0.1", "port": 0, "threads": 1, "token_life_s": 60.0, "max_tokens": 100,
        "idle_timeout_s": 75.0, "only_errors": false,
        "admin": {"user": "admin", "password": "right", "project": "admin"},
    });
    settings.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    settings.to_string()
}

pub(crate) fn service(changes: &Value) -> Shared {
    let Ok(settings) = Settings::from_json(&settings(changes)) else { panic!("settings") };
    let Ok(shared) = Shared::new(&settings) else { panic!("service") };
    shared
}

/// Capacity of one worker.
pub(crate) fn capacity() -> Value {
    json!({"workers": 1, "service_s": 0.01, "law": "fixed", "even_over": 0, "stall_every_s": 0.0,
        "stall_s": 0.0, "halve_at_s": null, "max_queue": null, "queue_timeout_s": null, "seed": 1})
}

fn ask(shared: &Shared, method: &str, path: &str, tokens: [Option<&str>; 2], body: &str) -> Reply {
    let [token, subject] = tokens;
    let request = Request {
        method,
        path,
        query: "",
        token,
        subject,
        authorization: None,
        cookie: None,
        body: body.as_bytes(),
        base: "http://here",
        connection: 1,
        now_us: timestamp::now_us(),
    };
    shared.handle(&request).reply
}

fn log_in(shared: &Shared, user: &str, password: &str, project: &str) -> Reply {
    let domain = json!({"id": "default"});
    let body = json!({"auth": {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": user, "domain": domain, "password": password}},
        },
        "scope": {"project": {"name": project, "domain": domain}},
    }});
    ask(shared, "POST", "/v3/auth/tokens", [None; 2], &body.to_string())
}

fn body(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

/// Creates a user with a role in a new project of the same name. Returns token and project id.
fn make_user(shared: &Shared, admin: &str, name: &str, role: &str) -> (String, String) {
    let by_admin = |method: &str, path: &str, body: &Value| {
        ask(shared, method, path, [Some(admin), None], &body.to_string())
    };
    let id = |reply: &Reply, word: &str| body(reply)[word]["id"].as_str().unwrap().to_owned();
    let given = json!({"user": {"name": name, "password": name}});
    let user = id(&by_admin("POST", "/v3/users", &given), "user");
    let given = json!({"project": {"name": name}});
    let project = id(&by_admin("POST", "/v3/projects", &given), "project");
    let roles = body(&by_admin("GET", "/v3/roles", &Value::Null))["roles"].clone();
    let role = roles.as_array().unwrap().iter().find(|known| known["name"] == role).unwrap();
    let role = role["id"].as_str().unwrap();
    let grant = format!("/v3/projects/{project}/users/{user}/roles/{role}");
    assert_eq!(by_admin("PUT", &grant, &Value::Null).status, 204);
    (log_in(shared, name, name, name).token.unwrap(), project)
}

#[test]
fn a_login_needs_the_right_password_and_a_role_in_the_project() {
    let shared = service(&json!({}));
    assert_eq!(log_in(&shared, "admin", "right", "admin").status, 201);
    assert_eq!(log_in(&shared, "admin", "wrong", "admin").status, 401);
    assert_eq!(log_in(&shared, "nobody", "right", "admin").status, 401);
    assert_eq!(log_in(&shared, "admin", "right", "other").status, 401);
}

#[test]
fn tokens_of_others_are_validated_by_admin_and_service_and_revoked_by_admin() {
    let shared = service(&json!({}));
    let admin = log_in(&shared, "admin", "right", "admin").token.unwrap();
    let (service, _) = make_user(&shared, &admin, "nova", "service");
    let (member, own) = make_user(&shared, &admin, "one", "member");
    let (other, others) = make_user(&shared, &admin, "two", "member");
    let about = |token: &str, method: &str| {
        ask(&shared, method, "/v3/auth/tokens", [Some(token), Some(&other)], "").status
    };
    assert_eq!([&*service, &admin, &other].map(|token| about(token, "GET")), [200; 3]);
    assert_eq!(about(&member, "GET"), 403);
    assert_eq!([&*service, &member].map(|token| about(token, "DELETE")), [403; 2]);
    let project = |id: &str| {
        ask(&shared, "GET", &format!("/v3/projects/{id}"), [Some(&member), None], "").status
    };
    assert_eq!([project(&own), project(&others)], [200, 403]);
    assert_eq!(about(&admin, "DELETE"), 204);
    assert_eq!(about(&admin, "GET"), 404);
}

#[test]
fn unknown_paths_and_methods_have_the_right_status() {
    let shared = service(&json!({}));
    let status = |method, path| ask(&shared, method, path, [None; 2], "").status;
    assert_eq!(status("GET", "/"), 300);
    assert_eq!(status("GET", "//v3/"), 200);
    assert_eq!(status("POST", "/v3"), 405);
    assert_eq!(status("PUT", "/v3/auth/tokens"), 405);
    assert_eq!(status("GET", "/v3/auth/tokens"), 401);
    assert_eq!(status("GET", "/v2.0/tokens"), 404);
    assert_eq!(status("GET", "/v3/auth/nothing"), 404);
}

#[test]
fn exactly_token_requests_need_a_worker_with_any_spelling_of_the_path() {
    let shared = service(&json!({"capacity": capacity()}));
    for path in ["/v3/auth/tokens", "/v3//auth/tokens", "//v3/auth/tokens/", "/v3/auth/catalog/"] {
        let before = shared.counts().worked;
        ask(&shared, "GET", path, [None; 2], "");
        assert_eq!(shared.counts().worked, before + 1, "{path}");
    }
    let before = shared.counts().worked;
    for path in ["/", "/v3", "/v3/users", "/v3/auth"] {
        ask(&shared, "GET", path, [None; 2], "");
    }
    assert_eq!(shared.counts().worked, before);
}

#[test]
fn settings_out_of_bounds_name_option_and_bounds() {
    for (change, words) in [
        (json!({"threads": 257}), "--threads must be from 1 to 256, not 257"),
        (json!({"max_tokens": 0}), "--max-tokens must be from 1 to 10000000, not 0"),
        (
            json!({"limit": {"rate_rps": 0.0, "burst_s": 1.0, "mode": "refuse", "per": "user"}}),
            "--limit must be from 0.001 to 1000000 a second, not 0",
        ),
    ] {
        let Err(error) = Settings::from_json(&settings(&change)) else { panic!("{words}") };
        assert_eq!(error.to_string(), words);
    }
}
