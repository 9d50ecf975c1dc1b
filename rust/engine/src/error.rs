//! Why a run could not start. A request that fails is a sample, never an error.

use crate::table::BadFile;

/// A run that cannot start; the text is one line that says what, where and the mend.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The plan asks for what cannot be done.
    #[error("plan: {field} {reason}")]
    Plan {
        /// Its path in the plan.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that the plan names cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The target or this machine cannot be used.
    #[error("{0}")]
    Environment(String),
}

impl Refusal {
    /// A refusal of one field.
    pub(crate) fn plan(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Plan { field: field.into(), reason: reason.into() }
    }

    /// A refusal of one file.
    pub(crate) fn file(path: &str, reason: &impl ToString) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<BadFile> for Refusal {
    fn from(bad: BadFile) -> Self {
        Self::Environment(bad.to_string())
    }
}
