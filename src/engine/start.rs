//! Starting runs: what the flow says about that, read for one input, and the store's decision.

use flowstone_lang::value::Value;

use crate::bindings::Bindings;
use crate::codec;
use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
pub use crate::error::MOST_STARTS;
use crate::flow::{Flow, InputError, LoadedFlow, activated, coerce_input, name_of};
use crate::ids::RunId;
use crate::installation::InstalledFlow;
use crate::ports::{
    Admission, BulkAdmission, Delivered, Delivery, Entry, LimitRule, NewReceipt, NewRun,
    PastDelivery, QueuePlace, RunStatus, SlotRule, StartDecision, StartRules, Stores,
};
use crate::sealed::{self, SealError};

/// A run that was started, or joined the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedRun {
    pub run: RunId,
    pub decision: StartDecision,
    /// The value of `:concurrency :key-field`, as EDN text.
    pub key: Option<String>,
    /// The runs that were cancelled, or asked to, in favour of this one.
    pub replaced: Vec<RunId>,
}

/// One start of [`Engine::submit_many`].
pub struct BulkStart<'a> {
    pub loaded: &'a LoadedFlow,
    pub options: StartOptions,
}

/// A run of [`Engine::submit_many`], and what it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub run: StartedRun,
    pub status: RunStatus,
}

/// Starts that take place once, however often they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmittedMany {
    Started(Vec<Started>),
    /// They were asked for before.
    Known(PastDelivery),
}

/// See [`Engine::start_place`].
pub(crate) struct StartPlace {
    pub bindings: Bindings,
    pub settings: Value,
    /// The name of the flow that the run has.
    pub name: String,
}

/// A start that takes place once, however often it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    Started(StartedRun),
    /// It was asked for before.
    Known(PastDelivery),
}

impl Engine {
    /// Adds a run, if the flow's `:concurrency` lets it. It does nothing before it is executed; whether it may begin
    /// at once is in the answer.
    ///
    /// # Errors
    /// When the input does not fit the flow's contract or has no key, the flow refuses a second run, or the store
    /// cannot be written.
    pub async fn submit(
        &self,
        loaded: &LoadedFlow,
        options: StartOptions,
    ) -> Result<StartedRun, EngineError> {
        let (run, input) = self.new_run(loaded, options)?;
        let now_ms = run.now_ms;
        let started = admit(&self.services.stores, &loaded.flow, &input, run).await?;
        // Those that were queued are over.
        self.send_ends(&started.replaced, now_ms).await?;
        Ok(started)
    }

    /// Starts a run, unless one of the receipts is known: then returns what was received before.
    ///
    /// # Errors
    /// As for [`Engine::submit`].
    pub async fn submit_once(
        &self,
        loaded: &LoadedFlow,
        options: StartOptions,
        receipts: Vec<NewReceipt>,
    ) -> Result<Submitted, EngineError> {
        let flow = &loaded.flow;
        let (run, input) = self.new_run(loaded, options)?;
        let (run, rules) = with_rules(flow, &input, run)?;
        let key = run.key.clone();
        let now_ms = run.now_ms;
        let delivery = Delivery {
            receipts,
            now_ms,
            runs: vec![(run, rules)],
            answers: Vec::new(),
        };
        match self.services.stores.queue.deliver(delivery).await? {
            Delivered::Known(past) => Ok(Submitted::Known(past)),
            Delivered::Taken { runs, .. } => match runs.into_iter().next() {
                Some(admission) => {
                    let started = started(admission, &flow.slug, key)?;
                    self.send_ends(&started.replaced, now_ms).await?;
                    Ok(Submitted::Started(started))
                }
                None => Err(EngineError::Internal("a start has no outcome".to_owned())),
            },
        }
    }

    /// Checks a start as [`Engine::submit_many`] does, and adds nothing.
    ///
    /// # Errors
    /// When its input, its key or its profile is wrong.
    pub fn check_start(&self, start: BulkStart<'_>) -> Result<(), EngineError> {
        let flow = &start.loaded.flow;
        let (run, input) = self.new_run(start.loaded, start.options)?;
        with_rules(flow, &input, run)?;
        Ok(())
    }

    /// Adds several runs, all in one transaction, or none. Each is checked first.
    ///
    /// # Errors
    /// [`EngineError::BadStarts`] with an entry for each start that is wrong or refused; and when there are too many, or the
    /// store cannot be written.
    pub async fn submit_many(
        &self,
        starts: Vec<BulkStart<'_>>,
    ) -> Result<Vec<Started>, EngineError> {
        match self.submit_many_once(starts, Vec::new()).await? {
            SubmittedMany::Started(started) => Ok(started),
            SubmittedMany::Known(_) => Err(EngineError::Internal(
                "starts without a receipt were known".to_owned(),
            )),
        }
    }

    /// As [`Engine::submit_many`], unless one of the receipts is known: then returns what was received before.
    ///
    /// # Errors
    /// As for [`Engine::submit_many`].
    pub async fn submit_many_once(
        &self,
        starts: Vec<BulkStart<'_>>,
        receipts: Vec<NewReceipt>,
    ) -> Result<SubmittedMany, EngineError> {
        if starts.len() > MOST_STARTS {
            let count = starts.len();
            return Err(EngineError::TooManyStarts { count });
        }
        let (mut runs, mut keys, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut flows = Vec::new();
        for (idx, start) in starts.into_iter().enumerate() {
            let flow = &start.loaded.flow;
            let checked = self
                .new_run(start.loaded, start.options)
                .and_then(|(run, input)| with_rules(flow, &input, run));
            match checked {
                Ok((run, rules)) => {
                    keys.push(run.key.clone());
                    flows.push((flow.slug.to_string(), run.now_ms));
                    runs.push((run, rules));
                }
                Err(error) => errors.push((idx, error)),
            }
        }
        if !errors.is_empty() {
            return Err(EngineError::BadStarts { errors });
        }
        let delivery = Delivery {
            receipts,
            answers: Vec::new(),
            runs,
            now_ms: self.now_ms(),
        };
        let admissions = match self.services.stores.queue.admit_all(delivery).await? {
            BulkAdmission::Admitted(admissions) => admissions,
            BulkAdmission::Known(past) => return Ok(SubmittedMany::Known(past)),
            BulkAdmission::Refused { idx, admission } => {
                let ((flow, _), key) = (flows.swap_remove(idx), keys.swap_remove(idx));
                let refused = started(*admission, &flow, key);
                return Err(match refused {
                    Err(error) => EngineError::BadStarts {
                        errors: vec![(idx, error)],
                    },
                    Ok(_) => EngineError::Internal("an admission was refused".to_owned()),
                });
            }
        };
        let mut all = Vec::new();
        for ((admission, (flow, now_ms)), key) in admissions.into_iter().zip(flows).zip(keys) {
            let run = started(admission, &flow, key)?;
            self.send_ends(&run.replaced, now_ms).await?;
            let status = match run.decision {
                StartDecision::Blocked | StartDecision::Queued => RunStatus::Queued,
                StartDecision::Coexisted | StartDecision::Started => RunStatus::Running,
                StartDecision::Deduped => self.run_row(&run.run).await?.status,
            };
            all.push(Started { run, status });
        }
        Ok(SubmittedMany::Started(all))
    }

    /// Checks a start, and returns the run to be with its input. Its key is not filled in.
    pub(crate) fn new_run(
        &self,
        loaded: &LoadedFlow,
        options: StartOptions,
    ) -> Result<(NewRun, Value), EngineError> {
        let flow = &loaded.flow;
        let StartPlace {
            bindings,
            settings,
            name,
        } = self.start_place(loaded, &options)?;
        let input = coerce_input(flow, options.invocation.as_deref(), &options.input)?;
        let input = activated(flow, &settings, input)?;
        let now_ms = self.services.clock.now_ms();
        let run = NewRun {
            id: RunId::new(now_ms, self.services.random.next()),
            external_id: options.external_id,
            program: loaded.program.clone(),
            flow: name,
            input: self.stored_input((flow, options.invocation.as_deref()), &input, &[])?,
            seed: self.services.random.next(),
            now_ms,
            invocation: options.invocation,
            key: None,
            priority: options.priority.unwrap_or(flow.starts.priority),
            bindings: bindings.encode(),
            started_by: options.started_by.unwrap_or_else(|| "manual".to_owned()),
            origin: None,
            parent: None,
            trace: options.trace,
            version: loaded.version,
            deadline_ms: options
                .timeout
                .map(|timeout| now_ms.saturating_add(crate::duration::millis(timeout))),
            is_taken: !options.is_left,
        };
        Ok((run, input))
    }

    /// Returns under which name, and with which settings and bindings, a run starts.
    pub(crate) fn start_place(
        &self,
        loaded: &LoadedFlow,
        options: &StartOptions,
    ) -> Result<StartPlace, EngineError> {
        let flow = &loaded.flow;
        if let Some(installation) = &options.installation {
            return Ok(StartPlace {
                bindings: installation.bindings(),
                settings: setup_settings(flow, installation.setup.clone()),
                name: installation.flow.to_string(),
            });
        }
        let mut bindings = self.bindings_of(loaded);
        let mut settings = self.services.settings.clone();
        if options.profile.is_some() {
            bindings.profile.clone_from(&options.profile);
            settings = bindings.apply(self.unbound_settings())?;
        }
        Ok(StartPlace {
            bindings,
            settings,
            name: flow.slug.to_string(),
        })
    }

    /// Returns what a new run of a flow keeps.
    pub(crate) fn bindings_of(&self, loaded: &LoadedFlow) -> Bindings {
        Bindings {
            is_outside: loaded.is_outside,
            ..self.bindings.clone()
        }
    }

    /// Returns the input that a run gets of what is given: checked by its contract, with the values of the flow's setup
    /// forms.
    ///
    /// # Errors
    /// When something is missing, or of a wrong type.
    pub fn input_of(
        &self,
        flow: &Flow,
        invocation: Option<&str>,
        given: &Value,
    ) -> Result<Value, InputError> {
        let input = coerce_input(flow, invocation, given)?;
        activated(flow, &self.services.settings, input)
    }

    /// Returns the setup values that the project's settings hold for a flow.
    pub fn setup_of(&self, flow: &Flow) -> Value {
        let setup = self.services.settings.get("setup");
        setup
            .and_then(|setup| setup.get(&flow.slug))
            .cloned()
            .unwrap_or(Value::Nil)
    }

    /// Returns where a queued run stands; nothing where it is not queued.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn queue_place(&self, run: &RunId) -> Result<Option<QueuePlace>, EngineError> {
        Ok(self.services.stores.queue.place(run).await?)
    }

    /// Starts the queued runs whose moment has come, and returns them: they are running, and nobody executes them.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn promote(&self) -> Result<Vec<RunId>, EngineError> {
        let now_ms = self.services.clock.now_ms();
        Ok(self.services.stores.queue.promote(now_ms).await?)
    }
}

/// Returns settings that have the setup values of a flow, and nothing else.
pub(crate) fn setup_settings(flow: &Flow, setup: Value) -> Value {
    let of_flow = Value::map([(Value::keyword(&flow.slug), setup)]);
    Value::map([(Value::keyword("setup"), of_flow)])
}

/// Adds a run by the rules of its flow. Its key is filled in.
pub(crate) async fn admit(
    stores: &Stores,
    flow: &Flow,
    input: &Value,
    run: NewRun,
) -> Result<StartedRun, EngineError> {
    admit_with(stores, flow, input, run, Vec::new()).await
}

/// As [`admit`], of a run that begins with a journal.
pub(crate) async fn admit_with(
    stores: &Stores,
    flow: &Flow,
    input: &Value,
    run: NewRun,
    journal: Vec<Entry>,
) -> Result<StartedRun, EngineError> {
    let (run, rules) = with_rules(flow, input, run)?;
    let key = run.key.clone();
    let admission = match journal.is_empty() {
        true => stores.queue.admit(run, rules).await?,
        false => stores.queue.admit_with(run, rules, journal).await?,
    };
    started(admission, &flow.slug, key)
}

/// Returns a run with its key, and what its start has to pass.
pub(crate) fn with_rules(
    flow: &Flow,
    input: &Value,
    mut run: NewRun,
) -> Result<(NewRun, StartRules), EngineError> {
    refuse_secret_keys(flow, run.invocation.as_deref())?;
    if Bindings::decode(run.bindings.as_deref())?.test.is_some() {
        // A test neither takes a slot nor is the same run as another one of its name.
        run.external_id = None;
        return Ok((run, StartRules::default()));
    }
    let (rules, key) = rules((flow, &run.flow), input)?;
    run.key = key;
    Ok((run, rules))
}

pub(crate) fn started(
    admission: Admission,
    flow: &str,
    key: Option<String>,
) -> Result<StartedRun, EngineError> {
    match admission {
        Admission::Admitted {
            run,
            decision,
            replaced,
        } => Ok(StartedRun {
            run,
            decision,
            key,
            replaced,
        }),
        Admission::Taken { by } => Err(EngineError::SlotTaken {
            flow: flow.to_owned(),
            key,
            by: by.to_string(),
        }),
        Admission::WaitsForCaller { caller } => Err(EngineError::WaitsForCaller {
            flow: flow.to_owned(),
            caller: caller.to_string(),
        }),
    }
}

/// Refuses keys that would show a secret.
fn refuse_secret_keys(flow: &Flow, invocation: Option<&str>) -> Result<(), EngineError> {
    let concurrency = flow.starts.concurrency.as_ref();
    let limits = flow.starts.limits.as_ref();
    let keys = [
        (
            concurrency.and_then(|it| it.key.as_ref()),
            ":concurrency :key-field",
        ),
        (limits.and_then(|it| it.key.as_ref()), ":limits :key"),
    ];
    let declared = sealed::declared(flow, invocation);
    for (path, what) in keys {
        let Some(path) = path else {
            continue;
        };
        let names = |path: &[Value]| path.iter().filter_map(name_of).collect::<Vec<_>>();
        if declared.iter().any(|secret| names(secret) == names(path)) {
            let name = path_text(path);
            return Err(SealError::Key { name, what }.into());
        }
    }
    Ok(())
}

/// Returns what the start with this input has to pass, and the key.
fn rules(
    (flow, named): (&Flow, &str),
    input: &Value,
) -> Result<(StartRules, Option<String>), EngineError> {
    let starts = &flow.starts;
    let mut rules = StartRules::default();
    let mut key = None;
    if let Some(concurrency) = &starts.concurrency {
        let mut name = named.to_owned();
        if let Some(path) = &concurrency.key {
            let value = value_at(flow, input, path, ":concurrency :key-field")?;
            name = format!("{name} {value}");
            key = Some(value);
        }
        rules.slot = Some(SlotRule {
            name,
            on_new_version: concurrency.on_new_version,
            on_conflict: concurrency.on_conflict,
        });
    }
    if let Some(limits) = &starts.limits {
        let mut name = match &limits.scope {
            Some(scope) => match InstalledFlow::read(named) {
                Some(installed) => format!("scope {scope} of {}", installed.at),
                None => format!("scope {scope}"),
            },
            None => format!("flow {named}"),
        };
        if let Some(path) = &limits.key {
            let value = value_at(flow, input, path, ":limits :key")?;
            name = format!("{name} {value}");
        }
        rules.limit = Some(LimitRule {
            name,
            concurrency: limits.concurrency,
            rate: limits.rate,
        });
    }
    Ok((rules, key))
}

/// Returns what the input has at a path, in its one way of writing.
fn value_at(
    flow: &Flow,
    input: &Value,
    path: &[Value],
    what: &'static str,
) -> Result<String, EngineError> {
    let mut found = Some(input.clone());
    for part in path {
        found = found.and_then(|value| item(&value, part));
    }
    match found.filter(|value| !value.is_nil()) {
        Some(value) => Ok(codec::canonical(&value)?),
        None => Err(EngineError::NoKey {
            flow: flow.slug.to_string(),
            what,
            path: path_text(path),
        }),
    }
}

/// Returns what is under a key or at an index. Data from outside may have strings for keywords.
fn item(value: &Value, part: &Value) -> Option<Value> {
    match (value, part) {
        (Value::Map(map), part) => {
            let named = || map.get(&Value::from(name_of(part)?.to_string()));
            map.get(part).or_else(named).cloned()
        }
        (Value::Vector(items), Value::Int(idx)) => {
            items.iter().nth(usize::try_from(*idx).ok()?).cloned()
        }
        _ => None,
    }
}

/// Writes a path as flows do.
fn path_text(path: &[Value]) -> String {
    match path {
        [only] => codec::encode(only),
        path => codec::encode(&Value::vector(path.iter().cloned())),
    }
    .unwrap_or_default()
}
