//! Starts a new run with results of an old one.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use super::{conflict, incompatible};
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Changed, Purpose, Script, dry_run};
use crate::flow::{LoadedFlow, coerce_input, name_of};
use crate::ids::RunId;
use crate::installation::InstalledFlow;
use crate::journal::{FORK, changed_path};
use crate::ports::{Entry, EntryKind, NewRun};
use crate::start::admit_with;

/// The options of a fork.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    /// The path of the first step to perform again; `None`: the first one of the run.
    pub at: Option<String>,
    /// The flow to continue with; `None`: the run's own.
    pub flow: Option<LoadedFlow>,
    pub settings: Vec<Setting>,
    /// Whether to keep the results of later steps whose requests have not changed.
    pub reuse: bool,
}

/// A replaced value in the fork.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// `input`, or the path of a step that is kept; then keys, separated by dots.
    pub path: String,
    pub value: Value,
}

impl Engine {
    /// Starts a run with the results of another one up to a step. It does nothing before it is executed, and is
    /// admitted like other runs of its flow.
    ///
    /// # Errors
    /// When the run or the step does not exist, a setting is malformed, or the kept results do not fit the flow.
    pub async fn fork(&self, run: &RunId, options: ForkOptions) -> Result<RunId, EngineError> {
        let row = self.run_row(run).await?;
        let old_program = self.program_of(&row).await?;
        let old = self.flow_of(&row, &old_program)?;
        let (program, flow) = match &options.flow {
            Some(edited) => (edited.program.clone(), (*edited.flow).clone()),
            None => (old_program, old.clone()),
        };
        let entries = self.services.stores.journal.load(&row.id).await?;
        super::check_journal(&row)?;
        let mut cut = Cut::at(entries, options.at.as_deref(), options.reuse, run)?;
        let now_ms = self.services.clock.now_ms();
        // Random numbers before the fork are the same; later ones are new.
        let fresh = self.services.random.next();
        let seed = match &options.at {
            Some(_) => {
                cut.kept.push(forked_here(fresh, now_ms));
                row.seed
            }
            None => fresh,
        };
        let (mut input, secrets) = self.input_of_row(&row)?;
        for setting in &options.settings {
            let (at, keys) = target(setting, &cut)?;
            match at {
                None => input = set_in(&input, &keys, setting)?,
                Some(path) => cut.set(&path, &keys, setting)?,
            }
        }
        let input = coerce_input(&flow, row.invocation.as_deref(), &input)?;
        let script = Script {
            run: row.id.clone(),
            seed,
            program: program.clone(),
            input: input.clone(),
            secrets: secrets.clone(),
            entries: cut.kept.clone(),
            changed: Changed::between(&old, &flow),
            purpose: Purpose::Fit,
            wanted: None,
            with_locals: false,
        };
        let dry_run_report = dry_run(self, script).await?;
        if let Some(difference) = conflict(&dry_run_report) {
            return Err(incompatible(run, &difference));
        }
        let id = RunId::new(now_ms, self.services.random.next());
        let fork = NewRun {
            id,
            external_id: None,
            program,
            flow: name_of_fork(&row.flow, &flow.slug),
            input: self.stored_input((&flow, row.invocation.as_deref()), &input, &secrets)?,
            seed,
            now_ms,
            invocation: row.invocation.clone(),
            key: None,
            priority: row.priority,
            bindings: match &options.flow {
                Some(edited) => edited.bindings_from(row.bindings.as_deref())?,
                None => row.bindings.clone(),
            },
            started_by: "fork".to_owned(),
            origin: Some(run.clone()),
            parent: None,
            trace: None,
            version: match &options.flow {
                Some(edited) => edited.version,
                None => row.version,
            },
            deadline_ms: None,
            is_taken: false,
        };
        cut.kept.append(&mut cut.reusable);
        let started = admit_with(&self.services.stores, &flow, &input, fork, cut.kept);
        let started = started.await?;
        self.send_ends(&started.replaced, now_ms).await?;
        Ok(started.run)
    }
}

/// Returns the name that a fork of a run has for its flow. It stays a run of the same installation.
fn name_of_fork(forked: &str, slug: &str) -> String {
    match InstalledFlow::read(forked) {
        Some(installed) => installed.calling(slug).to_string(),
        None => slug.to_owned(),
    }
}

/// Returns the entry after which the fork draws from its own seed.
fn forked_here(seed: u64, at_ms: i64) -> Entry {
    Entry {
        kind: EntryKind::Note,
        path: FORK.to_owned(),
        what: FORK.to_owned(),
        digest: String::new(),
        request: None,
        payload: seed.cast_signed().to_string(),
        at_ms,
    }
}

/// A journal, cut before a step.
struct Cut {
    kept: Vec<Entry>,
    reusable: Vec<Entry>,
}

impl Cut {
    fn at(
        entries: Vec<Entry>,
        at: Option<&str>,
        reuse: bool,
        run: &RunId,
    ) -> Result<Cut, EngineError> {
        let is_step = |entry: &Entry| {
            !matches!(
                entry.kind,
                EntryKind::Note | EntryKind::Log | EntryKind::Reuse
            )
        };
        let place = match at {
            Some(at) => entries
                .iter()
                .position(|entry| is_step(entry) && entry.path == at),
            None => Some(0),
        };
        let Some(place) = place else {
            let mut paths: Vec<&str> = Vec::new();
            for entry in entries.iter().filter(|entry| is_step(entry)) {
                if !paths.contains(&entry.path.as_str()) {
                    paths.push(&entry.path);
                }
            }
            return Err(EngineError::NoSuchStep {
                run: run.to_string(),
                step: at.unwrap_or_default().to_owned(),
                steps: paths.into_iter().map(str::to_owned).collect(),
            });
        };
        // Steps that were in progress at that point start over.
        let mut ends: HashMap<String, usize> = HashMap::new();
        for (idx, entry) in entries.iter().enumerate() {
            let is_end = matches!(
                entry.kind,
                EntryKind::Result | EntryKind::Error | EntryKind::Note | EntryKind::Log
            );
            if is_end {
                ends.entry(entry.path.clone()).or_insert(idx);
            }
        }
        let mut cut = Cut {
            kept: Vec::new(),
            reusable: Vec::new(),
        };
        for (idx, entry) in entries.into_iter().enumerate() {
            if at.is_some_and(|at| entry.path == changed_path(at)) {
                // The step is performed as the flow requests it.
                continue;
            }
            let end = ends.get(&entry.path).copied();
            let end = match entry.path == FORK {
                // All forks count: kept results were drawn from their seeds.
                true => Some(idx),
                false => end,
            };
            if end.is_some_and(|end| end < place) {
                cut.kept.push(entry);
            } else if reuse
                && entry.kind == EntryKind::Result
                && Some(entry.path.as_str()) != at
                && !entry.what.starts_with("flow/")
            {
                cut.reusable.push(Entry {
                    kind: EntryKind::Reuse,
                    ..entry
                });
            } else if reuse && entry.kind == EntryKind::Reuse {
                cut.reusable.push(entry);
            }
        }
        Ok(cut)
    }

    fn result(&self, path: &str) -> Option<&Entry> {
        let results = self.kept.iter();
        let mut results = results.filter(|entry| entry.kind == EntryKind::Result);
        results.find(|entry| entry.path == path)
    }

    /// Replaces the result of a kept step.
    fn set(&mut self, path: &str, keys: &[String], setting: &Setting) -> Result<(), EngineError> {
        let entry = self
            .kept
            .iter_mut()
            .find(|entry| entry.kind == EntryKind::Result && entry.path == path);
        let entry = entry.ok_or_else(|| bad_setting(setting, "no step before the fork has it"))?;
        let value = set_in(&codec::decode(&entry.payload)?, keys, setting)?;
        entry.payload = codec::encode(&value)?;
        Ok(())
    }
}

/// Returns the step that a setting is about, `None` for the input, and the keys in it. Because a step's path may
/// contain dots, the longest existing path wins.
fn target(setting: &Setting, cut: &Cut) -> Result<(Option<String>, Vec<String>), EngineError> {
    let parts: Vec<&str> = setting.path.split('.').collect();
    let keys = |from: usize| parts[from..].iter().map(|key| (*key).to_owned()).collect();
    for length in (1..=parts.len()).rev() {
        let path = parts[..length].join(".");
        if cut.result(&path).is_some() {
            return Ok((Some(path), keys(length)));
        }
    }
    match parts.first() {
        Some(&"input") => Ok((None, keys(1))),
        _ => Err(bad_setting(
            setting,
            "it is neither `input` nor a step that ended before the fork",
        )),
    }
}

/// Returns a value with a replacement at a path. Keys are keywords in maps, and numbers in vectors.
fn set_in(value: &Value, keys: &[String], setting: &Setting) -> Result<Value, EngineError> {
    let Some((key, rest)) = keys.split_first() else {
        return Ok(setting.value.clone());
    };
    if let Some(items) = value.as_vector() {
        let idx = key.parse::<usize>().ok();
        let item = idx.and_then(|idx| items.get(idx).map(|item| (idx, item)));
        let (idx, item) = item.ok_or_else(|| {
            bad_setting(setting, &format!("there is no item `{key}` in a vector"))
        })?;
        let new = set_in(item, rest, setting)?;
        let items = items.iter().enumerate();
        let items = items.map(|(at, old)| if at == idx { new.clone() } else { old.clone() });
        return Ok(Value::vector(items.collect::<Vec<_>>()));
    }
    let Some(map) = value.as_map() else {
        if value.is_nil() {
            let inner = set_in(&Value::Nil, rest, setting)?;
            return Ok(Value::map([(Value::keyword(key), inner)]));
        }
        let message = format!("`{key}` cannot be set in {}", value.kind());
        return Err(bad_setting(setting, &message));
    };
    let same = |name: &Value| name_of(name).is_some_and(|name| *name == **key);
    let found = map.iter().find(|(name, _)| same(name));
    let (name, old) = match found {
        Some((name, old)) => (name.clone(), old.clone()),
        None => (Value::keyword(key), Value::Nil),
    };
    let new = set_in(&old, rest, setting)?;
    let others = map.iter().filter(|(key, _)| **key != name);
    let mut entries: Vec<(Value, Value)> = others
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    entries.push((name, new));
    Ok(Value::map(entries))
}

fn bad_setting(setting: &Setting, why: &str) -> EngineError {
    EngineError::BadSetting {
        path: setting.path.clone(),
        why: why.to_owned(),
    }
}
