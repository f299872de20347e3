//! The operations of a driver on the run of a tree: each answer completes the run's open wait.
//!
//! An answer is checked against the position that the driver sees, and names the wait of that position, so that the store
//! refuses the second of two drivers. It is durable before this module replies, and so is the wait that follows it.

use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{
    Durability, News, RunRow, StartDecision, StoreError, Target, WaitFilter, WaitRow, WaitState,
};
use flowstone_engine::{
    Answering, Caller, Engine, EngineError, ExecuteOptions, StartOptions, Stay,
};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::value::Value;
use flowstone_model::json::from_json_with_string_keys;
use flowstone_project::flow_files;
use serde_json::{Value as Json, json};

use super::document::{self, Document, Written};
use super::elsewhere::check_everywhere;
use super::error::TreeError;
use super::handle::{Handle, HandleKind};
use super::position::{Position, occurrence, path_after};
use super::reach::Reach;
use super::scope::Store;
use super::{compile, scope};

/// How often a position is read again while another process changes it.
const TRIES: u32 = 600;
/// How long to wait for a change before the position is read again.
const PAUSE: Duration = Duration::from_millis(50);

/// The runs of trees in one engine, for one driver.
pub struct Trees<'a> {
    pub(super) engine: &'a Engine,
    /// Distinguishes the process, for handles that end with it.
    pub(super) process: &'a str,
    /// The name of the answering person or program in the journal.
    by: Option<String>,
    /// Whether documents of other projects are imported as runs.
    imports: bool,
    executor: Executor,
    /// The documents that the process wrote last.
    written: Option<&'a Written>,
    pub(super) reach: Reach<'a>,
}

/// The executor of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// The caller itself, which has the engine: a command.
    Caller,
    /// A worker of this process: a server.
    Worker,
}

/// The options for starting a tree.
#[derive(Debug, Clone)]
pub struct Start {
    /// The handle, as the driver writes it.
    pub tree_uri: String,
    /// The file, absolute or relative to the project's folder.
    pub path: std::path::PathBuf,
    pub handle: Handle,
    /// Whether the driver has to accept the protocol before the first request.
    pub gate: bool,
}

/// An answer of a driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Eval {
        result: bool,
        note: Option<String>,
    },
    Submit {
        /// `success`, `failure` or `running`.
        status: String,
        note: Option<String>,
    },
    Think {
        thought: String,
    },
    VarWrite {
        path: String,
        value: Json,
    },
}

impl<'a> Trees<'a> {
    /// Returns the trees of an engine. `process` is the same for all calls of a process, and for no other process.
    pub fn new(engine: &'a Engine, process: &'a str, by: Option<String>) -> Trees<'a> {
        Trees {
            engine,
            process,
            by,
            imports: true,
            executor: Executor::Caller,
            written: None,
            reach: Reach::everything(),
        }
    }

    /// Returns the same trees where the process remembers the documents that it writes.
    pub fn remembering(self, written: &'a Written) -> Trees<'a> {
        Trees {
            written: Some(written),
            ..self
        }
    }

    /// Returns the document that the process wrote with this text.
    pub(super) fn kept(&self, text: &str) -> Option<Document> {
        self.written?.take(text)
    }

    /// Remembers a document that its file has.
    pub(super) fn keep(&self, document: Document) {
        if let Some(written) = self.written {
            written.keep(document);
        }
    }

    /// Returns the same trees for a driver with limited rights. To them, other runs do not exist.
    pub fn within(self, reach: Reach<'a>) -> Trees<'a> {
        Trees { reach, ..self }
    }

    /// Returns the same trees for a process whose worker executes the runs.
    pub fn beside_worker(self) -> Trees<'a> {
        Trees {
            executor: Executor::Worker,
            ..self
        }
    }

    /// Returns the same trees for a caller that may only read: no document is imported.
    pub fn reading(self) -> Trees<'a> {
        Trees {
            imports: false,
            ..self
        }
    }

    /// Reads a handle.
    ///
    /// # Errors
    /// [`TreeError::BadHandle`], as of [`Handle::read`], and [`TreeError::FileRefused`].
    pub fn handle(&self, text: &str) -> Result<Handle, TreeError> {
        self.reach.check_scheme(text)?;
        Handle::read(text, self.engine.project_root(), None)
    }

    /// Returns the name that the store keeps for the run of a handle.
    pub(super) fn external_id(&self, handle: &Handle) -> Option<String> {
        handle.external_id(self.process)
    }

    /// Starts a tree, and returns `{ok, schema_version, uri, tree_uri, slug}` with the id of its run.
    ///
    /// # Errors
    /// When the tree has problems or the handle is taken. Nothing was started then.
    pub async fn start(&self, start: &Start) -> Result<(Json, RunId), TreeError> {
        if self.find_whole(&start.handle).await?.is_some() || document::exists(self, &start.handle)?
        {
            return Err(self.taken(&start.handle));
        }
        let tree = check_everywhere(self.engine, &start.path).await?.tree;
        let text = compile::flow_text(&tree, self.engine.settings());
        let input = input(start.gate, &start.handle.uri, &start.tree_uri, None);
        let external = start.handle.external_id(self.process);
        let run = self.begin(&text, input, external, None).await?;
        let run = run.ok_or_else(|| self.taken(&start.handle))?;
        let uri = match &start.handle.kind {
            HandleKind::Run(name) if name.is_empty() => format!("run://{run}"),
            HandleKind::File(_) | HandleKind::Memory(_) | HandleKind::Run(_) => {
                start.handle.uri.clone()
            }
        };
        let position = self.settle(&run).await?;
        document::write(self, &start.handle, &position, None).await?;
        let answer = json!({
            "ok": true, "schema_version": document::SCHEMA_VERSION, "uri": uri,
            "tree_uri": start.tree_uri, "slug": tree.slug(),
        });
        Ok((answer, run))
    }

    fn taken(&self, handle: &Handle) -> TreeError {
        TreeError::Exists {
            uri: handle.uri.clone(),
        }
    }

    /// Adds a run with the text of a flow; `None` if a run with this name exists. `owner`: who has the run, if not the
    /// driver.
    pub(super) async fn begin(
        &self,
        text: &str,
        input: Value,
        external_id: Option<String>,
        owner: Option<&str>,
    ) -> Result<Option<RunId>, TreeError> {
        let loaded = self.loaded(text)?;
        let options = StartOptions {
            external_id,
            started_by: Some(owner.unwrap_or(&self.reach.started_by).to_owned()),
            is_left: self.executor == Executor::Worker,
            ..StartOptions::with_input(input)
        };
        let started = self.engine.submit(&loaded, options).await?;
        Ok((started.decision != StartDecision::Deduped).then_some(started.run))
    }

    fn loaded(&self, text: &str) -> Result<LoadedFlow, TreeError> {
        let session = self.engine.session();
        let checked = self.engine.check_text(&session, text);
        let first = checked.findings.first().map(|it| it.message.clone());
        match checked.loaded.filter(|_| first.is_none()) {
            Some(loaded) => Ok(loaded),
            None => {
                let message = first.unwrap_or_default();
                let message = format!("the flow of a tree has a problem: {message}");
                Err(EngineError::Internal(message).into())
            }
        }
    }

    /// Returns the request to answer next: `{type, name, expression or instruction, cursor}`, or how the tree ended.
    ///
    /// # Errors
    /// When there is no such run, or its document differs from it.
    pub async fn next(&self, handle: &Handle) -> Result<Json, TreeError> {
        loop {
            let (position, before) = self.at_with(handle).await?;
            if let Some(request) = position.request() {
                document::catch_up(self, handle, &position, before).await?;
                return Ok(request);
            }
            let op = Value::map([(Value::keyword("op"), Value::keyword("next"))]);
            if let Some(after) = self.give(&position, &op).await? {
                document::write(self, handle, &after, before).await?;
                if let Some(request) = after.request() {
                    return Ok(request);
                }
            }
        }
    }

    /// Takes an answer to the open request, a thought, or a value for `$VAR`, and returns the position after it.
    /// `expected`: the cursor of the request that the driver answers.
    ///
    /// # Errors
    /// When the run is in another phase, another request is open, or the answer does not fit. Nothing has changed then.
    pub async fn answer(
        &self,
        handle: &Handle,
        answer: &Answer,
        expected: Option<&str>,
    ) -> Result<Json, TreeError> {
        loop {
            let (position, before) = self.at_with(handle).await?;
            let payload = self.checked(&position, answer, expected)?;
            if let Some(after) = self.give(&position, &payload).await? {
                document::write(self, handle, &after, before).await?;
                return Ok(reply(answer, after.text("outcome")));
            }
        }
    }

    /// Checks an answer, and returns the payload for the wait.
    fn checked(
        &self,
        position: &Position,
        answer: &Answer,
        expected: Option<&str>,
    ) -> Result<Value, TreeError> {
        let phase = position.phase();
        let wrong = |wanted| TreeError::WrongPhase {
            wanted,
            current: phase.to_owned(),
        };
        let is_open = match answer {
            Answer::VarWrite { .. } => true,
            Answer::Eval { .. } | Answer::Submit { .. } | Answer::Think { .. } => {
                position.request_name().is_some()
            }
        };
        if let Some(given) = expected.filter(|given| is_open && *given != position.cursor()) {
            return Err(TreeError::StaleCursor {
                given: given.chars().take(100).collect(),
                open: position.cursor(),
            });
        }
        let mut fields = Vec::new();
        let op = match answer {
            Answer::Eval { result, note } => {
                if phase != "evaluating" {
                    return Err(wrong("evaluating"));
                }
                fields.push(("result", Value::Bool(*result)));
                fields.extend(noted(note.as_deref())?);
                "eval"
            }
            Answer::Submit { status, note } => {
                if !matches!(phase, "performing" | "protocol") {
                    return Err(wrong("performing"));
                }
                fields.push(("status", Value::from(status.as_str())));
                fields.extend(noted(note.as_deref())?);
                "submit"
            }
            Answer::Think { thought } => {
                if !matches!(phase, "evaluating" | "performing") {
                    return Err(TreeError::NothingOpen);
                }
                let thought = scope::note("thought", thought)?;
                fields.push(("thought", Value::from(thought)));
                "think"
            }
            Answer::VarWrite { path, value } => {
                let keys = scope::keys(path, Store::Var)?;
                if position.wait.is_none() {
                    return Err(TreeError::Over {
                        run: position.run.id.to_string(),
                        status: position.text("status").to_owned(),
                    });
                }
                scope::check_write(&position.var()?, &keys, value)?;
                let keys = keys.into_iter().map(Value::from);
                fields.push(("path", Value::vector(keys)));
                fields.push(("value", from_json_with_string_keys(value)));
                "var-write"
            }
        };
        fields.push(("op", Value::keyword(op)));
        let fields = fields.into_iter();
        Ok(Value::map(
            fields.map(|(key, value)| (Value::keyword(key), value)),
        ))
    }

    /// Restarts the tree: the trace is empty, the stores have their initial values, and the gate is closed if the run
    /// began with one. A run that has ended is followed by a new one under the same handle.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn reset(&self, handle: &Handle) -> Result<Json, TreeError> {
        loop {
            let (position, before) = self.at_with(handle).await?;
            let after = match position.wait {
                Some(_) => {
                    let op = Value::map([(Value::keyword("op"), Value::keyword("reset"))]);
                    self.give(&position, &op).await?
                }
                None => self.begin_again(handle, &position).await?,
            };
            if let Some(after) = after {
                document::write(self, handle, &after, before).await?;
                return Ok(json!({"status": "reset"}));
            }
        }
    }

    async fn begin_again(
        &self,
        handle: &Handle,
        position: &Position,
    ) -> Result<Option<Position>, TreeError> {
        let text = self.program_text(&position.run).await?;
        let found = self.find(handle).await?;
        let Some(found) = found.filter(|found| found.row.id == position.run.id) else {
            // Another driver answered first.
            return Ok(None);
        };
        let given = flowstone_engine::codec::decode(&position.run.input);
        let given = given.unwrap_or(Value::Nil);
        let of = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
        // The values that a flow called the tree with remain its initial ones.
        let called_with = given.get("var").map(|var| ("var", var.clone()));
        let input = input(
            position.has_gate(),
            of("handle"),
            of("tree-uri"),
            called_with,
        );
        let name = format!("{}#{}", found.base, found.generation + 1);
        let owner = Some(&*position.run.started_by);
        match self.begin(&text, input, Some(name), owner).await? {
            Some(run) => self.settle(&run).await.map(Some),
            // Another driver answered first.
            None => Ok(None),
        }
    }

    /// Returns the confirmation that a run can be driven.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn resume(&self, handle: &Handle) -> Result<Json, TreeError> {
        let (position, before) = self.at_with(handle).await?;
        document::catch_up(self, handle, &position, before).await?;
        Ok(json!({
            "ok": true, "uri": handle.uri, "status": position.text("status"),
            "phase": position.phase(), "protocol_accepted": position.is_accepted(),
        }))
    }

    /// Returns `$VAR`, or `{path, value}` of a place in it.
    ///
    /// # Errors
    /// When there is no such run, or the path is malformed.
    pub async fn var(&self, handle: &Handle, path: Option<&str>) -> Result<Json, TreeError> {
        let position = self.at(handle).await?;
        part(&position.var()?, path, Store::Var)
    }

    /// Returns `$CONST`, or `{path, value}` of a place in it.
    ///
    /// # Errors
    /// When there is no such run, or the path is malformed.
    pub async fn constants(&self, handle: &Handle, path: Option<&str>) -> Result<Json, TreeError> {
        let position = self.at(handle).await?;
        let tree = self.tree_of(&position.run).await?;
        part(&document::constants(&tree), path, Store::Const)
    }

    /// Returns the trace since the start or the last reset, from one index up to another (exclusive), counted from 0.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn trace(
        &self,
        handle: &Handle,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Json, TreeError> {
        let position = self.at(handle).await?;
        let trace = document::trace(self, &position).await?;
        let place = |given: u64| {
            usize::try_from(given)
                .unwrap_or(usize::MAX)
                .min(trace.len())
        };
        let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(u64::MAX)));
        let part = trace.get(from..to.max(from)).unwrap_or_default();
        Ok(Json::Array(part.to_vec()))
    }

    /// Returns the document of a run without its tree: only the visited part.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn execution(&self, handle: &Handle) -> Result<Json, TreeError> {
        let mut document = self.export(handle).await?;
        if let Some(members) = document.as_object_mut() {
            members.shift_remove("tree");
        }
        Ok(document)
    }

    /// Returns the whole document of a run, for inspectors.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn export(&self, handle: &Handle) -> Result<Json, TreeError> {
        let (position, before) = self.at_with(handle).await?;
        if self.imports {
            document::catch_up(self, handle, &position, before).await?;
        }
        document::of(self, &handle.uri, &position).await
    }

    /// Returns the id of the run of a handle.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn run(&self, handle: &Handle) -> Result<RunId, TreeError> {
        Ok(self.at(handle).await?.run.id)
    }

    /// Returns the position of the run of a handle.
    async fn at(&self, handle: &Handle) -> Result<Position, TreeError> {
        Ok(self.at_with(handle).await?.0)
    }

    /// Returns the position of the run of a handle and its document, after comparing them.
    async fn at_with(&self, handle: &Handle) -> Result<(Position, Option<Document>), TreeError> {
        let position = match self.find(handle).await? {
            Some(found) if self.reach.has(&found.row) => self.settle_found(found.row).await?,
            None if self.imports => {
                let run = document::import(self, handle).await?;
                self.settle(&run).await?
            }
            Some(_) | None => {
                let uri = handle.uri.clone();
                return Err(TreeError::NotFound { uri });
            }
        };
        let document = document::compare(self, handle, &position)?;
        Ok((position, document))
    }

    /// Answers the wait of a position and executes the run up to the next one. Returns `None` if the position has
    /// changed, also if the run was cancelled before the tree took the answer.
    async fn give(
        &self,
        position: &Position,
        payload: &Value,
    ) -> Result<Option<Position>, TreeError> {
        let Some(wait) = &position.wait else {
            return Ok(None);
        };
        let how = Answering {
            caller: Caller {
                name: self.by.clone(),
                ..Caller::default()
            },
            // The driver gets its reply after the commit that opens the next wait.
            durability: Durability::Relaxed,
            ..Answering::default()
        };
        let target = Target::Name(wait.id.clone());
        match self.engine.answer_waits(target, payload, how).await {
            Ok(_) => {}
            Err(EngineError::AlreadyDecided(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let after = self.after(&position.run.id, position.answers + 1).await?;
        Ok((!after.is_cut_off).then_some(after))
    }

    /// Returns the position after a number of answers, also if there are more by now.
    async fn after(&self, run: &RunId, answers: u64) -> Result<Position, TreeError> {
        let path = path_after(answers);
        let mut news = self.engine.stores().feed.watch(run);
        for _ in 0..TRIES {
            news.mark_seen();
            let waits = &self.engine.stores().waits;
            let row = self.engine.run(run).await?;
            if let Some(wait) = waits.at(run, &path).await.map_err(EngineError::from)? {
                return Position::at_wait(row, wait).ok_or_else(|| not_tree(run));
            }
            if row.status.is_final() {
                return self.ended(row).await;
            }
            self.execute(run, &mut *news).await?;
        }
        Err(TreeError::Busy {
            run: run.to_string(),
        })
    }

    /// As [`Trees::settle`], for a run whose row was just read: most runs wait for their driver already.
    async fn settle_found(&self, row: RunRow) -> Result<Position, TreeError> {
        let run = row.id.clone();
        match self.standing(row).await? {
            Ok(position) => Ok(position),
            Err(_) => self.settle(&run).await,
        }
    }

    /// Returns the position of a run that has ended or waits for its driver, otherwise its row.
    async fn standing(&self, row: RunRow) -> Result<Result<Position, RunRow>, TreeError> {
        if row.status.is_final() {
            return self.ended(row).await.map(Ok);
        }
        let filter = WaitFilter {
            run: Some(row.id.clone()),
            ..WaitFilter::default()
        };
        let waits = self.engine.stores().waits.list(filter).await;
        let waits = waits.map_err(EngineError::from)?.into_iter();
        let open = waits
            .filter(|wait| wait.state == WaitState::Open)
            .find_map(|wait| Position::at_wait(row.clone(), wait));
        Ok(open.ok_or(row))
    }

    /// Executes a run until it waits for its driver or has ended, and returns its position.
    pub(super) async fn settle(&self, run: &RunId) -> Result<Position, TreeError> {
        let mut news = self.engine.stores().feed.watch(run);
        for _ in 0..TRIES {
            news.mark_seen();
            let row = match self.standing(self.engine.run(run).await?).await? {
                Ok(position) => return Ok(position),
                Err(row) => row,
            };
            // Naming another run must not execute it.
            if !compile::is_of_tree(&self.program_text(&row).await?) {
                return Err(not_tree(run));
            }
            self.execute(run, &mut *news).await?;
        }
        Err(TreeError::Busy {
            run: run.to_string(),
        })
    }

    async fn ended(&self, row: RunRow) -> Result<Position, TreeError> {
        let filter = WaitFilter {
            run: Some(row.id.clone()),
            all: true,
            ..WaitFilter::default()
        };
        let waits = self.engine.stores().waits.list(filter).await;
        let waits: Vec<WaitRow> = waits.map_err(EngineError::from)?;
        let last = waits.into_iter().max_by_key(|wait| occurrence(&wait.path));
        let run = row.id.clone();
        Position::at_end(row, last).ok_or_else(|| not_tree(&run))
    }

    /// Executes a run here, or waits until another process has executed it.
    async fn execute(&self, run: &RunId, news: &mut dyn News) -> Result<(), TreeError> {
        let is_held = match self.executor {
            Executor::Caller => self.execute_here(run).await?,
            Executor::Worker => true,
        };
        if is_held {
            // A change by another process is noticed a little later.
            let _ = tokio::time::timeout(PAUSE, news.changed()).await;
        }
        Ok(())
    }

    /// Executes a run up to its next wait. Returns whether another process is executing it.
    async fn execute_here(&self, run: &RunId) -> Result<bool, TreeError> {
        let options = ExecuteOptions {
            stay: Stay::No,
            ..ExecuteOptions::default()
        };
        let executed = self
            .engine
            .execute_with_parents(run, Rc::new(NoObserver), options);
        match executed.await {
            Ok(_) => Ok(false),
            Err(EngineError::Held { .. }) => Ok(true),
            Err(EngineError::Store(StoreError::LeaseLost { .. })) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the text of the flow that a run executes.
    async fn program_text(&self, run: &RunRow) -> Result<String, TreeError> {
        let program = self.engine.stores().runs.program(&run.program).await;
        let program = program.map_err(EngineError::from)?;
        let text = program.and_then(|program| flow_files::text_of(&program));
        text.ok_or_else(|| not_tree(&run.id))
    }

    /// Returns the tree that a run executes, from its flow.
    pub(super) async fn tree_of(&self, run: &RunRow) -> Result<Value, TreeError> {
        let text = self.program_text(run).await?;
        compile::tree_of(&text).ok_or_else(|| not_tree(&run.id))
    }
}

fn not_tree(run: &RunId) -> TreeError {
    TreeError::NotTree {
        run: run.to_string(),
    }
}

/// Returns the input of a tree's flow.
pub(super) fn input(
    gate: bool,
    handle: &str,
    tree_uri: &str,
    more: Option<(&str, Value)>,
) -> Value {
    let entries = [
        ("gate", Value::Bool(gate)),
        ("handle", Value::from(handle)),
        ("tree-uri", Value::from(tree_uri)),
    ];
    let entries = entries.into_iter().chain(more);
    Value::map(entries.map(|(key, value)| (Value::keyword(key), value)))
}

fn noted(note: Option<&str>) -> Result<Option<(&'static str, Value)>, TreeError> {
    let note = note.map(|note| scope::note("note", note)).transpose()?;
    Ok(note.map(|note| ("note", Value::from(note))))
}

fn part(store: &Json, path: Option<&str>, name: Store) -> Result<Json, TreeError> {
    match path {
        None => Ok(store.clone()),
        Some(path) => {
            let value = scope::read(store, &scope::keys(path, name)?);
            Ok(json!({"path": path, "value": value}))
        }
    }
}

/// Returns the driver's response to an answer.
fn reply(answer: &Answer, outcome: &str) -> Json {
    let message = match (answer, outcome) {
        (Answer::VarWrite { path, value }, _) => return json!({"path": path, "value": value}),
        (Answer::Think { .. }, _) => return json!({"status": "recorded"}),
        (_, "evaluation_passed") => "The condition holds. Get the next request.",
        (_, "evaluation_failed") => "The condition does not hold. The action has failed.",
        (_, "step_complete") => "The step is done. The action has further steps.",
        (_, "action_complete") => "The action is done.",
        (_, "action_failed") => "The action has failed.",
        (_, "protocol_accepted") => "The protocol is accepted. Get the first request of the tree.",
        (_, "protocol_rejected") => "The protocol is not accepted. The run has ended.",
        (_, _) => "Recorded. The request stays open.",
    };
    json!({"status": outcome, "message": message})
}
