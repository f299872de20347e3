//! `:wait`: suspends the run until somebody answers, or the time is up.
//!
//! The step converts its config to a [`WaitSpec`]; the engine opens, decides and times out the wait. Wrong configs are
//! rejected here, before anything is opened.

mod approval;
mod event;
mod notice;
mod webhook;

use std::time::Duration;

use flowstone_flow::duration;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::schema;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, OnTimeout, Outcome, Step, StepContext, StepError,
    StepSpec, WaitNotice, WaitSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::items;
use crate::literal::{self, Remarks};
use crate::text::brief;

/// The `:wait` step.
pub struct Wait;

const SPEC: StepSpec = StepSpec {
    kind: "wait",
    operations: None,
    aliases: &[],
    doc: "Suspends the run until somebody completes the wait; the payload is the step's value.\n\n\
        `flowstone waits list` shows what waits, `flowstone waits approve ID` or `flowstone waits complete ID --value \
        '{:paid true}'` answers. A payload that breaks `:validation` is refused and the wait stays open. A signal \
        that came before its wait is kept for it. All waits of a key are completed by one signal.",
    fields: FIELDS,
    examples: &[
        "(flow/step :wait :approval {:message \"Pay 1,200?\" :actions [:approve :reject] :timeout \"24h\" \
         :on-timeout :continue :default-value {:action :reject}})",
        "(flow/step :wait :payment {:key (str \"payment-\" id) :validation [:map [:amount :int]]})",
        "(flow/step :wait :callback {:key order-id :event {:name \"orders.callback\" :key {:path [:order-id]}}})",
    ],
    effect: Effect::Pure,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "actions",
        FieldType::Items,
        "What may be chosen, such as `[:approve :reject]`: an `:action` of the payload must be one of them, and is a keyword.",
    ),
    Field::optional(
        "approval",
        FieldType::Map,
        "An approval: `:actions` (default `[:approve :reject]`), `:template` of its links (default \
         `\"{base-url}/{workspace-id}/waits/{wait-id}/{action}?token={token}\"`), `:params` for the template.",
    ),
    Field::optional("data", FieldType::Map, "What who decides should see."),
    Field::optional(
        "default-value",
        FieldType::Any,
        "The value if there is no answer in time and `:on-timeout` is `:continue`.",
    ),
    Field::optional(
        "event",
        FieldType::Map,
        "An event that completes the wait: `{:name \"orders.callback\" :key {:path [:order-id]}}`. Where the payload has \
         the wait's key at that path, it is for this wait. `:key \"...\"` is a key of its own.",
    ),
    Field::optional(
        "event-key-path",
        FieldType::Items,
        "The same as `:event {:key {:path [...]}}`.",
    ),
    Field::optional(
        "event-name",
        FieldType::Name,
        "The same as `:event {:name \"...\"}`.",
    ),
    Field::optional(
        "keep-alive",
        FieldType::Duration,
        "How long the run stays in memory of a worker after the wait has opened, up to a minute, so that a quick answer needs \
         no replay. Default: not at all.",
    ),
    Field::optional(
        "key",
        FieldType::Name,
        "What a signal names to meet this wait. Default: run id and step path.",
    ),
    Field::optional("message", FieldType::Text, "The question, as it is shown."),
    Field::optional(
        "notify",
        FieldType::Map,
        "Whom to tell, once the wait is open: `{:channels {:http {:connection :chat :path \"/messages\" :json {:text \"Pay \
         {{amount}}? {{approval-url}}\"}}}}`, or `{:template :ask :data {...}}`. Texts may name the flow's input, `:data`, \
         `approval-url`, `rejection-url`, `action-urls`, `wait-id`, `run-id`. It is sent at least once, with an idempotency key.",
    ),
    Field::optional(
        "on-timeout",
        FieldType::OneOf(&["continue", "fail"]),
        "What to do if there is no answer in time.",
    )
    .or(":fail"),
    Field::optional(
        "roles",
        FieldType::Items,
        "Who may answer: one of these roles is needed.",
    ),
    Field::optional("signal-key", FieldType::Name, "The same as `:key`."),
    Field::optional(
        "source",
        FieldType::OneOf(&["event", "webhook"]),
        "The source of the event of `:event-name`; both sources are treated alike.",
    ),
    Field::optional(
        "timeout",
        FieldType::Duration,
        "How long to wait. The project's `:waits {:max-timeout \"30d\"}` says what is too long.",
    )
    .or("\"24h\""),
    Field::optional(
        "validation",
        FieldType::Any,
        "A Malli schema of the payload, or `{:required [:key ...]}`.",
    ),
    Field::optional(
        "webhook",
        FieldType::Map,
        "An address whose callers complete the wait: `{:path \"orders/callback\" :auth {:type :hmac-sha256 :secret-ref :hook}}`. \
         Default path: `events/` and the key. Without `:auth` a caller needs an access token with the scope `run`.",
    ),
];

/// The details that are shown to the person who decides.
const DETAILS: &[&str] = &["approval", "data", "message", "title", "webhook"];
/// A longer wait costs a replay.
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(60);
const USUAL: Duration = Duration::from_secs(86_400);

impl Step for Wait {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn keep_alive(&self, config: &Value) -> Option<Duration> {
        let given = config.get("keep-alive").and_then(duration::of_value);
        given.map(|given| given.min(KEEP_ALIVE_MAX))
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Remarks {
        let mut remarks = Remarks::new();
        let known = literal::known(config);
        let fields = Fields::new(&known);
        // Options that depend on others are checked when the wait is opened.
        literal::remark(&mut remarks, "actions", approval::actions(fields));
        literal::remark(&mut remarks, "roles", names(fields, "roles"));
        literal::remark(&mut remarks, "validation", validation(fields, &[]));
        literal::remark(&mut remarks, "webhook", webhook::path(fields, ""));
        let is_known = |key: &str| config.get(key).is_none_or(literal::is_known);
        if ["event", "event-key-path", "event-name", "source"]
            .into_iter()
            .all(is_known)
        {
            literal::remark(
                &mut remarks,
                "event",
                event::read(fields, given_key(config)),
            );
        }
        if is_known("on-timeout") {
            literal::remark(&mut remarks, "default-value", silence(fields));
        }
        remarks
    }

    fn settings_remarks(&self, _flow: &Flow, settings: &Value, config: &Value) -> Remarks {
        let mut remarks = Remarks::new();
        if config.get("timeout").is_none_or(literal::is_known) {
            let fields = Fields::new(config);
            literal::remark(&mut remarks, "timeout", timeout(settings, fields));
        }
        remarks
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        match config.get("notify").filter(|it| !it.is_nil()) {
            Some(message) => crate::needs::of_message(flow, settings, message),
            None => Vec::new(),
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move { wait(cx, &config).map(|wait| Outcome::Suspend(Box::new(wait))) })
    }

    fn notify<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        notice: &'a WaitNotice,
    ) -> LocalFuture<'a, Result<Value, StepError>> {
        Box::pin(notice::send(cx, Fields::new(config), notice))
    }
}

fn wait(cx: &StepContext, config: &Value) -> Result<WaitSpec, StepError> {
    let fields = Fields::new(config);
    let given_key = key(fields)?;
    let key = given_key
        .clone()
        .unwrap_or_else(|| format!("{}/{}", cx.run_id(), cx.path()));
    let on_timeout = silence(fields)?;
    let actions = approval::actions(fields)?;
    notice::check(cx, fields)?;
    let roles = names(fields, "roles")?;
    let timeout = duration::millis(timeout(cx.settings(), fields)?);
    Ok(WaitSpec {
        deadline_ms: Some(cx.now_ms().saturating_add(timeout)),
        on_timeout,
        validation: validation(fields, &actions)?,
        details: details(fields, actions, roles),
        event: event::read(fields, given_key.as_deref())?,
        webhook: webhook::path(fields, &key)?,
        key: Some(key),
    })
}

/// Reads the outcome of a wait that nobody answers.
fn silence(fields: Fields<'_>) -> Result<OnTimeout, StepError> {
    let continues = fields
        .name("on-timeout")?
        .is_some_and(|name| &*name == "continue");
    let value = fields.get("default-value");
    match (continues, value) {
        (true, value) => Ok(OnTimeout::Continue(value.cloned().unwrap_or(Value::Nil))),
        (false, None) => Ok(OnTimeout::Fail),
        (false, Some(_)) => Err(wrong(
            "`:default-value` means nothing when `:on-timeout` is `:fail`",
        )
        .hint("add `:on-timeout :continue`")),
    }
}

/// A placeholder for the key of a flow, whatever it is.
fn given_key(config: &Value) -> Option<&'static str> {
    literal::has_any(config, &["key", "signal-key"]).then_some("key")
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0762", message)
}

fn key(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    let key = match (fields.get("key"), fields.get("signal-key")) {
        (Some(_), Some(_)) => {
            return Err(wrong("`:signal-key` is another name of `:key`; give one"));
        }
        (key, legacy) => key.or(legacy),
    };
    let name = key.and_then(name_of).map(|name| name.to_string());
    if name.as_deref() == Some("") {
        return Err(wrong("`:key` is empty").hint("leave it out for a key of the wait's own"));
    }
    Ok(name)
}

/// Reads how long to wait, within the limits of the project's settings.
pub(crate) fn timeout(settings: &Value, fields: Fields<'_>) -> Result<Duration, StepError> {
    let timeout = match fields.get("timeout") {
        None => USUAL,
        Some(given) => duration::of_value(given).ok_or_else(|| {
            wrong(format!(
                "`:timeout` of a wait is a length of time, not {}",
                brief(given)
            ))
            .hint("write it as in \"24h\" or \"30d\"")
        })?,
    };
    let longest = settings.get("waits").and_then(|it| it.get("max-timeout"));
    if let Some(longest) =
        longest.filter(|it| duration::of_value(it).is_some_and(|it| timeout > it))
    {
        return Err(wrong(format!(
            "`:timeout` of a wait is at most {} in this project, not {}",
            brief(longest),
            fields.get("timeout").map_or("\"24h\"".to_owned(), brief)
        ))
        .hint("`:waits {:max-timeout ...}` of flowstone.edn says so"));
    }
    Ok(timeout)
}

/// Reads names, as keywords.
fn names(fields: Fields<'_>, key: &str) -> Result<Vec<Value>, StepError> {
    let given = fields.get(key).and_then(items).unwrap_or_default();
    let names = given.iter().map(|item| match name_of(item) {
        Some(name) if !name.is_empty() => Ok(Value::keyword(&name)),
        _ => Err(wrong(format!("`:{key}` holds names, not {}", brief(item)))),
    });
    names.collect()
}

/// Returns the schema of the payload: the flow's own, and that the action is one of those offered.
fn validation(fields: Fields<'_>, actions: &[Value]) -> Result<Value, StepError> {
    let given = fields.get("validation").cloned();
    if let Some(form) = &given {
        schema::parse(form).map_err(|error| {
            wrong(format!("`:validation` is not a schema: {error}"))
                .hint("as in `{:required [:action]}` or `[:map [:amount :int]]`")
        })?;
    }
    if actions.is_empty() {
        return Ok(given.unwrap_or(Value::Nil));
    }
    let keyword = Value::keyword;
    let choice = Value::vector([keyword("enum")].into_iter().chain(actions.iter().cloned()));
    let chosen = Value::vector([keyword("map"), Value::vector([keyword("action"), choice])]);
    Ok(match given {
        None => chosen,
        // The order matters: a map in the first place would be read as properties of `:and`.
        Some(given) => Value::vector([keyword("and"), chosen, given]),
    })
}

fn details(fields: Fields<'_>, actions: Vec<Value>, roles: Vec<Value>) -> Value {
    let given = DETAILS
        .iter()
        .filter_map(|name| Some((Value::keyword(name), fields.get(name)?.clone())));
    let listed = [("actions", actions), ("roles", roles)]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        .map(|(name, items)| (Value::keyword(name), Value::vector(items)));
    Value::map(given.chain(listed))
}
