//! `query_workflows`: the flows of the workspace that the caller reaches.

use flowstone_model::token::Scope;
use flowstone_project::registry::{FlowRow, VersionRef, definition};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::page;
use crate::kit::revision::is_released;
use crate::kit::schema::{object, text};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

/// Number of flows on a page, unless the caller names another.
const LIMIT: usize = 50;

pub const TOOL: Tool = Tool {
    name: "query_workflows",
    description: "Lists the flows of the workspace, by slug. `name` keeps those whose slug, name or description contains it.",
    input,
    output,
    bound: &[Bound::Workspace],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: false,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(list(cx, arguments)),
};

fn input() -> Json {
    let own = json!({
        "name": text("A part of the slug, name or description; upper and lower case are equal."),
        "include_archived": {"type": "boolean", "default": false},
    });
    page::input(own, LIMIT)
}

fn output() -> Json {
    let head = object(
        json!({
            "id": {"type": "string"},
            "version": {"type": "integer"},
            "released": {"type": "boolean"},
        }),
        &["id", "version", "released"],
    );
    let flow = object(
        json!({
            "slug": {"type": "string"},
            "name": {"type": ["string", "null"]},
            "description": {"type": ["string", "null"]},
            "head": head,
            "live": {"type": ["integer", "null"]},
            "archived": {"type": "boolean"},
        }),
        &["slug", "name", "description", "head", "live", "archived"],
    );
    page::output("workflows", &flow)
}

async fn list(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let with_archived = arguments.get("include_archived") == Some(&json!(true));
    let limit = page::limit(&arguments, LIMIT);
    let after = page::read(&arguments, "workflows")?;
    let wanted = arguments.get("name").and_then(Json::as_str);
    let wanted = wanted.map(str::to_lowercase);
    let mut flows = cx.registry().flows(with_archived).await?;
    flows.retain(|row| {
        let is_after = after.as_ref().is_none_or(|slug| row.name.slug > *slug);
        is_after && cx.reaches_flow(&row.name.slug)
    });
    let mut found: Vec<Json> = Vec::new();
    let mut next = None;
    for row in flows {
        let Some(shown) = shown(cx, &row, wanted.as_deref()).await? else {
            continue;
        };
        if found.len() == limit {
            let last = found.last().and_then(|it| it["slug"].as_str());
            next = last.map(|slug| page::write(slug, "workflows"));
            break;
        }
        found.push(shown);
    }
    Ok(page::shown("workflows", found, next))
}

/// Returns a flow, unless it lacks the wanted text.
async fn shown(
    cx: &KitCall<'_>,
    row: &FlowRow,
    wanted: Option<&str>,
) -> Result<Option<Json>, KitError> {
    let (registry, slug) = (cx.registry(), &row.name.slug);
    let head = registry
        .version(slug, &VersionRef::Number(row.head))
        .await?;
    let files = registry.files(&head).await?;
    let definition = definition(slug, &files);
    let member = |key: &str| {
        let value = definition.as_ref()?.get(key)?;
        value.as_str().map(str::to_owned)
    };
    let (name, description) = (member("name"), member("description"));
    if let Some(wanted) = wanted {
        let texts = [Some(slug), name.as_ref(), description.as_ref()];
        let mut texts = texts.into_iter().flatten();
        if !texts.any(|text| text.to_lowercase().contains(wanted)) {
            return Ok(None);
        }
    }
    Ok(Some(json!({
        "slug": slug,
        "name": name,
        "description": description,
        "head": {
            "id": head.revision,
            "version": head.number,
            "released": is_released(&registry, &head).await?,
        },
        "live": row.live,
        "archived": row.archived_ms.is_some(),
    })))
}
