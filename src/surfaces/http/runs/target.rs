//! Which version of a flow a start names: the served one, a pointer of the registry, or a number there.

use std::rc::Rc;

use axum::http::StatusCode;
use flowstone_engine::StartedInstallation;
use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::diagnostic::Severity;
use flowstone_engine::registry::Target;
use flowstone_project::installations;
use flowstone_project::registry::{FlowRegistry, RegistryError, VersionRef};

use super::super::access::Caller;
use super::super::flows::no_flow;
use super::super::installations::named;
use super::super::problem::Problem;
use super::super::server::EngineContext;
use super::{Start, served};

/// Maximum number of digits of a version's number; what is longer begins a digest.
const NUMBER: usize = 9;

/// Refuses a start that names a version twice.
pub(super) fn refuse_both(start: &Start) -> Result<(), Problem> {
    let (target, version) = (start.target.is_some(), start.version.is_some());
    match (&start.installation, target, version) {
        (None, true, true) => Err(Problem::malformed("`target` and `version` exclude each other")
            .hint("`target` names the newest or the released version, `version` any other")),
        (Some(_), true, _) | (Some(_), _, true) => Err(Problem::malformed(
            "a run of an installation takes neither `target` nor `version`",
        )
        .hint("an installation keeps its version until it is upgraded: `POST /api/v1/installations/{name}/configure`")),
        (Some(_), false, false) | (None, _, _) => Ok(()),
    }
}

/// Returns the flow that a start names, if the caller reaches it.
pub(super) async fn to_start(
    cx: &EngineContext,
    caller: &Caller,
    (slug, version, target): (&str, Option<&str>, Option<&str>),
) -> Result<Rc<ServedFlow>, Problem> {
    let number = version.filter(|version| version.len() <= NUMBER);
    let number = number.and_then(|version| version.parse::<i64>().ok());
    let wanted = match (target, number) {
        (None, None) => None,
        (Some(name), _) => match Target::named(name) {
            Some(target) => Some(VersionRef::Target(target)),
            None => {
                let detail = format!("`target` must be `draft` or `live`, got `{name}`");
                return Err(Problem::malformed(detail));
            }
        },
        (None, Some(number)) => Some(VersionRef::read(&number.to_string())?),
    };
    let registry = FlowRegistry::new(cx.engine.stores(), cx.engine.now_ms());
    let Some(row) = registry.find(slug).await? else {
        return match target {
            Some(_) => Err(no_flow(slug)),
            None => served(cx, caller, slug, version),
        };
    };
    let labels = cx.catalog.labels(&cx.engine, slug);
    if row.archived_ms.is_some() && caller.token.reaches_flow(slug, &labels) {
        let slug = slug.to_owned();
        return Err(RegistryError::Archived { slug }.into());
    }
    let Some(wanted) = wanted else {
        return served(cx, caller, slug, version);
    };
    let version = registry.version(slug, &wanted).await?;
    let target = match wanted {
        VersionRef::Target(target) => Some(target),
        VersionRef::Number(_) | VersionRef::Revision(_) => None,
    };
    let session = Rc::new(cx.engine.session());
    let checked = cx.engine.version_flow(&session, &version, target).await?;
    let worst = checked
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error);
    if let Some(worst) = worst {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, worst.code, worst.message.clone()));
    }
    let flow = checked
        .loaded
        .map(|loaded| ServedFlow::of_version(slug, loaded));
    let flow = flow.filter(|flow| caller.token.reaches_flow(slug, &flow.labels));
    flow.map(Rc::new).ok_or_else(|| no_flow(slug))
}

/// Returns the flow of an installation, and how its runs start, if the caller is its installer.
pub(super) async fn installed(
    cx: &EngineContext,
    caller: &Caller,
    (slug, name): (&str, &str),
) -> Result<(Rc<ServedFlow>, StartedInstallation), Problem> {
    let at = named(caller, None, name)?;
    let row = installations::find(&cx.engine, &at).await?;
    caller.reaches_installation(&row)?;
    let session = Rc::new(cx.engine.session());
    let (checked, started) = installations::to_start(&cx.engine, &session, &at).await?;
    let worst = checked
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error);
    if let Some(worst) = worst {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, worst.code, worst.message.clone()));
    }
    let flow = checked
        .loaded
        .filter(|_| started.flow.flow.slug == slug)
        .map(|loaded| Rc::new(ServedFlow::of_version(slug, loaded)));
    Ok((flow.ok_or_else(|| no_flow(slug))?, started))
}
