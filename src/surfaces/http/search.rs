//! `/api/v1/search`: what `flowstone search` finds.

use axum::extract::{RawQuery, State};
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{SearchHit, SearchTarget};
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_project::search::{Ask, Hydrate, Mode, seeker};

use super::access::Caller;
use super::answer::Answer;
use super::operation::{self as shape, Kind, Operation, Operations, Param, names};
use super::problem::Problem;
use super::request::Query;
use super::resources::sees;
use super::server::{EngineContext, Shared};
use crate::json::{SearchResults, found_json};

pub(super) fn operations() -> Operations {
    Operations::default().with(
        Operation::get(
            "/api/v1/search",
            "search",
            "Searches resources, flows, runs and connections.",
        )
        .scope(Scope::Read)
        .query(KNOWN)
        .ok(shape::of::<SearchResults>())
        .refuses(&[422]),
        search,
    )
}

/// The fact of a flow that holds its slug.
const SLUG: &str = "slug";

const KNOWN: &[Param] = &[
    Param::flag("hydrate", "Adds the contents of the first results."),
    Param::number("limit", "Maximum number of results."),
    Param::number("maxChars", "Maximum length of the contents of a result."),
    Param::new(
        "mode",
        Kind::OneOf(&["hybrid", "keyword", "semantic"]),
        "How to search; the best that is configured if it is left out.",
    ),
    Param::text("prefix", "Only resources whose names begin like this."),
    Param::text("q", "What to search for.").needed(),
    Param::new(
        "targets",
        Kind::Texts,
        "Kinds of things: `connections`, `flows`, `resources`, `runs`.",
    ),
    Param::number("topK", "Number of results with contents."),
];

async fn search(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &names(KNOWN))?;
    let ask = ask(&query)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let embedder = cx.backend.embedder(&cx.engine)?;
            let mut found = seeker(&cx.engine, embedder.as_deref()).find(&ask).await?;
            let mut hits = Vec::new();
            for found in found.hits {
                if reaches(cx, &caller, &found.hit).await? {
                    hits.push(found);
                }
            }
            found.hits = hits;
            Ok::<_, Problem>(found_json(&found))
        })
        .await?;
    Ok(Answer::ok(shown))
}

fn ask(query: &Query) -> Result<Ask, Problem> {
    let mut targets = Vec::new();
    for name in query.list("targets") {
        targets.push(SearchTarget::from_name(&name).ok_or_else(|| {
            let names = SearchTarget::ALL.map(SearchTarget::name).join(", ");
            Problem::malformed(format!("`targets` can be {names}, got `{name}`"))
        })?);
    }
    let mode = match query.get("mode") {
        None => None,
        Some(name) => Some(Mode::from_name(name).ok_or_else(|| {
            let detail = format!("`mode` must be hybrid, keyword or semantic, got `{name}`");
            Problem::malformed(detail)
        })?),
    };
    let within = |name: &str, (least, most, usual): (usize, usize, usize)| {
        let given = query.number(name)?;
        let Some(given) = given else {
            return Ok(usual);
        };
        let count = usize::try_from(given).ok();
        count
            .filter(|count| (least..=most).contains(count))
            .ok_or_else(|| {
                let detail =
                    format!("`{name}` must be a number from {least} to {most}, got {given}");
                Problem::malformed(detail)
            })
    };
    let usual = Hydrate::default();
    let hydrate = Hydrate {
        top_k: within("topK", (1, Hydrate::MOST.0, usual.top_k))?,
        max_chars: within("maxChars", (1, Hydrate::MOST.1, usual.max_chars))?,
    };
    Ok(Ask {
        targets: SearchTarget::ALL
            .into_iter()
            .filter(|target| targets.is_empty() || targets.contains(target))
            .collect(),
        limit: within("limit", Ask::LIMIT)?,
        mode,
        prefix: query.owned("prefix"),
        hydrate: query.flag("hydrate")?.then_some(hydrate),
        ..Ask::new(query.needed("q")?)
    })
}

/// Tells whether the caller reaches something that was found.
async fn reaches(cx: &EngineContext, caller: &Caller, hit: &SearchHit) -> Result<bool, Problem> {
    Ok(match hit.target {
        SearchTarget::Resources => match cx.engine.resource(&hit.id).await {
            Ok(row) => sees(cx, caller, &row).await?,
            Err(EngineError::Resource(_)) => false,
            Err(error) => return Err(error.into()),
        },
        SearchTarget::Flows => {
            let slug = hit.facts.iter().find(|(key, _)| key == SLUG);
            let slug = slug.map_or("", |(_, slug)| slug);
            let labels = cx.catalog.labels(&cx.engine, slug);
            caller.token.reaches_flow(slug, &labels)
        }
        SearchTarget::Runs => match cx.engine.run(&RunId::from_text(&*hit.id)).await {
            Ok(row) => {
                let labels = cx.catalog.labels(&cx.engine, &row.flow);
                caller.reaches_run(&row.flow, &labels, &row.started_by)
            }
            // It was removed after it was indexed.
            Err(_) => false,
        },
        SearchTarget::Connections => match caller.token.kind {
            TokenKind::Owner | TokenKind::Service => !caller.token.is_limited_to_flows(),
            TokenKind::User | TokenKind::Anon => false,
        },
        // It has addresses of its own.
        SearchTarget::Knowledge => false,
    })
}
