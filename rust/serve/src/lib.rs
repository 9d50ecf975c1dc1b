//! A token service in memory that speaks enough of the Identity API v3 to be a target, and that
//! can be told to bear exactly so much. Knows nothing of Python. Linux only.

#[cfg(not(feature = "bench"))]
mod alarm;
#[cfg(feature = "bench")]
pub mod alarm;
mod auth;
mod body;
mod counts;
mod directory;
mod door;
mod draws;
mod exchange;
mod fault;
mod grants;
mod lateness;
mod limiter;
mod lockout;
mod manage;
mod oidc;
mod quiet;
mod reply;
mod route;
mod script;
mod server;
mod settings;
mod shared;
#[cfg(test)]
mod shared_tests;
mod stamp;
mod things;
mod tokens;
mod workers;
#[cfg(test)]
mod workers_tests;

pub use counts::Counts;
pub use lateness::Kept;
pub use script::Happened;
pub use server::Service;
pub use settings::{
    Admin, Capacity, Connections, Kind, Law, Limit, LimitMode, LimitPer, Lockout, OidcSettings,
    OverConnections, Scripted, Settings,
};

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
