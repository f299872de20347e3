//! Follows a run for the client that started it: progress and log messages, questions, and the end.

use std::time::Duration;

use flowstone_engine::EngineError;
use flowstone_engine::FeedState;
use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunRow, RunStatus, WaitRow};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until};

use super::peer::{Request, refused};
use super::protocol::{RpcError, codes};
use super::questions::{self, Questions, QuestionsOutcome};
use crate::http::{EngineContext, Problem};

/// How often progress is reported.
const BEAT: Duration = Duration::from_secs(5);
/// How often the run is polled without news.
const CHECK: Duration = Duration::from_secs(1);
/// Maximum number of events that are read at a time.
const PAGE: usize = 64;

/// The maximum time to follow a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// The maximum duration of a call.
    Call,
    /// Until the run ends.
    Endless,
}

/// The result of following a run.
#[derive(Debug)]
pub(super) enum Followed {
    Ended(Box<RunRow>),
    /// It is still in progress, or waits for others.
    Late(Box<RunRow>),
    /// The client must answer these questions and repeat its request.
    Input(Json),
}

/// The current state of a run, with the questions that have been open since it stopped.
pub(super) struct Glance {
    pub row: RunRow,
    pub waits: Vec<WaitRow>,
}

/// Reads the current state of a run.
///
/// # Errors
/// When it does not exist, or the store cannot be read.
pub(super) async fn glance(rq: &Request, run: &RunId) -> Result<Glance, RpcError> {
    let run = run.clone();
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let row = cx.engine.run(&run).await?;
        let waits = match row.status {
            RunStatus::Waiting => cx.engine.waits_below(&run).await?,
            _ => Vec::new(),
        };
        Ok::<_, EngineError>(Glance { row, waits })
    });
    found.await.map_err(|problem| refused(&problem))
}

/// Follows a run. Reports of a new run are passed on from its beginning; if the client has already seen the run's
/// questions, only new reports are.
///
/// # Errors
/// When the run cannot be read, or the client lacks a required capability.
pub(super) async fn follow(
    rq: &Request,
    run: &RunId,
    (patience, mut questions): (Patience, Option<Questions>),
) -> Result<Followed, RpcError> {
    let patience = match (patience, rq.progress_token()) {
        (Patience::Endless, _) => None,
        (Patience::Call, Some(_)) => Some(rq.server.settings.mcp_wait.with_progress),
        (Patience::Call, None) => Some(rq.server.settings.mcp_wait.plain),
    };
    let about = run.clone();
    let (feeds, mut agenda) = rq
        .server
        .ask(async move |cx: &EngineContext| {
            let agenda = cx.engine.stores().agenda.news();
            Ok::<_, Problem>((cx.engine.feeds(), agenda))
        })
        .await
        .map_err(|problem| refused(&problem))?;
    let mut reader = feeds.follow(&about, 0);
    let mut news = feeds.watch(&about);
    let mut reports = Reports::new(questions.is_none());
    let questions = questions.get_or_insert_default();
    let mut until = patience.map(|patience| Instant::now() + patience);
    loop {
        news.mark_seen();
        agenda.mark_seen();
        // The end is checked first: if the run has ended, all its events are available.
        let glance = glance(rq, run).await?;
        loop {
            let page = reader.page(PAGE).await;
            let page = page.map_err(|error| RpcError::new(codes::INTERNAL, error.to_string()))?;
            let Some(page) = page else { break };
            // What the steps of an installed flow do is known to its author only.
            let is_whole = rq.caller.token.side(&glance.row.flow).is_whole();
            for event in page.events.iter().filter(|_| is_whole) {
                reports.event(rq, event).await;
            }
            if page.state != FeedState::More {
                break;
            }
        }
        reports.is_passing = true;
        if glance.row.status.is_final() {
            return Ok(Followed::Ended(Box::new(glance.row)));
        }
        if !glance.waits.is_empty() {
            let begun = Instant::now();
            match questions::ask(rq, run, (&glance.waits, questions)).await? {
                QuestionsOutcome::Answered => {
                    // Waiting for people does not count as time of the run.
                    until = until.map(|until| until + begun.elapsed());
                    continue;
                }
                QuestionsOutcome::Repeat(input) => return Ok(Followed::Input(input)),
                QuestionsOutcome::Elsewhere => {}
                QuestionsOutcome::Nobody => return Ok(Followed::Late(Box::new(glance.row))),
            }
        }
        let now = Instant::now();
        if until.is_some_and(|until| now >= until) {
            return Ok(Followed::Late(Box::new(glance.row)));
        }
        let next = until.map_or(now + CHECK, |until| until.min(now + CHECK));
        tokio::select! {
            () = news.changed() => {}
            () = agenda.changed() => {}
            () = sleep_until(next) => {}
            () = rq.out.closed() => return Ok(Followed::Late(Box::new(glance.row))),
        }
        reports.beat(rq).await;
    }
}

/// The reports of a run while it is followed.
struct Reports {
    is_passing: bool,
    begun: Instant,
    beaten: Instant,
    /// Whether the flow reports progress itself.
    has_own: bool,
    step: String,
}

impl Reports {
    fn new(is_passing: bool) -> Reports {
        let now = Instant::now();
        Reports {
            is_passing,
            begun: now,
            beaten: now,
            has_own: false,
            step: String::new(),
        }
    }

    /// Passes the content of an event on to the client.
    async fn event(&mut self, rq: &Request, event: &FeedEvent) {
        if let Some(path) = event.data.get("path").and_then(Json::as_str) {
            self.step = path.to_owned();
        }
        if !self.is_passing {
            return;
        }
        let text = |key: &str| {
            event
                .data
                .get(key)
                .and_then(Json::as_str)
                .unwrap_or_default()
        };
        let data = event.data.get("data").cloned().unwrap_or(Json::Null);
        match event.name {
            "log" => {
                let message = match data {
                    Json::Null => json!(text("message")),
                    data => json!({"message": text("message"), "data": data}),
                };
                rq.log(text("level"), &event.flow, message).await;
            }
            "emit" if text("name") == "progress" => {
                self.has_own = true;
                self.progress(rq, &data).await;
            }
            "emit" => {
                let message = json!({"name": text("name"), "data": data});
                rq.log("info", &event.flow, message).await;
            }
            _ => {}
        }
    }

    /// Reports progress from the flow: a number, or `{:progress 1 :total 3 :message "..."}`.
    async fn progress(&self, rq: &Request, data: &Json) {
        let Some(token) = rq.progress_token() else {
            return;
        };
        let number = data.as_f64().or_else(|| data["progress"].as_f64());
        let mut params = json!({"progressToken": token, "progress": number.unwrap_or(0.0)});
        for key in ["total", "message"] {
            if !data[key].is_null() {
                params[key] = data[key].clone();
            }
        }
        rq.notify("notifications/progress", params).await;
    }

    /// Reports regularly that the run is in progress, if its flow does not.
    async fn beat(&mut self, rq: &Request) {
        let now = Instant::now();
        let Some(token) = rq.progress_token().filter(|_| !self.has_own) else {
            return;
        };
        if now.duration_since(self.beaten) < BEAT {
            return;
        }
        self.beaten = now;
        let seconds = now.duration_since(self.begun).as_secs();
        let message = match self.step.as_str() {
            "" => format!("running for {seconds} s"),
            step => format!("running for {seconds} s, at `{step}`"),
        };
        let params = json!({"progressToken": token, "progress": seconds, "message": message});
        rq.notify("notifications/progress", params).await;
    }
}
