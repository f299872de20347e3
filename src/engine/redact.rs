//! Redaction of what a run reports: see [`flowstone_model::redact`] for how secrets are found.

mod watch;

use std::rc::Rc;

pub use flowstone_model::redact::*;
use flowstone_model::redact_changes::blobs;

pub(crate) use watch::{RedactedObserver, clean as event};

use crate::ports::Revealed;
use crate::step::Services;

/// Returns services whose blobs store no secrets.
pub(crate) fn services(services: &Services, revealed: &Revealed) -> Rc<Services> {
    let mut services = services.clone();
    services.stores.blobs = blobs(services.stores.blobs.clone(), revealed);
    Rc::new(services)
}
