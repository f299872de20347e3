//! Going on with a run, and starting another one from its results.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::outside::refuse_reserved_setting;
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, ForkOptions, Setting};

use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::operation::{GIVEN, Kind, Operation, Operations, Param, names, of};
use super::super::problem::Problem;
use super::super::request::Members;
use super::super::server::{EngineContext, Shared};
use super::super::trace;
use super::{reached, served};
use crate::json::{Run, row_json};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::post(
                "/api/v1/runs/{id}/fork",
                "forkRun",
                "Starts a run with results of another one.",
            )
            .scope(Scope::Run)
            .members(FORK)
            .json(StatusCode::CREATED, "The new run.", of::<Run>())
            .refuses(&[409, 410, 422]),
            fork,
        )
        .with(
            Operation::post(
                "/api/v1/runs/{id}/resume",
                "resumeRun",
                "Releases a run that is on hold, in quarantine or set aside.",
            )
            .scope(Scope::Run)
            .members(RESUME)
            .json(StatusCode::ACCEPTED, "The run.", of::<Run>())
            .refuses(&[409, 410, 422]),
            resume,
        )
}

const VERSION: Param = Param::text(
    "version",
    "Continues with the served version, which must begin like this. Needs the scope `edit`, too.",
);
const RESUME: &[Param] = &[VERSION];
const FORK: &[Param] = &[
    Param::text("at", "The step from which on nothing is reused."),
    Param::flag(
        "reuse",
        "Also reuses results of steps with effects after a change.",
    ),
    Param::new(
        "set",
        Kind::Object,
        "Values by path that replace those of the run.",
    ),
    GIVEN,
    VERSION,
];

/// `POST /api/v1/runs/{id}/resume`: lets a worker go on with a run that is on hold, in quarantine or set aside.
pub(super) async fn resume(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let given = Members::read(&headers, body, &names(RESUME)).await?;
    let version = given.text("version")?;
    if version.is_some() {
        caller.need(Scope::Edit)?;
    }
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &id).await?;
            if let Some(version) = version {
                let flow = served(cx, &caller, &row.flow, Some(&version))?;
                cx.engine.adopt(&row.id, &flow.loaded).await?;
            }
            cx.engine.request_resume(&row.id).await?;
            Ok::<_, Problem>(row_json(&cx.engine.run(&row.id).await?))
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, shown))
}

/// `POST /api/v1/runs/{id}/fork`.
pub(super) async fn fork(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let given = Members::read(&headers, body, &names(FORK)).await?;
    let (at, version) = (given.text("at")?, given.text("version")?);
    let reuse = given.flag("reuse")?.unwrap_or(false);
    let set = given.value_map("set", given.values()?)?;
    if version.is_some() {
        caller.need(Scope::Edit)?;
    }
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &id).await?;
            let flow = match version {
                Some(version) => Some(served(cx, &caller, &row.flow, Some(&version))?),
                None => None,
            };
            let settings = set.into_iter().map(|(path, value)| {
                let value = value.value();
                refuse_reserved_setting(&path, &value)?;
                Ok(Setting { path, value })
            });
            let options = ForkOptions {
                at,
                flow: flow.map(|flow| flow.loaded.clone()),
                settings: settings.collect::<Result<_, EngineError>>()?,
                reuse,
            };
            let fork = cx.engine.fork(&row.id, options).await;
            let fork = fork.map_err(|error| match error {
                // The run is there; what the request says about it is wrong.
                EngineError::NoSuchStep { .. } => Problem {
                    status: StatusCode::UNPROCESSABLE_ENTITY,
                    ..Problem::from(error)
                },
                error => Problem::from(error),
            })?;
            trace::touches(&fork);
            Ok::<_, Problem>(row_json(&cx.engine.run(&fork).await?))
        })
        .await?;
    let id = shown["id"].as_str().unwrap_or_default();
    let location = format!("/api/v1/runs/{id}");
    Ok(Answer::with(StatusCode::CREATED, shown).header(header::LOCATION, &location))
}
