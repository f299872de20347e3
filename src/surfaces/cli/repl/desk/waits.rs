//! Answering waits: by operations, and in place while a run is executed.

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{ClaimBy, SignalFilter, Target, WaitFilter, WaitRow};
use flowstone_engine::waits::{actions, roles};
use flowstone_engine::{Answered, Answering, Caller, EngineError, ExecuteOptions, Remark};
use flowstone_lang::value::{Result, Value};

use super::{Desk, failed};
use crate::cli::repl::data::data;
use crate::cli::repl::given::{Given, shown};
use crate::cli::waits;
use crate::json::{Values, signal_json_as, wait_json_as};

/// The person who answers, if no name is given: anyone who may use the database.
const LOCAL: &str = "local";
/// How many times an answer that a wait refuses is asked for again.
const TRIES: usize = 5;

impl Desk<'_> {
    /// Returns open waits, or signals.
    pub(super) async fn waits(&self, given: &Given) -> Result<Value> {
        if given.flag("signals")? {
            let filter = SignalFilter {
                key: given.text("key")?,
                ..SignalFilter::default()
            };
            let signals = self.engine.list_signals(filter).await.map_err(failed)?;
            let shown = signals
                .iter()
                .map(|it| data(&signal_json_as(it, Values::Edn)));
            return Ok(Value::vector(shown));
        }
        let run = match given.text("run")? {
            Some(run) => Some(self.engine.find_run(&run).await.map_err(failed)?.id),
            None => None,
        };
        let all = given.flag("all")?;
        let filter = WaitFilter {
            run,
            flow: given.text("flow")?,
            key: given.text("key")?,
            all,
            ..WaitFilter::default()
        };
        let rows = self.engine.list_waits(filter).await.map_err(failed)?;
        let value = Value::vector(rows.iter().map(|row| data(&wait_json_as(row, Values::Edn))));
        Ok(match rows.is_empty() {
            true => value,
            false => self.paged(value, waits::page(&rows, all)),
        })
    }

    /// Returns one wait.
    pub(super) async fn wait(&self, given: &Given) -> Result<Value> {
        let target = self.target(given).await?;
        let caller = Caller::default();
        let report = self
            .engine
            .show_wait(&target, &caller)
            .await
            .map_err(failed)?;
        let value = data(&wait_json_as(&report.row, Values::Edn));
        Ok(self.paged(value, waits::report_page(&report)))
    }

    /// Answers a wait with a value.
    pub(super) async fn answer(&self, given: &Given) -> Result<Value> {
        let target = self.target(given).await?;
        let value = given.arg(1).cloned().unwrap_or(Value::Nil);
        let how = Answering {
            dedup: given.text("dedup")?,
            keep: given.flag("keep")?,
            ..answering(given)?
        };
        let answered = self
            .engine
            .answer_waits(Target::Name(target), &value, how)
            .await;
        self.answered(answered).await
    }

    /// Approves or rejects what a wait shows.
    pub(super) async fn decide(&self, given: &Given, approve: bool) -> Result<Value> {
        let target = self.target(given).await?;
        let remark = Remark {
            text: given.text(if approve { "comment" } else { "reason" })?,
            value: given.option("value").cloned(),
            ..Remark::default()
        };
        let answered = self
            .engine
            .decide_wait(&target, approve, remark, answering(given)?)
            .await;
        self.answered(answered).await
    }

    /// Cancels a wait.
    pub(super) async fn cancel_wait(&self, given: &Given) -> Result<Value> {
        let target = self.target(given).await?;
        let reason = given.text("reason")?;
        let cancelled = self
            .engine
            .cancel_wait(&target, reason.as_deref(), answering(given)?)
            .await;
        self.answered(cancelled).await
    }

    /// Sends a signal to the waits with a key.
    pub(super) async fn signal(&self, given: &Given) -> Result<Value> {
        let target = Target::Name(given.name(0)?.unwrap_or_default());
        self.send(given, target).await
    }

    /// Publishes an event.
    pub(super) async fn event(&self, given: &Given) -> Result<Value> {
        let target = Target::Event {
            name: given.name(0)?.unwrap_or_default(),
            key: given.text("key")?,
        };
        self.send(given, target).await
    }

    async fn send(&self, given: &Given, target: Target) -> Result<Value> {
        let value = given.arg(1).cloned().unwrap_or(Value::Nil);
        let how = Answering {
            dedup: given.text("dedup")?,
            keep: true,
            ..answering(given)?
        };
        let answered = self.engine.answer_waits(target, &value, how).await;
        self.answered(answered).await
    }

    /// Resumes the runs that were answered. Returns the result of the only one, or the outcome of the answer.
    async fn answered(
        &self,
        answered: std::result::Result<Answered, EngineError>,
    ) -> Result<Value> {
        let answered = answered.map_err(failed)?;
        if let Answered::Partly { refused, .. } = &answered {
            for (wait, why) in refused {
                self.person.tell(&format!("{wait} stays open: {why}"));
            }
        }
        match &answered {
            Answered::Kept => return Ok(Value::keyword("kept")),
            Answered::Duplicate => return Ok(Value::keyword("duplicate")),
            Answered::Runs(_) | Answered::Partly { .. } => {}
        }
        let mut results = Vec::new();
        for run in answered.runs() {
            let options = ExecuteOptions {
                by: ClaimBy::Name,
                ..self.options()
            };
            results.push(self.executed(run, options).await?);
        }
        Ok(match results.len() {
            1 => results.remove(0),
            _ => Value::vector(results),
        })
    }

    /// Returns the wait of an argument: a run stands for its only open wait.
    async fn target(&self, given: &Given) -> Result<String> {
        let name = given.name(0)?.unwrap_or_default();
        let Ok(run) = self.engine.find_run(&name).await else {
            return Ok(name);
        };
        let open = self.engine.waits_below(&run.id).await.map_err(failed)?;
        match &open[..] {
            [one] => Ok(one.id.clone()),
            _ => Ok(name),
        }
    }

    /// Asks the person for the answers of a run's open waits. Returns whether the run can be resumed.
    pub(super) async fn answers(&self, run: &RunId) -> Result<bool> {
        if !self.person.answers_waits() {
            return Ok(false);
        }
        let mut waits = self.engine.waits_below(run).await.map_err(failed)?;
        waits.retain(WaitRow::is_question);
        let mut is_answered = false;
        for wait in &waits {
            if !self.asked(wait).await? {
                break;
            }
            is_answered = true;
        }
        Ok(is_answered)
    }

    /// Asks the person for the answer of one wait. Returns whether it has one.
    pub(super) async fn asked(&self, wait: &WaitRow) -> Result<bool> {
        let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
        self.person.tell(&question(wait, &details));
        for _ in 0..TRIES {
            let Some(text) = self.person.ask(&format!("{}? ", wait.key)) else {
                return Ok(false);
            };
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            match self.reply(wait, &details, text).await {
                Ok(()) => return Ok(true),
                Err(Refused::Not(why)) => self.person.tell(&why),
                Err(Refused::Engine(error)) => {
                    let row = self.engine.find_wait(&wait.id).await.map_err(failed)?;
                    self.person.tell(&error.to_string());
                    if row.ending.is_some() {
                        // Somebody else has decided, or it is too late: the run knows what to do.
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    async fn reply(
        &self,
        wait: &WaitRow,
        details: &Value,
        text: &str,
    ) -> std::result::Result<(), Refused> {
        let offered = actions(details);
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (word, rest) = (word.trim_start_matches(':'), rest.trim());
        let is_offered = match offered.is_empty() {
            true => is_free(details) && matches!(word, "approve" | "reject"),
            false => offered.iter().any(|known| known == word),
        };
        let how = Answering {
            caller: Caller {
                name: Some(LOCAL.to_owned()),
                roles: roles(details),
            },
            ..Answering::default()
        };
        let answered = if is_offered {
            let takes_value =
                matches!(word, "edit" | "use") || (word == "approve" && !rest.is_empty());
            let value = takes_value.then(|| codec::decode(rest).ok()).flatten();
            if matches!(word, "edit" | "use") && value.is_none() {
                return Err(Refused::Not(format!(
                    "`{word}` needs a value: {word} VALUE"
                )));
            }
            let remark = Remark {
                text: Some(rest.to_owned()).filter(|text| value.is_none() && !text.is_empty()),
                value,
                ..Remark::default()
            };
            self.engine.choose(&wait.id, word, remark, how).await
        } else {
            let value = codec::decode(text)
                .map_err(|error| Refused::Not(format!("{error}; {}", usage(details))))?;
            let target = Target::Name(wait.id.clone());
            self.engine.answer_waits(target, &value, how).await
        };
        answered.map(|_| ()).map_err(Refused::Engine)
    }
}

/// Why an answer was not taken.
enum Refused {
    Not(String),
    Engine(EngineError),
}

/// Returns who answers, and what they were shown.
fn answering(given: &Given) -> Result<Answering> {
    Ok(Answering {
        caller: Caller {
            name: given.text("as")?.or_else(|| Some(LOCAL.to_owned())),
            roles: given.text("role")?.into_iter().collect(),
        },
        digest: match given.option("digest") {
            Some(_) => given.text("digest")?,
            None => None,
        },
        ..Answering::default()
    })
}

/// Returns the text of a question.
fn question(wait: &WaitRow, details: &Value) -> String {
    let mut out = format!(
        "{} waits for an answer  ({} of {})",
        wait.key, wait.path, wait.flow
    );
    for (key, text) in waits::shown_details(details) {
        let indented = text.replace('\n', "\n    ");
        out.push_str(&format!("\n  {key}: {indented}"));
    }
    if let Some(form) = details.get("validation").filter(|form| !form.is_nil()) {
        out.push_str(&format!("\n  must fit: {}", shown(form)));
    }
    let roles = roles(details);
    if !roles.is_empty() {
        let roles: Vec<String> = roles.iter().map(|role| format!(":{role}")).collect();
        out.push_str(&format!("\n  you answer as {}", roles.join(" ")));
    }
    out.push_str(&format!("\n  {}; Ctrl-C leaves it open", usage(details)));
    out
}

/// Tells whether any value answers a wait.
fn is_free(details: &Value) -> bool {
    details.get("validation").is_none_or(Value::is_nil)
}

fn usage(details: &Value) -> String {
    let actions = actions(details);
    if actions.is_empty() {
        return match is_free(details) {
            true => "type a value, or approve, or reject REASON".to_owned(),
            false => "type a value".to_owned(),
        };
    }
    let words = actions.iter().map(|action| match action.as_str() {
        "edit" | "use" => format!("{action} VALUE"),
        "reject" => "reject REASON".to_owned(),
        other => other.to_owned(),
    });
    format!("type {}", words.collect::<Vec<_>>().join(", "))
}
