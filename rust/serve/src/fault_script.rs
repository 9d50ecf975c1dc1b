//! Scripted faults: at given times the service is dark, slow, or refuses token requests.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::sleep_until;

use crate::settings::{FaultKind, ScriptedFault};

/// Scripted faults of a service, and those that have begun.
pub(crate) struct FaultScript {
    began: Instant,
    faults: Vec<ScriptedFault>,
    /// Whether the service is dark: the port is closed, and no connection is open.
    dark: Sender<bool>,
    injected: Mutex<Vec<InjectedFault>>,
}

/// Fault that has begun.
#[derive(Debug, Clone, Serialize)]
pub struct InjectedFault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Factor of slowness, or refused share.
    pub amount: f64,
    /// Unix time of the beginning.
    pub began_s: f64,
    /// Unix time of the end; none while it lasts.
    pub ended_s: Option<f64>,
}

impl FaultScript {
    pub(crate) fn new(faults: &[ScriptedFault], began: Instant) -> Self {
        let (dark, _) = channel(false);
        Self { began, faults: faults.to_vec(), dark, injected: Mutex::default() }
    }

    /// Whether there is a time at which the service is dark.
    pub(crate) fn has_dark(faults: &[ScriptedFault]) -> bool {
        faults.iter().any(|fault| fault.kind == FaultKind::Dark)
    }

    /// Subscribes to whether the service is dark.
    pub(crate) fn dark(&self) -> Receiver<bool> {
        self.dark.subscribe()
    }

    /// Returns the factor by which work that begins at this time is slower.
    pub(crate) fn slowness(&self, at: Duration) -> f64 {
        self.at(FaultKind::Slow, at).map_or(1.0, |fault| fault.amount)
    }

    /// Returns the share of requests that are refused at this time.
    pub(crate) fn refused_share(&self, at: Duration) -> f64 {
        self.at(FaultKind::Refuse, at).map_or(0.0, |fault| fault.amount)
    }

    fn at(&self, kind: FaultKind, at: Duration) -> Option<&ScriptedFault> {
        let at_s = at.as_secs_f64();
        let is_on = |fault: &&ScriptedFault| {
            fault.kind == kind && (fault.at_s..fault.at_s + fault.lasts_s).contains(&at_s)
        };
        self.faults.iter().find(is_on)
    }

    pub(crate) fn injected(&self) -> Vec<InjectedFault> {
        self.injected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Injects all faults, which are in order and do not overlap.
    pub(crate) async fn play(&self) {
        for fault in &self.faults {
            let begin = self.began + Duration::from_secs_f64(fault.at_s);
            sleep_until(begin.into()).await;
            let is_dark = fault.kind == FaultKind::Dark;
            if is_dark {
                self.dark.send_replace(true);
            }
            self.begin_fault(fault);
            sleep_until((begin + Duration::from_secs_f64(fault.lasts_s)).into()).await;
            if is_dark {
                self.dark.send_replace(false);
            }
            self.end_fault();
        }
    }

    fn begin_fault(&self, fault: &ScriptedFault) {
        let injected = InjectedFault {
            kind: fault.kind,
            amount: fault.amount,
            began_s: unix_s(),
            ended_s: None,
        };
        self.injected.lock().unwrap_or_else(PoisonError::into_inner).push(injected);
    }

    fn end_fault(&self) {
        let mut injected = self.injected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = injected.last_mut() {
            last.ended_s = Some(unix_s());
        }
    }
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Waits until the service is dark.
pub(crate) async fn until_dark(dark: &mut Receiver<bool>) {
    // Fails if the service ends, and with it all connections.
    let _ = dark.wait_for(|is_dark| *is_dark).await;
}

/// Waits until the service is not dark.
pub(crate) async fn until_light(dark: &mut Receiver<bool>) {
    let _ = dark.wait_for(|is_dark| !*is_dark).await;
}
