//! `:wait`: the run parks until somebody answers, or nobody does in time.

use std::time::Duration;

use flowstone_engine::duration;
use flowstone_engine::flow::name_of;
use flowstone_engine::schema;
use flowstone_engine::step::{
    Effect, Field, FieldType, LocalFuture, OnTimeout, Outcome, Step, StepContext, StepError,
    StepSpec, WaitSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::words::shown;

/// The `:wait` step.
pub struct Wait;

const SPEC: StepSpec = StepSpec {
    kind: "wait",
    aliases: &[],
    doc: "Parks the run until somebody completes the wait; the payload is the step's value.\n\n\
        `flowstone waits list` shows what waits, `flowstone waits complete ID --value '{:action :approve}'` answers. \
        A payload that breaks `:validation` is refused and the wait stays open. A signal that came before its wait \
        is kept for it.",
    fields: FIELDS,
    examples: &[
        "(flow/step :wait :approval {:message \"Pay 1,200?\" :timeout \"24h\" :on-timeout :continue :default-value {:action :reject}})",
        "(flow/step :wait :payment {:key (str \"payment-\" id) :validation [:map [:amount :int]]})",
    ],
    effect: Effect::Pure,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "actions",
        FieldType::Items,
        "What may be chosen, such as `[:approve :reject]`: an `:action` of the payload must be one of them.",
    ),
    Field::optional(
        "approval",
        FieldType::Map,
        "What an approval shows: `:actions`, `:params`.",
    ),
    Field::optional("data", FieldType::Map, "What who decides should see."),
    Field::optional(
        "default-value",
        FieldType::Any,
        "The value when nobody answers and `:on-timeout` is `:continue`.",
    ),
    Field::optional("event", FieldType::Map, "An event that completes the wait."),
    Field::optional(
        "key",
        FieldType::Name,
        "What a signal names to meet this wait. Default: run id and step path.",
    ),
    Field::optional("message", FieldType::Text, "The question, as it is shown."),
    Field::optional("notify", FieldType::Map, "Whom to tell."),
    Field::optional(
        "on-timeout",
        FieldType::OneOf(&["continue", "fail"]),
        "What to do when nobody answers.",
    )
    .or(":fail"),
    Field::optional("roles", FieldType::Items, "Who may answer."),
    Field::optional(
        "timeout",
        FieldType::Duration,
        "How long to wait, at most 30 days.",
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
        "An address that completes the wait.",
    ),
];

/// What needs a server, or another step, to mean anything.
const LATER: &[(&str, &str)] = &[
    (
        "event",
        "complete the wait with `flowstone waits complete KEY --value ...`",
    ),
    (
        "notify",
        "send the message with an `:http` step before the wait",
    ),
    (
        "webhook",
        "complete the wait with `flowstone waits complete KEY --value ...`",
    ),
];
/// What is shown to who decides.
const DETAILS: &[&str] = &["actions", "approval", "data", "message", "roles", "title"];
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

impl Step for Wait {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move { wait(cx, &config).map(|wait| Outcome::Park(Box::new(wait))) })
    }
}

fn wait(cx: &StepContext, config: &Value) -> Result<WaitSpec, StepError> {
    let fields = Fields::new(config);
    if let Some((key, instead)) = LATER.iter().find(|(key, _)| fields.has(key)) {
        return Err(
            StepError::config("E0762", format!("`:wait` cannot use `:{key}` yet")).hint(*instead),
        );
    }
    let timeout = fields
        .get("timeout")
        .map_or(Some(Duration::from_secs(86_400)), duration::of_value);
    let timeout = match timeout {
        Some(timeout) if timeout <= LONGEST => timeout,
        _ => {
            let given = fields.get("timeout").map(shown).unwrap_or_default();
            return Err(StepError::config(
                "E0762",
                format!("`:timeout` of a wait is at most 30 days, not {given}"),
            )
            .hint("write it as in \"24h\" or \"30d\""));
        }
    };
    let continues = fields
        .name("on-timeout")?
        .is_some_and(|name| &*name == "continue");
    if fields.has("default-value") && !continues {
        return Err(StepError::config(
            "E0762",
            "`:default-value` means nothing when `:on-timeout` is `:fail`",
        )
        .hint("add `:on-timeout :continue`"));
    }
    let on_timeout = match continues {
        true => OnTimeout::Continue(config.get("default-value").cloned().unwrap_or(Value::Nil)),
        false => OnTimeout::Fail,
    };
    Ok(WaitSpec {
        key: fields
            .get("key")
            .and_then(name_of)
            .map(|key| key.to_string()),
        deadline_ms: Some(
            cx.now_ms()
                .saturating_add(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)),
        ),
        on_timeout,
        validation: validation(fields)?,
        details: details(fields),
    })
}

/// The schema of the payload: what the flow gives, and that the action is one of those offered.
fn validation(fields: Fields<'_>) -> Result<Value, StepError> {
    let given = fields.get("validation").cloned();
    if let Some(form) = &given {
        schema::parse(form).map_err(|error| {
            StepError::config("E0762", format!("`:validation` is not a schema: {error}"))
                .hint("as in `{:required [:action]}` or `[:map [:amount :int]]`")
        })?;
    }
    let actions = fields
        .get("actions")
        .or_else(|| fields.get("approval")?.get("actions"));
    let Some(actions) = actions
        .and_then(crate::json::items)
        .filter(|actions| !actions.is_empty())
    else {
        return Ok(given.unwrap_or(Value::Nil));
    };
    let keyword = Value::keyword;
    let choice = Value::vector([keyword("enum")].into_iter().chain(actions));
    let chosen = Value::vector([keyword("map"), Value::vector([keyword("action"), choice])]);
    Ok(match given {
        None => chosen,
        // Not the other way round: a map that comes first would be taken for properties of `:and`.
        Some(given) => Value::vector([keyword("and"), chosen, given]),
    })
}

fn details(fields: Fields<'_>) -> Value {
    Value::map(
        DETAILS
            .iter()
            .filter_map(|name| Some((Value::keyword(name), fields.get(name)?.clone()))),
    )
}
