//! `:history`: lists the commits of a repository, newest first. An extension of the flow format.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::history::{Commit, Question, read};
use super::super::manifest::Origin;
use super::super::source::{self, Source, Spec};
use super::super::value::map;
use super::super::{Call, Limit, blocking};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "history",
    doc: "Lists the commits of a git repository, newest first.",
    needs: &["source"],
    takes: &["limit", "paths", "since"],
    gives: r#"[:map [:commits [:vector [:map [:commit :string] [:author :string] [:email :string] [:date :string] [:subject :string] [:body :string] [:files [:vector :string]]]]] [:truncated? :boolean]]"#,
    effect: Effect::Read,
    for_agents: false,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let (cx, fields) = (call.cx, call.fields);
    let source = source::read(cx, fields)?;
    let limit = fields.count("limit", 1, 10_000)?.unwrap_or(100);
    let question = Question {
        limit,
        since: fields.name("since")?.map(|since| since.to_string()),
        paths: fields.texts("paths")?,
    };
    let spec = match source {
        Source::Spec(spec) => spec,
        known @ (Source::Tree { .. } | Source::Changeset { .. }) => {
            let tree = call.files.tree(cx, &known).await?;
            again(call, tree.manifest.origin())?
        }
    };
    let home = cx.files_home().join("trees");
    let guard = spec.guard(cx)?;
    let commits = blocking(move |cancelled| {
        let timeout = match &spec {
            Spec::Git(repository) => repository.timeout,
            Spec::Folder(_) => std::time::Duration::from_secs(300),
        };
        let limit = Limit {
            timeout,
            cancelled,
            guard,
        };
        read(&spec, &question, &home, &limit)
    })
    .await?;
    let truncated = commits.len() > limit;
    let commits = commits.into_iter().take(limit).map(value);
    Ok(Outcome::Value(map([
        ("commits", Value::vector(commits)),
        ("truncated?", Value::Bool(truncated)),
    ])))
}

/// Returns the source that a tree was made from.
fn again(call: Call<'_>, origin: Option<&Origin>) -> Result<Spec, StepError> {
    let spec = match origin {
        Some(Origin::Dir { path, .. }) => map([
            ("type", Value::keyword("dir")),
            ("path", Value::from(path.as_str())),
        ]),
        Some(Origin::Git {
            repo,
            commit,
            connection,
            ..
        }) => map([
            ("type", Value::keyword("git")),
            ("repo", Value::from(repo.as_str())),
            ("ref", Value::from(commit.as_str())),
            (
                "connection",
                connection.as_deref().map_or(Value::Nil, Value::from),
            ),
        ]),
        None => Value::Nil,
    };
    let config = map([("source", spec)]);
    match source::read(call.cx, crate::fields::Fields::new(&config))? {
        Source::Spec(spec) => Ok(spec),
        Source::Tree { .. } | Source::Changeset { .. } => Err(StepError::new(
            "E0790",
            "bad-source",
            "the repository of the source is not known",
        )),
    }
}

fn value(commit: Commit) -> Value {
    map([
        ("commit", Value::from(commit.hash)),
        ("author", Value::from(commit.author)),
        ("email", Value::from(commit.email)),
        ("date", Value::from(commit.date)),
        ("subject", Value::from(commit.subject)),
        ("body", Value::from(commit.body)),
        (
            "files",
            Value::vector(commit.files.into_iter().map(Value::from)),
        ),
    ])
}
