//! Inputs with secrets, as runs keep them: the text that everybody may read has `[secret]` in their place, and the
//! secrets stand below it, encrypted.
//!
//! Code that shows, lists, compares or exports a run's input never has them. Only the execution of the run puts them
//! back.

pub use flowstone_model::sealed::{Split, join, split};

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
pub use crate::error::SealError;
use crate::flow::{ACTIVATION, Flow, Input};
use crate::ids::RunId;
use crate::ports::{RunRow, Secret, StoredInput, Vault, VaultError};
use crate::redact::{self, Redactor, SECRET};

/// Returns an input as the store keeps it. Secrets are the values that the flow declares as such, and whatever holds
/// one that is known already, as the input of a child may.
///
/// # Errors
/// When a value cannot serve as a secret, is not data, or cannot be encrypted.
pub(crate) fn seal(
    vault: &dyn Vault,
    (flow, invocation): (&Flow, Option<&str>),
    input: &Value,
    known: &Redactor,
) -> Result<String, EngineError> {
    let declared = declared(flow, invocation);
    let mut sealing = Sealing {
        declared: &declared,
        known,
        found: Vec::new(),
    };
    let shown = sealing.value(input, &mut Vec::new())?;
    let found = sealing.found;
    if found.is_empty() {
        return Ok(codec::encode(input)?);
    }
    let (paths, values): (Vec<Value>, Vec<Value>) = found.into_iter().unzip();
    let plain = codec::encode(&Value::vector(values))?;
    let envelope = vault.seal(plain.as_bytes()).map_err(SealError::Unsealed)?;
    let sealed = Value::vector([Value::vector(paths), Value::from(envelope)]);
    Ok(join(
        &codec::encode(&shown)?,
        Some(&codec::encode(&sealed)?),
    ))
}

/// Returns the paths of the inputs and setup values that a flow declares as secrets.
pub(crate) fn declared(flow: &Flow, invocation: Option<&str>) -> Vec<Vec<Value>> {
    let contract = match invocation {
        Some(id) => flow.invocations.iter().find(|it| &*it.id == id),
        None => None,
    };
    let contract = contract.or_else(|| flow.default_invocation());
    let inputs = contract
        .map(|contract| &contract.inputs[..])
        .unwrap_or_default();
    let secret = |input: &&Input| is_secret(input);
    let inputs = inputs.iter().filter(secret);
    let inputs = inputs.map(|input| vec![Value::keyword(&input.name)]);
    let setup = flow.setup.iter().filter(secret);
    let setup = setup.map(|input| vec![Value::keyword(ACTIVATION), Value::keyword(&input.name)]);
    inputs.chain(setup).collect()
}

/// Tells whether an input is declared as a secret.
pub fn is_secret(input: &Input) -> bool {
    matches!(&*input.type_, "password" | "secret")
}

struct Sealing<'a> {
    declared: &'a [Vec<Value>],
    known: &'a Redactor,
    /// Paths as vectors, with their values.
    found: Vec<(Value, Value)>,
}

impl Sealing<'_> {
    fn value(&mut self, value: &Value, path: &mut Vec<Value>) -> Result<Value, EngineError> {
        match value {
            Value::Map(map) if !self.holds_key(map.iter().map(|(key, _)| key)) => {
                let mut entries = Vec::new();
                for (key, value) in map.iter() {
                    path.push(key.clone());
                    entries.push((key.clone(), self.value(value, path)?));
                    path.pop();
                }
                Ok(Value::map(entries))
            }
            Value::Vector(items) => {
                let mut shown = Vec::new();
                for (idx, item) in items.iter().enumerate() {
                    path.push(Value::Int(i64::try_from(idx).unwrap_or(i64::MAX)));
                    shown.push(self.value(item, path)?);
                    path.pop();
                }
                Ok(Value::vector(shown))
            }
            Value::Text(text) if text.is_empty() => Ok(value.clone()),
            _ if self.is_declared(path) && !value.is_nil() => {
                let text = value.as_str().unwrap_or_default();
                if let Some(why) = redact::weakness(text) {
                    let name = path_text(path);
                    return Err(SealError::Weak { name, why }.into());
                }
                Ok(self.take(value, path))
            }
            _ if !self.known.is_empty() && self.known.holds(codec::encode(value)?) => {
                Ok(self.take(value, path))
            }
            _ => Ok(value.clone()),
        }
    }

    fn take(&mut self, value: &Value, path: &[Value]) -> Value {
        self.found
            .push((Value::vector(path.to_vec()), value.clone()));
        Value::from(SECRET)
    }

    fn holds_key<'v>(&self, mut keys: impl Iterator<Item = &'v Value>) -> bool {
        let holds = |key: &Value| codec::encode(key).is_ok_and(|text| self.known.holds(text));
        !self.known.is_empty() && keys.any(holds)
    }

    /// Tells whether a path is that of a secret, or of an item of one that has several.
    fn is_declared(&self, path: &[Value]) -> bool {
        let same =
            |declared: &Vec<Value>| path.starts_with(declared) && path.len() <= declared.len() + 1;
        self.declared.iter().any(same)
    }
}

fn path_text(path: &[Value]) -> String {
    let parts = path.iter().map(|part| match crate::flow::name_of(part) {
        Some(name) => name.to_string(),
        None => codec::encode(part).unwrap_or_default(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// An input with its secrets, and these.
pub(crate) type Opened = (Value, Vec<Secret>);

impl Engine {
    /// Returns a run's input as its flow gets it, and the secrets in it.
    ///
    /// # Errors
    /// When an export left them out, or they cannot be decrypted.
    pub(crate) fn input_of_row(&self, row: &RunRow) -> Result<Opened, EngineError> {
        open(&*self.services.vault, row)
    }

    /// Returns a run's input as the store keeps it.
    pub(crate) fn stored_input(
        &self,
        contract: (&Flow, Option<&str>),
        input: &Value,
        known: &[Secret],
    ) -> Result<String, EngineError> {
        let known = self.services.redactors.of(known);
        seal(&*self.services.vault, contract, input, &known)
    }

    /// Gives runs secret inputs: a map with them under their names. Those that an export left out have to be there;
    /// others replace what a run has.
    ///
    /// # Errors
    /// When one of them is still missing, or when no run has one that is given: nothing is changed then.
    pub async fn give_secrets(&self, runs: &[RunId], given: &Value) -> Result<(), EngineError> {
        let mut known = Vec::new();
        for run in runs {
            known.extend(self.secret_inputs(run).await?);
        }
        let is_known = |name: &str| {
            let is_same = |known: &String| known == name || known.split('.').next() == Some(name);
            known.iter().any(is_same)
        };
        let keys = given.as_map().into_iter().flat_map(|map| map.iter());
        let keys = keys.map(|(key, _)| path_text(std::slice::from_ref(key)));
        let unknown: Vec<String> = keys.filter(|name| !is_known(name)).collect();
        if !unknown.is_empty() {
            return Err(SealError::NotSecret {
                run: match runs {
                    [run] => format!("the run {run}"),
                    _ => "none of the runs".to_owned(),
                },
                given: unknown,
                known,
            }
            .into());
        }
        for run in runs {
            self.give_to(run, given).await?;
        }
        Ok(())
    }

    async fn give_to(&self, run: &RunId, given: &Value) -> Result<(), EngineError> {
        let row = self.run_row(run).await?;
        let filled = fill(&*self.services.vault, &row, given)?;
        let Some(sealed) = filled else {
            return Ok(());
        };
        let stored = StoredInput {
            run: run.clone(),
            input: join(&row.input, row.sealed.as_deref()),
            first: None,
        };
        let new = StoredInput {
            input: join(&row.input, Some(&sealed)),
            ..stored.clone()
        };
        self.services
            .stores
            .runs
            .reseal(vec![(stored, new)])
            .await?;
        Ok(())
    }

    /// Returns the names of a run's secret inputs.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn secret_inputs(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        let row = self.run_row(run).await?;
        let paths = parts(&row)?.map(|(paths, _)| paths).unwrap_or_default();
        Ok(paths.iter().map(|path| path_text(path)).collect())
    }

    /// Returns the names of the secrets that a run needs and an export left out.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn secrets_left_out(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        let row = self.run_row(run).await?;
        let Some((paths, None)) = parts(&row)? else {
            return Ok(Vec::new());
        };
        Ok(paths.iter().map(|path| path_text(path)).collect())
    }

    /// Encrypts all that the project keeps under a new key. What it was encrypted with before is kept, unless
    /// `forget` drops it once nothing needs it. Interrupted anywhere, everything can still be read, and doing it
    /// again completes it. Returns how many runs were changed.
    ///
    /// # Errors
    /// When something cannot be decrypted: nothing is forgotten then.
    pub async fn rotate_key(&self, forget: bool) -> Result<usize, EngineError> {
        let vault = &*self.services.vault;
        // Of two processes that replace keys at once, one would drop the new key of the other.
        let _exclusive = vault.exclusive().map_err(SealError::Unsealed)?;
        let keys = vault.keys().map_err(SealError::Unsealed)?;
        if keys.is_environment && keys.old.is_empty() {
            let place = keys.place;
            return Err(SealError::Unsealed(VaultError::Environment { place }).into());
        }
        if !keys.is_environment {
            self.check_sealed(vault).await?;
            vault.renew().map_err(SealError::Unsealed)?;
        }
        let mut changed = 0;
        let mut after = None;
        loop {
            let page = self
                .services
                .stores
                .runs
                .sealed(after.as_ref(), PAGE)
                .await?;
            let Some(last) = page.last() else {
                break;
            };
            after = Some(last.run.clone());
            let mut changes = Vec::new();
            for stored in page {
                let new = StoredInput {
                    run: stored.run.clone(),
                    input: renewed(vault, &stored.run, &stored.input)?,
                    first: match &stored.first {
                        Some(first) => Some(renewed(vault, &stored.run, first)?),
                        None => None,
                    },
                };
                if new != stored {
                    changes.push((stored, new));
                }
            }
            changed += changes.len();
            self.services.stores.runs.reseal(changes).await?;
        }
        self.renew_installations(vault).await?;
        if forget && !keys.is_environment {
            vault.forget_old().map_err(SealError::Unsealed)?;
        }
        Ok(changed)
    }

    /// Encrypts the setup values of installations under the current key.
    async fn renew_installations(&self, vault: &dyn Vault) -> Result<(), EngineError> {
        let installations = &self.services.stores.installations;
        for mut row in installations.installations(None).await? {
            let whose = RunId::from_text(row.at.to_string());
            let setup = renewed(vault, &whose, &row.setup)?;
            if setup != row.setup {
                row.setup = setup;
                row.changes += 1;
                if !installations.change_installation(row.clone()).await? {
                    return Err(EngineError::Internal(format!(
                        "the installation {} was changed meanwhile; repeat the command",
                        row.at
                    )));
                }
            }
        }
        Ok(())
    }

    /// Checks that everything can be decrypted: a new key beside a wrong one would hide that the right one is missing.
    async fn check_sealed(&self, vault: &dyn Vault) -> Result<(), EngineError> {
        for row in self
            .services
            .stores
            .installations
            .installations(None)
            .await?
        {
            opened(vault, &RunId::from_text(row.at.to_string()), &row.setup)?;
        }
        let mut after = None;
        loop {
            let runs = &self.services.stores.runs;
            let page = runs.sealed(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.run.clone());
            for stored in &page {
                for input in [Some(&stored.input), stored.first.as_ref()] {
                    input.map_or(Ok(()), |input| opened(vault, &stored.run, input))?;
                }
            }
        }
    }

    /// Returns the project's keys.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn keys(&self) -> Result<crate::ports::KeyRing, EngineError> {
        Ok(self.services.vault.keys().map_err(SealError::Unsealed)?)
    }
}

/// How many runs are changed in one transaction.
const PAGE: usize = 200;

/// Checks that the secrets of a stored input can be decrypted.
fn opened(vault: &dyn Vault, run: &RunId, stored: &str) -> Result<(), EngineError> {
    let sealed = split(stored).sealed.map(read).transpose()?.flatten();
    let Some((_, Some(envelope))) = sealed else {
        return Ok(());
    };
    let opened = vault.open(&envelope).map_err(|cause| SealError::Vault {
        run: run.to_string(),
        cause,
    });
    Ok(opened.map(drop)?)
}

/// Returns a stored input with its secrets under the current key.
fn renewed(vault: &dyn Vault, run: &RunId, stored: &str) -> Result<String, EngineError> {
    let split = split(stored);
    let Some((paths, Some(envelope))) = split.sealed.map(read).transpose()?.flatten() else {
        return Ok(stored.to_owned());
    };
    let of_run = |cause| SealError::Vault {
        run: run.to_string(),
        cause,
    };
    let plain = vault.open(&envelope).map_err(of_run)?;
    let envelope = vault.seal(&plain).map_err(of_run)?;
    let sealed = written(&paths, Some(envelope))?;
    Ok(join(split.shown, Some(&sealed)))
}

/// Paths of secrets, and the envelope with their values.
type Parts = (Vec<Vec<Value>>, Option<String>);

fn parts(row: &RunRow) -> Result<Option<Parts>, EngineError> {
    Ok(row.sealed.as_deref().map(read).transpose()?.flatten())
}

fn read(sealed: &str) -> Result<Option<Parts>, EngineError> {
    let sealed = codec::decode(sealed)?;
    let Some([paths, envelope]) =
        vector(&sealed).and_then(|both| <[Value; 2]>::try_from(both).ok())
    else {
        return Ok(None);
    };
    let paths = vector(&paths).unwrap_or_default();
    let paths = paths.iter().filter_map(vector).collect();
    Ok(Some((paths, envelope.as_str().map(str::to_owned))))
}

fn vector(value: &Value) -> Option<Vec<Value>> {
    Some(value.as_vector()?.iter().cloned().collect())
}

fn written(paths: &[Vec<Value>], envelope: Option<String>) -> Result<String, EngineError> {
    let paths = paths.iter().map(|path| Value::vector(path.clone()));
    let envelope = envelope.map_or(Value::Nil, Value::from);
    Ok(codec::encode(&Value::vector([
        Value::vector(paths),
        envelope,
    ]))?)
}

/// Returns what an export says of the secrets: where they were.
pub(crate) fn left_out(row: &RunRow) -> Result<Option<String>, EngineError> {
    match parts(row)? {
        Some((paths, _)) => Ok(Some(written(&paths, None)?)),
        None => Ok(None),
    }
}

/// Returns a stored input with its secrets. Errors call it `whose`.
pub(crate) fn open_stored(
    vault: &dyn Vault,
    stored: &str,
    whose: &str,
) -> Result<Value, EngineError> {
    let split = split(stored);
    let mut input = codec::decode(split.shown)?;
    let parts = split.sealed.map(read).transpose()?.flatten();
    let Some((paths, Some(envelope))) = parts else {
        return Ok(input);
    };
    let plain = vault.open(&envelope).map_err(|cause| SealError::Vault {
        run: whose.to_owned(),
        cause,
    })?;
    let values = codec::decode(&String::from_utf8_lossy(&plain))?;
    for (path, value) in paths.iter().zip(vector(&values).unwrap_or_default()) {
        input = with(&input, path, value);
    }
    Ok(input)
}

fn open(vault: &dyn Vault, row: &RunRow) -> Result<Opened, EngineError> {
    let shown = codec::decode(&row.input)?;
    let Some((paths, envelope)) = parts(row)? else {
        return Ok((shown, Vec::new()));
    };
    let Some(envelope) = envelope else {
        return Err(SealError::LeftOut {
            run: row.id.to_string(),
            paths: paths.iter().map(|path| path_text(path)).collect(),
        }
        .into());
    };
    let values = unsealed(vault, row, &envelope)?;
    let mut secrets: Vec<Secret> = Vec::new();
    let mut input = shown;
    for (path, value) in paths.iter().zip(values) {
        collect(&value, &mut secrets);
        input = with(&input, path, value);
    }
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
    secrets.dedup();
    Ok((input, secrets))
}

/// Returns the values in an envelope.
fn unsealed(vault: &dyn Vault, row: &RunRow, envelope: &str) -> Result<Vec<Value>, EngineError> {
    let plain = vault.open(envelope).map_err(|cause| SealError::Vault {
        run: row.id.to_string(),
        cause,
    })?;
    let values = codec::decode(&String::from_utf8_lossy(&plain))?;
    Ok(vector(&values).unwrap_or_default())
}

/// Collects the texts of what was sealed.
fn collect(value: &Value, secrets: &mut Vec<Secret>) {
    match value {
        Value::Text(text) => secrets.push(Secret::new(text.to_string())),
        Value::Map(map) => {
            for (key, value) in map.iter() {
                collect(key, secrets);
                collect(value, secrets);
            }
        }
        Value::Vector(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Keyword(_) | Value::Nil | Value::Bool(_) => {}
        other => secrets.extend(codec::encode(other).ok().map(Secret::new)),
    }
}

/// Returns a value with another one at a path.
fn with(value: &Value, path: &[Value], new: Value) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return new;
    };
    match (value, first) {
        (Value::Map(map), key) => {
            let entries = map.iter().map(|(known, value)| match known == key {
                true => (known.clone(), with(value, rest, new.clone())),
                false => (known.clone(), value.clone()),
            });
            Value::map(entries.collect::<Vec<_>>())
        }
        (Value::Vector(items), Value::Int(at)) => {
            let items =
                items
                    .iter()
                    .enumerate()
                    .map(|(idx, item)| match i64::try_from(idx) == Ok(*at) {
                        true => with(item, rest, new.clone()),
                        false => item.clone(),
                    });
            Value::vector(items.collect::<Vec<_>>())
        }
        _ => value.clone(),
    }
}

/// Returns what seals a run's secret inputs with those that are given; `None` where the run has none of these.
fn fill(vault: &dyn Vault, row: &RunRow, given: &Value) -> Result<Option<String>, EngineError> {
    let Some((paths, envelope)) = parts(row)? else {
        return Ok(None);
    };
    let news: Vec<Option<Value>> = paths
        .iter()
        .map(|path| found(given, path).or_else(|| given.get(&path_text(path)).cloned()))
        .collect();
    let is_replaced = news.iter().any(Option::is_some);
    if envelope.is_some() && (!is_replaced || row.status.is_final()) {
        return Ok(None);
    }
    // The old ones are not needed where all are replaced: their key may be lost.
    let olds = match envelope {
        Some(envelope) if news.iter().any(Option::is_none) => unsealed(vault, row, &envelope)?,
        _ => Vec::new(),
    };
    let mut values = Vec::new();
    let mut missing = Vec::new();
    for (idx, (path, new)) in paths.iter().zip(news).enumerate() {
        let name = path_text(path);
        match new {
            Some(value) => {
                let text = value.as_str().unwrap_or_default();
                if let Some(why) = redact::weakness(text) {
                    return Err(SealError::Weak { name, why }.into());
                }
                values.push(value);
            }
            None => match olds.get(idx) {
                Some(old) => values.push(old.clone()),
                None => missing.push(name),
            },
        }
    }
    if !missing.is_empty() {
        return Err(SealError::LeftOut {
            run: row.id.to_string(),
            paths: missing,
        }
        .into());
    }
    let plain = codec::encode(&Value::vector(values))?;
    let envelope = vault.seal(plain.as_bytes()).map_err(SealError::Unsealed)?;
    Ok(Some(written(&paths, Some(envelope))?))
}

fn found(given: &Value, path: &[Value]) -> Option<Value> {
    let mut at = given.clone();
    for part in path {
        at = match (&at, part) {
            (Value::Vector(items), Value::Int(idx)) => {
                items.iter().nth(usize::try_from(*idx).ok()?)?.clone()
            }
            (at, part) => at.as_map()?.get(part)?.clone(),
        };
    }
    Some(at)
}
