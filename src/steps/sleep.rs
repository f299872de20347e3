//! `:sleep`: suspends the run for a time.

use std::time::Duration;

use flowstone_flow::duration;
use flowstone_flow::flow::Flow;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::literal::{self, Remarks};
use crate::text::brief;

/// The `:sleep` step.
pub struct Sleep;

const SPEC: StepSpec = StepSpec {
    kind: "sleep",
    operations: None,
    aliases: &[],
    doc: "Waits for a while, without holding memory or a process.\n\n\
        Give one of `:seconds`, `:millis` and `:duration`; without any it is one second. The end of the sleep is kept in the \
        journal: a run that was stopped meanwhile resumes at that time, or at once if it is past. \
        The value is `{:slept-seconds n}`.",
    fields: &[
        Field::optional(
            "duration",
            FieldType::Duration,
            "Text such as `\"500ms\"`, `\"10s\"`, `\"5m\"`, `\"2h\"`, `\"1d\"`.",
        ),
        Field::optional("millis", FieldType::Number, "Milliseconds."),
        Field::optional("seconds", FieldType::Number, "Seconds."),
    ],
    examples: &["(flow/step :sleep :pause {:duration \"5m\"})"],
    effect: Effect::Pure,
};

const KEYS: [&str; 3] = ["duration", "millis", "seconds"];
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

impl Step for Sleep {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Remarks {
        let mut remarks = Remarks::new();
        let known = literal::known(config);
        let given = KEYS.into_iter().find(|key| Fields::new(&known).has(key));
        if let Some(key) = given {
            literal::remark(&mut remarks, key, length(&known));
        }
        remarks
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let length = length(&config)?;
            let seconds = length.as_secs_f64();
            let slept = match length.subsec_nanos() {
                0 => Value::Int(i64::try_from(length.as_secs()).unwrap_or(i64::MAX)),
                _ => Value::Float(seconds),
            };
            let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
            Ok(Outcome::Sleep {
                until_ms: cx.now_ms().saturating_add(millis),
                value: Value::map([(Value::keyword("slept-seconds"), slept)]),
            })
        })
    }
}

fn length(config: &Value) -> Result<Duration, StepError> {
    let fields = Fields::new(config);
    let given: Vec<&str> = KEYS.into_iter().filter(|key| fields.has(key)).collect();
    let key = match given.as_slice() {
        [] => return Ok(Duration::from_secs(1)),
        [key] => *key,
        [first, second, ..] => {
            let message = format!("`:sleep` takes one of `:{first}` and `:{second}`, not both");
            return Err(StepError::config("E0766", message));
        }
    };
    let value = fields.get(key).unwrap_or(&Value::Nil);
    let length = match key {
        "millis" => duration::of_millis_value(value),
        _ => duration::of_value(value),
    };
    match length {
        Some(length) if length <= LONGEST => Ok(length),
        Some(_) => Err(
            StepError::config("E0766", format!("`:{key}` is longer than a year"))
                .hint("a schedule starts runs far ahead"),
        ),
        None => Err(StepError::config(
            "E0766",
            format!("`:{key}` is not a length of time: {}", brief(value)),
        )
        .hint("give a number of 0 or more, or text such as \"10s\"")),
    }
}
