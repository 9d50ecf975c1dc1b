//! What one iteration does: requests with holes, and pauses.

use serde::Deserialize;

/// A piece of a request.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The same in every request.
    Text(String),
    /// A hole filled from a column.
    Column(String),
    /// A hole filled with what an earlier step captured.
    Capture(String),
    /// A hole filled with this prefix and the iteration's number.
    Iteration(String),
}

/// A value of an answer that is kept for later steps: of a header, in a JSON body, of the link in a
/// header, or of a form in an HTML body. Exactly one of `header`, `pointer`, `link` and `form` says
/// which.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// What later steps call it.
    pub name: String,
    /// The header's name.
    pub header: Option<String>,
    /// Its place in the body (RFC 6901).
    pub pointer: Option<String>,
    /// The name of a header that holds a link, as Location does. What is kept is the link's path
    /// and query without the first slash, if it leads to the plan's own origin.
    pub link: Option<String>,
    /// Of the link: only the value of this parameter, as it stands there; it may lead anywhere.
    pub parameter: Option<String>,
    /// The number of a form in an HTML body, from 0. What is kept is its action, like a link.
    pub form: Option<usize>,
    /// Of the form: its hidden fields in place of its action, encoded for a form body.
    #[serde(default)]
    pub hidden: bool,
    /// Percent-encoded for a form body.
    #[serde(default)]
    pub encoded: bool,
    /// Any other value is a failure.
    pub equals: Option<String>,
    /// Its absence is no failure; steps that need it are left out.
    pub optional: bool,
}

/// What an iteration does next.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// Sends a request and awaits its answer.
    Request(Request),
    /// Waits.
    Pause(Pause),
}

/// One HTTP request.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its name in results.
    pub action: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: Vec<Part>,
    /// Names and values.
    pub headers: Vec<(String, Vec<Part>)>,
    /// May be empty.
    pub body: Vec<Part>,
    /// Any other status is a failure.
    pub expect_status: Vec<u16>,
    /// What to keep of the answer.
    pub captures: Vec<Capture>,
    /// Left out unless this holds.
    pub only_if: Option<Ended>,
    /// Also done after a step of the iteration failed.
    pub always: bool,
}

/// Nothing, for a time between two bounds.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Its name in results.
    pub action: String,
    /// At least so long.
    pub min_s: f64,
    /// At most so long.
    pub max_s: f64,
    /// Left out unless this holds.
    pub only_if: Option<Ended>,
}

/// Holds when the last earlier step of this name was done and ended with one of these statuses.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The earlier step's name.
    pub action: String,
    /// Any of these.
    pub status: Vec<u16>,
}

/// The next so many steps are one script, and so heavy.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// How many.
    pub steps: usize,
    /// An iteration takes this script with odds of its weight over the sum of all.
    pub weight: f64,
}
