//! The command of a step: its text, its surroundings, its limits.

use std::time::Duration;

use base64::Engine as _;
use flowstone_flow::step::StepError;
use flowstone_lang::value::{Object, Value};
use serde_json::json;

use crate::connections::scalar_text;
use crate::fields::Fields;
use crate::json::{items, name_text};

/// A command, as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// What `sh -lc` runs: the surroundings, then the flow's command.
    pub script: String,
    pub stdin: Vec<u8>,
    pub has_terminal: bool,
    /// The exit codes that are fine; `None`: all.
    ok: Option<Vec<i32>>,
    pub max_output: usize,
    pub time: Duration,
    pub connect_time: Duration,
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1475", message)
}

/// Checks a text that becomes a part of the command.
pub(super) fn check(fields: Fields<'_>, key: &str) -> Result<(), StepError> {
    match fields.text(key)? {
        Some(text) if text.trim().is_empty() => Err(wrong(format!("`:{key}` is empty"))),
        Some(text) if text.contains('\0') => Err(wrong(format!(
            "`:{key}` has the character NUL, which no command can have"
        ))),
        _ => Ok(()),
    }
}

/// Reads `:env`.
pub(super) fn variables(fields: Fields<'_>) -> Result<Vec<(String, String)>, StepError> {
    let map = fields.map("env")?.and_then(Value::as_map);
    let mut variables = Vec::new();
    for (key, value) in map.into_iter().flat_map(|map| map.iter()) {
        let name = name_text(key).unwrap_or_default();
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if name.is_empty()
            || name.starts_with(|it: char| it.is_ascii_digit())
            || !name.chars().all(is_name)
        {
            return Err(wrong(format!(
                "`:env` has `{name}`, which is not the name of a variable"
            ))
            .hint("a name has letters of ASCII, digits and `_`"));
        }
        let text = scalar_text(value)
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| wrong(format!("`:env` has {} under `{name}`", value.kind())))?;
        variables.push((name, text));
    }
    Ok(variables)
}

impl Command {
    pub(super) fn read(fields: Fields<'_>, time: Duration) -> Result<Command, StepError> {
        check(fields, "command")?;
        check(fields, "workdir")?;
        let mut script = String::new();
        for (name, text) in variables(fields)? {
            script.push_str(&format!("export {name}={}\n", quoted(&text)));
        }
        if let Some(folder) = fields.text("workdir")? {
            script.push_str(&format!("cd -- {} || exit 127\n", quoted(folder)));
        }
        script.push_str(fields.text("command")?.unwrap_or_default());
        let ok = match fields.get("ok-exit-codes") {
            None => Some(vec![0]),
            Some(codes) => items(codes).map(|codes| {
                let codes = codes.iter().filter_map(Value::as_int);
                codes.filter_map(|code| i32::try_from(code).ok()).collect()
            }),
        };
        let connect = fields.count("connect-timeout-ms", 100, 600_000)?;
        Ok(Command {
            script,
            stdin: stdin(fields)?,
            has_terminal: fields.bool("pty?")?.unwrap_or(false),
            ok,
            max_output: fields
                .count("max-output-bytes", 1, 1 << 28)?
                .unwrap_or(1 << 20),
            time,
            connect_time: Duration::from_millis(connect.unwrap_or(10_000) as u64),
        })
    }

    /// Returns the text that the other machine's shell gets.
    pub(super) fn line(&self) -> String {
        format!("exec sh -lc {}", quoted(&self.script))
    }

    pub(super) fn is_ok(&self, exit: i32) -> bool {
        self.ok.as_ref().is_none_or(|ok| ok.contains(&exit))
    }

    /// Returns the command as a recording has it.
    pub(super) fn recorded(&self) -> Vec<u8> {
        let stdin = match std::str::from_utf8(&self.stdin) {
            Ok(text) => text.to_owned(),
            Err(_) => base64::engine::general_purpose::STANDARD.encode(&self.stdin),
        };
        json!({"command": self.script, "stdin": stdin, "pty": self.has_terminal})
            .to_string()
            .into_bytes()
    }
}

fn stdin(fields: Fields<'_>) -> Result<Vec<u8>, StepError> {
    match fields.get("stdin") {
        None => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(text.as_str().as_bytes().to_vec()),
        Some(Value::Object(object)) if let Object::Bytes(bytes) = &**object => Ok(bytes.to_vec()),
        Some(other) => Err(StepError::config(
            StepError::OPTION_KIND,
            format!("`:stdin` takes text or bytes, not {}", other.kind()),
        )),
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
