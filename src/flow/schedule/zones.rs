//! Time zones by name, from the database that is compiled in: the same on every machine.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Returns a zone by its name.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    zones().get(name).ok()
}

/// Returns all zones.
pub(crate) fn zones() -> &'static TimeZoneDatabase {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    &ZONES
}
