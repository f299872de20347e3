//! `:files`: source trees that a flow can list, read and search.
//!
//! A source (a folder, a git commit) becomes an immutable tree before anything is read from it, so all
//! operations of a run on one tree see the same bytes. This file turns configs into calls and answers
//! into values; the work is in the modules below, on plain data, on threads that may block.

pub mod error;
pub mod git;
pub mod manifest;
pub mod objects;
pub mod path;
mod process;
pub mod search;
pub mod snapshot;
mod source;
pub mod view;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstone_engine::blob::{BlobHash, BlobOp};
use flowstone_engine::codec;
use flowstone_engine::ports::{StoreError, StoreOp};
use flowstone_engine::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Progress, Retry, Step,
    StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::operation::choose;
use error::FilesError;
use manifest::{Entry, Kind, Manifest};
use objects::Objects;
pub use process::Limit;
use source::{Source, Spec};
use view::{Part, Selection, View};

/// The `:files` step.
#[derive(Default)]
pub struct Files {
    /// The trees that were used last. A tree never changes, so this only saves decoding.
    recent: RefCell<VecDeque<(String, Arc<Manifest>)>>,
}

const SPEC: StepSpec = StepSpec {
    kind: "files",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Lists, reads and searches the files of a folder or a git repository.\n\n\
        The source becomes an immutable tree first: with `:op :resolve-source`, which returns a reference to use as \
        `:source` of later steps, or by itself, when `:source` says where the files are. Paths are relative to the \
        source, use `/` and cannot leave it. Files that `.gitignore` leaves out are not part of a folder's tree.",
    fields: FIELDS,
    examples: &[
        "(flow/step :files :tree {:op :resolve-source :source {:type :dir :path \".\"}})",
        "(flow/step :files :rust {:op :list :source {:type :dir :path \".\"} :glob \"**/*.rs\"})",
        "(flow/step :files :todos {:op :search :source {:type :dir :path \".\"} :query \"TODO\" :limit 20})",
    ],
    effect: Effect::Read,
};

const TEXTS: FieldType = FieldType::Either(&[FieldType::Text, FieldType::Items]);

const FIELDS: &[Field] = &[
    Field::optional(
        "case-sensitive?",
        FieldType::Bool,
        "Whether `:search` tells `a` from `A`. Default false.",
    ),
    Field::optional(
        "context",
        FieldType::Int,
        "How many lines around a match to return, 0 to 20. Default 0.",
    ),
    Field::optional(
        "cursor",
        FieldType::Text,
        "The `:next-cursor` of the page before.",
    ),
    Field::optional("end-line", FieldType::Int, "The last line to read."),
    Field::optional(
        "glob",
        TEXTS,
        "Patterns such as `**/*.rs`; one without `/` is matched against the file name.",
    ),
    Field::optional(
        "limit",
        FieldType::Int,
        "How many entries (default 1000) or matches (default 100) to return.",
    ),
    Field::optional(
        "max-chars",
        FieldType::Int,
        "How much of each file to read. Default 200000.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "What to do: `:resolve-source`, `:list`, `:read` or `:search`.",
    ),
    Field::optional("path", FieldType::Text, "The file to read."),
    Field::optional("paths", FieldType::Items, "The files to read, at most 50."),
    Field::optional(
        "prefix",
        FieldType::Text,
        "Only paths that start so, such as `src/`.",
    ),
    Field::optional(
        "query",
        FieldType::Text,
        "What to search for, within a line.",
    ),
    Field::optional(
        "regex?",
        FieldType::Bool,
        "Whether `:query` is a regular expression. Default false.",
    ),
    Field::required(
        "source",
        FieldType::Either(&[FieldType::Map, FieldType::Text]),
        "`{:type :dir :path \".\"}` (also `:ignored? true`, `:hidden? false`), `{:type :git :repo \"https://...\" :ref \"main\"}` \
         (also `:connection`, `:timeout`), or the reference or URI of a resolved tree. A source may set `:max-files`, \
         `:max-bytes` and `:max-file-bytes`.",
    ),
    Field::optional(
        "start-line",
        FieldType::Int,
        "The first line to read, counted from 1.",
    ),
];

const OPERATIONS: Operations = Operations {
    key: "op",
    all: &[
        Operation {
            name: "list",
            doc: "Lists the entries of a tree.",
            needs: &["source"],
            takes: &["cursor", "glob", "limit", "prefix"],
            gives: r#"[:map [:entries [:vector [:map [:path :string] [:size :int] [:kind :keyword]]]] [:next-cursor [:maybe :string]]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "read",
            doc: "Reads files as text.",
            needs: &["source"],
            takes: &["end-line", "max-chars", "path", "paths", "start-line"],
            gives: r#"[:map [:files [:vector [:map [:path :string] [:content [:maybe :string]] [:size :int] [:lines :int] [:truncated? :boolean]]]]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "resolve-source",
            doc: "Makes an immutable tree of a folder or a git repository.",
            needs: &["source"],
            takes: &[],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:files :int] [:bytes :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "search",
            doc: "Searches the text of files.",
            needs: &["source", "query"],
            takes: &[
                "case-sensitive?",
                "context",
                "glob",
                "limit",
                "prefix",
                "regex?",
            ],
            gives: r#"[:map [:matches [:vector [:map [:path :string] [:line :int] [:column :int] [:text :string]]]] [:truncated? :boolean]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
    ],
};

const CONTENT_TYPE: &str = "application/vnd.flowstone.source-tree+json";
const MAX_PATHS: usize = 50;

impl Step for Files {
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
            let op = choose(&SPEC, fields, "E0780")?.name;
            let source = source::read(cx, fields)?;
            let tree = self.tree(cx, &source).await?;
            match op {
                "resolve-source" => registered(cx, &source, &tree),
                "list" => list(fields, tree).await.map(Outcome::Value),
                "read" => read(fields, tree).await.map(Outcome::Value),
                _ => search(fields, tree).await.map(Outcome::Value),
            }
        })
    }
}

/// A resolved source.
#[derive(Clone)]
struct Tree {
    /// The hash of its manifest: its name in URIs and in the blob store.
    id: String,
    manifest: Arc<Manifest>,
    objects: Objects,
    /// For git.
    commit: Option<String>,
    /// Of the manifest.
    bytes: u64,
}

impl Files {
    /// Resolves a source, or finds the tree that it refers to.
    async fn tree(&self, cx: &StepContext, source: &Source) -> Result<Tree, StepError> {
        let trees = cx.home().join("trees");
        let objects = Objects::new(trees.join("objects"));
        let spec = match source {
            Source::Tree { id } => {
                let manifest = self.manifest(cx, id).await?;
                return Ok(Tree {
                    id: id.clone(),
                    manifest,
                    objects,
                    commit: None,
                    bytes: 0,
                });
            }
            Source::Spec(spec) => spec.clone(),
        };
        cx.emit(Progress::Status(format!("reading {}", spec.words())));
        let store = objects.clone();
        let (manifest, commit) = blocking(move |cancelled| match spec {
            Spec::Folder(folder) => Ok((snapshot::snapshot(&folder, &trees, &store)?, None)),
            Spec::Git(repository) => {
                let limit = Limit {
                    timeout: repository.timeout,
                    cancelled,
                };
                let (manifest, commit) = git::snapshot(&repository, &trees, &store, &limit)?;
                Ok((manifest, Some(commit)))
            }
        })
        .await?;
        let encoded = manifest.encode();
        let bytes = encoded.len() as u64;
        let id = cx.stores().blobs.put(encoded).await?.0;
        let manifest = Arc::new(manifest);
        self.remember(&id, &manifest);
        Ok(Tree {
            id,
            manifest,
            objects,
            commit,
            bytes,
        })
    }

    async fn manifest(&self, cx: &StepContext, id: &str) -> Result<Arc<Manifest>, StepError> {
        let known = self
            .recent
            .borrow()
            .iter()
            .find(|(it, _)| it == id)
            .map(|(_, manifest)| Arc::clone(manifest));
        if let Some(manifest) = known {
            return Ok(manifest);
        }
        let bytes = match cx.stores().blobs.get(&BlobHash(id.to_string())).await {
            Ok(bytes) => bytes,
            Err(StoreError::Rejected { .. }) => {
                return Err(FilesError::UnknownTree { id: id.to_string() }.into());
            }
            Err(error) => return Err(error.into()),
        };
        let manifest = Arc::new(Manifest::decode(&bytes)?);
        self.remember(id, &manifest);
        Ok(manifest)
    }

    fn remember(&self, id: &str, manifest: &Arc<Manifest>) {
        const RECENT: usize = 8;
        let mut recent = self.recent.borrow_mut();
        recent.retain(|(it, _)| it != id);
        recent.push_front((id.to_string(), Arc::clone(manifest)));
        recent.truncate(RECENT);
    }
}

/// Makes the reference to a tree, which the store registers together with the step's journal row.
fn registered(cx: &StepContext, source: &Source, tree: &Tree) -> Result<Outcome, StepError> {
    let kind = match source {
        Source::Tree { .. } => {
            return Err(
                StepError::config("E0782", "this source is resolved already")
                    .hint("give it to `:list`, `:read` or `:search` as `:source`"),
            );
        }
        Source::Spec(Spec::Folder(_)) => "dir",
        Source::Spec(Spec::Git(_)) => "git",
    };
    let uri = format!("{}{kind}/{}", source::URI, tree.id);
    let total: u64 = tree.manifest.entries().iter().map(|entry| entry.size).sum();
    let mut facts = vec![
        ("type", Value::keyword("resource-ref")),
        ("uri", Value::from(uri.as_str())),
        ("content-type", Value::from(CONTENT_TYPE)),
        ("size-bytes", int(tree.bytes)),
        ("files", Value::from(tree.manifest.entries().len())),
        ("bytes", int(total)),
    ];
    if let Some(commit) = &tree.commit {
        facts.push(("commit", Value::from(commit.as_str())));
    }
    let value = codec::encode(&map(facts)).map_err(|error| {
        StepError::new(
            error.code(),
            "internal",
            format!("the reference cannot be written: {error}"),
        )
    })?;
    tracing::debug!(step = %cx.path(), %uri, "source resolved");
    Ok(Outcome::Commit(StoreOp::Blob(BlobOp::Register {
        hash: BlobHash(tree.id.clone()),
        size: tree.bytes,
        uri,
        filename: None,
        content_type: Some(CONTENT_TYPE.to_string()),
        value,
    })))
}

async fn list(fields: Fields<'_>, tree: Tree) -> Result<Value, StepError> {
    let selection = selection(fields)?;
    let cursor = fields.text("cursor")?;
    let limit = fields.count("limit", 1, 100_000)?.unwrap_or(1000);
    let view = View {
        manifest: &tree.manifest,
        objects: &tree.objects,
    };
    let page = view.list(&selection, cursor, limit)?;
    let entries = Value::vector(page.entries.into_iter().map(entry));
    Ok(map([
        ("entries", entries),
        ("next-cursor", page.next.map_or(Value::Nil, Value::from)),
    ]))
}

fn entry(entry: &Entry) -> Value {
    let mut facts = vec![
        ("path", Value::from(entry.path.as_str())),
        ("size", int(entry.size)),
        ("kind", Value::keyword(entry.kind.name())),
    ];
    match entry.kind {
        Kind::File => facts.push(("lines", int(entry.lines))),
        Kind::Link => facts.push((
            "target",
            Value::from(entry.target.as_deref().unwrap_or_default()),
        )),
        Kind::Binary | Kind::Large | Kind::Submodule | Kind::Unreadable | Kind::Folder => {}
    }
    map(facts)
}

async fn read(fields: Fields<'_>, tree: Tree) -> Result<Value, StepError> {
    let mut paths = fields.texts("paths")?;
    match (fields.text("path")?, paths.is_empty()) {
        (Some(path), true) => paths.push(path.to_string()),
        (None, false) => {}
        (Some(_), false) => {
            return Err(StepError::config(
                "E0780",
                "`:read` takes `:path` or `:paths`, not both",
            ));
        }
        (None, true) if fields.has("paths") => {}
        (None, true) => {
            return Err(StepError::config(
                "E0780",
                "`:read` needs `:path` or `:paths`",
            ));
        }
    }
    if paths.len() > MAX_PATHS {
        return Err(StepError::config(
            "E0780",
            format!(
                "`:paths` holds {} paths, at most {MAX_PATHS} are read at once",
                paths.len()
            ),
        )
        .hint("read them in lots: `(partition-all 50 paths)`"));
    }
    let most = i64::MAX;
    let line = |key| {
        Ok::<_, StepError>(
            fields
                .int(key, 1, most)?
                .and_then(|it| u64::try_from(it).ok()),
        )
    };
    let part = Part {
        start_line: line("start-line")?,
        end_line: line("end-line")?,
        max_chars: fields.count("max-chars", 1, 50_000_000)?.unwrap_or(200_000),
    };
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
    Ok(map([("files", Value::vector(files))]))
}

async fn search(fields: Fields<'_>, tree: Tree) -> Result<Value, StepError> {
    let text = fields
        .text("query")?
        .filter(|query| !query.is_empty())
        .ok_or_else(|| {
            StepError::config("E0780", "`:search` needs a `:query` that is not empty")
        })?;
    let query = search::Query {
        text: text.to_string(),
        regex: fields.bool("regex?")?.unwrap_or(false),
        case_sensitive: fields.bool("case-sensitive?")?.unwrap_or(false),
        selection: selection(fields)?,
        context: fields.count("context", 0, 20)?.unwrap_or(0),
        limit: fields.count("limit", 1, 10_000)?.unwrap_or(100),
    };
    let found = blocking(move |_| {
        View {
            manifest: &tree.manifest,
            objects: &tree.objects,
        }
        .search(&query)
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
    Ok(map([
        ("matches", Value::vector(matches)),
        ("truncated?", Value::Bool(found.truncated)),
    ]))
}

fn selection(fields: Fields<'_>) -> Result<Selection, StepError> {
    Ok(Selection {
        prefix: fields.text("prefix")?.map(str::to_string),
        glob: fields.texts("glob")?,
    })
}

/// Runs work that blocks on a thread of its own. When the step is dropped, the work is told.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce(Arc<AtomicBool>) -> Result<T, FilesError> + Send + 'static,
) -> Result<T, StepError> {
    let cancel = CancelOnDrop(Arc::default());
    let cancelled = Arc::clone(&cancel.0);
    match tokio::task::spawn_blocking(move || work(cancelled)).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(StepError::new(
            "E0779",
            "cancelled",
            format!("the work on the files was stopped: {error}"),
        )),
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl From<FilesError> for StepError {
    fn from(error: FilesError) -> StepError {
        let (code, kind) = error.code();
        let retry = if error.is_passing() {
            Retry::Backoff
        } else {
            Retry::Never
        };
        let step = StepError::new(code, kind, error.to_string())
            .hint(error.hint())
            .retry(retry);
        match &error {
            FilesError::BadPath { path, .. }
            | FilesError::LinkOutside { path, .. }
            | FilesError::LinkCircle { path }
            | FilesError::NotFound { path, .. }
            | FilesError::NotReadable { path, .. } => step.with("path", path.as_str()),
            _ => step,
        }
    }
}

fn map<'a>(facts: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::map(
        facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value)),
    )
}

fn int(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
