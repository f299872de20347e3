//! The options of `flow/poll`, as data: the macro and its loop are in the library of flows.

use flowstone_lang::value::{Arity, Native, Value};

use crate::step::shape::{self, What};
use crate::step::{Field, FieldType};

/// The code of what is wrong with them.
pub const CODE: &str = "E0443";

/// Milliseconds, or text such as `"10s"`.
const MILLIS: FieldType = FieldType::Either(&[FieldType::Number, FieldType::Duration]);

/// How pauses grow.
pub const BACKOFF: FieldType = FieldType::Keys(&[
    Field::optional(
        "base",
        MILLIS,
        "The first pause; `:interval` where it is left out.",
    ),
    Field::optional(
        "factor",
        FieldType::Number,
        "By how much each pause is longer.",
    ),
    Field::optional("max", MILLIS, "The longest pause."),
    Field::optional("step", MILLIS, "What a `:linear` one adds."),
    Field::optional(
        "type",
        FieldType::OneOf(&["constant", "exponential", "linear"]),
        "How pauses grow.",
    ),
]);

const OPTIONS: &[Field] = &[
    Field::optional(
        "abort-on",
        FieldType::Keys(&[
            Field::optional(
                "error?",
                FieldType::Bool,
                "Whether a step that fails ends it.",
            ),
            Field::optional(
                "status",
                FieldType::List(&FieldType::Int),
                "Statuses that end it, such as `#{400 401}`.",
            ),
        ]),
        "What ends it early.",
    ),
    Field::optional("backoff", BACKOFF, "How the pauses grow."),
    Field::optional("id", FieldType::Name, "Names the `:sleep` steps."),
    Field::required("interval", MILLIS, "The pause between two attempts."),
    Field::optional(
        "max-attempts",
        FieldType::IntIn(1, i64::MAX),
        "How often it is tried.",
    ),
    Field::required("return-on", FieldType::Any, "A predicate of the result."),
    Field::optional("timeout", MILLIS, "How long it is tried."),
];

/// What is wrong with the options.
pub struct Problem {
    /// The key that is wrong, where it is there.
    pub key: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

/// Checks the options as they are written in a flow.
pub fn problems(options: &Value) -> Vec<Problem> {
    check(options, true)
}

fn check(options: &Value, literal: bool) -> Vec<Problem> {
    let misfits = shape::misfits(FieldType::Keys(OPTIONS), options, literal);
    let mut problems: Vec<Problem> = misfits
        .into_iter()
        .map(|misfit| {
            let path = misfit.path.join(" ");
            let message = match (&misfit.what, path.as_str()) {
                (What::Unknown { key, .. }, "") => format!("flow/poll has no option :{key}"),
                (What::Unknown { key, .. }, path) => format!("{path} of flow/poll has no :{key}"),
                (What::Missing { key, .. }, _) => format!("flow/poll needs :{key}"),
                (
                    What::Type {
                        expected, found, ..
                    },
                    "",
                ) => {
                    format!("the options of flow/poll must be {expected}, not {found}")
                }
                (
                    What::Type {
                        expected, found, ..
                    },
                    path,
                ) => {
                    format!("{path} of flow/poll must be {expected}, not {found}")
                }
            };
            let first = misfit
                .path
                .first()
                .map(|key| key.trim_start_matches(':').to_owned());
            let key = match &misfit.what {
                What::Unknown { key, .. } => first.or(Some(key.clone())),
                What::Missing { .. } | What::Type { .. } => first,
            };
            Problem {
                key,
                hint: misfit.hint(),
                message,
            }
        })
        .collect();
    let is_given = |key: &str| options.get(key).is_some_and(|value| !value.is_nil());
    let has_computed_key = options
        .as_map()
        .is_some_and(|map| map.iter().any(|(key, _)| key.as_keyword().is_none()));
    let may_be_computed = literal && has_computed_key;
    let is_bounded = is_given("timeout") || is_given("max-attempts") || may_be_computed;
    if problems.is_empty() && !is_bounded {
        problems.push(Problem {
            key: None,
            message: "flow/poll needs :timeout or :max-attempts".to_owned(),
            hint: Some("without one of them it may never end".to_owned()),
        });
    }
    problems
}

pub(super) const PROBLEM: Native = Native {
    name: "poll-problem*",
    usage: "(poll-problem* opts)",
    doc: "Returns what is wrong with the options of flow/poll, as text, or nil.",
    examples: &[
        (
            "(flow/poll-problem* {:interval 10 :return-on some? :timeout 100})",
            "nil",
        ),
        (
            "(flow/poll-problem* {:interval 10 :return-on some?})",
            "\"flow/poll needs :timeout or :max-attempts\"",
        ),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        let problem = check(args.get(0), false).into_iter().next();
        Ok(problem.map_or(Value::Nil, |problem| Value::from(problem.message)))
    },
};
