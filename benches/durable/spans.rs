//! Spans of many runs, as `query_spans` of the build kit finds them.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Instant;

use flowstone_engine::Engine;
use flowstone_engine::catalog::Catalog;
use flowstone_engine::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_flow::flow::Flow;
use flowstone_fronts::kit::{self, Called, Consent, KitCall, Origin, Permissions};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_project::connections::ConnectionReport;
use flowstone_project::registry::DEFAULT_WORKSPACE;
use flowstone_project::search::Embedder;
use serde_json::{Value as Json, json};

use crate::Measured;
use crate::growth::add_finished;
use crate::run::block_on;
use crate::world::{World, flow};

const RUNS: usize = 100_000;
/// The page without a condition that an index answers reads this many journals.
const READ: usize = 1_000;

struct NoBackend;

impl kit::Backend for NoBackend {
    fn embedder<'a>(
        &self,
        _: &'a Engine,
    ) -> std::result::Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        Ok(None)
    }

    fn connections(&self, _: &Engine, _: &[&Flow]) -> Vec<ConnectionReport> {
        Vec::new()
    }
}

async fn query(engine: &Engine, arguments: Json) -> Result<(Json, f64)> {
    let token = Token {
        id: "bench".to_owned(),
        name: "bench".to_owned(),
        kind: TokenKind::Owner,
        scopes: vec![Scope::Admin],
        limits: TokenLimits::default(),
        roles: Vec::new(),
        subject: None,
        created_ms: 0,
        expires_ms: None,
        used_ms: None,
        revoked_ms: None,
    };
    let (origin, permissions) = (Origin::default(), Permissions::default());
    let (_cancel, cancelled) = tokio::sync::watch::channel(false);
    let catalog = Catalog::new(Vec::new());
    let cx = KitCall {
        engine,
        catalog: &catalog,
        backend: &NoBackend,
        workspace: DEFAULT_WORKSPACE,
        bound: None,
        token: &token,
        origin: &origin,
        permissions: &permissions,
        cancelled,
        is_for_model: false,
    };
    let begun = Instant::now();
    match kit::call(&cx, "query_spans", arguments, Consent::Stored).await {
        Ok(Called::Done(answer)) => Ok((answer, begun.elapsed().as_secs_f64() * 1e3)),
        other => Err(Error::other(format!("{other:?}"))),
    }
}

/// A trace among many, the newest spans, and a page that finds nothing.
pub fn of_many_runs(folder: &Path) -> Result<Measured> {
    let world = World::open(folder)?;
    let loaded = flow(folder, "0")?;
    let (found, trace, newest, nothing) = block_on(async {
        let runs = add_finished(&world, &loaded, RUNS).await?;
        let engine = world.engine()?;
        let wanted = runs[RUNS / 3].as_str();
        let condition = json!({"field": "trace_id", "value": wanted});
        let by_trace = json!({"filtering": {"conditions": [condition]}});
        let (found, trace) = query(&engine, by_trace).await?;
        let (_, newest) = query(&engine, json!({})).await?;
        let condition = json!({"field": "span_name", "value": "none"});
        let rare = json!({"filtering": {"conditions": [condition]}});
        let (_, nothing) = query(&engine, rare).await?;
        Ok::<_, Error>((found["count"] == json!(1), trace, newest, nothing))
    })?;
    Ok(Measured {
        words: format!(
            "trace {trace:.1} ms, newest 100 {newest:.1} ms, a page of {READ} runs without a match {nothing:.0} ms"
        ),
        is_met: found && trace < 20.0 && newest < 100.0 && nothing < 1_000.0,
    })
}
