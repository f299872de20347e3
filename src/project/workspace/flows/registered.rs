//! Flows of the registry, as the operations of `:workspace` show them.

use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::registry::{FlowRow, MAIN_FILE, Target, VersionRow};

use super::super::text;
use super::{RequestedFlow, Wanted};
use crate::registry::{FlowRegistry, RegistryError, VersionRef, read_version, texts};

/// A version of a flow, and where the pointers of the flow are.
pub(super) struct Registered {
    version: VersionRow,
    row: FlowRow,
    /// The paths of the files that the main one includes.
    includes: Vec<String>,
}

impl Registered {
    /// Returns what is reported of a version beside its number.
    pub(super) fn facts(&self) -> Vec<(&'static str, Value)> {
        let version = &self.version;
        let includes = self.includes.iter().map(|path| Value::from(path.as_str()));
        vec![
            ("revision", Value::from(version.revision.as_str())),
            ("author", text(Some(&*version.author))),
            ("message", text(Some(&*version.message))),
            ("live", self.row.live.map_or(Value::Nil, Value::Int)),
            ("draft", Value::Int(self.row.head)),
            (
                "includes",
                match self.includes.is_empty() {
                    true => Value::Nil,
                    false => Value::vector(includes),
                },
            ),
        ]
    }
}

/// A version that was read.
pub(super) struct ReadVersion {
    pub(super) loaded: Option<LoadedFlow>,
    text: String,
    includes: Vec<String>,
}

pub(super) fn registry(cx: &StepContext) -> Result<FlowRegistry, StepError> {
    Ok(FlowRegistry::new(cx.stores()?, cx.now_ms()))
}

/// Returns all flows of the registry.
pub(super) async fn rows(cx: &StepContext) -> Result<Vec<FlowRow>, StepError> {
    registry(cx)?.flows(true).await.map_err(of_registry)
}

/// Returns a flow of the registry; `None` if it has no versions.
pub(super) async fn row(cx: &StepContext, slug: &str) -> Result<Option<FlowRow>, StepError> {
    registry(cx)?.find(slug).await.map_err(of_registry)
}

/// Reads the released version of a flow, or the newest if none is.
pub(super) async fn current(cx: &StepContext, row: &FlowRow) -> Result<ReadVersion, StepError> {
    let number = VersionRef::Number(row.live.unwrap_or(row.head));
    let registry = registry(cx)?;
    let version = registry.version(&row.name.slug, &number).await;
    read(&registry, &version.map_err(of_registry)?).await
}

async fn read(registry: &FlowRegistry, version: &VersionRow) -> Result<ReadVersion, StepError> {
    let files = registry.files(version).await.map_err(of_registry)?;
    let texts = texts(&files).map_err(of_registry)?;
    let loaded = read_version(&Session::new(), &version.flow.slug, &texts).loaded;
    let includes = texts.keys().filter(|path| *path != MAIN_FILE);
    Ok(ReadVersion {
        loaded,
        includes: includes.cloned().collect(),
        text: texts.get(MAIN_FILE).cloned().unwrap_or_default(),
    })
}

/// Finds a version of a flow.
pub(super) async fn asked(
    cx: &StepContext,
    row: &FlowRow,
    wanted: Wanted,
) -> Result<RequestedFlow, StepError> {
    let slug = &row.name.slug;
    let (source, wanted) = match wanted {
        Wanted::Active => ("active", VersionRef::Number(row.live.unwrap_or(row.head))),
        Wanted::Latest => ("latest", VersionRef::Target(Target::Draft)),
        Wanted::Target(target) => (target.name(), VersionRef::Target(target)),
        Wanted::Number(number) => ("version", VersionRef::Number(number)),
        Wanted::Revision(id) => ("version", VersionRef::Revision(id)),
        Wanted::Program(hash) => return Err(unknown(slug, &Wanted::Program(hash))),
    };
    let registry = registry(cx)?;
    let version = registry.version(slug, &wanted).await;
    let version = version.map_err(of_registry)?;
    let read = read(&registry, &version).await?;
    Ok(RequestedFlow {
        slug: slug.as_str().into(),
        source,
        file: None,
        version: Value::Int(version.number),
        text: read.text,
        loaded: read.loaded,
        problem: None,
        registered: Some(Registered {
            version,
            row: row.clone(),
            includes: read.includes,
        }),
    })
}

/// The error for a version of a flow that has none.
pub(super) fn unknown(slug: &str, wanted: &Wanted) -> StepError {
    let message = match wanted {
        Wanted::Target(Target::Draft) => format!("there is no draft of `{slug}`"),
        Wanted::Target(Target::Live) => format!("no version of `{slug}` was released"),
        _ => format!("the registry has no version of `{slug}`"),
    };
    StepError::new("E0839", "not-found", message).hint("`:flows/push-draft` makes one")
}

/// Converts an error of the registry to an error of the step, with what an agent can do.
pub(super) fn of_registry(error: RegistryError) -> StepError {
    let (code, message) = (error.code(), error.to_string());
    let newest = |head: i64| {
        format!(
            "version {head} is the newest: read it with `:flows/pull`, apply your change to it, and push that with \
             `:base {head}`"
        )
    };
    match error {
        RegistryError::Store(error) => error.into(),
        RegistryError::Conflict(conflict) => {
            let head = conflict.head.as_ref().map(|head| head.number);
            let paths = conflict
                .changed
                .iter()
                .map(|path| Value::from(path.as_str()));
            let refused = StepError::new(code, "revision_conflict", message)
                .with("slug", conflict.slug.as_str())
                .with("changed", Value::vector(paths))
                .with("diff", conflict.diff.as_str());
            match head {
                Some(head) => refused.with("current-version", head).hint(newest(head)),
                None => refused.hint("leave `:base` out: the flow does not exist yet"),
            }
        }
        RegistryError::NoBase { slug, head } => StepError::new(code, "revision_conflict", message)
            .with("slug", slug.as_str())
            .with("current-version", head)
            .hint(newest(head)),
        RegistryError::NoFlow { .. } | RegistryError::NoVersion { .. } => {
            StepError::new(code, "not-found", message)
                .hint("`:flows/show` has the versions of a flow")
        }
        RegistryError::NotReleased { .. } => StepError::new(code, "not-found", message)
            .hint("`:source :draft` is the newest version"),
        error => {
            let refused = StepError::new(code, "invalid", message);
            match error.hint() {
                Some(hint) => refused.hint(hint),
                None => refused,
            }
        }
    }
}
