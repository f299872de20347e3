//! `/api/v1/installations`: flows that somebody has installed, in the workspace of the caller.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flowstone_engine::installation::InstallationName;
use flowstone_engine::installations::InstalledError;
use flowstone_engine::registry::{DEFAULT_WORKSPACE, FlowName};
use flowstone_engine::token::Scope;
use flowstone_lang::value::Value;
use flowstone_project::installations::{self, Changes, InstallationError, NewInstallation};
use serde_json::json;

use super::access::Caller;
use super::answer::Answer;
use super::flows::no_flow;
use super::operation::{self as shape, Content, Kind, Operation, Operations, Param, names};
use super::problem::Problem;
use super::request::{Given, Members, Query};
use super::server::{EngineContext, Shared};
use crate::json::{Installation, installation_json};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/installations",
                "listInstallations",
                "Lists the installations of the caller's workspace.",
            )
            .scope(Scope::Read)
            .query(WHERE)
            .ok(shape::list::<Installation>("installations")),
            list,
        )
        .with(
            Operation::post(
                "/api/v1/installations",
                "installFlow",
                "Installs the released version of a flow of the registry.",
            )
            .scope(Scope::Edit)
            .members(INSTALL)
            .json(
                StatusCode::CREATED,
                "The installation.",
                shape::of::<Installation>(),
            )
            .refuses(&[409]),
            install,
        )
        .with(
            Operation::get(
                "/api/v1/installations/{name}",
                "getInstallation",
                "Returns an installation, what it needs, and whether it is ready to run.",
            )
            .scope(Scope::Read)
            .query(WHERE)
            .ok(shape::of::<Installation>()),
            show,
        )
        .with(
            Operation::post(
                "/api/v1/installations/{name}/configure",
                "configureInstallation",
                "Gives an installation connections, setup values and limits, or upgrades it.",
            )
            .scope(Scope::Edit)
            .members(CONFIGURE)
            .ok(shape::of::<Installation>())
            .refuses(&[409]),
            configure,
        )
        .with(
            Operation::delete(
                "/api/v1/installations/{name}",
                "uninstallFlow",
                "Removes an installation. What its runs have made stays.",
            )
            .scope(Scope::Edit)
            .query(WHERE)
            .reply(StatusCode::NO_CONTENT, "It is removed.", Content::Nothing),
            uninstall,
        )
}

const WORKSPACE: Param = Param::text(
    "workspace",
    "The workspace, for the operator of the home; that of the token if it is left out.",
);
const WHERE: &[Param] = &[WORKSPACE];
const INSTALL: &[Param] = &[
    Param::text(
        "name",
        "The name of the installation; the slug if it is left out.",
    ),
    Param::text("slug", "The flow.").needed(),
    WORKSPACE,
];
const CONFIGURE: &[Param] = &[
    Param::flag(
        "autoUpgrade",
        "Whether a start uses the newest release, if it needs nothing more.",
    ),
    Param::number(
        "maxTokens",
        "How many tokens models may use in all its runs together; 0: as many as the author allows.",
    ),
    Param::new(
        "set",
        Kind::Object,
        "Names of connections by slot; an empty name takes one away.",
    ),
    Param::new(
        "setup",
        Kind::Any,
        "Values of the setup forms, an object; null takes a value away.",
    ),
    Param::flag(
        "upgrade",
        "Uses the released version from now on, and agrees to what it needs.",
    ),
    shape::GIVEN,
    WORKSPACE,
];

impl From<InstalledError> for Problem {
    fn from(error: InstalledError) -> Problem {
        InstallationError::from(error).into()
    }
}

impl From<InstallationError> for Problem {
    fn from(error: InstallationError) -> Problem {
        match error {
            InstallationError::Registry(error) => return error.into(),
            InstallationError::Engine(error) => return error.into(),
            InstallationError::Store(error) => return error.into(),
            _ => {}
        }
        let status = match error.kind() {
            "not_found" => StatusCode::NOT_FOUND,
            "invalid_arguments" => StatusCode::BAD_REQUEST,
            "check_failed" => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::CONFLICT,
        };
        let problem = Problem::new(status, error.code(), error.to_string());
        let problem = problem.with("kind", json!(error.kind()));
        match error.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// Returns the workspace that a request is about. Another one than the caller's does not exist.
fn workspace(caller: &Caller, named: Option<String>) -> String {
    match named {
        Some(named) if caller.token.is_operator() => named,
        _ => caller.token.workspace().to_owned(),
    }
}

/// Returns the installation that a request names, as the caller's `NAME`, or as `WORKSPACE/NAME`.
pub(super) fn named(
    caller: &Caller,
    workspace_given: Option<String>,
    name: &str,
) -> Result<InstallationName, Problem> {
    let (given, name) = match name.split_once('/') {
        Some((workspace, name)) => (Some(workspace.to_owned()), name),
        None => (workspace_given, name),
    };
    let at = InstallationName {
        workspace: workspace(caller, given.clone()),
        name: name.to_owned(),
    };
    match given {
        Some(given) if given != at.workspace => {
            let at = InstallationName {
                workspace: given,
                name: name.to_owned(),
            };
            Err(InstalledError::Missing { at, near: None }.into())
        }
        _ => Ok(at),
    }
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let named = Query::read(query.as_deref(), &names(WHERE))?.owned("workspace");
    let only = match caller.token.is_operator() {
        true => named,
        false => Some(caller.token.workspace().to_owned()),
    };
    let all = server
        .ask(async move |cx: &EngineContext| {
            let mut all = installations::list(&cx.engine, only.as_deref()).await?;
            all.retain(|shown| caller.reaches_installation(&shown.row).is_ok());
            let all = all.iter().map(installation_json);
            Ok::<_, Problem>(all.collect::<Vec<_>>())
        })
        .await?;
    Ok(Answer::ok(json!({"installations": all})))
}

async fn install(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(INSTALL)).await?;
    let slug = given.text("slug")?.unwrap_or_default();
    let name = given.text("name")?.unwrap_or_else(|| slug.clone());
    let at = named(&caller, given.text("workspace")?, &name)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let flow = FlowName {
                workspace: DEFAULT_WORKSPACE.to_owned(),
                slug: slug.clone(),
            };
            let is_public = installations::is_public(&cx.engine, &flow).await;
            let labels = cx.catalog.labels(&cx.engine, &slug);
            let is_own = caller.token.reaches_flow(&slug, &labels);
            if !is_own && !is_public.unwrap_or(false) {
                return Err(no_flow(&slug));
            }
            let new = NewInstallation {
                flow,
                at,
                is_readable: false,
            };
            let shown = installations::install(&cx.engine, new).await?;
            Ok::<_, Problem>(installation_json(&shown))
        })
        .await?;
    server.registry_changed();
    Ok(Answer::with(StatusCode::CREATED, shown))
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &names(WHERE))?;
    let at = named(&caller, query.owned("workspace"), &name)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let row = installations::find(&cx.engine, &at).await?;
            caller.reaches_installation(&row)?;
            let shown = installations::show(&cx.engine, &at).await?;
            Ok::<_, Problem>(installation_json(&shown))
        })
        .await?;
    Ok(Answer::ok(shown))
}

async fn configure(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(CONFIGURE)).await?;
    let at = named(&caller, given.text("workspace")?, &name)?;
    let set: Vec<(String, String)> = match given.get("set") {
        None => Vec::new(),
        Some(_) => given
            .object("set")?
            .into_iter()
            .map(|(slot, name)| (slot, name.as_str().unwrap_or_default().to_owned()))
            .collect(),
    };
    let setup = given.value("setup", given.values()?)?;
    let auto_upgrade = given.flag("autoUpgrade")?;
    let (max_tokens, upgrade) = (given.number("maxTokens")?, given.flag("upgrade")?);
    if max_tokens.is_some_and(|most| most < 0) {
        return Err(Problem::malformed("`maxTokens` is a number from 0"));
    }
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let row = installations::find(&cx.engine, &at).await?;
            caller.reaches_installation(&row)?;
            let changes = Changes {
                set: set.into_iter().collect(),
                setup: setup
                    .as_ref()
                    .map(Given::value)
                    .filter(|it| *it != Value::Nil),
                auto_upgrade,
                max_tokens,
                upgrade: upgrade.unwrap_or_default(),
            };
            let shown = installations::configure(&cx.engine, &at, changes).await?;
            Ok::<_, Problem>(installation_json(&shown))
        })
        .await?;
    server.registry_changed();
    Ok(Answer::ok(shown))
}

async fn uninstall(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    caller.need(Scope::Edit)?;
    let query = Query::read(query.as_deref(), &names(WHERE))?;
    let at = named(&caller, query.owned("workspace"), &name)?;
    server
        .ask(async move |cx: &EngineContext| {
            let row = installations::find(&cx.engine, &at).await?;
            caller.reaches_installation(&row)?;
            installations::uninstall(&cx.engine, &at).await?;
            Ok::<_, Problem>(())
        })
        .await?;
    server.registry_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}
