//! Faults at given instants: the service is dark, slow, or refuses a share of token requests.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::sleep_until;

use crate::settings::{Kind, Scripted};

/// The faults of a service, from its start on.
pub(crate) struct Script {
    began: Instant,
    faults: Vec<Scripted>,
    /// Whether the service is dark: nothing listens, no connection is open.
    dark: Sender<bool>,
    happened: Mutex<Vec<Happened>>,
}

/// A fault that has begun.
#[derive(Debug, Clone, Serialize)]
pub struct Happened {
    /// Dark, slow or refuse.
    pub kind: Kind,
    /// The factor, or the share.
    pub amount: f64,
    /// Unix time of its beginning.
    pub began_s: f64,
    /// Unix time of its end; absent while it lasts.
    pub ended_s: Option<f64>,
}

impl Script {
    pub(crate) fn new(faults: &[Scripted], began: Instant) -> Self {
        let (dark, _) = channel(false);
        Self { began, faults: faults.to_vec(), dark, happened: Mutex::default() }
    }

    /// Whether the service is dark at some instant.
    pub(crate) fn has_dark(faults: &[Scripted]) -> bool {
        faults.iter().any(|fault| fault.kind == Kind::Dark)
    }

    /// Tells whether the service is dark, and when that changes.
    pub(crate) fn dark(&self) -> Receiver<bool> {
        self.dark.subscribe()
    }

    /// By which factor what begins at this time is slower.
    pub(crate) fn slowness(&self, at: Duration) -> f64 {
        self.at(Kind::Slow, at).map_or(1.0, |fault| fault.amount)
    }

    /// Which share of what arrives at this time is refused.
    pub(crate) fn refused_share(&self, at: Duration) -> f64 {
        self.at(Kind::Refuse, at).map_or(0.0, |fault| fault.amount)
    }

    fn at(&self, kind: Kind, at: Duration) -> Option<&Scripted> {
        let at_s = at.as_secs_f64();
        let is_on = |fault: &&Scripted| {
            fault.kind == kind && (fault.at_s..fault.at_s + fault.lasts_s).contains(&at_s)
        };
        self.faults.iter().find(is_on)
    }

    pub(crate) fn happened(&self) -> Vec<Happened> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Plays all faults, which do not overlap and come in the order of time.
    pub(crate) async fn play(&self) {
        for fault in &self.faults {
            let begin = self.began + Duration::from_secs_f64(fault.at_s);
            sleep_until(begin.into()).await;
            let is_dark = fault.kind == Kind::Dark;
            if is_dark {
                self.dark.send_replace(true);
            }
            self.begins(fault);
            sleep_until((begin + Duration::from_secs_f64(fault.lasts_s)).into()).await;
            if is_dark {
                self.dark.send_replace(false);
            }
            self.ends();
        }
    }

    fn begins(&self, fault: &Scripted) {
        let happened =
            Happened { kind: fault.kind, amount: fault.amount, began_s: unix_s(), ended_s: None };
        self.happened.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
    }

    fn ends(&self) {
        let mut happened = self.happened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = happened.last_mut() {
            last.ended_s = Some(unix_s());
        }
    }
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Ends when the service becomes dark.
pub(crate) async fn is_dark(dark: &mut Receiver<bool>) {
    // An error: the service ends, and with it its connections.
    let _ = dark.wait_for(|is_dark| *is_dark).await;
}

/// Ends when the service is not dark.
pub(crate) async fn is_light(dark: &mut Receiver<bool>) {
    let _ = dark.wait_for(|is_dark| !*is_dark).await;
}
