//! Durable runs: events, journal, replay, the ports.
