//! A turn of the model, and what is done about a conversation that is too long for it.

use flowstone_flow::step::{NestedRequest, NestedResult, Progress, StepError};
use flowstone_lang::value::Value;

use super::super::compact::{self, Measured};
use super::super::notes::plain;
use super::super::thread;
use super::Rounds;

impl Rounds<'_> {
    /// Calls the model once; once more with a shorter conversation if it is too long for the model.
    pub(super) async fn turn(&mut self) -> Result<Value, StepError> {
        if self.is_full() {
            self.compact().await;
        }
        let asked = self.ask().await;
        let performed = match &asked.result {
            Err(error) if error.code == StepError::TOO_LONG && self.make_shorter().await => {
                self.ask().await
            }
            _ => asked,
        };
        let reply = performed.result?;
        self.measured = Measured {
            tokens: compact::used(&reply),
            // The reply, which is added next, is counted.
            messages: self.conversation.all().len() + 1,
        };
        self.conversation.replied(&reply);
        let repairs = self.record.turn(&reply) - 1;
        self.repairs = (self.repairs - repairs).max(0);
        self.extras
            .turn(&reply, performed.began_ms, performed.ended_ms);
        Ok(reply)
    }

    /// Tells whether the conversation fills as much of the context window as it may.
    fn is_full(&self) -> bool {
        let Some(compact) = &self.config.compact else {
            return false;
        };
        let size = self.measured.size(self.conversation.all());
        let given = self.config.given.get("model").and_then(Value::as_str);
        let model = given.or_else(|| self.record.model());
        compact.is_full(size, model)
    }

    /// Shortens the conversation after the provider has refused it. Tells whether it became shorter.
    async fn make_shorter(&mut self) -> bool {
        if self.compact().await {
            return true;
        }
        let is_shorter = self.conversation.shorten();
        if is_shorter {
            let words =
                "the conversation is too long for the model: old results of tools are shortened";
            self.extras.warn(self.cx, words.to_owned());
        }
        is_shorter
    }

    /// Replaces older messages by a summary. Tells whether it did.
    async fn compact(&mut self) -> bool {
        let Some(compact) = self
            .config
            .compact
            .as_ref()
            .filter(|_| !self.is_uncompactable)
        else {
            return false;
        };
        let model = &self.config.model;
        let Some((fold, request)) = compact.step(model, &self.conversation) else {
            return false;
        };
        self.cx.emit(Progress::Status(format!(
            "summarizing {} older messages",
            fold.places.len()
        )));
        let written = self.cx.perform(request).await;
        let text = match &written {
            Ok(written) => written.get("content").map(plain).unwrap_or_default(),
            Err(_) => String::new(),
        };
        if let Ok(written) = &written {
            self.record.aside(written);
        }
        if text.trim().is_empty() {
            let why = match written {
                Ok(_) => "the summary is empty".to_owned(),
                Err(error) => error.message,
            };
            self.is_uncompactable = true;
            self.extras.warn(
                self.cx,
                format!("older messages were not summarized: {why}"),
            );
            return false;
        }
        let summary = thread::summary(text.trim());
        self.conversation.fold(&fold.places, summary);
        // What the provider counted no longer applies.
        self.measured = Measured::default();
        true
    }

    async fn ask(&self) -> NestedResult {
        let inside = NestedRequest::new("llm", "turn", self.turn_config());
        let mut performed = self.cx.perform_all(vec![inside], 1).await;
        performed.pop().unwrap_or_else(|| NestedResult {
            result: Err(StepError::new("E0575", "internal", "a turn gave nothing")),
            wrapped: None,
            began_ms: 0,
            ended_ms: 0,
            path: String::new(),
        })
    }
}
