//! How often people and visitors of apps may make requests, and how many connections one address may have.
//!
//! Programs with tokens of their own are not limited unless the settings say so: they are as trusted as what they run.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::{StatusCode, header};
use flowstone_engine::token::TokenKind;
use flowstone_flow::server_limits::ServerLimits;

use super::access::Caller;
use super::problem::{Problem, codes};

/// Callers that are remembered; more do not make the memory grow.
const CALLERS_MAX: usize = 10_000;

/// Counts requests by caller.
#[derive(Debug)]
pub(super) struct Rates {
    limits: ServerLimits,
    tokens: Buckets<String>,
    visitors: Buckets<IpAddr>,
}

impl Rates {
    pub(super) fn new(limits: &ServerLimits) -> Rates {
        Rates {
            limits: limits.clone(),
            tokens: Buckets::default(),
            visitors: Buckets::default(),
        }
    }

    /// Counts a request. Returns its answer if there were too many.
    pub(super) fn note(
        &self,
        caller: &Caller,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Option<Problem> {
        let rate = match caller.token.kind {
            TokenKind::Anon => self.limits.anon_requests,
            TokenKind::Owner => self.limits.owner_requests,
            TokenKind::Service => self.limits.service_requests,
            TokenKind::User => self.limits.user_requests,
        };
        let rate = rate? as f64;
        let is_taken = match (caller.token.kind, from) {
            // Visitors share a token.
            (TokenKind::Anon, Some(from)) => self.visitors.take(from, rate, now),
            _ => self.tokens.take(caller.token.id.clone(), rate, now),
        };
        (!is_taken).then(too_many)
    }
}

fn too_many() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        codes::TOO_MANY,
        "this caller makes too many requests",
    )
    .header(header::RETRY_AFTER, "1")
}

/// Token buckets: each is filled at a rate, up to what comes in a second.
#[derive(Debug)]
struct Buckets<K>(Mutex<HashMap<K, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K> Default for Buckets<K> {
    fn default() -> Buckets<K> {
        Buckets(Mutex::default())
    }
}

impl<K: Hash + Eq> Buckets<K> {
    /// Takes one from the bucket of a key. Returns false if nothing is left.
    fn take(&self, key: K, rate: f64, now: Instant) -> bool {
        let filled = |bucket: &Bucket| {
            let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
            (bucket.left + passed * rate).min(rate)
        };
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CALLERS_MAX {
            // A full bucket is like one that was never used.
            buckets.retain(|_, bucket| filled(bucket) < rate);
        }
        let left = buckets.get(&key).map_or(rate, filled);
        if left < 1.0 || buckets.len() >= CALLERS_MAX && !buckets.contains_key(&key) {
            return false;
        }
        let left = left - 1.0;
        buckets.insert(key, Bucket { left, at: now });
        true
    }
}

/// Counts open connections by address.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    /// Maximum number of connections from one address.
    most: usize,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    addresses: Addresses,
    from: IpAddr,
}

impl Addresses {
    pub(super) fn new(most: usize) -> Addresses {
        Addresses {
            most,
            counts: Arc::default(),
        }
    }

    /// Takes a place for a connection; nothing if the address has too many.
    pub(super) fn enter(&self, from: IpAddr) -> Option<Place> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(from).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place {
            addresses: self.clone(),
            from,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self
            .addresses
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.from);
            }
        }
    }
}

/// The answer on a connection of an address that has too many.
pub(super) fn crowded() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        codes::TOO_MANY,
        "this address has too many connections",
    )
    .header(header::RETRY_AFTER, "1")
    .header(header::CONNECTION, "close")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_is_refilled_at_its_rate() {
        let buckets = Buckets::default();
        let start = Instant::now();
        let taken = |now: Instant| (0..100).filter(|_| buckets.take("a", 10.0, now)).count();
        assert_eq!(taken(start), 10);
        assert_eq!(taken(start), 0);
        assert_eq!(taken(start + Duration::from_millis(500)), 5);
        assert_eq!(taken(start + Duration::from_secs(60)), 10);
        assert!(buckets.take("b", 10.0, start));
    }

    #[test]
    fn an_address_has_a_bounded_number_of_connections() {
        let addresses = Addresses::new(3);
        let from = IpAddr::from([192, 0, 2, 1]);
        let mut places: Vec<Place> = (0..3).filter_map(|_| addresses.enter(from)).collect();
        assert_eq!(places.len(), 3);
        assert!(addresses.enter(from).is_none());
        assert!(addresses.enter(IpAddr::from([192, 0, 2, 2])).is_some());
        places.pop();
        assert!(addresses.enter(from).is_some());
    }
}
