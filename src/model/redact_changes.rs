//! Secrets in what is written to the stores: journal entries, operations and blobs.

use std::sync::Arc;

use flowstone_lang::value::Value;

use crate::blob::{BlobHash, BlobOp, BlobRow};
use crate::changeset::ChangesetOp;
use crate::codec;
use crate::jobs::JobOp;
use crate::kv::KvOp;
use crate::ports::{
    BlobWriter, Blobs, Change, Entry, EntryKind, PortFuture, Revealed, RunUpdate, StoreOp,
    StoredBlob,
};
use crate::redact::{RedactStream, Redactor, SECRET};
use crate::table::{Cell, RowChoice, TableOp};

impl Redactor {
    /// Returns a value without secrets. A part that is not data stays unchanged: it cannot be written.
    pub fn value(&self, value: &Value) -> Value {
        let Ok(text) = codec::encode(value) else {
            return value.clone();
        };
        match self.holds(&text) {
            true => codec::decode(&self.edn(text)).unwrap_or_else(|_| Value::from(SECRET)),
            false => value.clone(),
        }
    }

    /// Redacts changes of a run. Inputs of its next pass are left: they are sealed.
    pub fn changes(&self, changes: &mut [Change]) {
        if self.is_empty() {
            return;
        }
        for change in changes {
            match change {
                Change::Append(entry) => self.entry(entry),
                Change::Perform { op, entry } => {
                    self.op(op);
                    self.entry(entry);
                }
                Change::Update(update) => self.update(update),
                Change::Signal { payload, .. } => self.edn_in(payload),
                // What is shown to a person has a digest, and was redacted before the digest was made.
                Change::OpenWait(_)
                | Change::CloseWait { .. }
                | Change::CloseWaits
                | Change::CloseWaitsOf { .. }
                | Change::CloseChildren { .. }
                | Change::Unwind
                | Change::Restart { .. } => {}
            }
        }
    }

    fn entry(&self, entry: &mut Entry) {
        match entry.kind {
            EntryKind::Result | EntryKind::Draft | EntryKind::Error | EntryKind::Log => {
                self.edn_in(&mut entry.payload);
            }
            EntryKind::Begin
            | EntryKind::Cost
            | EntryKind::Intent
            | EntryKind::Note
            | EntryKind::Reuse
            | EntryKind::Signal
            | EntryKind::Timer => {
                let payload = std::mem::take(&mut entry.payload);
                entry.payload = self.edn_strings(payload);
            }
        }
        self.maybe_text(&mut entry.request);
    }

    fn update(&self, update: &mut RunUpdate) {
        self.maybe_text(&mut update.wait_reason);
        for text in [&mut update.result, &mut update.error]
            .into_iter()
            .flatten()
        {
            self.edn_in(text);
        }
    }

    /// Redacts an operation of the stores.
    pub fn op(&self, op: &mut StoreOp) {
        if self.is_empty() {
            return;
        }
        match op {
            StoreOp::Kv(op) => self.kv(op),
            StoreOp::Table(op) => self.table(op),
            StoreOp::Blob(BlobOp::Register { blob, value }) => {
                self.edn_in(value);
                self.blob(blob);
            }
            StoreOp::Changeset(ChangesetOp::Open(open)) => self.edn_in(&mut open.answer),
            StoreOp::Changeset(ChangesetOp::Edit(edit)) => self.edn_in(&mut edit.answer),
            StoreOp::Job(op) => self.jobs(op),
        }
    }

    fn jobs(&self, op: &mut JobOp) {
        self.edn_in(&mut op.answer);
        for job in &mut op.jobs {
            self.edn_in(&mut job.payload);
            self.text_in(&mut job.idempotency_key);
            if let Some(metadata) = &mut job.metadata {
                self.edn_in(metadata);
            }
        }
    }

    fn kv(&self, op: &mut KvOp) {
        match op {
            KvOp::Set(set) => {
                self.edn_in(&mut set.value);
                let texts = [&mut set.metadata, &mut set.answer];
                texts
                    .into_iter()
                    .flatten()
                    .for_each(|text| self.edn_in(text));
            }
            KvOp::Append { items, .. } => items.iter_mut().for_each(|item| self.edn_in(item)),
            KvOp::Delete { .. } | KvOp::Increment { .. } => {}
        }
    }

    /// Redacts a change of a table.
    pub fn table(&self, op: &mut TableOp) {
        match op {
            TableOp::Write(write) => {
                let cells = write.rows.iter_mut().flatten();
                cells.for_each(|(_, cell)| self.cell(cell));
            }
            TableOp::UpdateCell(update) => {
                self.cell(&mut update.value);
                self.rows(&mut update.row);
            }
            TableOp::Delete { rows, .. } => self.rows(rows),
            TableOp::FormatCell(format) => self.rows(&mut format.row),
            TableOp::Create(_)
            | TableOp::SetColumn(_)
            | TableOp::Recompute(_)
            | TableOp::Join(_)
            | TableOp::Import(_) => {}
        }
    }

    /// A row is found by the key under which it was stored.
    fn rows(&self, rows: &mut RowChoice) {
        if let RowChoice::Key(row) = rows {
            row.iter_mut().for_each(|(_, cell)| self.cell(cell));
        }
    }

    fn cell(&self, cell: &mut Cell) {
        match cell {
            Cell::Text(text) | Cell::Keyword(text) => self.text_in(text),
            Cell::Data(text) => self.edn_in(text),
            Cell::Long(number) => self.number(number.to_string(), cell),
            Cell::Double(number) => self.number(number.to_string(), cell),
            Cell::Decimal(digits) => self.number(digits.clone(), cell),
            Cell::Nil | Cell::Bool(_) | Cell::Instant(_) => {}
        }
    }

    fn number(&self, digits: String, cell: &mut Cell) {
        if self.is_number(&digits) {
            *cell = Cell::Text(SECRET.to_owned());
        }
    }

    fn blob(&self, blob: &mut BlobRow) {
        self.maybe_text(&mut blob.filename);
        if let Some(search) = &mut blob.search {
            self.maybe_text(&mut search.text);
            self.maybe_text(&mut search.source_label);
            search.tags.iter_mut().for_each(|tag| self.text_in(tag));
        }
    }

    fn text_in(&self, text: &mut String) {
        *text = self.text(std::mem::take(text));
    }

    fn edn_in(&self, text: &mut String) {
        *text = self.edn(std::mem::take(text));
    }

    fn maybe_text(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.text_in(text);
        }
    }
}

/// Wraps blobs so that no secrets are stored in them.
pub fn blobs(blobs: Arc<dyn Blobs>, revealed: &Revealed) -> Arc<dyn Blobs> {
    Arc::new(RedactedBlobs {
        blobs,
        revealed: revealed.clone(),
    })
}

/// The blobs as the steps of a run see them: stored bytes are redacted.
struct RedactedBlobs {
    blobs: Arc<dyn Blobs>,
    revealed: Revealed,
}

impl Blobs for RedactedBlobs {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        self.blobs.put(self.revealed.redactor().bytes(bytes))
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        let beginning = self.blobs.begin();
        let revealed = self.revealed.clone();
        Box::pin(async move {
            let writer: Box<dyn BlobWriter> = Box::new(RedactedWriter {
                writer: beginning.await?,
                revealed,
                stream: RedactStream::default(),
            });
            Ok(writer)
        })
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        self.blobs.get(hash)
    }

    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>> {
        self.blobs.part(hash, start, length)
    }

    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        self.blobs.find(uri)
    }
}

struct RedactedWriter {
    writer: Box<dyn BlobWriter>,
    revealed: Revealed,
    stream: RedactStream,
}

impl BlobWriter for RedactedWriter {
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()> {
        let redactor = self.revealed.redactor();
        if redactor.is_empty() && self.stream.is_empty() {
            return self.writer.write(bytes);
        }
        let ready = self.stream.push(&redactor, bytes);
        Box::pin(async move { self.writer.write(&ready).await })
    }

    fn finish(mut self: Box<Self>) -> PortFuture<'static, StoredBlob> {
        let rest = self.stream.finish(&self.revealed.redactor());
        let mut writer = self.writer;
        Box::pin(async move {
            if !rest.is_empty() {
                writer.write(&rest).await?;
            }
            writer.finish().await
        })
    }
}
