//! The file of a called flow: a flow file, or a file of another format that is compiled to a flow.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_flow::mcp_interfaces::input_schema;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use crate::call_flow;
use crate::diagnostic::Severity;
use crate::disk;
use crate::disk::formats::{self, NotCalled};
use crate::flow::{self, Checked, Flow, LoadedFlow, name_of};
use crate::format::{CompiledFlow, FlowContract, FormatError};
use crate::json::from_json;
use crate::ports::RunRow;
use crate::registered;
use crate::registry::{FlowName, Target, VersionRow};
use crate::step::{RunInstallation, StepContext, StepError};

/// Number of texts that a session reads. It keeps all of them.
const TEXTS: u32 = 100;

thread_local! {
    /// The session that reads called flows, and how many it has read: making one costs more than all else about a short run.
    static READER: RefCell<(Rc<Session>, u32)> = RefCell::new((Rc::new(Session::new()), 0));
}

/// Returns a session in which nothing but reading happens.
fn reader() -> Rc<Session> {
    READER.with_borrow_mut(|(session, texts)| {
        if *texts == TEXTS {
            (*session, *texts) = (Rc::new(Session::new()), 0);
        }
        *texts += 1;
        session.clone()
    })
}

/// A file that is called.
enum Called {
    Flow(Box<Checked>),
    /// A file of another format.
    Compiled(CompiledFlow),
}

/// Returns the program of a called flow.
///
/// # Errors
/// E0545 when the project has no such flow, and why a file of another format cannot be compiled.
pub(super) async fn program(
    cx: &StepContext,
    parent: &RunRow,
    slug: &str,
) -> Result<Checked, StepError> {
    Ok(match called(cx, parent, slug).await? {
        Called::Flow(checked) => *checked,
        Called::Compiled(compiled) => disk::load_compiled(&reader(), &compiled, cx.project_root()),
    })
}

/// Finds a called flow. A run of a version of the registry calls versions; otherwise flow files come first, and a path means
/// a file of another format.
async fn called(cx: &StepContext, parent: &RunRow, slug: &str) -> Result<Called, StepError> {
    let services = &cx.scope().services;
    let stores = cx.own_stores();
    if let Some(installation) = cx.installation() {
        return of_author(cx, parent, (installation, slug)).await;
    }
    refuse_archived(cx, slug).await?;
    if let Some(target) = registered::target_of(parent) {
        let rows = (&*stores.registry, &*stores.runs);
        let version = registered::version_for(rows, parent, (slug, target)).await?;
        if let Some(version) = version {
            let checked = of_version(cx, &version, Some(target)).await?;
            return Ok(Called::Flow(Box::new(checked)));
        }
    }
    let program = cx.own_stores().runs.program(&parent.program).await?;
    let name = program.and_then(|program| flow::program_name(&program));
    let beside = name.and_then(|name| folder(cx.project_root(), &name));
    let mut near = None;
    if !formats::is_path(slug, services.formats) {
        match disk::find(cx.project_root(), beside.as_deref(), slug) {
            Ok(found) => {
                let checked = disk::load(&reader(), &found.path, &found.name);
                return Ok(Called::Flow(Box::new(checked)));
            }
            Err(other) => near = other,
        }
    }
    let found = formats::find(cx.project_root(), beside.as_deref(), slug, services.formats);
    if found.is_err()
        && let Some(checked) = only_registered(cx, parent, slug).await?
    {
        return Ok(Called::Flow(Box::new(checked)));
    }
    let found = found.map_err(|why| not_called(slug, near.as_deref(), why))?;
    let compiled = found
        .format
        .compile(services.view(), &found.file.path)
        .await;
    compiled.map(Called::Compiled).map_err(not_compiled)
}

/// Finds a flow that has no file: its released version, or the newest one if none was released, as it was when the run at the top
/// began.
async fn only_registered(
    cx: &StepContext,
    parent: &RunRow,
    slug: &str,
) -> Result<Option<Checked>, StepError> {
    let stores = cx.own_stores();
    let rows = (&*stores.registry, &*stores.runs);
    for target in [Target::Live, Target::Draft] {
        if let Some(version) = registered::version_for(rows, parent, (slug, target)).await? {
            return of_version(cx, &version, Some(target)).await.map(Some);
        }
    }
    Ok(None)
}

/// Finds a flow that a run of an installation calls: a version of the same author, as it was when the run at the top began. Files
/// of the project are not the author's.
async fn of_author(
    cx: &StepContext,
    parent: &RunRow,
    (installation, slug): (&RunInstallation, &str),
) -> Result<Called, StepError> {
    let stores = cx.own_stores();
    let flow = installation.flow.calling(slug).flow;
    let target = Target::Live;
    let rows = (&*stores.registry, &*stores.runs);
    let version = registered::version_of(rows, parent, (&flow, target)).await?;
    match version {
        Some(version) => {
            let checked = of_version(cx, &version, Some(target)).await?;
            Ok(Called::Flow(Box::new(checked)))
        }
        None => {
            let message = format!("the author of this flow has released no flow `{slug}`");
            Err(StepError::new("E0545", "not-found", message)
                .hint("an installed flow calls released flows of its author"))
        }
    }
}

/// Refuses to start an archived flow.
async fn refuse_archived(cx: &StepContext, slug: &str) -> Result<(), StepError> {
    let row = cx
        .own_stores()
        .registry
        .flow(&FlowName::local(slug))
        .await?;
    if row.is_none_or(|row| row.archived_ms.is_none()) {
        return Ok(());
    }
    let message = format!("the flow `{slug}` is archived");
    Err(StepError::new(registered::ARCHIVED, "archived", message)
        .hint(format!("`flowstone flows archive {slug} --undo` ends that")))
}

/// Reads the flow of a version.
pub(super) async fn of_version(
    cx: &StepContext,
    version: &VersionRow,
    target: Option<Target>,
) -> Result<Checked, StepError> {
    let registry = &*cx.own_stores().registry;
    let texts = registered::texts_of(registry, version).await?;
    let mut checked = disk::load_version(&reader(), &version.flow.slug, &texts);
    registered::pin(&mut checked, version, target);
    Ok(checked)
}

/// Which version of a called flow a config names.
pub(super) enum Named {
    Number(i64),
    Target(Target),
}

/// Returns the program of a version that a config names; for the draft of a flow that was never pushed, that of its file.
///
/// # Errors
/// When there is no such version, or the flow has no release.
pub(super) async fn named(
    cx: &StepContext,
    parent: &RunRow,
    (slug, named): (&str, Named),
) -> Result<Checked, StepError> {
    let registry = &*cx.own_stores().registry;
    let flow = match cx.installation() {
        Some(installation) => installation.flow.calling(slug).flow,
        None => FlowName::local(slug),
    };
    let row = registry.flow(&flow).await?;
    let (number, target) = match (&row, named) {
        (None, Named::Target(Target::Draft)) => return program(cx, parent, slug).await,
        (_, Named::Number(number)) => (Some(number), None),
        (Some(row), Named::Target(Target::Draft)) => (Some(row.head), Some(Target::Draft)),
        (row, Named::Target(Target::Live)) => {
            let live = row.as_ref().and_then(|row| row.live);
            (live, Some(Target::Live))
        }
    };
    if cx.installation().is_none() {
        refuse_archived(cx, slug).await?;
    }
    let Some(number) = number else {
        let message = format!("the flow `{slug}` has no released version");
        return Err(
            StepError::new(registered::NOT_RELEASED, "not-found", message)
                .hint(format!("`flowstone flows release {slug}` releases one")),
        );
    };
    match registry.version(&flow, number).await? {
        Some(version) => of_version(cx, &version, target).await,
        None => {
            let message = format!("the flow `{slug}` has no version {number}");
            Err(StepError::new(registered::NO_VERSION, "not-found", message)
                .hint(format!("`flowstone flows versions {slug}` lists them")))
        }
    }
}

fn not_called(slug: &str, near: Option<&str>, why: NotCalled) -> StepError {
    let (code, kind, message) = match why {
        NotCalled::Missing => (
            "E0545",
            "not-found",
            format!("the project has no flow `{slug}`"),
        ),
        NotCalled::Outside => (
            "E0545",
            "denied",
            format!(
                "the path `{slug}` leads outside the project, or to files that flows do not read"
            ),
        ),
        NotCalled::OtherFormat => (
            "E0546",
            "invalid",
            format!("`{slug}` is neither a graph spec nor a behaviour tree"),
        ),
    };
    let error = StepError::new(code, kind, message).with("flow-slug", slug);
    match near {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(call_flow::WHERE),
    }
}

fn not_compiled(error: FormatError) -> StepError {
    let refused = StepError::new(error.code, "invalid", error.message);
    match error.hint {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Returns what a caller has to know about a flow, as data.
///
/// # Errors
/// When the flow does not exist or cannot be run.
pub(super) async fn describe(cx: &StepContext, config: &Value) -> Result<Value, StepError> {
    let slug = slug_of(config);
    let missing = || StepError::new("E0500", "store", "the run itself is missing");
    if let Some(named) = call_flow::installation(config) {
        let (loaded, _) = super::installed::find(cx, (&slug, &named), config).await?;
        return Ok(data_of(contract_of(&loaded.flow)));
    }
    let parent = cx.own_stores().runs.find(cx.run_id()).await?;
    let contract = match called(cx, &parent.ok_or_else(missing)?, &slug).await? {
        Called::Flow(checked) => of_flow(&slug, *checked)?,
        Called::Compiled(compiled) => compiled.contract,
    };
    Ok(data_of(contract))
}

fn data_of(contract: FlowContract) -> Value {
    let text = |text: &str| Value::from(text);
    let keys = contract.result_keys.iter().map(|key| text(key));
    let mut entries = vec![
        (Value::keyword("name"), text(&contract.name)),
        (
            Value::keyword("input-schema"),
            from_json(&contract.input_schema),
        ),
    ];
    if let Some(description) = &contract.description {
        entries.push((Value::keyword("description"), text(description)));
    }
    if !contract.result_keys.is_empty() {
        entries.push((Value::keyword("result-keys"), Value::vector(keys)));
    }
    Value::map(entries)
}

fn of_flow(slug: &str, checked: Checked) -> Result<FlowContract, StepError> {
    Ok(contract_of(&usable(slug, checked)?.flow))
}

fn contract_of(flow: &Flow) -> FlowContract {
    FlowContract {
        name: flow.slug.to_string(),
        description: flow.description.as_deref().map(str::to_owned),
        input_schema: input_schema(flow.default_invocation()),
        result_keys: &[],
    }
}

/// Returns the folder of the file that a program was read from.
fn folder(project_root: &Path, name: &str) -> Option<PathBuf> {
    [PathBuf::from(name), project_root.join(name)]
        .into_iter()
        .find(|path| path.is_file())
        .and_then(|path| {
            let folder = path.parent()?;
            Some(match folder.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => folder.to_owned(),
            })
        })
}

/// Returns the name of the flow that a config calls.
pub(super) fn slug_of(config: &Value) -> Rc<str> {
    let slug = config.get("flow-slug").and_then(name_of);
    slug.unwrap_or_default()
}

/// Returns the flow of a file without errors.
///
/// # Errors
/// E0546, with the first error of the file.
pub(super) fn usable(slug: &str, checked: Checked) -> Result<LoadedFlow, StepError> {
    let worst = checked
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error);
    let what = worst.map_or("it holds no flow", |finding| &*finding.message);
    let message = format!("the flow `{slug}` cannot be run: {what}");
    let error = || {
        StepError::new("E0546", "invalid", message.as_str())
            .hint("`flowstone check` says what is wrong with it, and where")
    };
    match (worst, checked.loaded) {
        (None, Some(loaded)) => Ok(loaded),
        _ => Err(error()),
    }
}
