//! `:ssh`: one command on another machine, through the system's `ssh`.
//!
//! The host key must be known. Nothing is asked, no setting of the user's own `ssh` applies, and nothing is forwarded.
//! The command's exit code is data; a failure of `ssh` itself is an error.

mod command;
mod error;
mod files;
mod process;
mod target;

use std::time::Duration;

use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::ports::ClientRequest;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::literal::{Remarks, known, remark};
use command::Command;
use error::SshError;
use process::Ended;
use target::Target;

/// The `:ssh` step.
pub struct Ssh;

const SPEC: StepSpec = StepSpec {
    kind: "ssh",
    operations: None,
    aliases: &[],
    doc: "Executes a command on another machine and returns `{:success true :exit 0 :stdout \"...\" :stderr \"...\" :duration-ms n}`.\n\n\
        The command is run by `sh -lc`. An exit code that `:ok-exit-codes` lacks is an error with the same facts in its \
        data. The machine's host key must be known, from the connection's `:known-hosts` or the user's own list.",
    fields: FIELDS,
    examples: &[
        "(flow/step :ssh :disk {:connection :web-1 :command \"df -h /\"})",
        "(flow/step :ssh :deploy {:connection :web-1 :workdir \"/srv/app\" :env {:VERSION \"1.4\"} :command \"./deploy.sh\" :timeout \"5m\"})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::required(
        "command",
        FieldType::Text,
        "The command, which `sh -lc` runs there.",
    ),
    Field::optional(
        "connect-timeout-ms",
        FieldType::IntIn(100, 600_000),
        "Maximum time for the connection and the login.",
    )
    .or("10000"),
    Field::required(
        "connection",
        FieldType::Name,
        "The connection, whose `:base-url` is `ssh://user@host:port`.",
    ),
    Field::optional(
        "env",
        FieldType::Map,
        "Environment variables of the command. Other users of that machine may see them.",
    ),
    Field::optional(
        "log-command-preview?",
        FieldType::Bool,
        "Whether the log of the process shows the beginning of the command.",
    )
    .or("false"),
    Field::optional(
        "max-output-bytes",
        FieldType::IntIn(1, 1 << 28),
        "Maximum size of the output and of the error output, each.",
    )
    .or("1048576"),
    Field::optional(
        "ok-exit-codes",
        FieldType::Either(&[
            FieldType::OneOf(&["any"]),
            FieldType::List(&FieldType::IntIn(0, 255)),
        ]),
        "The exit codes that are not errors, or `:any`.",
    )
    .or("[0]"),
    Field::optional(
        "pty?",
        FieldType::Bool,
        "Whether the command gets a terminal, which mixes its outputs.",
    )
    .or("false"),
    Field::optional(
        "stdin",
        FieldType::Any,
        "The command's input, as text or bytes.",
    ),
    Field::optional(
        "workdir",
        FieldType::Text,
        "The folder in which the command runs.",
    ),
];

/// Maximum time of a command without `:timeout`.
const USUAL_TIME: Duration = Duration::from_secs(60);

impl Step for Ssh {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let mut remarks = Remarks::new();
        let known = known(config);
        let fields = Fields::new(&known);
        if fields.has("command") {
            remark(&mut remarks, "command", command::check(fields, "command"));
        }
        remark(&mut remarks, "workdir", command::check(fields, "workdir"));
        remark(&mut remarks, "env", command::variables(fields));
        remarks
    }

    fn settings_remarks(
        &self,
        flow: &Flow,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        crate::connections::unknown_names(flow, settings, config)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        target::needs(flow, settings, config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let target = Target::read(cx, fields)?;
            let time = crate::http::request::timeout(cx, USUAL_TIME);
            let command = Command::read(fields, time)?;
            if fields.bool("log-command-preview?")? == Some(true) {
                let preview = cx
                    .redactor()
                    .text(crate::http::error::preview(command.script.as_bytes()));
                tracing::info!(target: "flowstone::ssh", place = target.place(), command = %preview, "command");
            }
            let request = ClientRequest {
                method: "SSH".to_owned(),
                url: target.url(),
                body: command.recorded(),
                ..ClientRequest::default()
            };
            let began = std::time::Instant::now();
            let ended = crate::recorded::answer(
                cx,
                request,
                async || process::execute(&target, &command).await,
                |error| SshError::Exchange(Box::new(error)),
                |message| SshError::Lost {
                    place: target.place(),
                    cause: message,
                },
            )
            .await?;
            let millis = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
            finish(&target, &command, ended, millis).map(Outcome::Value)
        })
    }
}

/// Returns the result of a command, or the error if its exit code is one.
fn finish(
    target: &Target,
    command: &Command,
    ended: Ended,
    millis: i64,
) -> Result<Value, StepError> {
    let facts = [
        ("exit", Value::Int(i64::from(ended.exit))),
        ("stdout", Value::from(ended.stdout.as_str())),
        ("stderr", Value::from(ended.stderr.as_str())),
        ("duration-ms", Value::Int(millis)),
    ];
    if command.is_ok(ended.exit) {
        let facts = facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value));
        let success = (Value::keyword("success"), Value::Bool(true));
        return Ok(Value::map(std::iter::once(success).chain(facts)));
    }
    let error = StepError::from(SshError::Exit {
        place: target.place(),
        exit: ended.exit,
        stderr: ended.stderr,
    });
    Err(facts
        .into_iter()
        .fold(error, |error, (key, value)| error.with(key, value)))
}
