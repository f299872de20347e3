//! `:kv`: values under keys, shared by all runs of a project. Each change happens exactly once.

use flowstone_flow::codec;
use flowstone_flow::kv::{KvNumber, KvOp, KvSet, MAX_TTL, key_problem};
use flowstone_flow::ports::{EntryKind, StoreError, StoreOp};
use flowstone_flow::resource::ResourceLimits;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Step, StepContext,
    StepError, StepSpec,
};
use flowstone_lang::value::{Object, Value};

use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::operation::choose;
use crate::text::brief;

/// The `:kv` step.
pub struct Kv;

const SPEC: StepSpec = StepSpec {
    kind: "kv",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Stores values under keys, for other runs and other flows.\n\n\
        Keys have up to 256 letters, digits, `_`, `-` and `:`. Values are returned as they were stored. A key with a \
        `:ttl` expires after that time. Each change commits with the run's journal: it happens exactly once.",
    fields: FIELDS,
    examples: &[
        "(flow/step :kv :seen {:operation :get :key \"feed:seen\" :default #{}})",
        "(flow/step :kv :remember {:operation :set :key \"feed:seen\" :value ids :ttl 86400})",
        "(flow/step :kv :count {:operation :increment :key \"runs\" :delta 1})",
    ],
    effect: Effect::OwnStore,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "as-in-origin",
        FieldType::Bool,
        "Whether `:get` in a forked run returns what it returned at the same step of the original run, whatever the value is by now. Default false.",
    ),
    Field::optional(
        "default",
        FieldType::Any,
        "The value that `:get` returns for a missing key.",
    ),
    Field::optional(
        "delta",
        FieldType::Number,
        "The number that `:increment` adds. Default 1.",
    ),
    Field::optional(
        "if-not-exists",
        FieldType::Bool,
        "Whether `:set` keeps an existing value.",
    ),
    Field::optional("item", FieldType::Any, "The item that `:append` adds."),
    Field::optional("items", FieldType::Items, "The items that `:append` adds."),
    Field::optional(
        "key",
        FieldType::Name,
        "The key: letters, digits, `_`, `-`, `:`.",
    ),
    Field::optional(
        "limit",
        FieldType::Int,
        "Maximum number of keys that `:list-keys` returns, up to 1000. Default 100.",
    ),
    Field::optional(
        "max-length",
        FieldType::Int,
        "The number of newest items that `:append` keeps. Default and maximum 1000.",
    ),
    Field::optional(
        "metadata",
        FieldType::Map,
        "Metadata that is stored with the value.",
    ),
    Field::required(
        "operation",
        FieldType::Name,
        "What to do: `:get :set :delete :exists :increment :append :list-keys`.",
    )
    .also(&["op"]),
    Field::optional(
        "prefix",
        FieldType::Text,
        "The prefix of the keys of `:list-keys`.",
    ),
    Field::optional(
        "ttl",
        FieldType::Int,
        "Seconds until the key expires, up to a year.",
    ),
    Field::optional("value", FieldType::Any, "The value that `:set` stores."),
];

const OPERATIONS: Operations = Operations {
    key: "operation",
    code: "E0765",
    all: &[
        Operation {
            name: "append",
            doc: "Adds items at the end of a vector; a missing key counts as empty.",
            needs: &["key"],
            takes: &["item", "items", "max-length", "value"],
            gives: r#"[:map [:success :boolean] [:key :string] [:count :int] [:dropped :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "delete",
            doc: "Removes a key.",
            needs: &["key"],
            takes: &[],
            gives: r#"[:map [:success :boolean] [:key :string] [:deleted? :boolean]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "exists",
            doc: "Tells whether a key exists.",
            needs: &["key"],
            takes: &[],
            gives: r#"[:map [:success :boolean] [:key :string] [:exists? :boolean]]"#,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "get",
            doc: "Returns the value under a key.",
            needs: &["key"],
            takes: &["as-in-origin", "default"],
            gives: r#"[:map [:success :boolean] [:value :any] [:exists? :boolean] [:metadata {:optional true} :map] [:expires-at {:optional true} inst?]]"#,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "increment",
            doc: "Adds to a number; a missing key counts as 0.",
            needs: &["key"],
            takes: &["delta"],
            gives: r#"[:map [:success :boolean] [:key :string] [:value number?] [:previous number?]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "list-keys",
            doc: "Lists keys by their prefix.",
            needs: &[],
            takes: &["limit", "prefix"],
            gives: r#"[:map [:success :boolean] [:keys [:vector :string]] [:count :int]]"#,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "set",
            doc: "Stores a value under a key.",
            needs: &["key"],
            takes: &["if-not-exists", "metadata", "ttl", "value"],
            gives: r#"[:map [:success :boolean] [:key :string] [:created? :boolean]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
    ],
};

impl Step for Kv {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let operation = choose(&SPEC, fields)?.name;
            if operation == "list-keys" {
                return list_keys(cx, fields).await.map(Outcome::Value);
            }
            let key = fields.get("key").and_then(name_text).unwrap_or_default();
            check_key("key", &key)?;
            match operation {
                "exists" | "get" => {
                    if fields.bool("as-in-origin")? == Some(true)
                        && let Some(earlier) = in_origin(cx).await?
                    {
                        return Ok(Outcome::Value(earlier));
                    }
                    look_up(cx, operation, &key, &config)
                        .await
                        .map(Outcome::Value)
                }
                _ => change(cx, operation, key, &config).map(|op| Outcome::Commit(StoreOp::Kv(op))),
            }
        })
    }
}

/// Rejects keys that the store would reject.
pub(crate) fn check_key(at: &str, key: &str) -> Result<(), StepError> {
    match key_problem(key) {
        None => Ok(()),
        Some(problem) => Err(StepError::config(
            "E0610",
            format!("`:{at}` is not a key: {problem}"),
        )
        .hint("put `:` or `-` between the parts of a key, as in \"orders:2026-03\"")),
    }
}

/// Reads `:ttl`.
pub(crate) fn ttl(fields: Fields<'_>) -> Result<Option<i64>, StepError> {
    fields.int("ttl", 1, MAX_TTL)
}

fn envelope(facts: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let success = [("success", Value::Bool(true))];
    Value::map(
        success
            .into_iter()
            .chain(facts)
            .map(|(key, value)| (Value::keyword(key), value)),
    )
}

/// Returns the result of the same step in the run from which this one was forked, if that run performed it.
async fn in_origin(cx: &StepContext) -> Result<Option<Value>, StepError> {
    let stores = cx.stores()?;
    let row = stores.runs.find(cx.run_id()).await?;
    let Some(origin) = row.and_then(|row| row.origin) else {
        return Ok(None);
    };
    let path = cx.path().to_string();
    let entries = stores.journal.load(&origin).await?;
    let result = entries.iter().find(|entry| {
        matches!(entry.kind, EntryKind::Result | EntryKind::Reuse)
            && entry.path == path
            && entry.what == cx.kind()
    });
    let Some(result) = result else {
        return Ok(None);
    };
    let value = codec::decode(&result.payload);
    let what = format!("the result of `{path}` in the run `{origin}`");
    value
        .map(Some)
        .map_err(|error| StepError::from(StoreError::unreadable(&what, &error)))
}

async fn look_up(
    cx: &StepContext,
    operation: &str,
    key: &str,
    config: &Value,
) -> Result<Value, StepError> {
    let found = cx.stores()?.kv.entry(key, cx.now_ms()).await?;
    let exists = ("exists?", Value::Bool(found.is_some()));
    if operation == "exists" {
        return Ok(envelope([("key", Value::from(key)), exists]));
    }
    let Some(found) = found else {
        let value = config.get("default").cloned().unwrap_or(Value::Nil);
        return Ok(envelope([("value", value), exists]));
    };
    let decoded = |text: &str| {
        codec::decode(text).map_err(|error| {
            StepError::from(StoreError::unreadable(
                &format!("the value of `{key}`"),
                &error,
            ))
        })
    };
    let mut facts = vec![("value", decoded(&found.value)?), exists];
    if let Some(metadata) = &found.metadata {
        facts.push(("metadata", decoded(metadata)?));
    }
    if let Some(expires_ms) = found.expires_ms {
        facts.push(("expires-at", Object::Inst(expires_ms).into()));
    }
    Ok(envelope(facts))
}

async fn list_keys(cx: &StepContext, fields: Fields<'_>) -> Result<Value, StepError> {
    let prefix = fields.text("prefix")?.unwrap_or_default();
    if !prefix.is_empty() {
        check_key("prefix", prefix)?;
    }
    let limit = fields.count("limit", 1, 1000)?.unwrap_or(100);
    let keys = cx
        .stores()?
        .kv
        .list_keys(prefix, limit, cx.now_ms())
        .await?;
    let count = Value::from(keys.len());
    Ok(envelope([
        ("keys", Value::vector(keys.into_iter().map(Value::from))),
        ("count", count),
    ]))
}

fn change(
    cx: &StepContext,
    operation: &str,
    key: String,
    config: &Value,
) -> Result<KvOp, StepError> {
    let fields = Fields::new(config);
    Ok(match operation {
        "delete" => KvOp::Delete { key },
        "increment" => KvOp::Increment {
            key,
            by: delta(fields)?,
        },
        "append" => KvOp::Append {
            items: appended(fields)?
                .iter()
                .map(encoded)
                .collect::<Result<_, _>>()?,
            max_length: fields.count("max-length", 1, 1000)?.unwrap_or(1000),
            max_value: max_value(cx),
            key,
        },
        _ => {
            let Some(value) = config.get("value") else {
                return Err(
                    StepError::config("E0765", "`:operation :set` needs `:value`")
                        .hint("`:value nil` stores nil"),
                );
            };
            KvOp::Set(KvSet {
                key,
                value: encoded(value)?,
                ttl_seconds: ttl(fields)?,
                metadata: fields.get("metadata").map(encoded).transpose()?,
                if_not_exists: fields.bool("if-not-exists")?.unwrap_or(false),
                answer: None,
                max_value: max_value(cx),
            })
        }
    })
}

/// Returns the maximum size of a value in this project, in bytes.
pub(crate) fn max_value(cx: &StepContext) -> usize {
    let limits = ResourceLimits::of(cx.settings());
    usize::try_from(limits.max_value).unwrap_or(usize::MAX)
}

fn delta(fields: Fields<'_>) -> Result<KvNumber, StepError> {
    match fields.get("delta") {
        None => Ok(KvNumber::Int(1)),
        Some(Value::Int(int)) => Ok(KvNumber::Int(*int)),
        Some(Value::Float(float)) if float.is_finite() => Ok(KvNumber::Float(*float)),
        Some(other) => Err(StepError::config(
            "E0765",
            format!("`:delta` is an integer or a double, not {}", brief(other)),
        )),
    }
}

fn appended(fields: Fields<'_>) -> Result<Vec<Value>, StepError> {
    let single = fields.get("item").or_else(|| fields.get("value"));
    match (single, fields.get("items")) {
        (Some(item), None) => Ok(vec![item.clone()]),
        (None, Some(several)) => Ok(items(several).unwrap_or_default()),
        (Some(_), Some(_)) => Err(StepError::config(
            "E0765",
            "`:append` takes `:item` or `:items`, not both",
        )),
        (None, None) => Err(StepError::config(
            "E0765",
            "`:append` needs `:item` or `:items`",
        )),
    }
}

/// Returns the stored form of a value.
pub(crate) fn encoded(value: &Value) -> Result<String, StepError> {
    codec::encode(value).map_err(|error| {
        StepError::new(
            error.code(),
            "invalid",
            format!("the value cannot be stored: {error}"),
        )
        .hint("store data: numbers, strings, keywords, vectors, maps")
    })
}
