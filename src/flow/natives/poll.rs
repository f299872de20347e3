//! The options of `flow/poll`, as data. The macro and its loop are in the flow library.

use flowstone_lang::value::{Arity, Change, Native, Value};

use crate::step::shape::{self, What};
use crate::step::{Field, FieldType};

/// The error code of malformed options.
pub const CODE: &str = "E0443";

/// Milliseconds, or text such as `"10s"`.
const MILLIS: FieldType = FieldType::Either(&[FieldType::Number, FieldType::Duration]);

/// The growth of pauses.
pub const BACKOFF: FieldType = FieldType::Keys(&[
    Field::optional("base", MILLIS, "The first pause; `:interval` by default."),
    Field::optional(
        "factor",
        FieldType::Number,
        "The factor by which each `:exponential` pause is longer.",
    ),
    Field::optional("max", MILLIS, "Maximum length of a pause."),
    Field::optional(
        "step",
        MILLIS,
        "The time by which each `:linear` pause is longer.",
    ),
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
                "Whether a failing step ends the polling.",
            ),
            Field::optional(
                "status",
                FieldType::List(&FieldType::Int),
                "HTTP statuses that end the polling, such as `#{400 401}`.",
            ),
        ]),
        "Conditions that end the polling early.",
    ),
    Field::optional("backoff", BACKOFF, "How the pauses grow."),
    Field::optional("id", FieldType::Name, "The name of the `:sleep` steps."),
    Field::required("interval", MILLIS, "The pause between two attempts."),
    Field::optional(
        "max-attempts",
        FieldType::IntIn(1, i64::MAX),
        "Maximum number of attempts.",
    ),
    Field::required(
        "return-on",
        FieldType::Any,
        "A predicate of the result that ends the polling.",
    ),
    Field::optional("timeout", MILLIS, "Maximum duration of the polling."),
];

/// A problem with the options.
pub struct Problem {
    /// The key that is wrong, if it is in the map.
    pub key: Option<String>,
    pub message: String,
    pub hint: Option<String>,
    /// The change to the name that was probably meant.
    pub change: Option<Change>,
}

/// Checks the options as they are written in a flow.
pub fn problems(options: &Value) -> Vec<Problem> {
    check(options, true)
}

fn check(options: &Value, literal: bool) -> Vec<Problem> {
    let misfits = shape::misfits(FieldType::Keys(OPTIONS), options, literal);
    let mut problems: Vec<Problem> = misfits
        .into_iter()
        .map(|mismatch| {
            let path = mismatch.path.join(" ");
            let message = match (&mismatch.what, path.as_str()) {
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
            let first = mismatch
                .path
                .first()
                .map(|key| key.trim_start_matches(':').to_owned());
            let key = match &mismatch.what {
                What::Unknown { key, .. } => first.or(Some(key.clone())),
                What::Missing { .. } | What::Type { .. } => first,
            };
            Problem {
                key,
                change: mismatch
                    .what
                    .misspelt()
                    .map(|(word, near)| Change::respell(word, near)),
                hint: mismatch.hint(),
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
            change: None,
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
