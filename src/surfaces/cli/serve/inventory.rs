//! What a server serves when it starts: its flows, their schedules, and the addresses of their interfaces.

use std::path::PathBuf;

use flowstone_engine::catalog::Catalog;
use serde_json::{Value, json};

use super::listen::Open;
use super::{Message, count};
use crate::cli::report::Report;
use crate::cli::rows::{list, text};
use crate::cli::runtime::Runtime;
use crate::json::interface_json;

/// Reads the flows below some paths, and describes what a server at `base` serves of them.
pub(super) fn of(open: Open<'_>, flows: Vec<PathBuf>, base: &str) -> Result<Message, Report> {
    Runtime::start()?.block_on(async {
        let engine = open()?;
        let catalog = Catalog::new(flows);
        catalog.follow(&engine).await;
        let flows = catalog.flows(&engine);
        let schedules = flows.iter().map(|flow| flow.loaded.flow.schedules.len());
        let interfaces = catalog.interfaces(&engine);
        let interfaces: Vec<Value> = interfaces
            .iter()
            .map(|served| {
                let mut shown = interface_json(served);
                shown["flow"] = json!(served.flow.slug);
                shown
            })
            .collect();
        Ok(message(
            (flows.len(), schedules.sum()),
            (interfaces, catalog.mcp(&engine).len()),
            base,
        ))
    })
}

/// Tells which flows have a released version that differs from their file; `None` if no flow has one.
pub(super) fn differing(open: Open<'_>, flows: Vec<PathBuf>) -> Result<Option<Message>, Report> {
    Runtime::start()?.block_on(async {
        let engine = open()?;
        let catalog = Catalog::new(flows);
        catalog.follow(&engine).await;
        let differing = catalog.differing(&engine);
        let lines = differing.iter().map(|(slug, file, number)| {
            format!(
                "{file} differs from the released version of `{slug}`, {number}, which is served"
            )
        });
        let lines: Vec<String> = lines.collect();
        let fields: Vec<Value> = differing
            .iter()
            .map(|(slug, file, number)| json!({"flow": slug, "file": file, "live": number}))
            .collect();
        Ok((!lines.is_empty()).then(|| Message {
            event: "differing",
            text: lines.join("\n"),
            fields: json!({ "differing": fields }),
            is_wrong: false,
        }))
    })
}

fn message(
    (flows, schedules): (usize, usize),
    (interfaces, mcp): (Vec<Value>, usize),
    base: &str,
) -> Message {
    let base = base.trim_end_matches('/');
    let mut lines = vec![format!(
        "serving {}, with {} and {}",
        count(flows, "flow"),
        count(schedules, "schedule"),
        count(interfaces.len() + mcp, "interface")
    )];
    for interface in &interfaces {
        let [flow, id] = ["flow", "id"].map(|name| text(interface, name));
        // The last address is the path that the flow chose, if it chose one.
        lines.push(match list(interface, "addresses").last() {
            Some(address) => format!(
                "  {} {base}{}  {flow} :{id}",
                text(interface, "method"),
                address.as_str().unwrap_or_default()
            ),
            None => format!("  event {}  {flow} :{id}", text(interface, "event")),
        });
    }
    if mcp > 0 {
        lines.push(format!("  POST {base}/mcp  {mcp} for clients of MCP"));
    }
    Message {
        event: "served",
        text: lines.join("\n"),
        fields: json!({"flows": flows, "schedules": schedules, "interfaces": interfaces, "mcp": mcp}),
        is_wrong: false,
    }
}
