//! Steps of a plan: requests with placeholders, and pauses.

use serde::Deserialize;

/// Part of a path, header or body.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Constant text.
    Text(String),
    /// Value of a column.
    Column(String),
    /// Value that an earlier step captured.
    Capture(String),
    /// This prefix and the number of the iteration.
    Iteration(String),
    /// One-time code of this moment (RFC 6238) for a secret of a column, in base32.
    OneTimeCode(String),
}

/// Value of a response that later steps use: from a header, a JSON body, a link in a header, or a
/// form in an HTML body. Exactly one of `header`, `pointer`, `link` and `form` is set.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Name that later steps use.
    pub name: String,
    /// Name of a header.
    pub header: Option<String>,
    /// JSON pointer into the body (RFC 6901).
    pub pointer: Option<String>,
    /// Name of a header with a link, such as Location. The value is path and query of the link
    /// without the first slash, if it leads to the plan's origin.
    pub link: Option<String>,
    /// Query parameter of the link that is the value instead; the link may lead to any origin.
    pub parameter: Option<String>,
    /// Number of a form in an HTML body, from 0. The value is its action, as for a link.
    pub form: Option<usize>,
    /// Whether the value is the form's hidden fields instead, encoded for a form body.
    #[serde(default)]
    pub hidden: bool,
    /// Whether to percent-encode the value for a form body.
    #[serde(default)]
    pub encoded: bool,
    /// Expected value; any other is a failure.
    pub equals: Option<String>,
    /// Whether it may be missing; steps that need it are then skipped.
    pub optional: bool,
}

/// Step of an iteration.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// HTTP request.
    Request(Request),
    /// Pause.
    Pause(Pause),
}

/// HTTP request.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name in results.
    pub action: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: Vec<Part>,
    /// Names and values of headers.
    pub headers: Vec<(String, Vec<Part>)>,
    /// Body; may be empty.
    pub body: Vec<Part>,
    /// Expected statuses; any other is a failure.
    pub expect_status: Vec<u16>,
    /// Values to capture from the response.
    pub captures: Vec<Capture>,
    /// Condition without which the step is skipped.
    pub only_if: Option<StatusCondition>,
    /// Whether to execute it also after a failed step.
    pub always: bool,
}

/// Pause of a random length.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Name in results.
    pub action: String,
    /// Minimum.
    pub min_s: f64,
    /// Maximum.
    pub max_s: f64,
    /// Condition without which the step is skipped.
    pub only_if: Option<StatusCondition>,
    /// Whether to pause also after a failed step.
    pub always: bool,
}

/// Condition that the last earlier step of this name ended with one of these statuses.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusCondition {
    /// Name of the earlier step.
    pub action: String,
    /// Statuses.
    pub status: Vec<u16>,
}

/// Script of a mix: the next steps of the plan, and their weight.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixEntry {
    /// Number of steps.
    pub steps: usize,
    /// An iteration executes this script with the probability weight / sum of weights.
    pub weight: f64,
}
