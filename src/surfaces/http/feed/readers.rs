//! How many streams are open, and which runs a reader of the project reaches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{StatusCode, header};
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_flow::server_limits::ServerLimits;

use crate::http::access::Caller;
use crate::http::problem::{Problem, codes};
use crate::http::server::{EngineContext, Shared};

/// Maximum number of runs of which a reader remembers whether it reaches them.
const REMEMBERED: usize = 1_024;

/// What a stream is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::http) enum Streamed {
    /// Messages for a client of MCP.
    Mcp,
    Project,
    Run,
}

impl Streamed {
    const ALL: [Streamed; 3] = [Streamed::Mcp, Streamed::Project, Streamed::Run];

    pub(super) fn name(self) -> &'static str {
        match self {
            Streamed::Mcp => "mcp",
            Streamed::Project => "project",
            Streamed::Run => "run",
        }
    }
}

/// The open streams by token and by what they are of.
#[derive(Debug, Clone)]
pub(in crate::http) struct Readers {
    /// Maximum number of streams in all.
    most: usize,
    /// Maximum number of streams of one token.
    most_of_token: usize,
    counts: Arc<Mutex<HashMap<(String, Streamed), usize>>>,
}

/// The place of a stream. Dropping it frees the place.
#[derive(Debug)]
pub(in crate::http) struct Place {
    readers: Readers,
    key: (String, Streamed),
}

impl Readers {
    pub(in crate::http) fn new(limits: &ServerLimits) -> Readers {
        Readers {
            most: limits.streams,
            most_of_token: limits.streams_per_token,
            counts: Arc::default(),
        }
    }

    /// Takes a place for a stream.
    ///
    /// # Errors
    /// When too many are open.
    pub(in crate::http) fn enter(&self, token: &str, of: Streamed) -> Result<Place, Problem> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let open = |of: Streamed| counts.get(&(token.to_owned(), of)).copied().unwrap_or(0);
        let own: usize = Streamed::ALL.map(open).iter().sum();
        if all >= self.most || own >= self.most_of_token {
            let problem = Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                codes::TOO_MANY,
                "too many streams of events are open",
            );
            return Err(problem.header(header::RETRY_AFTER, "5"));
        }
        let key = (token.to_owned(), of);
        *counts.entry(key.clone()).or_default() += 1;
        Ok(Place {
            readers: self.clone(),
            key,
        })
    }

    /// Returns the number of open streams of each kind, with its name.
    pub(in crate::http) fn counts(&self) -> [(&'static str, usize); 3] {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Streamed::ALL.map(|of| {
            let open = counts.iter().filter(|((_, it), _)| *it == of);
            (of.name(), open.map(|(_, count)| count).sum())
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self
            .readers
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = counts
            .get(&self.key)
            .map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => counts.remove(&self.key),
            left => counts.insert(self.key.clone(), left),
        };
    }
}

/// Decides which runs a reader of the project's events reaches, and remembers it.
pub(super) struct Reached {
    server: Shared,
    caller: Caller,
    known: HashMap<RunId, bool>,
}

impl Reached {
    pub(super) fn new(server: Shared, caller: Caller) -> Reached {
        Reached {
            server,
            caller,
            known: HashMap::new(),
        }
    }

    /// Tells whether the reader may see an event. If that cannot be found out, it may not.
    pub(super) async fn reaches(&mut self, run: &RunId, flow: &str) -> bool {
        if let Some(known) = self.known.get(run) {
            return *known;
        }
        let caller = self.caller.clone();
        let (id, slug) = (run.clone(), flow.to_owned());
        let asked = self
            .server
            .ask(async move |cx: &EngineContext| {
                let row = cx.engine.run(&id).await?;
                let labels = cx.catalog.labels(&cx.engine, &slug);
                Ok::<_, EngineError>(caller.reaches_run(&slug, &labels, &row.started_by))
            })
            .await;
        let reaches = asked.unwrap_or(false);
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(run.clone(), reaches);
        reaches
    }
}
