//! `:search`: finds lines that contain a text or match a pattern.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::search::Query;
use super::super::value::map;
use super::super::view::View;
use super::super::{Call, blocking};
use super::list::selection;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "search",
    doc: "Searches the text of files.",
    needs: &["query"],
    takes: &[
        "case-sensitive?",
        "changeset",
        "context",
        "glob",
        "limit",
        "prefix",
        "regex?",
        "source",
    ],
    gives: r#"[:map [:matches [:vector [:map [:path :string] [:line :int] [:column :int] [:text :string]]]] [:truncated? :boolean]]"#,
    effect: Effect::Read,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let fields = call.fields;
    let text = fields
        .text("query")?
        .filter(|query| !query.is_empty())
        .ok_or_else(|| {
            StepError::config(
                StepError::OPTION_BOUNDS,
                "`:search` needs a `:query` that is not empty",
            )
        })?;
    let query = Query {
        text: text.to_string(),
        regex: fields.bool("regex?")?.unwrap_or(false),
        case_sensitive: fields.bool("case-sensitive?")?.unwrap_or(false),
        selection: selection(fields)?,
        context: fields.count("context", 0, 20)?.unwrap_or(0),
        limit: fields.count("limit", 1, 10_000)?.unwrap_or(100),
    };
    let tree = call.tree().await?;
    let found = blocking(move |cancelled| {
        View {
            manifest: &tree.manifest,
            objects: &tree.objects,
        }
        .search(&query, &cancelled)
    })
    .await?;
    let texts = |lines: Vec<String>| Value::vector(lines.into_iter().map(Value::from));
    let matches = found.matches.into_iter().map(|it| {
        map([
            ("path", Value::from(it.path)),
            ("line", Value::from(it.line)),
            ("column", Value::from(it.column)),
            ("text", Value::from(it.text)),
            ("before", texts(it.before)),
            ("after", texts(it.after)),
        ])
    });
    Ok(Outcome::Value(map([
        ("matches", Value::vector(matches)),
        ("truncated?", Value::Bool(found.truncated)),
    ])))
}
