//! `/api/v1/tables`: rows of tables, a page at a time, as the `:table` step reads them.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use flowstone_engine::installation::Namespace;
use flowstone_engine::json::from_json;
use flowstone_engine::resource::{PREFIX, escaped};
use flowstone_engine::resources::ResourceError;
use flowstone_engine::table::ROW_ID;
use flowstone_engine::token::Scope;
use flowstone_engine::{Direct, EngineError};
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::operation::{Kind, Operation, Operations, Param, Shape, names};
use super::problem::Problem;
use super::request::{Members, Query};
use super::resources::sees;
use super::server::{EngineContext, Shared};
use crate::json::table_json;

/// The default and the maximum number of rows on a page.
const LIMIT: (usize, usize) = (50, 1_000);
/// Begins the addresses of tables. A name may have parts: it is written with `%2F`.
pub(super) const PATH: &str = "/api/v1/tables/";
/// The code of a table that does not exist.
const NO_TABLE: &str = "E0620";
/// The part of the names of tables after the workspace.
const TABLES: &str = "result/table/";

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::post(
                "/api/v1/tables/{name}/query",
                "queryTable",
                "Returns rows of a table that fit a query.",
            )
            .scope(Scope::Read)
            .members(MEMBERS)
            .ok(found())
            .refuses(&[422]),
            query,
        )
        .with(
            Operation::get(
                "/api/v1/tables/{name}/rows",
                "listRows",
                "Returns rows of a table, a page at a time.",
            )
            .scope(Scope::Read)
            .query(ROWS)
            .ok(found())
            .refuses(&[422]),
            rows,
        )
}

/// The shape of what a query finds. Rows have the columns of the user.
fn found() -> Shape {
    let object = || Shape::Map(Box::new(Shape::Any));
    Shape::Open(vec![
        ("rows", Shape::ListOf(Box::new(object()))),
        ("page", object()),
    ])
}

const ROWS: &[Param] = &[
    Param::text("cursor", "`page.nextCursor` of the page before."),
    Param::number("limit", "Maximum number of rows, from 1 to 1000."),
    Param::new("partitions", Kind::Texts, "Only these partitions."),
];

async fn rows(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let query = Query::read(query.as_deref(), &names(ROWS))?;
    let limit = query.limit_within(LIMIT)?;
    let mut page = json!({"limit": limit, "mode": "cursor"});
    if let Some(cursor) = query.get("cursor") {
        page["cursor"] = json!(cursor);
    }
    let mut config = Map::new();
    config.insert("page".to_owned(), page);
    config.insert("sort".to_owned(), json!([ROW_ID]));
    perform(&server, caller, name, config, query.list("partitions")).await
}

const MEMBERS: &[Param] = &[
    Param::new("page", Kind::Object, "`limit`, and `cursor` or `offset`."),
    Param::new("partitions", Kind::Texts, "Only these partitions."),
    Param::new("select", Kind::List, "The columns."),
    Param::new(
        "sort",
        Kind::List,
        "Columns to sort by, as in `:table` steps.",
    ),
    Param::new("where", Kind::Any, "A condition, as in `:table` steps."),
];

async fn query(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let given = Members::read(&headers, body, &names(MEMBERS)).await?;
    let partitions = given.texts("partitions")?;
    let names = names(MEMBERS).into_iter();
    let names = names.filter(|name| *name != "partitions");
    let config = names.filter_map(|name| Some((name.to_owned(), given.get(name)?.clone())));
    let mut config: Map<String, Json> = config.collect();
    let page = config.entry("page").or_insert_with(|| json!({}));
    if let Some(page) = page.as_object_mut() {
        page.entry("limit").or_insert_with(|| json!(LIMIT.0));
    }
    perform(&server, caller, name, config, partitions).await
}

/// Performs a query as a step outside of any run.
async fn perform(
    server: &Shared,
    caller: Caller,
    name: String,
    config: Map<String, Json>,
    partitions: Vec<String>,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let found = server
        .ask(async move |cx: &EngineContext| {
            let stored = reached(cx, &caller, &name).await?;
            let stored =
                stored.ok_or_else(|| Problem::not_found(format!("there is no table `{name}`")))?;
            let mut entries = vec![
                (Value::keyword("op"), Value::keyword("query")),
                (Value::keyword("table"), table(&stored, &partitions)),
            ];
            for (key, value) in &config {
                entries.push((Value::keyword(key), from_json(value)));
            }
            let direct = Direct {
                kind: "table",
                config: Value::map(entries),
                folder: None,
            };
            let found = cx.engine.perform(direct).await;
            let found = found.map_err(|error| for_reach(&caller, error))?;
            Ok::<_, Problem>(table_json(&found))
        })
        .await?;
    Ok(Answer::ok(found))
}

/// Returns an error without the names of other tables, if the caller does not reach all of them.
fn for_reach(caller: &Caller, error: StepError) -> StepError {
    let reaches_all = caller.token.limits.resources.is_empty() && !caller.is_limited();
    match error.code == NO_TABLE && !reaches_all {
        true => StepError {
            hints: Vec::new(),
            ..error
        },
        false => error,
    }
}

/// Returns the name under which a table is stored, if the caller reaches it by its name or by its number.
async fn reached(
    cx: &EngineContext,
    caller: &Caller,
    name: &str,
) -> Result<Option<String>, Problem> {
    let is_named = caller.reaches_resource(&format!("{PREFIX}{TABLES}{name}"));
    let uri = format!("{PREFIX}{TABLES}{}", escaped(name));
    Ok(match cx.engine.resource(&uri).await {
        Ok(row) => {
            let stored = row.name.clone().unwrap_or_else(|| name.to_owned());
            let is_own = is_named
                && caller
                    .token
                    .reaches_namespace(&Namespace::of_table(&stored));
            let is_reached = is_own || sees(cx, caller, &row).await?;
            is_reached.then_some(stored)
        }
        Err(EngineError::Resource(ResourceError::Missing { .. })) => {
            is_named.then(|| name.to_owned())
        }
        Err(error) => return Err(error.into()),
    })
}

fn table(name: &str, partitions: &[String]) -> Value {
    if partitions.is_empty() {
        return Value::from(name);
    }
    let keys = partitions.iter().map(|key| Value::from(key.as_str()));
    let keys = Value::map([(Value::keyword("keys"), Value::vector(keys))]);
    Value::map([
        (Value::keyword("table"), Value::from(name)),
        (Value::keyword("partitions"), keys),
    ])
}
