//! Errors that prevent a run. A failed request is a sample, never an error.

use crate::table::BadFile;

/// Reason why a run cannot start, as one line that names cause, place and remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid plan.
    #[error("plan: {field} {reason}")]
    Plan {
        /// Path of the field.
        field: String,
        /// Problem with the field.
        reason: String,
    },
    /// A file that the plan names cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Problem with the file.
        reason: String,
    },
    /// The target or this machine cannot be used.
    #[error("{0}")]
    Environment(String),
}

impl Error {
    /// Error about a field of the plan.
    pub(crate) fn plan(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Plan { field: field.into(), reason: reason.into() }
    }

    /// Error about a file.
    pub(crate) fn file(path: &str, reason: &impl ToString) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<BadFile> for Error {
    fn from(bad: BadFile) -> Self {
        Self::Environment(bad.to_string())
    }
}
