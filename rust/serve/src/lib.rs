//! Reference service: the parts of the Identity API v3 and OpenID Connect that load tests need, in
//! memory, with a known capacity if one is set. Independent of Python. Linux only.

mod access;
mod api_error;
mod assignments;
mod auth;
mod counts;
mod crud;
mod directory;
mod expiring;
mod fault_script;
mod grants;
mod handler;
mod idle;
mod ids;
mod lateness;
mod limiter;
mod listener;
mod lockout;
mod oidc;
mod reply;
mod request;
mod resources;
mod route;
mod server;
mod service_times;
mod settings;
mod shared;
#[cfg(test)]
mod shared_tests;
mod state;
#[cfg(not(feature = "bench"))]
mod timer;
#[cfg(feature = "bench")]
pub mod timer;
mod timestamp;
mod token_body;
mod tokens;
mod workers;
#[cfg(test)]
mod workers_tests;

pub use counts::Counts;
pub use fault_script::InjectedFault;
pub use lateness::CapacityKept;
pub use server::Service;
pub use settings::{
    Admin, Capacity, Connections, FaultKind, Law, Limit, LimitMode, LimitPer, Lockout,
    OidcSettings, OverConnections, ScriptedFault, Settings,
};

/// Reason why the service cannot start, as one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid settings.
    #[error("{0}")]
    Settings(String),
    /// The address cannot be used, or threads cannot be started.
    #[error("{0}")]
    Environment(String),
}
