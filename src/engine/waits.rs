//! Answering waits from outside: authorisation, validation, single use, early signals.
//!
//! An answer is judged inside the transaction that takes it; this module prepares answers and reports on them.

use flowstone_lang::value::Value;

pub use crate::error::{Decided, WaitError};
pub use flowstone_model::waits::{
    accepts, actions, event_key, is_approval, is_for, judge, listed, roles, shown, shown_digest,
};

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{
    BATCH_KEY, CHILD_KEY, Completion, Durability, JOB_KEY, Refusal, SignalFilter, SignalRow,
    Target, WaitAnswer, WaitEnding, WaitFilter, WaitRow, WaitState, WaitsAnswer,
};

/// The person who answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: Option<String>,
    pub roles: Vec<String>,
}

/// The options of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answering {
    pub caller: Caller,
    /// The workspace of the caller, which reaches waits of its own runs only; `None`: all waits.
    pub workspace: Option<String>,
    /// A second answer with the same text is accepted, and does nothing.
    pub dedup: Option<String>,
    /// Whether to keep the answer for a later wait if nothing waits under this key.
    pub keep: bool,
    /// The digest of what was shown to the caller, or its beginning.
    pub digest: Option<String>,
    /// Whether the caller is a program that may not decide for a person.
    pub is_unattended: bool,
    /// Relaxed only where the caller waits for the run's next commit before it relies on the answer: that commit makes
    /// both durable.
    pub durability: Durability,
}

/// The result of answering a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// These runs can be resumed.
    Runs(Vec<RunId>),
    /// These runs can be resumed; one of the waits with this id refused the answer, for this reason.
    Partly {
        runs: Vec<RunId>,
        refused: Vec<(String, String)>,
    },
    /// Nothing waits under this key yet; the answer is kept.
    Kept,
    /// An answer with this `dedup` was taken before.
    Duplicate,
}

impl Answered {
    /// Returns the runs that can be resumed.
    pub fn runs(&self) -> &[RunId] {
        match self {
            Answered::Runs(runs) | Answered::Partly { runs, .. } => runs,
            Answered::Kept | Answered::Duplicate => &[],
        }
    }
}

/// What an approval or a rejection adds to the decision.
#[derive(Debug, Clone, Default)]
pub struct Remark {
    /// The reason, under `:comment` of an approval and `:reason` of a rejection.
    pub text: Option<String>,
    /// A value to use instead of the shown one: the approval becomes an edit.
    pub value: Option<Value>,
    /// Fields of a form that the question has beside the decision. They replace neither `:action` nor `:by`.
    pub fields: Vec<(String, Value)>,
}

/// The time for which a run waited for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Milliseconds in which at least one question was open.
    pub millis: i64,
    /// A question is open now.
    pub is_open: bool,
}

/// A wait with everything that can be shown of it.
#[derive(Debug)]
pub struct WaitReport {
    pub row: WaitRow,
    /// The shown value, and the question.
    pub details: Value,
    pub actions: Vec<String>,
    /// A person needs one of these roles to answer; if empty, anybody may.
    pub roles: Vec<String>,
    /// Only for people who may answer, and while it is open.
    pub token: Option<String>,
    /// The links that decide it, each with its action; none without the token, or where no server is known.
    pub links: Vec<(String, String)>,
    /// Early signals that the wait refused.
    pub refused: Vec<SignalRow>,
}

impl Engine {
    /// Returns open waits, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_waits(&self, filter: WaitFilter) -> Result<Vec<WaitRow>, EngineError> {
        let mut waits = self.services.stores.waits.list(filter).await?;
        // A wait for another run or for a job is not a question to anybody.
        waits.retain(WaitRow::is_question);
        Ok(waits)
    }

    /// Returns the open waits of a run, and of the child runs that it waits for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn waits_below(&self, run: &RunId) -> Result<Vec<WaitRow>, EngineError> {
        let (mut found, mut runs) = (Vec::new(), vec![run.clone()]);
        while let Some(run) = runs.pop() {
            let filter = WaitFilter {
                run: Some(run),
                ..WaitFilter::default()
            };
            for wait in self.services.stores.waits.list(filter).await? {
                match wait.key.strip_prefix(CHILD_KEY) {
                    Some(child) => runs.push(RunId::from_text(child.to_owned())),
                    None if wait.is_question() => found.push(wait),
                    None => {}
                }
            }
        }
        Ok(found)
    }

    /// Returns all waits of a run, and of the runs that it has called, with those that are over.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn all_waits_below(&self, run: &RunId) -> Result<Vec<WaitRow>, EngineError> {
        self.waits_since(run, i64::MIN).await
    }

    /// Returns the waits of a run, and of the runs that it has called, that were open after a time.
    async fn waits_since(&self, run: &RunId, from_ms: i64) -> Result<Vec<WaitRow>, EngineError> {
        let (mut found, mut runs) = (Vec::new(), vec![run.clone()]);
        while let Some(run) = runs.pop() {
            let filter = WaitFilter {
                run: Some(run),
                all: true,
                ..WaitFilter::default()
            };
            for wait in self.services.stores.waits.list(filter).await? {
                let is_over = wait.decided_ms.is_some_and(|end_ms| end_ms <= from_ms);
                match wait.key.strip_prefix(CHILD_KEY) {
                    _ if is_over => {}
                    Some(child) => runs.push(RunId::from_text(child.to_owned())),
                    None if wait.is_question() => found.push(wait),
                    None => {}
                }
            }
        }
        Ok(found)
    }

    /// Returns for how long a run, or a run that it has called, waited for an answer since a time.
    pub(crate) async fn asked_since(
        &self,
        run: &RunId,
        from_ms: i64,
        now_ms: i64,
    ) -> Result<Asked, EngineError> {
        let (mut spans, mut is_open) = (Vec::new(), false);
        for wait in self.waits_since(run, from_ms).await? {
            let end_ms = match (wait.state, wait.decided_ms) {
                (WaitState::Open, _) => {
                    is_open = true;
                    now_ms
                }
                (_, Some(end_ms)) => end_ms,
                // Its run ended first, or gave up the step.
                (_, None) => {
                    let row = self.run_row(&wait.run).await?;
                    row.ended_ms.unwrap_or(wait.opened_ms)
                }
            };
            spans.push((wait.opened_ms.max(from_ms), end_ms.min(now_ms)));
        }
        spans.sort_unstable();
        let (mut millis, mut reached_ms) = (0, from_ms);
        for (start_ms, end_ms) in spans {
            let start_ms = start_ms.max(reached_ms);
            millis += (end_ms - start_ms).max(0);
            reached_ms = reached_ms.max(end_ms);
        }
        Ok(Asked { millis, is_open })
    }

    /// Returns kept signals, and signals that their waits refused.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_signals(&self, filter: SignalFilter) -> Result<Vec<SignalRow>, EngineError> {
        Ok(self.services.stores.waits.signals(filter).await?)
    }

    /// Finds the one wait with an id, the beginning of an id, a token or a key.
    ///
    /// # Errors
    /// When no wait or more than one matches.
    pub async fn find_wait(&self, target: &str) -> Result<WaitRow, EngineError> {
        let filter = WaitFilter {
            target: Some(target.to_owned()),
            all: true,
            ..WaitFilter::default()
        };
        let mut found = self.list_waits(filter).await?;
        match found.len() {
            0 => Err(missing(target)),
            1 => Ok(found.remove(0)),
            _ => Err(WaitError::Ambiguous {
                target: target.to_owned(),
                waits: found.into_iter().map(|row| row.id).collect(),
            }
            .into()),
        }
    }

    /// Returns a wait with its details. Its token is only for people who may answer.
    ///
    /// # Errors
    /// When the wait does not exist.
    pub async fn show_wait(
        &self,
        target: &str,
        caller: &Caller,
    ) -> Result<WaitReport, EngineError> {
        let row = self.find_wait(target).await?;
        let waits = &self.services.stores.waits;
        let details = codec::decode(&row.details)?;
        let roles = roles(&details);
        let may_answer = roles.is_empty() || roles.iter().any(|role| caller.roles.contains(role));
        let token = match may_answer && row.ending.is_none() {
            true => waits.token(&row.id).await?,
            false => None,
        };
        let filter = SignalFilter {
            refused_by: Some(row.id.clone()),
            ..SignalFilter::default()
        };
        Ok(WaitReport {
            refused: waits.signals(filter).await?,
            actions: actions(&details),
            links: token
                .as_deref()
                .map(|token| self.wait_links(&row, &details, token))
                .unwrap_or_default(),
            roles,
            token,
            details,
            row,
        })
    }

    /// Answers the waits with an id, the beginning of an id, a token or a key. With `keep`, an answer to a key without
    /// waits is kept for a later wait.
    ///
    /// # Errors
    /// When the wait does not exist, was answered before, or the payload violates its `:validation`.
    pub async fn complete_wait(
        &self,
        target: &str,
        payload: &Value,
        keep: bool,
    ) -> Result<Answered, EngineError> {
        let how = Answering {
            keep,
            ..Answering::default()
        };
        self.answer_waits(Target::Name(target.to_owned()), payload, how)
            .await
    }

    /// Answers the waits of a target.
    ///
    /// # Errors
    /// When nothing has that name, it was decided before, or no wait accepts the answer.
    pub async fn answer_waits(
        &self,
        target: Target,
        payload: &Value,
        how: Answering,
    ) -> Result<Answered, EngineError> {
        self.complete(target, payload, WaitEnding::Answered, how)
            .await
    }

    /// Approves or rejects what one wait shows: an answer with `:action`, the person, and the reason.
    ///
    /// # Errors
    /// As for [`Engine::answer_waits`]; and when the wait does not offer that action.
    pub async fn decide_wait(
        &self,
        target: &str,
        approve: bool,
        remark: Remark,
        how: Answering,
    ) -> Result<Answered, EngineError> {
        let action = match (approve, &remark.value) {
            (true, Some(_)) => "edit",
            (true, None) => "approve",
            (false, _) => "reject",
        };
        self.choose(target, action, remark, how).await
    }

    /// Answers one wait with an action that it offers, the person, and what they remark.
    ///
    /// # Errors
    /// As for [`Engine::decide_wait`].
    pub async fn choose(
        &self,
        target: &str,
        action: &str,
        remark: Remark,
        mut how: Answering,
    ) -> Result<Answered, EngineError> {
        let row = self.find_wait(target).await?;
        if row.ending.is_some() {
            return Err(decided(&row));
        }
        let details = codec::decode(&row.details)?;
        let offered = actions(&details);
        if !offered.is_empty() && !offered.iter().any(|known| known == action) {
            let refusal = Refusal::NotOffered {
                action: action.to_owned(),
                offered,
            };
            return Err(refused(target, &[(row, refusal)]));
        }
        let text = remark.text.map(Value::from);
        let text_key = match action {
            "reject" => "reason",
            _ => "comment",
        };
        let own = [
            ("action", Some(Value::keyword(action))),
            ("value", remark.value),
            (text_key, text),
            ("by", how.caller.name.clone().map(Value::from)),
        ];
        let own = own
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        let fields = remark.fields.into_iter();
        let fields = fields
            .filter(|(name, _)| name != "action" && name != "by")
            .map(|(name, value)| (Value::keyword(&name), value));
        let answer = fields.chain(own);
        // The decision must be about what was shown.
        how.digest = how
            .digest
            .or_else(|| Some(row.digest.clone()).filter(|digest| !digest.is_empty()));
        how.keep = false;
        self.answer_waits(Target::Name(row.id), &Value::map(answer), how)
            .await
    }

    /// Cancels a wait: its step fails with kind `:cancelled`. A question about a step is answered with the action that
    /// it offers for that: `:abort`, or `:reject`.
    ///
    /// # Errors
    /// As for [`Engine::answer_waits`].
    pub async fn cancel_wait(
        &self,
        target: &str,
        reason: Option<&str>,
        mut how: Answering,
    ) -> Result<Answered, EngineError> {
        let row = self.find_wait(target).await?;
        let details = codec::decode(&row.details)?;
        let offered = actions(&details);
        let is_question = details.get("show").is_none();
        let refusing = ["abort", "reject"]
            .into_iter()
            .find(|action| is_question && offered.iter().any(|known| known == action));
        let mut answer = vec![(
            Value::keyword("reason"),
            reason.map_or(Value::Nil, Value::from),
        )];
        let ending = match refusing {
            Some(action) => {
                answer.push((Value::keyword("action"), Value::keyword(action)));
                WaitEnding::Answered
            }
            None => WaitEnding::Cancelled,
        };
        how.keep = false;
        self.complete(Target::Name(row.id), &Value::map(answer), ending, how)
            .await
    }

    async fn complete(
        &self,
        target: Target,
        payload: &Value,
        ending: WaitEnding,
        how: Answering,
    ) -> Result<Answered, EngineError> {
        let name = match &target {
            Target::Name(name) | Target::Event { name, .. } => name.clone(),
        };
        let is_internal = |key: &&str| name.starts_with(*key);
        if [CHILD_KEY, JOB_KEY, BATCH_KEY].iter().any(is_internal) {
            return Err(missing(&name));
        }
        let completion = Completion {
            target,
            answer: WaitAnswer {
                payload: codec::encode(payload)?,
                ending,
                by: how.caller.name,
                roles: how.caller.roles,
                digest: how.digest,
                is_unattended: how.is_unattended,
            },
            workspace: how.workspace,
            dedup: how.dedup,
            keep: how.keep,
            durability: how.durability,
            rules: self.services.answer_rules,
            now_ms: self.services.clock.now_ms(),
        };
        let runs = |waits: Vec<WaitRow>| {
            let mut runs: Vec<RunId> = Vec::new();
            for wait in waits {
                if !runs.contains(&wait.run) {
                    runs.push(wait.run);
                }
            }
            runs
        };
        match self.services.stores.waits.complete(completion).await? {
            WaitsAnswer::Completed { waits, refused } if refused.is_empty() => {
                Ok(Answered::Runs(runs(waits)))
            }
            WaitsAnswer::Completed { waits, refused } => Ok(Answered::Partly {
                runs: runs(waits),
                refused: refused
                    .into_iter()
                    .map(|(row, why)| (row.id, why.message()))
                    .collect(),
            }),
            WaitsAnswer::Kept => Ok(Answered::Kept),
            WaitsAnswer::Duplicate => Ok(Answered::Duplicate),
            WaitsAnswer::Refused(refusals) => Err(refused(&name, &refusals)),
            WaitsAnswer::AlreadyDecided(wait) => Err(decided(&wait)),
            WaitsAnswer::Ambiguous(waits) => Err(WaitError::Ambiguous {
                target: name,
                waits,
            }
            .into()),
            WaitsAnswer::Missing => Err(missing(&name)),
        }
    }
}

/// Errors are logged, so a token is not repeated in them.
fn shown_target(target: &str) -> String {
    let is_token = target.len() == 32 && target.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_token {
        true => format!("{}…", &target[..6]),
        false => target.to_owned(),
    }
}

fn missing(target: &str) -> EngineError {
    EngineError::NoSuchWait {
        target: shown_target(target),
    }
}

/// Describes the earlier decision: the person, the time, and the answer.
pub(crate) fn decided(row: &WaitRow) -> EngineError {
    let payload = row.payload.as_deref().map(codec::decode);
    let payload = payload.and_then(Result::ok).unwrap_or(Value::Nil);
    let action = payload.get("action").and_then(crate::flow::name_of);
    EngineError::AlreadyDecided(Box::new(Decided {
        target: row.key.clone(),
        ending: row.ending,
        action: action.map(|action| action.to_string()),
        by: row.decided_by.clone(),
        at_ms: row.decided_ms,
    }))
}

/// Of several refusals, the first is returned.
fn refused(target: &str, refusals: &[(WaitRow, Refusal)]) -> EngineError {
    match refusals.first() {
        Some(first) => refusal(first),
        None => missing(target),
    }
}

/// Returns the refusal of a wait as an error.
pub(crate) fn refusal((row, refusal): &(WaitRow, Refusal)) -> EngineError {
    let target = row.key.clone();
    match refusal.clone() {
        Refusal::Invalid { problems } => EngineError::BadAnswer { problems },
        Refusal::NotOffered { action, offered } => WaitError::NotOffered {
            target,
            action,
            offered,
        }
        .into(),
        Refusal::Role { needed } => WaitError::Role { target, needed }.into(),
        Refusal::Expired { deadline_ms } => WaitError::Expired {
            target,
            deadline_ms,
        }
        .into(),
        Refusal::Stale => WaitError::Stale { target }.into(),
        Refusal::Unattended => WaitError::Unattended { target }.into(),
    }
}
