//! `/api/v1/registry`: versions of flows, and the pointers to them.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::registry::MAIN_FILE;
use flowstone_engine::token::Scope;
use flowstone_project::registry::{
    Base, FlowRegistry, NewCommit, RegistryError, VersionFiles, VersionRef, check_version,
    deploy_key,
};
use serde_json::{Value, json};

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::flows::no_flow;
use super::operation::{
    self as shape, CURSOR, Kind, LIMIT, Operation, Operations, Param, Shape, names,
};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use crate::json::{
    FlowRelease, PushedFlow, RegisteredFlow, RegistryVersion, ReleasedFlow, VersionDifference,
    moved_json, pushed_json, registered_json, registry_details, registry_flow_json,
    registry_version_json, version_diff_json, version_with_files_json,
};

pub(super) fn operations() -> Operations {
    let all = Operations::default()
        .with(
            Operation::get(
                "/api/v1/registry",
                "listRegisteredFlows",
                "Lists the flows of the registry.",
            )
            .scope(Scope::Read)
            .query(LIST)
            .ok(shape::list::<RegisteredFlow>("flows")),
            list,
        )
        .with(
            Operation::get(
                "/api/v1/registry/{slug}",
                "getRegisteredFlow",
                "Returns a flow of the registry with the versions that are draft and live, and its last releases.",
            )
            .scope(Scope::Read)
            .ok(shown()),
            show,
        )
        .with(
            Operation::get(
                "/api/v1/registry/{slug}/versions",
                "listRegistryVersions",
                "Lists the versions of a flow in the registry, newest first.",
            )
            .scope(Scope::Read)
            .query(&[CURSOR, LIMIT])
            .ok(shape::page::<RegistryVersion>("versions")),
            versions,
        )
        .with(
            Operation::get(
                "/api/v1/registry/{slug}/versions/{version}",
                "getRegistryVersion",
                "Returns a version, named by its number, its revision, `draft` or `live`, with the texts of its files.",
            )
            .scope(Scope::Edit)
            .ok(Shape::Members(vec![
                ("version", shape::of::<RegistryVersion>()),
                ("files", Shape::Map(Box::new(Shape::Text))),
            ])),
            version,
        );
    changes(all)
}

/// Adds the operations that change something, and the difference of versions.
#[expect(
    clippy::too_many_lines,
    reason = "one entry a route: a table of contents"
)]
fn changes(all: Operations) -> Operations {
    all.with(
        Operation::post(
            "/api/v1/registry/{slug}/versions",
            "pushFlow",
            "Adds a version of a flow, if it was made from the newest one.",
        )
        .scope(Scope::Edit)
        .members(PUSH)
        .ok(shape::of::<PushedFlow>())
        .refuses(&[409, 422]),
        push,
    )
    .with(
        Operation::get(
            "/api/v1/registry/{slug}/copies",
            "getWorkingCopy",
            "Returns the version that a working copy has.",
        )
        .scope(Scope::Edit)
        .query(COPY)
        .ok(Shape::Members(vec![
            ("version", Shape::Maybe(Box::new(Shape::Number))),
            ("content", Shape::Maybe(Box::new(Shape::Text))),
        ])),
        copy,
    )
    .with(
        Operation::post(
            "/api/v1/registry/{slug}/copies",
            "checkOutWorkingCopy",
            "Records the version that a working copy has now.",
        )
        .scope(Scope::Edit)
        .members(CHECK_OUT)
        .ok(Shape::Members(vec![("version", Shape::Number)])),
        check_out,
    )
    .with(
        Operation::get(
            "/api/v1/registry/{slug}/diff",
            "diffRegistryVersions",
            "Returns the difference between two versions of a flow.",
        )
        .scope(Scope::Edit)
        .query(DIFF)
        .ok(shape::of::<VersionDifference>()),
        diff,
    )
    .with(
        Operation::post(
            "/api/v1/registry/{slug}/release",
            "releaseFlow",
            "Makes a version live.",
        )
        .scope(Scope::Edit)
        .members(RELEASE)
        .ok(shape::of::<ReleasedFlow>())
        .refuses(&[409]),
        release,
    )
    .with(
        Operation::post(
            "/api/v1/registry/{slug}/rollback",
            "rollBackFlow",
            "Makes the version live that was released before, or a given one. Runs and data stay as they are.",
        )
        .scope(Scope::Edit)
        .members(ROLLBACK)
        .ok(shape::of::<ReleasedFlow>())
        .refuses(&[409]),
        rollback,
    )
    .with(
        Operation::post(
            "/api/v1/registry/{slug}/archive",
            "archiveFlow",
            "Archives a flow, so that it does not start any more, or ends that.",
        )
        .scope(Scope::Edit)
        .members(ARCHIVE)
        .ok(shape::of::<RegisteredFlow>()),
        archive,
    )
}

const LIST: &[Param] = &[Param::flag("archived", "Archived flows, too.")];
const PUSH: &[Param] = &[
    Param::number(
        "base",
        "The version that the files were made from; 0 or nothing for a new flow.",
    ),
    Param::new(
        "files",
        Kind::Object,
        "The texts by their paths; the main one is `flow.edn`.",
    )
    .needed(),
    Param::flag("force", "Follows whatever is the newest version."),
    Param::text("message", "What changed; derived if it is left out."),
    Param::text(
        "place",
        "A name of the working copy: without `base`, the version that it had last is the base.",
    ),
];
const COPY: &[Param] = &[Param::text("place", "The name of the working copy.").needed()];
const CHECK_OUT: &[Param] = &[
    Param::text("place", "The name of the working copy.").needed(),
    Param::number("version", "The version that it was made of.").needed(),
];
const DIFF: &[Param] = &[
    Param::text("from", "The earlier version.").needed(),
    Param::text("to", "The later version; `draft` if it is left out."),
];
const KEY: Param = Param::text("deployKey", "The deploy key, if the flow asks for one.");
const RELEASE: &[Param] = &[
    KEY,
    Param::text("message", "A note for the log."),
    Param::number("version", "The version; the newest if it is left out."),
];
const ROLLBACK: &[Param] = &[
    KEY,
    Param::text("message", "A note for the log."),
    Param::number(
        "to",
        "The version; the one that was released before if it is left out.",
    ),
];
const ARCHIVE: &[Param] = &[Param::flag("undo", "Ends that the flow is archived.")];

fn shown() -> Shape {
    let version = || shape::of::<RegistryVersion>();
    Shape::Members(vec![
        ("flow", shape::of::<RegisteredFlow>()),
        ("draft", version()),
        ("live", Shape::Maybe(Box::new(version()))),
        (
            "releases",
            Shape::ListOf(Box::new(shape::of::<FlowRelease>())),
        ),
    ])
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Problem {
        if let RegistryError::Store(error) = error {
            return error.into();
        }
        let status = match error.kind() {
            "not_found" => StatusCode::NOT_FOUND,
            "invalid_arguments" => StatusCode::BAD_REQUEST,
            "check_failed" => StatusCode::UNPROCESSABLE_ENTITY,
            "permission_denied" => StatusCode::FORBIDDEN,
            _ => StatusCode::CONFLICT,
        };
        let mut problem = Problem::new(status, error.code(), error.to_string());
        if let Some(details) = registry_details(&error) {
            problem = problem.with("details", details);
        }
        match error.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

fn registry(cx: &EngineContext) -> FlowRegistry {
    FlowRegistry::new(cx.engine.stores(), cx.engine.now_ms())
}

/// Refuses a flow that the caller does not reach, in the words for one that does not exist.
fn reach(cx: &EngineContext, caller: &Caller, slug: &str) -> Result<(), Problem> {
    let labels = cx.catalog.labels(&cx.engine, slug);
    match caller.token.reaches_flow(slug, &labels) {
        true => Ok(()),
        false => Err(no_flow(slug)),
    }
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let with_archived = Query::read(query.as_deref(), &names(LIST))?.flag("archived")?;
    let flows = server
        .ask(async move |cx: &EngineContext| {
            let mut flows = registry(cx).flows(with_archived).await?;
            flows.retain(|row| reach(cx, &caller, &row.name.slug).is_ok());
            let flows = flows.iter().map(registered_json);
            Ok::<_, Problem>(flows.collect::<Vec<Value>>())
        })
        .await?;
    Ok(Answer::ok(json!({"flows": flows})))
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    Query::read(query.as_deref(), &[])?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            Ok::<_, Problem>(registry_flow_json(&registry(cx), &slug).await?)
        })
        .await?;
    Ok(Answer::ok(shown))
}

async fn versions(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["cursor", "limit"])?;
    let limit = query.limit()?;
    let filters = format!("registry of {slug}");
    let before = match query.get("cursor") {
        Some(text) => cursor::read(text, &filters)?.parse::<i64>().ok(),
        None => None,
    };
    let (mut shown, last) = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let registry = registry(cx);
            let flow = registry.flow(&slug).await?;
            let versions = registry.versions(&slug, before, limit + 1).await?;
            let last = versions.get(limit.saturating_sub(1)).map(|row| row.number);
            let is_more = versions.len() > limit;
            let shown = versions.iter().map(|row| registry_version_json(row, &flow));
            let shown: Vec<Value> = shown.collect();
            Ok::<_, Problem>((shown, last.filter(|_| is_more)))
        })
        .await?;
    shown.truncate(limit);
    let next = last.map(|number| cursor::write(&number.to_string(), &filters));
    Ok(Answer::ok(json!({"versions": shown, "next": next})))
}

async fn version(
    State(server): State<Shared>,
    caller: Caller,
    Path((slug, version)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    Query::read(query.as_deref(), &[])?;
    let wanted = VersionRef::read(&version)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            Ok::<_, Problem>(version_with_files_json(&registry(cx), &slug, &wanted).await?)
        })
        .await?;
    Ok(Answer::ok(shown))
}

async fn push(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(PUSH)).await?;
    let mut new = NewCommit::of(&slug, files(&given)?);
    new.author = caller.token.name.clone();
    new.message = given.text("message")?.unwrap_or_default();
    new.place = given.text("place")?;
    let is_forced = given.flag("force")?.unwrap_or_default();
    new.base = match (is_forced, given.number("base")?) {
        (true, _) => Base::Any,
        (false, None) if new.place.is_some() => Base::OfPlace,
        (false, None | Some(0)) => Base::Nothing,
        (false, Some(number)) => Base::Version(number),
    };
    let pushed = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            cx.engine.read_registered().await?;
            let warnings = check_version(&slug, &new.files, |session, texts| {
                cx.engine.check_version(session, &slug, texts)
            })?;
            let registry = registry(cx);
            let added = registry.commit(new).await?;
            let flow = registry.flow(&slug).await?;
            Ok::<_, Problem>(pushed_json(&added, &flow, &warnings))
        })
        .await?;
    Ok(Answer::ok(pushed))
}

fn files(given: &Members) -> Result<VersionFiles, Problem> {
    let mut files = VersionFiles::new();
    for (path, text) in given.object("files")? {
        let Value::String(text) = text else {
            let detail = format!("`files` has something else than a text under `{path}`");
            return Err(Problem::malformed(detail));
        };
        files.insert(path, text.into_bytes());
    }
    match files.contains_key(MAIN_FILE) {
        true => Ok(files),
        false => Err(Problem::malformed(format!(
            "`files` has no `{MAIN_FILE}`, the main file of the flow"
        ))),
    }
}

async fn copy(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let place = Query::read(query.as_deref(), &names(COPY))?.needed("place")?;
    let (number, content) = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let registry = registry(cx);
            let Some(number) = registry.version_at(&slug, &place).await? else {
                return Ok::<_, Problem>((None, None));
            };
            let wanted = VersionRef::Number(number);
            let version = registry.version(&slug, &wanted).await?;
            Ok((Some(number), Some(version.content)))
        })
        .await?;
    Ok(Answer::ok(json!({"version": number, "content": content})))
}

async fn check_out(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(CHECK_OUT)).await?;
    let (Some(place), Some(number)) = (given.text("place")?, given.number("version")?) else {
        return Err(Problem::malformed("`place` and `version` are needed"));
    };
    server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let registry = registry(cx);
            let version = registry.version(&slug, &VersionRef::Number(number)).await?;
            registry.check_out(&version, &place).await?;
            Ok::<_, Problem>(())
        })
        .await?;
    Ok(Answer::ok(json!({"version": number})))
}

async fn diff(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let query = Query::read(query.as_deref(), &names(DIFF))?;
    let from = VersionRef::read(&query.needed("from")?)?;
    let to = VersionRef::read(query.get("to").unwrap_or("draft"))?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let (old, new, found) = registry(cx).diff(&slug, (&from, &to)).await?;
            Ok::<_, Problem>(version_diff_json((&old, &new), &found))
        })
        .await?;
    Ok(Answer::ok(shown))
}

async fn release(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(RELEASE)).await?;
    let (message, version) = (given.text("message")?, given.number("version")?);
    let key = given.text("deployKey")?;
    let message = message.unwrap_or_default();
    let moved = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let by = (&*caller.token.name, &*message);
            check_key(cx, &slug, (version, key.as_deref())).await?;
            let moved = registry(cx).release(&slug, version, by).await?;
            Ok::<_, Problem>(moved_json(&slug, &moved))
        })
        .await?;
    server.registry_changed();
    Ok(Answer::ok(moved))
}

async fn check_key(
    cx: &EngineContext,
    slug: &str,
    (version, key): (Option<i64>, Option<&str>),
) -> Result<(), Problem> {
    let expected = deploy_key(&cx.engine);
    let keys = (key, expected.as_deref());
    Ok(registry(cx).check_deploy_key(slug, version, keys).await?)
}

async fn rollback(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(ROLLBACK)).await?;
    let (message, version) = (given.text("message")?, given.number("to")?);
    let key = given.text("deployKey")?;
    let message = message.unwrap_or_default();
    let moved = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let by = (&*caller.token.name, &*message);
            check_key(cx, &slug, (version, key.as_deref())).await?;
            let moved = registry(cx).rollback(&slug, version, by).await?;
            Ok::<_, Problem>(moved_json(&slug, &moved))
        })
        .await?;
    server.registry_changed();
    Ok(Answer::ok(moved))
}

async fn archive(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(ARCHIVE)).await?;
    let is_archived = !given.flag("undo")?.unwrap_or_default();
    let row = server
        .ask(async move |cx: &EngineContext| {
            reach(cx, &caller, &slug)?;
            let row = registry(cx).archive(&slug, is_archived).await?;
            Ok::<_, Problem>(registered_json(&row))
        })
        .await?;
    server.registry_changed();
    Ok(Answer::ok(row))
}
