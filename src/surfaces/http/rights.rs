//! How long a caller may keep an answer open: a stream, or a request that waits, ends with the right it was opened with.
//!
//! A right ends when its token is revoked or expires, and when the labels of flows change on which its reach depends. One
//! task asks the store for all open answers together, and only after a change, also one by another process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flowstone_engine::EngineError;
use flowstone_engine::ports::{News, wall_clock_ms};
use flowstone_engine::token::Token;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::access::{Caller, unauthorized};
use super::problem::Problem;
use super::server::{EngineContext, Server, Shared};

/// The shortest time between two checks.
const PAUSE: Duration = Duration::from_millis(250);
/// How often labels are compared while a right depends on them: longer than a catalog goes without a look at its files.
const LABELS: Duration = Duration::from_millis(600);
/// The longest time until an expiry is compared with the clock again, which may have been set.
const CLOCK: Duration = Duration::from_secs(30);

/// Why a right ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Expired,
    /// The labels of a flow changed; what the caller reaches has to be found out again.
    Reach,
    Revoked,
}

impl Ended {
    /// Returns the last line of a stream, a comment.
    pub(super) fn comment(self) -> &'static str {
        match self {
            Ended::Expired => ": the token has expired\n\n",
            Ended::Reach => ": labels of flows have changed; connect again\n\n",
            Ended::Revoked => ": the token was revoked\n\n",
        }
    }
}

impl From<Ended> for Problem {
    fn from(ended: Ended) -> Problem {
        unauthorized(match ended {
            Ended::Expired => "the token expired while the request waited",
            Ended::Reach => "labels of flows changed while the request waited",
            Ended::Revoked => "the token was revoked while the request waited",
        })
    }
}

/// What is known about a token with open answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Standing {
    is_revoked: bool,
    /// How often labels changed.
    labels: u64,
}

/// The tokens with open answers.
#[derive(Default)]
pub(crate) struct Rights {
    tokens: Mutex<HashMap<String, Watched>>,
    /// There is a right that was not checked yet.
    opened: Notify,
}

struct Watched {
    standing: watch::Sender<Standing>,
    is_by_label: bool,
}

impl Rights {
    /// Returns the right of a caller, from now on.
    pub(super) fn open(&self, caller: &Caller) -> Right {
        self.watch(&caller.token)
    }

    fn watch(&self, token: &Token) -> Right {
        let is_by_label = !token.limits.labels.is_empty();
        let mut tokens = self.lock();
        let watched = tokens.entry(token.id.clone()).or_insert_with(|| Watched {
            standing: watch::Sender::default(),
            is_by_label,
        });
        let standing = watched.standing.subscribe();
        drop(tokens);
        self.opened.notify_one();
        let labels = standing.borrow().labels;
        Right {
            standing,
            labels: is_by_label.then_some(labels),
            expires_ms: token.expires_ms,
        }
    }

    /// Forgets tokens without open answers, and returns the others, and whether one of them depends on labels.
    fn watched(&self) -> (Vec<String>, bool) {
        let mut tokens = self.lock();
        tokens.retain(|_, watched| watched.standing.receiver_count() > 0);
        let is_by_label = tokens.values().any(|watched| watched.is_by_label);
        (tokens.keys().cloned().collect(), is_by_label)
    }

    fn revoke(&self, ids: &[String]) {
        let tokens = self.lock();
        for watched in ids.iter().filter_map(|id| tokens.get(id)) {
            let revoke = |standing: &mut Standing| standing.is_revoked = true;
            watched.standing.send_modify(revoke);
        }
    }

    fn labels_changed(&self) {
        let tokens = self.lock();
        for watched in tokens.values().filter(|watched| watched.is_by_label) {
            watched
                .standing
                .send_modify(|standing| standing.labels += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to an answer that is open.
#[derive(Debug, Clone)]
pub(super) struct Right {
    standing: watch::Receiver<Standing>,
    /// The count of changes of labels when it was opened, if it depends on them.
    labels: Option<u64>,
    expires_ms: Option<i64>,
}

impl Right {
    /// Returns why the right has ended, if it has.
    pub(super) fn has_ended(&self) -> Option<Ended> {
        let standing = *self.standing.borrow();
        if standing.is_revoked {
            return Some(Ended::Revoked);
        }
        if self.expires_ms.is_some_and(|at| at <= wall_clock_ms()) {
            return Some(Ended::Expired);
        }
        let has_changed = self.labels.is_some_and(|labels| labels != standing.labels);
        has_changed.then_some(Ended::Reach)
    }

    /// Waits until the right ends. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.has_ended() {
                return ended;
            }
            let expires = self.expires_ms.map(until);
            let expiry = async {
                match expires {
                    Some(rest) => sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.standing.changed() => if changed.is_err() {
                    // The sender is gone only when the server is.
                    std::future::pending::<()>().await;
                },
                () = expiry => {}
            }
        }
    }
}

/// Returns how long to sleep until an instant, or until the clock is to be read again.
fn until(at_ms: i64) -> Duration {
    let rest = at_ms.saturating_sub(wall_clock_ms());
    Duration::from_millis(u64::try_from(rest).unwrap_or(0).max(1)).min(CLOCK)
}

/// Finds out which rights end, until the server stops.
pub(super) async fn check(server: Shared) {
    let news = server
        .ask(async |cx: &EngineContext| Ok::<_, EngineError>(cx.engine.stores().agenda.news()));
    let mut news = match news.await {
        Ok(news) => news,
        Err(problem) => {
            tracing::error!(detail = problem.detail, "revoked tokens cannot be noticed");
            return;
        }
    };
    let mut stopping = server.stopping.subscribe();
    let mut labels = Labels::default();
    labels.check(&server).await;
    loop {
        let (ids, is_by_label) = server.rights.watched();
        let pause = Instant::now() + PAUSE;
        if !ids.is_empty() {
            news.mark_seen();
            check_tokens(&server, ids).await;
        }
        if is_by_label {
            labels.check(&server).await;
        }
        let next = wait(&server, (&mut *news, is_by_label));
        tokio::select! {
            () = async { sleep_until(pause).await; next.await } => {}
            // The sender is gone only when the server is.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
        }
    }
}

/// Waits until there may be something to find out.
async fn wait(server: &Server, (news, is_by_label): (&mut dyn News, bool)) {
    let is_watched = !server.rights.lock().is_empty();
    let changed = async {
        match is_watched {
            true => news.changed().await,
            false => std::future::pending().await,
        }
    };
    let either = async {
        tokio::select! {
            () = server.rights.opened.notified() => {}
            () = changed => {}
        }
    };
    match is_by_label {
        true => drop(timeout(LABELS, either).await),
        false => either.await,
    }
}

async fn check_tokens(server: &Shared, ids: Vec<String>) {
    let revoked = server.ask(async move |cx: &EngineContext| cx.engine.revoked_tokens(ids).await);
    match revoked.await {
        Ok(revoked) => server.rights.revoke(&revoked),
        Err(problem) => {
            tracing::warn!(detail = problem.detail, "tokens cannot be read");
            // Another attempt follows after the pause.
            server.rights.opened.notify_one();
        }
    }
}

/// The labels of flows as they were at the last check.
#[derive(Default)]
struct Labels {
    known: HashMap<String, Vec<String>>,
    /// They differed from those before. The catalog of another thread may still have the earlier ones, so what is opened
    /// until the next check ends, too.
    has_changed: bool,
}

impl Labels {
    async fn check(&mut self, server: &Shared) {
        let read = server.ask(async |cx: &EngineContext| {
            let flows = cx.catalog.flows(&cx.engine).into_iter();
            let labels = flows.map(|flow| (flow.slug.clone(), flow.labels.clone()));
            Ok::<HashMap<String, Vec<String>>, EngineError>(labels.collect())
        });
        let Ok(now) = read.await else {
            return;
        };
        // A flow that is new had no readers.
        let has_changed = self
            .known
            .iter()
            .any(|(slug, labels)| now.get(slug) != Some(labels));
        if has_changed || self.has_changed {
            server.rights.labels_changed();
        }
        self.has_changed = has_changed;
        self.known = now;
    }
}

#[cfg(test)]
mod tests {
    use flowstone_engine::token::{Scope, TokenKind, TokenLimits};

    use super::*;

    fn token(id: &str, labels: &[&str]) -> Token {
        Token {
            id: id.to_owned(),
            name: "reader".to_owned(),
            kind: TokenKind::Service,
            scopes: vec![Scope::Read],
            limits: TokenLimits {
                labels: labels.iter().map(|label| (*label).to_owned()).collect(),
                ..TokenLimits::default()
            },
            roles: Vec::new(),
            subject: None,
            created_ms: 0,
            expires_ms: None,
            used_ms: None,
            revoked_ms: None,
        }
    }

    #[tokio::test]
    async fn a_revoked_token_ends_its_own_rights_only() {
        let rights = Rights::default();
        let mut own = [
            rights.watch(&token("a", &[])),
            rights.watch(&token("a", &[])),
        ];
        let other = rights.watch(&token("b", &[]));
        rights.revoke(&["a".to_owned()]);
        for right in &mut own {
            assert_eq!(right.ended().await, Ended::Revoked);
        }
        assert_eq!(other.has_ended(), None);
    }

    #[tokio::test]
    async fn a_right_ends_when_its_token_expires() {
        let rights = Rights::default();
        let mut short = token("a", &[]);
        short.expires_ms = Some(wall_clock_ms() + 20);
        let mut right = rights.watch(&short);
        assert_eq!(right.ended().await, Ended::Expired);
    }

    #[test]
    fn changed_labels_end_earlier_rights_that_depend_on_them() {
        let rights = Rights::default();
        let (plain, by_label) = (token("a", &[]), token("b", &["money"]));
        let (plain, earlier) = (rights.watch(&plain), rights.watch(&by_label));
        rights.labels_changed();
        let later = rights.watch(&by_label);
        assert_eq!(plain.has_ended(), None);
        assert_eq!(earlier.has_ended(), Some(Ended::Reach));
        assert_eq!(later.has_ended(), None);
    }

    #[test]
    fn tokens_without_open_answers_are_forgotten() {
        let rights = Rights::default();
        let right = rights.watch(&token("a", &["money"]));
        assert_eq!(rights.watched(), (vec!["a".to_owned()], true));
        drop(right);
        assert_eq!(rights.watched(), (Vec::new(), false));
    }
}
