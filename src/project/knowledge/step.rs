//! `:knowledge`: finds documents and entries of memories, and writes facts to a memory.
//!
//! The work itself is [`super::Library`], which the agents API uses, too. Here are the fields of the step.

use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Step, StepContext,
    StepError, StepSpec,
};
use flowstone_lang::value::Value;
use flowstone_model::codec::digest_bytes;
use flowstone_steps::embedder;
use flowstone_steps::fields::Fields;

use super::write::{Action, DUPLICATE, Fact, UPDATE, hold_entries};
use super::{Embedder, Item, Kind, LIMIT, Library, MIN_SCORE, Piece, Question, Scope, text};

/// The `:knowledge` step.
pub struct Knowledge;

const SPEC: StepSpec = StepSpec {
    kind: "knowledge",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Finds stored documents and memories, and writes facts to a memory.\n\n\
        Documents and memories are stored with the agents API. Scores are from 0 to 1: the cosine of the vectors of the \
        embedder in `flowstone.edn`; without one, the share of the query's words that a text has. Without a filter, \
        `:search` reaches all documents and memories; with `:memory-ids` or `:memory-tags` only, no documents.",
    fields: FIELDS,
    examples: &[
        "(flow/step :knowledge :found {:op :search :query \"refund policy\" :document-paths [\"/policies/\"] :limit 3})",
        "(flow/step :knowledge :kept {:op :write :memory \"mem_01\" :content \"Prefers email over phone calls.\"})",
    ],
    effect: Effect::OwnStore,
};

const FIELDS: &[Field] = &[
    Field::optional("content", FieldType::Text, "The fact that `:write` stores."),
    Field::optional(
        "document-ids",
        FieldType::List(&FieldType::Text),
        "The documents to search.",
    ),
    Field::optional(
        "document-paths",
        FieldType::List(&FieldType::Text),
        "Beginnings of the paths of the documents to search.",
    ),
    Field::optional(
        "duplicate-threshold",
        FieldType::Number,
        "The score from which `:write` skips a fact. Default 0.95.",
    ),
    Field::optional(
        "limit",
        FieldType::IntIn(1, LIMIT.1 as i64),
        "Maximum number of results. Default 5.",
    ),
    Field::optional(
        "memory",
        FieldType::Text,
        "The memory that `:write` changes.",
    ),
    Field::optional(
        "memory-ids",
        FieldType::List(&FieldType::Text),
        "The memories to search.",
    ),
    Field::optional(
        "memory-tags",
        FieldType::List(&FieldType::Text),
        "Patterns of the tags of the memories to search, such as `user*`.",
    ),
    Field::optional(
        "min-score",
        FieldType::Number,
        "Minimum score of results, from 0 to 1. Default 0.5.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "The operation: `:search` or `:write`.",
    ),
    Field::optional(
        "project",
        FieldType::Text,
        "The id of a project of the agents API. Default: all projects.",
    ),
    Field::optional("query", FieldType::Text, "What to look for."),
    Field::optional(
        "update-threshold",
        FieldType::Number,
        "The score from which `:write` appends a fact to an entry. Default 0.75.",
    ),
];

const OPERATIONS: Operations = Operations {
    key: "op",
    code: "E1275",
    all: &[
        Operation {
            name: "search",
            doc: "Returns what answers a query, the best first.",
            needs: &["query"],
            takes: &[
                "document-ids",
                "document-paths",
                "limit",
                "memory-ids",
                "memory-tags",
                "min-score",
                "project",
            ],
            gives: r#"[:map [:results [:vector [:map [:source :keyword] [:id :string] [:text :string] [:content :string] [:score :double]]]]]"#,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "write",
            doc: "Adds a fact to a memory, unless the memory has it.",
            needs: &["content", "memory"],
            takes: &["duplicate-threshold", "project", "update-threshold"],
            gives: r#"[:map [:rows-inserted {:optional true} :int] [:rows-updated {:optional true} :int] [:skipped? {:optional true} :boolean]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
    ],
};

impl Step for Knowledge {
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
            let operation = operation(fields)?;
            let embedder =
                embedder::of_step(cx).map_err(|message| StepError::config("E0709", message))?;
            let library = Library {
                stores: cx.stores()?,
                embedder: embedder.as_ref().map(|it| it as &dyn Embedder),
                finds: None,
            };
            match operation {
                "write" => write(cx, &library, fields).await,
                _ => search(cx, &library, fields).await.map(Outcome::Value),
            }
        })
    }
}

fn operation(fields: Fields<'_>) -> Result<&'static str, StepError> {
    match SPEC.operation(fields.map, false) {
        Ok(Some(operation)) => Ok(operation.name),
        Ok(None) => Err(StepError::config(OPERATIONS.code, "`:op` is missing")),
        Err(misuse) => {
            let error = StepError::config(OPERATIONS.code, misuse.message);
            Err(misuse.hints.into_iter().fold(error, StepError::hint))
        }
    }
}

/// Reads a number from 0 to 1.
fn score(fields: Fields<'_>, key: &str, default: f64) -> Result<f64, StepError> {
    let score = fields.number(key)?.unwrap_or(default);
    match (0.0..=1.0).contains(&score) {
        true => Ok(score),
        false => Err(StepError::config(
            OPERATIONS.code,
            format!("`:{key}` must be a number from 0 to 1, got {score}"),
        )),
    }
}

async fn search(
    cx: &StepContext,
    library: &Library<'_>,
    fields: Fields<'_>,
) -> Result<Value, StepError> {
    // The search may call a model for its vector.
    let query = fields.text("query")?.unwrap_or_default();
    let question = Question {
        query: cx.redactor().text(query.to_string()),
        scope: Scope {
            project: fields.text("project")?.map(str::to_owned),
            memory_ids: fields.texts("memory-ids")?,
            memory_tags: fields.texts("memory-tags")?,
            document_ids: fields.texts("document-ids")?,
            document_paths: fields.texts("document-paths")?,
            all_memories: true,
        },
        min_score: score(fields, "min-score", MIN_SCORE)?,
        limit: fields.count("limit", 1, LIMIT.1)?.unwrap_or(LIMIT.0),
    };
    let pieces = library.find(&question).await;
    let pieces = pieces.map_err(super::KnowledgeError::into_step)?;
    let results = Value::vector(pieces.iter().map(found));
    Ok(Value::map([(Value::keyword("results"), results)]))
}

fn found(piece: &Piece) -> Value {
    let Piece { item, score } = piece;
    let mut facts = vec![
        ("id", Value::from(text(&item.record, "id"))),
        ("text", Value::from(piece.text())),
        ("content", Value::from(item.content())),
        ("score", Value::from(*score)),
    ];
    facts.extend(more(item));
    Value::map(
        facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value)),
    )
}

fn more(item: &Item) -> Vec<(&'static str, Value)> {
    match item.kind {
        Kind::Document => vec![
            ("source", Value::keyword("document")),
            ("path", Value::from(text(&item.record, "path"))),
        ],
        Kind::Entry => vec![
            ("source", Value::keyword("memory")),
            ("memory", Value::from(text(&item.memory, "id"))),
        ],
    }
}

async fn write(
    cx: &StepContext,
    library: &Library<'_>,
    fields: Fields<'_>,
) -> Result<Outcome, StepError> {
    let content = fields.text("content")?.unwrap_or_default();
    let content = cx.redactor().text(content.to_string());
    if content.trim().is_empty() {
        return Err(StepError::config(OPERATIONS.code, "`:content` is empty"));
    }
    let thresholds = (
        score(fields, "duplicate-threshold", DUPLICATE)?,
        score(fields, "update-threshold", UPDATE)?,
    );
    let place = format!("{}/{}", cx.pass_name(), cx.path());
    let key: String = digest_bytes(place.as_bytes())
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(26)
        .collect();
    let fact = Fact {
        memory: fields.text("memory")?.unwrap_or_default(),
        content: &content,
        source: "agent",
        key,
        now_ms: cx.now_ms(),
        thresholds,
    };
    // Until the change is stored, which is after this function.
    cx.keep_nothing();
    cx.keep(hold_entries(fact.memory).await);
    let written = library.write(&fact).await;
    let written = written.map_err(super::KnowledgeError::into_step)?;
    Ok(match (written.action, written.op()) {
        (Action::Created | Action::Updated, Some(op)) => {
            Outcome::Commit(StoreOp::Table(Box::new(op)))
        }
        (Action::Skipped, _) | (_, None) => {
            let skipped = (Value::keyword("skipped?"), Value::Bool(true));
            Outcome::Value(Value::map([skipped]))
        }
    })
}
