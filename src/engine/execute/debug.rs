//! Stops before steps, and what a person decides there.
//!
//! A skipped step and a value in its place are journaled as a question about a failure and its answer, so that a replay
//! takes them as it takes every answer of a person. A changed config is a note of its own: a resumed run
//! performs the changed request. The digest stays that of the flow's own request.

use flowstone_lang::value::Value;

use super::call::{PreparedRequest, StepCall};
use super::{Executor, Halt};
use crate::codec;
use crate::debugger::{StepDecision, StepStop};
use crate::error::EngineError;
use crate::journal::{CHANGED, changed_path};
use crate::ports::EntryKind;
use crate::state::{About, Note, Progress};
use crate::step::StepError;

impl Executor<'_> {
    /// Asks what to do with a step that was not requested before.
    pub(super) async fn stop_before<'s>(
        &'s self,
        prepared: &mut PreparedRequest<'s>,
    ) -> Result<(), Halt> {
        let mut problem = None;
        loop {
            let call = &prepared.call;
            let config = codec::encode(&call.config).unwrap_or_else(|_| call.request.clone());
            let stop = StepStop {
                run: self.scope.run.clone(),
                path: call.at.clone(),
                kind: call.spec.kind,
                title: call.title.clone(),
                config: self.scope.redact_edn(config),
                place: self.place_of(call),
                locals: self.texts_of(&prepared.locals),
                problem: problem.take(),
            };
            match self.options.debugger.decide(stop).await {
                StepDecision::Perform => return Ok(()),
                StepDecision::Leave => return Err(Halt::Interrupted),
                StepDecision::Skip => return self.give(prepared, "{:action :skip}".to_owned()),
                StepDecision::Use(value) => {
                    let answer = [
                        (Value::keyword("action"), Value::keyword("use")),
                        (Value::keyword("value"), value.clone()),
                    ];
                    let fits = self
                        .fits(call, &value)
                        .and_then(|()| self.fits_output(call, &value));
                    match (fits, codec::encode(&Value::map(answer))) {
                        (Ok(()), Ok(text)) => return self.give(prepared, text),
                        (Err(error), _) => problem = Some(error.message),
                        (_, Err(error)) => problem = Some(error.to_string()),
                    }
                }
                StepDecision::Change(changes) => match self.changed(call, &changes) {
                    Ok((changed, text)) => {
                        let path = changed_path(&changed.at);
                        let entry = self
                            .shared
                            .journal
                            .entry(EntryKind::Note, path, CHANGED, text);
                        self.shared.journal.append(entry);
                        prepared.call = changed;
                    }
                    Err(error) => problem = Some(error.message),
                },
            }
        }
    }

    /// Returns locals as text; those that are not data are left out.
    fn texts_of(&self, locals: &Value) -> Vec<(String, String)> {
        let entries = locals.as_map().into_iter().flat_map(|map| map.iter());
        let mut texts: Vec<(String, String)> = entries
            .filter_map(|(name, value)| {
                let text = codec::encode(value).ok()?;
                Some((name.as_symbol()?.to_string(), self.scope.redact_edn(text)))
            })
            .collect();
        texts.sort();
        texts
    }

    /// Returns a call with the config that a person gave it in an earlier execution.
    pub(super) fn with_change<'s>(
        &'s self,
        call: StepCall<'s>,
    ) -> Result<StepCall<'s>, EngineError> {
        let changed = self
            .shared
            .history
            .borrow()
            .change(&call.at)
            .map(str::to_owned);
        let Some(text) = changed else {
            return Ok(call);
        };
        let config = codec::decode(&text)?;
        self.with_config(&call, &config).map_err(|error| {
            EngineError::Internal(format!("a changed request is refused: {}", error.message))
        })
    }

    /// Journals an answer about a step, and sets the state in which it is acted on.
    fn give(&self, prepared: &mut PreparedRequest<'_>, answer: String) -> Result<(), Halt> {
        let question = Note::Question {
            about: About::Failure,
            attempt: 0,
        };
        let kind = question.kind();
        let text = question.into_payload(|_| String::new());
        let mut progress = Progress::default();
        for (kind, text) in [(kind, text), (EntryKind::Signal, answer)] {
            let entry = prepared.call.entry(self, kind, text.clone());
            self.shared.journal.append(entry);
            progress.fold(kind, text);
        }
        prepared.recorded.progress = progress;
        Ok(())
    }

    /// Returns a call with changed entries of its config, and that config as EDN text.
    fn changed<'s>(
        &'s self,
        call: &StepCall<'s>,
        changes: &Value,
    ) -> Result<(StepCall<'s>, String), StepError> {
        let (Some(config), Some(changes)) = (call.config.as_map(), changes.as_map()) else {
            return Err(StepError::config(
                "E0432",
                "a change is a map of entries of the step's config",
            ));
        };
        let kept = config.iter().filter(|(key, _)| changes.get(key).is_none());
        let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
        let new = changes.iter().filter(|(_, value)| !value.is_nil());
        let new = new.map(|(key, value)| (key.clone(), value.clone()));
        let config = Value::map(kept.chain(new).collect::<Vec<_>>());
        let text = codec::encode(&config)
            .map_err(|error| StepError::config(error.code(), error.to_string()))?;
        Ok((self.with_config(call, &config)?, text))
    }

    /// Returns the call with another config. The flow's request stays what the journal is compared with.
    fn with_config<'s>(
        &'s self,
        call: &StepCall<'s>,
        config: &Value,
    ) -> Result<StepCall<'s>, StepError> {
        let changed = self.call(
            &call.branch,
            (call.step, call.spec),
            call.path.clone(),
            config,
        )?;
        Ok(StepCall {
            digest: call.digest.clone(),
            older_digests: call.older_digests.clone(),
            packaged: call.packaged.clone(),
            place: call.place,
            ..changed
        })
    }
}
