//! `flowstone resources search-index`: shows and changes the search index of resources.

use flowstone_engine::Engine;
use flowstone_engine::EngineError;
use flowstone_engine::ports::SearchDoc;
use flowstone_engine::resource::SearchEntry;
use flowstone_project::search::Rebuilt;
use serde_json::json;

use super::{ask, find};
use crate::cli::args::{
    SearchIndex, SearchIndexCommand, SearchIndexOf, SearchIndexReindex, SearchIndexUpdate,
};
use crate::cli::exit::Exit;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::search::seek;
use crate::cli::{App, Open, output};

/// How many characters of the indexed text are shown.
const SHOWN: usize = 300;

/// Performs the command.
pub(super) fn run(args: &SearchIndex, app: &dyn App) -> Result<Exit, Report> {
    match &args.command {
        SearchIndexCommand::Clear(args) => clear(args, app),
        SearchIndexCommand::Reindex(args) => reindex(args, app),
        SearchIndexCommand::Show(args) => show(args, app),
        SearchIndexCommand::Update(args) => update(args, app),
    }?;
    Ok(Exit::Completed)
}

/// Tells whether the output is JSON.
pub(super) fn is_asked_as_json(args: &SearchIndex) -> bool {
    match &args.command {
        SearchIndexCommand::Clear(args) | SearchIndexCommand::Show(args) => args.json,
        SearchIndexCommand::Reindex(args) => args.json,
        SearchIndexCommand::Update(args) => args.json,
    }
}

fn show(args: &SearchIndexOf, app: &dyn App) -> Result<(), Report> {
    let (uri, entry, doc) = ask(app, &args.home, Open::Existing, async |engine| {
        let row = find(engine, &args.uri).await?;
        let doc = seek(app, engine, async |seeker| seeker.indexed(&row.uri).await).await?;
        Ok((row.uri, row.search, doc))
    })?;
    tell(&uri, entry.as_ref(), doc.as_ref(), args.json);
    Ok(())
}

fn clear(args: &SearchIndexOf, app: &dyn App) -> Result<(), Report> {
    let uri = ask(app, &args.home, Open::Existing, async |engine| {
        let row = find(engine, &args.uri).await?;
        describe(engine, &row.uri, None).await?;
        Ok(row.uri)
    })?;
    match args.json {
        true => output::json(&json!({"ok": true, "uri": uri, "searchIndex": null})),
        false => output::data(&format!("{uri} is found by its name and its contents")),
    }
    Ok(())
}

fn update(args: &SearchIndexUpdate, app: &dyn App) -> Result<(), Report> {
    let nothing = args.text.is_none()
        && args.tags.is_empty()
        && args.label.is_none()
        && args.contents.is_none();
    if nothing {
        return Err(Report::error("E0944", "no change was given")
            .hint("give `--text`, `--tag`, `--label` or `--contents`"));
    }
    let (uri, entry, doc) = ask(app, &args.home, Open::Existing, async |engine| {
        let row = find(engine, &args.uri).await?;
        let mut entry = row.search.unwrap_or_default();
        if let Some(text) = &args.text {
            entry.text = Some(text.clone());
        }
        if !args.tags.is_empty() {
            entry.tags.clone_from(&args.tags);
        }
        if let Some(label) = &args.label {
            entry.source_label = Some(label.clone());
        }
        if let Some(contents) = args.contents {
            entry.without_contents = !contents;
        }
        describe(engine, &row.uri, Some(entry.clone())).await?;
        let doc = seek(app, engine, async |seeker| seeker.indexed(&row.uri).await).await?;
        Ok((row.uri, entry, doc))
    })?;
    tell(&uri, Some(&entry), doc.as_ref(), args.json);
    Ok(())
}

async fn describe(engine: &Engine, uri: &str, entry: Option<SearchEntry>) -> Result<(), Report> {
    let described = engine.stores().resources.describe(uri, entry).await;
    match described.map_err(|error| of_engine_error(&EngineError::from(error)))? {
        true => Ok(()),
        false => Err(Report::error(
            "E0943",
            format!("the search index of `{uri}` cannot be changed"),
        )
        .hint("only blobs, files and source trees can have search text, tags and a source")),
    }
}

fn reindex(args: &SearchIndexReindex, app: &dyn App) -> Result<(), Report> {
    let rebuilt = ask(app, &args.home, Open::Existing, async |engine| {
        let uri = match &args.uri {
            Some(uri) => Some(find(engine, uri).await?.uri),
            None => None,
        };
        seek(app, engine, async |seeker| seeker.rebuild(uri).await).await
    })?;
    let Rebuilt { indexed, embedded } = rebuilt;
    match args.json {
        true => output::json(&json!({"ok": true, "indexed": indexed, "embedded": embedded})),
        false => output::data(&format!("indexed: {indexed}, new vectors: {embedded}")),
    }
    Ok(())
}

fn tell(uri: &str, entry: Option<&SearchEntry>, doc: Option<&SearchDoc>, as_json: bool) {
    let start = |text: &str| text.chars().take(SHOWN).collect::<String>();
    if as_json {
        let entry = entry.map(|entry| {
            json!({
                "text": entry.text,
                "tags": entry.tags,
                "sourceLabel": entry.source_label,
                "contents": !entry.without_contents,
            })
        });
        let doc = doc.map(|doc| {
            json!({"title": doc.title, "tags": doc.tags, "text": start(&doc.body), "textBytes": doc.body.len()})
        });
        output::json(&json!({"ok": true, "uri": uri, "searchIndex": entry, "indexed": doc}));
        return;
    }
    let entry = entry.cloned().unwrap_or_default();
    let facts = [
        ("label", entry.source_label),
        (
            "tags",
            Some(entry.tags.join(", ")).filter(|tags| !tags.is_empty()),
        ),
        ("words", entry.text),
        (
            "contents",
            entry.without_contents.then(|| "not indexed".to_owned()),
        ),
        ("title", doc.map(|doc| doc.title.clone())),
        (
            "text",
            doc.map(|doc| {
                start(&doc.body)
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            }),
        ),
    ];
    let lines = facts
        .into_iter()
        .filter_map(|(name, fact)| Some(format!("  {name:<9} {}\n", fact?)));
    output::data(&format!("{uri}\n{}", lines.collect::<String>()));
}
