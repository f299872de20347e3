//! A note for the authors of the project: a row of the table `feedback`.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_model::ports::StoreOp;
use flowstone_model::table::{Cell, TableName, TableOp, WriteMode, WriteRows};

use super::args::Args;

/// The table of notes.
const TABLE: &str = "feedback";

/// Longer notes are no notes.
const MOST_CHARS: usize = 20_000;

pub(super) async fn send(cx: &StepContext, args: &Args) -> Result<StoreOp, StepError> {
    let message = args.needed_text("message")?;
    if message.chars().count() > MOST_CHARS {
        return Err(args.wrong(format!("a note has at most {MOST_CHARS} characters")));
    }
    let maybe = |text: Option<&str>| text.map_or(Cell::Nil, |text| Cell::Text(text.to_owned()));
    let title = args.name("title")?;
    let about = args.name("flow-slug")?;
    // A step that is performed directly has a run that nobody can look at.
    let run = cx.own_stores().runs.find(cx.run_id()).await?;
    let own = run.as_ref().map(|run| run.flow.as_str());
    let row = [
        // One step leaves one note.
        ("id", Cell::Text(cx.idempotency_key().to_owned())),
        ("title", maybe(title.as_deref())),
        ("message", Cell::Text(message.to_owned())),
        ("flow", maybe(about.as_deref().or(own))),
        ("run", maybe(run.as_ref().map(|run| run.id.as_str()))),
        ("sent_at", Cell::Instant(cx.now_ms())),
    ];
    Ok(StoreOp::Table(Box::new(TableOp::Write(WriteRows {
        table: TableName::Name(TABLE.to_owned()).into(),
        rows: vec![
            row.into_iter()
                .map(|(column, cell)| (column.to_owned(), cell))
                .collect(),
        ],
        mode: WriteMode::Upsert,
        key_fields: vec!["id".to_owned()],
        index_fields: Vec::new(),
    }))))
}
