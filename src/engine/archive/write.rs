//! Archives to text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_lang::value::Value;

use super::{Archive, ArchivedBlob, ArchivedRun, ArchivedWait, FORMAT, HEAD, PLAIN_FORMAT};
use crate::codec;
use crate::ports::{Entry, Parent, Program, RunRow, WaitEnding, WaitState};
use crate::resource::SearchEntry;

pub(super) fn write(archive: &Archive) -> String {
    let mut body = String::new();
    list(&mut body, ":programs", &archive.programs, |(_, program)| {
        program_record(program)
    });
    list(&mut body, ":runs", &archive.runs, run_record);
    list(&mut body, ":blobs", &archive.blobs, blob_record);
    body.push_str("}\n");
    let digest = codec::digest_bytes(body.as_bytes());
    let has_secrets = archive.runs.iter().any(|run| run.row.sealed.is_some());
    let format = if has_secrets { FORMAT } else { PLAIN_FORMAT };
    format!("{HEAD}{format}\n :digest \"{digest}\"\n{body}")
}

/// A record: keys in a fixed order, and none where there is no value.
struct Record(String);

impl Record {
    fn new() -> Record {
        Record(String::from("{"))
    }

    fn raw(mut self, key: &str, edn: &str) -> Record {
        if self.0.len() > 1 {
            self.0.push(' ');
        }
        let _ = write!(self.0, ":{key} {edn}");
        self
    }

    fn text(self, key: &str, text: &str) -> Record {
        let edn = codec::encode(&Value::from(text)).expect("text can be written down");
        self.raw(key, &edn)
    }

    fn maybe(self, key: &str, text: Option<&str>) -> Record {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    fn int(self, key: &str, number: i64) -> Record {
        self.raw(key, &number.to_string())
    }

    fn maybe_int(self, key: &str, number: Option<i64>) -> Record {
        match number {
            Some(number) => self.int(key, number),
            None => self,
        }
    }

    fn search(self, entry: Option<&SearchEntry>) -> Record {
        let Some(entry) = entry else {
            return self;
        };
        let tags = Value::vector(entry.tags.iter().map(|tag| Value::from(tag.as_str())));
        let tags = codec::encode(&tags).expect("texts can be written down");
        self.maybe("search-text", entry.text.as_deref())
            .raw("search-tags", &tags)
            .maybe("search-label", entry.source_label.as_deref())
            .maybe("search-contents", entry.without_contents.then_some("no"))
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Writes ` :key [`, a record a line, and ` ]`.
fn list<T>(
    out: &mut String,
    key: &str,
    items: impl IntoIterator<Item = T>,
    record: impl Fn(T) -> String,
) {
    let _ = writeln!(out, " {key} [");
    for item in items {
        let _ = writeln!(out, "  {}", record(item));
    }
    out.push_str(" ]\n");
}

fn program_record(program: &Program) -> String {
    Record::new()
        .text("hash", &program.hash)
        .int("engine-abi", program.engine_abi)
        .text("source", &program.source)
        .end()
}

fn run_record(run: &ArchivedRun) -> String {
    let mut out = format!("{{:row {}\n", row_record(&run.row));
    list(&mut out, ":waits", &run.waits, wait_record);
    list(&mut out, ":journal", &run.entries, entry_record);
    out.push_str(" }");
    out
}

fn row_record(row: &RunRow) -> String {
    let record = Record::new()
        .text("id", row.id.as_str())
        .maybe("external-id", row.external_id.as_deref())
        .text("program", &row.program)
        .text("flow", &row.flow)
        .text("status", row.status.name())
        .maybe("wait-reason", row.wait_reason.as_deref())
        .maybe_int("due", row.due_ms)
        .text("input", &row.input)
        .maybe("secrets", row.sealed.as_deref())
        .text("seed", &format!("{:016x}", row.seed))
        .maybe("result", row.result.as_deref())
        .maybe("error", row.error.as_deref())
        .maybe("cancel", row.cancel_requested.as_deref())
        .int("created", row.created_ms)
        .int("updated", row.updated_ms)
        .maybe_int("ended", row.ended_ms)
        .maybe_int("deadline", row.deadline_ms)
        .maybe("invocation", row.invocation.as_deref())
        .maybe("key", row.key.as_deref())
        .int("priority", row.priority)
        .maybe("bindings", row.bindings.as_deref())
        .text("started-by", &row.started_by)
        .maybe("origin", row.origin.as_ref().map(|origin| origin.as_str()))
        .maybe("trace", row.trace.map(|trace| trace.to_string()).as_deref())
        .int("pass", row.pass);
    let record = match &row.parent {
        Some(parent) => record.raw("parent", &parent_record(parent)),
        None => record,
    };
    match row.force {
        true => record.raw("force", "true").end(),
        false => record.end(),
    }
}

fn parent_record(parent: &Parent) -> String {
    Record::new()
        .text("run", parent.run.as_str())
        .text("root", parent.root.as_str())
        .int("depth", i64::from(parent.depth))
        .text("close", parent.close.name())
        .end()
}

fn wait_record(wait: &ArchivedWait) -> String {
    let event = wait.event.as_ref();
    Record::new()
        .text("path", &wait.path)
        .text("key", &wait.key)
        .text("state", state_name(wait.state))
        .maybe_int("deadline", wait.deadline_ms)
        .text("details", &wait.details)
        .maybe("payload", wait.payload.as_deref())
        .int("opened", wait.opened_ms)
        .maybe("ending", wait.ending.map(WaitEnding::name))
        .maybe("decided-by", wait.decided_by.as_deref())
        .maybe_int("decided", wait.decided_ms)
        .maybe("event", event.map(|event| event.name.as_str()))
        .maybe("event-key", event.and_then(|event| event.key.as_deref()))
        .maybe("event-path", event.and_then(|event| event.path.as_deref()))
        .maybe("webhook", wait.webhook.as_deref())
        .end()
}

/// The name that a state has in a file.
pub(super) fn state_name(state: WaitState) -> &'static str {
    match state {
        WaitState::Open => "open",
        WaitState::Completed => "completed",
        WaitState::Closed => "closed",
    }
}

fn entry_record(entry: &Entry) -> String {
    Record::new()
        .text("kind", entry.kind.name())
        .text("path", &entry.path)
        .text("what", &entry.what)
        .text("digest", &entry.digest)
        .maybe("request", entry.request.as_deref())
        .text("payload", &entry.payload)
        .int("at", entry.at_ms)
        .end()
}

fn blob_record(blob: &ArchivedBlob) -> String {
    Record::new()
        .text("uri", &blob.row.uri)
        .text("hash", &blob.row.hash.0)
        .maybe("filename", blob.row.filename.as_deref())
        .maybe("content-type", blob.row.content_type.as_deref())
        .text("kind", blob.row.kind.name())
        .text("tier", blob.row.tier.name())
        .maybe_int("expires", blob.row.expires_ms)
        .maybe("run", blob.row.run.as_deref())
        .maybe("path", blob.row.path.as_deref())
        .maybe("bucket", blob.row.bucket.as_deref())
        .maybe("folder", blob.row.folder.as_deref())
        .search(blob.row.search.as_ref())
        .text("base64", &STANDARD.encode(&blob.bytes))
        .end()
}
