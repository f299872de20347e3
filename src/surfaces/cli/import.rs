//! `flowstone import`: workflows of other systems as flow files.

use std::fs;

use flowstone_flow::flow::is_identifier;
use flowstone_fronts::n8n::{self, Imported, MOST_BYTES};
use serde_json::{Value as Json, json};

use super::args::{Import, ImportCommand, ImportN8n};
use super::exit::Exit;
use super::graph::write_new;
use super::home::Project;
use super::output;
use super::report::{Report, unreadable};

/// Performs the command.
pub fn run(args: &Import) -> Exit {
    let ImportCommand::N8n(args) = &args.command;
    n8n(args).unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

fn n8n(args: &ImportN8n) -> Result<Exit, Report> {
    let shown = args.file.display().to_string();
    let unreadable = |error: std::io::Error| unreadable(&shown, &error);
    if let Some(slug) = args.slug.as_deref().filter(|slug| !is_identifier(slug)) {
        let message = format!("`{slug}` cannot be a slug");
        return Err(Report::error("E1499", message).hint(
            "a slug has letters, digits, `-` and `_`, and starts with a letter: `--slug orders`",
        ));
    }
    let refused = |error: n8n::ImportError| {
        Report::error(error.code(), format!("{shown} cannot be imported: {error}"))
            .hint(error.hint())
    };
    // A larger file is not read at all.
    let size = fs::metadata(&args.file).map_err(unreadable)?.len();
    if size > MOST_BYTES as u64 {
        let what = format!("the file has {size} bytes, and an import at most {MOST_BYTES}");
        return Err(refused(n8n::ImportError::TooLarge { what }));
    }
    let text = fs::read_to_string(&args.file).map_err(unreadable)?;
    let imported = n8n::import(&text, args.slug.as_deref()).map_err(refused)?;
    if let Some(to) = &args.to {
        write_new(to, &Project::find(&args.home), &imported.text)?;
    }
    tell(args, &imported);
    Ok(Exit::Completed)
}

fn tell(args: &ImportN8n, imported: &Imported) {
    let file = args.to.as_ref().map(|to| to.display().to_string());
    if args.json {
        let remarks = imported.remarks.iter();
        let remarks = remarks.map(|remark| json!({"node": remark.node, "message": remark.text}));
        output::json(&json!({
            "ok": true,
            "flow": imported.slug,
            "file": file,
            "nodes": imported.nodes,
            "notTakenOver": remarks.collect::<Vec<Json>>(),
            "text": imported.text,
        }));
        return;
    }
    if file.is_none() {
        output::data(&imported.text);
    }
    for remark in &imported.remarks {
        let node = remark
            .node
            .as_ref()
            .map_or_else(String::new, |node| format!("{node}: "));
        output::note(&format!("{node}{}", remark.text));
    }
    let nodes = match imported.nodes {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    let remarks = match imported.remarks.len() {
        0 => "everything was taken over".to_owned(),
        1 => "1 remark".to_owned(),
        count => format!("{count} remarks"),
    };
    let target = file.map_or_else(String::new, |file| {
        format!(" as {file}; next: `flowstone check {file}`")
    });
    output::note(&format!("{nodes} imported, {remarks}{target}"));
}
