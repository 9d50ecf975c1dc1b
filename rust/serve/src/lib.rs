//! A token service in memory that speaks enough of the Identity API v3 to be a target, and that
//! can be told to bear exactly so much. Knows nothing of Python. Linux only.

mod auth;
mod body;
mod counts;
mod directory;
mod draws;
mod exchange;
mod fault;
mod grants;
mod manage;
mod reply;
mod route;
mod server;
mod settings;
mod shared;
mod stamp;
mod things;
mod tokens;
mod workers;
#[cfg(test)]
mod workers_tests;

pub use counts::Counts;
pub use server::Service;
pub use settings::{Admin, Capacity, Law, Settings};

/// Why the service could not start; one line that says what and where.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The settings ask for what cannot be done.
    #[error("{0}")]
    Settings(String),
    /// The address cannot be listened on, or the machine gives no threads.
    #[error("{0}")]
    Environment(String),
}
