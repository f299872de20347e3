//! `:provider :scripted`: scripted answers, for tests and benchmarks.
//!
//! A script is data: `{:turns [...]}`. The turn follows from the request alone (the number of its assistant messages),
//! so that a retry and a replay get the same one.

mod request;
mod turn;

use std::time::Duration;

use flowstone_flow::step::{Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::call::{Call, Reply, Role};
use crate::fields::Fields;
use crate::json as convert;
use request::shown;
use turn::Turn;

/// The name in flows.
pub(super) const ID: &str = "scripted";

/// A script of answers.
#[derive(Debug)]
pub(super) struct Script {
    /// Scripts; the first one that matches a request answers it.
    parts: Vec<Act>,
    latency: Duration,
    /// The pause between the pieces of an answer.
    pause: Duration,
}

/// Turns of one conversation.
#[derive(Debug)]
struct Act {
    /// Text that the last message of the user, or a system prompt, must contain; `None` matches every request.
    when: Option<String>,
    turns: Vec<Turn>,
}

/// Number of words in a piece of an answer.
const PIECE_WORDS: usize = 4;

impl Script {
    /// Reads `{:turns [...] :scripts [{:when "..." :turns [...]}] :latency-ms n :piece-ms n}`.
    ///
    /// # Errors
    /// Fails if it is something else.
    pub(super) fn read(at: &str, value: &Value) -> Result<Script, StepError> {
        let fields = Fields::nested(at, value)?;
        fields.only(&["latency-ms", "piece-ms", "scripts", "turns"])?;
        let mut parts = Vec::new();
        let scripts = fields.get("scripts").map(|list| {
            convert::items(list).ok_or_else(|| unfit(format!("`{at} :scripts` takes a vector")))
        });
        for entry in scripts.transpose()?.unwrap_or_default() {
            let place = format!("an entry of {at} :scripts");
            let entry = Fields::nested(&place, &entry)?;
            entry.only(&["turns", "when"])?;
            let when = entry.text("when")?.map(str::to_string);
            parts.push(Act {
                when,
                turns: turns(&place, entry)?.ok_or_else(|| needs_turns(&place))?,
            });
        }
        if let Some(turns) = turns(at, fields)? {
            parts.push(Act { when: None, turns });
        }
        if parts.is_empty() {
            return Err(needs_turns(at));
        }
        Ok(Script {
            parts,
            latency: millis(fields, "latency-ms")?,
            pause: millis(fields, "piece-ms")?,
        })
    }

    /// Answers a call.
    ///
    /// # Errors
    /// The error of the turn; or an error if no turn is left, or the request is not the expected one.
    pub(super) async fn answer(&self, cx: &StepContext, call: &Call) -> Result<Reply, StepError> {
        let (turn, at) = self.turn(call)?;
        turn.expects(call)?;
        let latency = turn.latency.unwrap_or(self.latency);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        if let Some(error) = turn.error(cx.attempt()) {
            return Err(error.into());
        }
        for piece in pieces(&turn.reasoning) {
            self.emit(cx, Progress::Thought(piece.to_string())).await;
        }
        for piece in pieces(&turn.content) {
            self.emit(cx, Progress::Text(piece.to_string())).await;
        }
        Ok(turn.reply(call, at))
    }

    /// Reports a piece, and yields as a stream does.
    async fn emit(&self, cx: &StepContext, piece: Progress) {
        cx.emit(piece);
        match self.pause.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(self.pause).await,
        }
    }

    fn turn(&self, call: &Call) -> Result<(&Turn, usize), StepError> {
        let is_meant = |act: &&Act| {
            let when = act.when.as_deref();
            when.is_none_or(|text| texts_of(call).any(|it| it.contains(text)))
        };
        let Some(act) = self.parts.iter().find(is_meant) else {
            let texts = self.parts.iter().filter_map(|it| it.when.as_deref());
            let texts: Vec<String> = texts.map(|it| format!("{it:?}")).collect();
            let message = format!(
                "no script matches this request: it contains none of {}",
                texts.join(", ")
            );
            return Err(failed(message, call).hint("add one without `:when`, for all others"));
        };
        let answered = call.messages.iter();
        let at = answered.filter(|it| it.role == Role::Assistant).count();
        act.turns.get(at).map(|turn| (turn, at)).ok_or_else(|| {
            let turns = match act.turns.len() {
                1 => "1 turn".to_string(),
                count => format!("{count} turns"),
            };
            let message = format!("the script has {turns}, but turn {} was requested", at + 1);
            failed(message, call).hint(
                "a request with n messages of the assistant gets turn n + 1: add one to `:turns`",
            )
        })
    }
}

/// Returns the texts that select a script: of the last message of the user, and of the system.
fn texts_of(call: &Call) -> impl Iterator<Item = String> {
    let last = call.messages.iter().rfind(|it| it.role == Role::User);
    let system = call.messages.iter().filter(|it| it.role == Role::System);
    last.into_iter().chain(system).map(request::text)
}

fn turns(at: &str, fields: Fields<'_>) -> Result<Option<Vec<Turn>>, StepError> {
    let Some(list) = fields.get("turns") else {
        return Ok(None);
    };
    let items =
        convert::items(list).ok_or_else(|| unfit(format!("`{at} :turns` takes a vector")))?;
    items
        .iter()
        .map(Turn::read)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn millis(fields: Fields<'_>, key: &str) -> Result<Duration, StepError> {
    let millis = fields.int(key, 0, 3_600_000)?.unwrap_or(0);
    Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config("E0825", message)
}

fn needs_turns(at: &str) -> StepError {
    unfit(format!("`{at}` needs `:turns`, the answers in their order"))
}

/// Returns the error for a request without a scripted answer, with the request.
fn failed(message: impl Into<String>, call: &Call) -> StepError {
    StepError::new("E0825", "no-turn", message).with("request", shown(call))
}

/// Splits a text into the pieces in which it streams: a few words each.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let spaces = rest.match_indices(char::is_whitespace);
        let end = spaces
            .map(|(at, space)| at + space.len())
            .nth(PIECE_WORDS - 1)
            .unwrap_or(rest.len());
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}
