//! `/api/v1/steps`: step types, and the schemas of their configs. Any token may read them.

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use flowstone_engine::diagnostic::nearest;
use flowstone_flow::step::{
    Operation, Step, StepSpec, config_schema, operation_schema, result_schema, tool_schema,
};
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::operation::{self as shape, Operation as Route, Operations, Param, Shape, names};
use super::problem::Problem;
use super::request::Query;
use super::server::{EngineContext, Shared};
use crate::json::{StepType, StepTypeSummary, spec_json, step_summary_json};

/// The codes of a step type and of an operation that do not exist.
const NO_STEP: &str = "E0946";
const NO_OPERATION: &str = "E0947";

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Route::get("/api/v1/steps", "listSteps", "Lists the step types.").ok(shape::list::<
                StepTypeSummary,
            >(
                "steps"
            )),
            list,
        )
        .with(
            Route::get(
                "/api/v1/steps/{type}",
                "getStep",
                "Returns a step type with its fields.",
            )
            .ok(shape::of::<StepType>()),
            show,
        )
        .with(
            Route::get(
                "/api/v1/steps/{type}/schema",
                "getStepSchema",
                "Returns the JSON Schema of a step type's config.",
            )
            .query(SCHEMA)
            .ok(Shape::Map(Box::new(Shape::Any))),
            schema,
        )
}

const SCHEMA: &[Param] = &[
    Param::text("operation", "Only this operation."),
    Param::flag("result", "The schema of what the operation returns."),
    Param::flag("tool", "The schema as an agent sees it."),
];

async fn list(
    State(server): State<Shared>,
    _caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    Query::read(query.as_deref(), &[])?;
    let steps = server
        .ask(async |cx: &EngineContext| {
            let mut specs: Vec<&StepSpec> = cx.engine.steps().iter().map(|it| it.spec()).collect();
            specs.sort_by_key(|spec| spec.kind);
            let shown = specs.into_iter().map(step_summary_json);
            Ok::<_, Problem>(shown.collect::<Vec<Json>>())
        })
        .await?;
    Ok(Answer::ok(json!({"steps": steps})))
}

async fn show(
    State(server): State<Shared>,
    _caller: Caller,
    Path(kind): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    Query::read(query.as_deref(), &[])?;
    let shown = server
        .ask(async move |cx: &EngineContext| find(cx.engine.steps(), &kind).map(spec_json))
        .await?;
    Ok(Answer::ok(shown))
}

/// The JSON Schema of a config; with `operation` of one operation, with `tool` as an agent sees it, with `result` of what
/// the operation returns.
async fn schema(
    State(server): State<Shared>,
    _caller: Caller,
    Path(kind): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let query = Query::read(query.as_deref(), &names(SCHEMA))?;
    let name = query.owned("operation");
    let (tool, result) = (query.flag("tool")?, query.flag("result")?);
    if result && (name.is_none() || tool) {
        let detail = "`result` needs `operation`, and excludes `tool`";
        return Err(Problem::malformed(detail));
    }
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let spec = find(cx.engine.steps(), &kind)?;
            let operation = match &name {
                Some(name) => Some(find_operation(spec, name)?),
                None => None,
            };
            Ok::<_, Problem>(match operation {
                Some(operation) if result => result_schema(operation).ok_or_else(|| {
                    let detail = format!("the result of `{}` has no schema", operation.name);
                    Problem::new(StatusCode::NOT_FOUND, NO_OPERATION, detail)
                })?,
                _ if tool => tool_schema(spec, operation),
                Some(operation) => operation_schema(spec, operation),
                None => config_schema(spec),
            })
        })
        .await?;
    Ok(Answer::ok(shown))
}

fn find(steps: &[Box<dyn Step>], name: &str) -> Result<&'static StepSpec, Problem> {
    let name = name.trim_start_matches(':');
    let mut specs = steps.iter().map(|step| step.spec());
    let found = specs.find(|spec| spec.kind == name || spec.aliases.contains(&name));
    found.ok_or_else(|| {
        let detail = format!("there is no step type `{name}`");
        let problem = Problem::new(StatusCode::NOT_FOUND, NO_STEP, detail);
        match nearest(name, steps.iter().map(|step| step.spec().kind)) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint("`GET /api/v1/steps` lists the step types"),
        }
    })
}

fn find_operation(spec: &StepSpec, name: &str) -> Result<&'static Operation, Problem> {
    let name = name.trim_start_matches(':');
    let operations = spec.operations.as_ref();
    let found = operations.and_then(|operations| operations.find(name));
    found.ok_or_else(|| {
        let detail = format!("a `{}` step has no operation `{name}`", spec.kind);
        Problem::new(StatusCode::NOT_FOUND, NO_OPERATION, detail)
    })
}
