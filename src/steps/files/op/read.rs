//! `:read`: files as text.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::manifest::Kind;
use super::super::value::{int, map};
use super::super::view::{Part, View};
use super::super::{Call, blocking};
use crate::fields::Fields;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "read",
    doc: "Reads files as text.",
    needs: &[],
    takes: &[
        "changeset",
        "end-line",
        "max-chars",
        "path",
        "paths",
        "source",
        "start-line",
    ],
    gives: r#"[:map [:files [:vector [:map [:path :string] [:content [:maybe :string]] [:size :int] [:lines :int] [:truncated? :boolean]]]]]"#,
    effect: Effect::Read,
    for_agents: true,
};

const MAX_PATHS: usize = 50;

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let paths = paths(call.fields)?;
    let part = part(call.fields)?;
    let tree = call.tree().await?;
    let files = blocking(move |_| {
        let view = View {
            manifest: &tree.manifest,
            objects: &tree.objects,
        };
        paths
            .iter()
            .map(|path| view.read(path, part))
            .collect::<Result<Vec<_>, _>>()
    })
    .await?;
    let files = files.into_iter().map(|file| {
        let mut facts = vec![
            ("path", Value::from(file.path)),
            ("content", file.content.map_or(Value::Nil, Value::from)),
            ("size", int(file.size)),
            ("lines", int(file.lines)),
            ("truncated?", Value::Bool(file.truncated)),
        ];
        if file.kind == Kind::Binary {
            facts.push(("kind", Value::keyword(file.kind.name())));
        }
        map(facts)
    });
    Ok(Outcome::Value(map([("files", Value::vector(files))])))
}

fn paths(fields: Fields<'_>) -> Result<Vec<String>, StepError> {
    let bad = |message: &str| Err(StepError::config(StepError::OPTION_FIT, message));
    let mut paths = fields.texts("paths")?;
    match (fields.text("path")?, paths.is_empty()) {
        (Some(path), true) => paths.push(path.to_string()),
        (None, false) => {}
        (Some(_), false) => return bad("`:read` takes `:path` or `:paths`, not both"),
        (None, true) if fields.has("paths") => {}
        (None, true) => return bad("`:read` needs `:path` or `:paths`"),
    }
    if paths.len() > MAX_PATHS {
        let message = format!(
            "`:paths` holds {} paths, at most {MAX_PATHS} are read at once",
            paths.len()
        );
        return Err(StepError::config(StepError::OPTION_BOUNDS, message)
            .hint("read them in batches: `(partition-all 50 paths)`"));
    }
    Ok(paths)
}

fn part(fields: Fields<'_>) -> Result<Part, StepError> {
    let line = |key| {
        let line = fields.int(key, 1, i64::MAX)?;
        Ok::<_, StepError>(line.and_then(|it| u64::try_from(it).ok()))
    };
    Ok(Part {
        start_line: line("start-line")?,
        end_line: line("end-line")?,
        max_chars: fields.count("max-chars", 1, 50_000_000)?.unwrap_or(200_000),
    })
}
