//! Staging of a file: one pass that decodes it, copies it into the blobs, and infers the types of its columns.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};
use flowstone_model::blob::BlobHash;
use flowstone_model::codec::Digester;
use flowstone_model::ports::StoreError;
use flowstone_model::rooted::open_regular;
use flowstone_model::table::csv::{CsvColumn, CsvSource, OnBadRow, StageCsv, StagedCsv};
use flowstone_model::table::{ColumnType, ROW_ID};

use super::super::super::blob::incoming::{self, Written};
use super::super::super::blob::place;
use super::super::super::failure::{rejected, with_hint};
use super::super::registry::{MAX_COLUMNS, listed};
use super::cell::Kinds;
use super::split::{Next, Splitter};
use super::{BadRow, unreadable};

/// Reads a file once; returns its columns, its number of rows and its copy.
///
/// # Errors
/// [`StoreError::Rejected`] when it is not CSV, or has another encoding.
pub(in crate::sqlite) fn stage(folder: &Path, ask: &StageCsv) -> Result<StagedCsv, StoreError> {
    let source = Source::open(folder, ask)?;
    let mut splitter = Splitter::new(source, ask.format.delimiter);
    let read = Survey::of(&mut splitter, ask);
    let mut source = splitter.into_input();
    // A failure of the input is the cause of the reader's error.
    if let Some(error) = source.failure.take() {
        return Err(error);
    }
    let survey = read?;
    let (blob, bytes) = source.finish()?;
    Ok(StagedCsv {
        blob,
        bytes,
        rows: survey.rows,
        columns: survey.columns(),
    })
}

/// The input of the splitter: bytes are decoded, and copied as they are read.
struct Source<'a> {
    input: Box<dyn Read + 'a>,
    decoder: Option<Decoder>,
    label: &'static str,
    /// Bytes that were read and not decoded yet.
    raw: Vec<u8>,
    at: usize,
    is_read: bool,
    is_decoded: bool,
    copy: Copy,
    failure: Option<StoreError>,
}

enum Copy {
    New(Box<Written>),
    /// The input is a blob already; its bytes must have its hash.
    There {
        blob: BlobHash,
        digest: Box<Digester>,
        bytes: u64,
    },
}

impl<'a> Source<'a> {
    fn open(folder: &Path, ask: &'a StageCsv) -> Result<Source<'a>, StoreError> {
        let mut input: Box<dyn Read + 'a> = match &ask.source {
            CsvSource::Text(text) => Box::new(text.as_bytes()),
            CsvSource::File(opened) => {
                tracing::debug!(target: "flowstone::files", path = %opened.path.display(), "read");
                Box::new(&*opened.file)
            }
            CsvSource::Blob(hash) => Box::new(opened(&place(folder, hash)?)?),
        };
        let encoding = match &ask.format.encoding {
            None => None,
            Some(label) => Some(Encoding::for_label(label.as_bytes()).ok_or_else(|| {
                let error = rejected(
                    "E0641",
                    "bad-config",
                    format!("there is no encoding `{label}`"),
                );
                with_hint(
                    error,
                    "such as utf-8, utf-16le, latin1, windows-1252, shift_jis",
                )
            })?),
        };
        let mut head = Vec::new();
        let sniffed = input.by_ref().take(3).read_to_end(&mut head);
        sniffed.map_err(|error| unreadable(super::SplitError::Io(error)))?;
        let mark = Encoding::for_bom(&head);
        let encoding = mark.map(|(found, _)| found).or(encoding).unwrap_or(UTF_8);
        head.drain(..mark.map_or(0, |(_, length)| length));
        let is_plain = encoding == UTF_8;
        let copy = match &ask.source {
            CsvSource::Blob(hash) if is_plain && mark.is_none() => Copy::There {
                blob: hash.clone(),
                digest: Box::default(),
                bytes: 0,
            },
            _ => Copy::New(Box::new(incoming::begin_here(folder)?)),
        };
        Ok(Source {
            input: Box::new(Cursor::new(head).chain(input)),
            decoder: (!is_plain).then(|| encoding.new_decoder_without_bom_handling()),
            label: encoding.name(),
            raw: Vec::new(),
            at: 0,
            is_read: false,
            is_decoded: false,
            copy,
            failure: None,
        })
    }

    fn decode(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.decoder else {
            return self.input.read(into);
        };
        while !self.is_decoded {
            if self.at == self.raw.len() && !self.is_read {
                self.raw.resize(64 << 10, 0);
                let count = self.input.read(&mut self.raw)?;
                self.raw.truncate(count);
                self.at = 0;
                self.is_read = count == 0;
            }
            let (result, read, written) = decoder.decode_to_utf8_without_replacement(
                &self.raw[self.at..],
                into,
                self.is_read,
            );
            self.at += read;
            match result {
                DecoderResult::Malformed(..) => {
                    let message = format!("the CSV text is not in the encoding {}", self.label);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                DecoderResult::InputEmpty => self.is_decoded = self.is_read,
                DecoderResult::OutputFull => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }

    fn finish(self) -> Result<(BlobHash, u64), StoreError> {
        match self.copy {
            Copy::New(written) => {
                let stored = written.finish()?;
                Ok((stored.hash, stored.size))
            }
            Copy::There {
                blob,
                digest,
                bytes,
            } => match digest.finish() == blob.0 {
                true => Ok((blob, bytes)),
                false => Err(StoreError::Damaged {
                    path: format!("the blob {}", blob.0),
                    detail: "its contents do not match its hash".to_owned(),
                }),
            },
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.decode(into)?;
        match &mut self.copy {
            Copy::New(written) => {
                if let Err(error) = written.write(&into[..count]) {
                    self.failure = Some(error);
                    return Err(io::Error::other("the copy failed"));
                }
            }
            Copy::There { digest, bytes, .. } => {
                digest.add(&into[..count]);
                *bytes += count as u64;
            }
        }
        Ok(count)
    }
}

fn opened(path: &Path) -> Result<File, StoreError> {
    tracing::debug!(target: "flowstone::files", path = %path.display(), "read");
    open_regular(path).map_err(|error| StoreError::of_reading(path, &error))
}

/// The inferred properties of the columns so far.
struct Survey {
    names: Vec<String>,
    /// The declared type of each column.
    declared: Vec<Option<ColumnType>>,
    kinds: Vec<Kinds>,
    /// Tells for each column whether a cell is not empty.
    seen: Vec<bool>,
    /// Tells for each column whether a cell is an empty text in quotes.
    quoted: Vec<bool>,
    rows: u64,
}

impl Survey {
    fn of(splitter: &mut Splitter<Source<'_>>, ask: &StageCsv) -> Result<Survey, StoreError> {
        let mut survey: Option<Survey> = None;
        loop {
            let next = splitter.next().map_err(unreadable)?;
            if next == Next::End {
                break;
            }
            check_text(splitter)?;
            let is_header = survey.is_none() && ask.format.header;
            let is_narrow = survey
                .as_ref()
                .is_some_and(|survey| survey.names.len() == 1);
            if splitter.is_blank() && !is_narrow {
                continue;
            }
            if is_header {
                let names = (0..splitter.fields.len())
                    .map(|idx| text(splitter.bytes(idx)).trim().to_owned());
                let names: Vec<String> = names.collect();
                if let Next::Torn(field) = next {
                    return Err(BadRow::torn(splitter.line, field).error());
                }
                survey = Some(Survey::start(names, ask, splitter.line)?);
                continue;
            }
            let survey = match &mut survey {
                Some(survey) => survey,
                None => survey.insert(Survey::start(unnamed(splitter.fields.len(), ask), ask, 1)?),
            };
            survey.rows += 1;
            let found = splitter.fields.len();
            let bad = match next {
                Next::Torn(field) => BadRow::torn(splitter.line, field),
                _ if found != survey.names.len() => {
                    BadRow::width(splitter.line, found, survey.names.len())
                }
                _ => {
                    survey.inspect(splitter);
                    continue;
                }
            };
            if ask.on_bad_row == OnBadRow::Fail {
                return Err(bad.error());
            }
        }
        survey.ok_or_else(|| {
            let error = rejected("E0640", "invalid", "the CSV text is empty".to_owned());
            with_hint(error, "its first line names the columns: id,name,amount")
        })
    }

    fn start(names: Vec<String>, ask: &StageCsv, line: u64) -> Result<Survey, StoreError> {
        check_names(&names, ask, line)?;
        let declared = names.iter().map(|name| {
            let found = ask.types.iter().find(|(declared, _)| declared == name);
            found.map(|(_, type_)| *type_)
        });
        Ok(Survey {
            declared: declared.collect(),
            kinds: vec![Kinds::ALL; names.len()],
            seen: vec![false; names.len()],
            quoted: vec![false; names.len()],
            names,
            rows: 0,
        })
    }

    fn inspect(&mut self, splitter: &mut Splitter<Source<'_>>) {
        for idx in 0..self.names.len() {
            if self.kinds[idx].is_text() {
                continue;
            }
            let is_quoted = splitter.fields[idx].quoted;
            let text = splitter.bytes(idx);
            if text.is_empty() {
                self.quoted[idx] |= is_quoted;
            } else {
                self.seen[idx] = true;
                self.kinds[idx] = self.kinds[idx].and(Kinds::of(text));
            }
        }
    }

    fn columns(self) -> Vec<CsvColumn> {
        let columns = self.names.into_iter().enumerate().map(|(idx, name)| {
            let found = match (self.seen[idx], self.quoted[idx]) {
                (true, _) => Some(self.kinds[idx].best()),
                (false, true) => Some(ColumnType::String),
                (false, false) => None,
            };
            CsvColumn {
                name,
                type_: self.declared[idx].or(found),
            }
        });
        columns.collect()
    }
}

/// Returns the names of columns in a file without a header: the declared ones, or numbered ones.
fn unnamed(count: usize, ask: &StageCsv) -> Vec<String> {
    match ask.types.is_empty() {
        true => (1..=count)
            .map(|number| format!("column-{number}"))
            .collect(),
        false => ask.types.iter().map(|(name, _)| name.clone()).collect(),
    }
}

fn check_names(names: &[String], ask: &StageCsv, line: u64) -> Result<(), StoreError> {
    let refused =
        |kind, message, hint: &str| Err(with_hint(rejected("E0640", kind, message), hint));
    if names.len() > MAX_COLUMNS {
        let message = format!(
            "the CSV text has {} columns, and a table has at most {MAX_COLUMNS}",
            names.len()
        );
        return refused(
            "too-large",
            message,
            "if that is wrong, the delimiter may be different: `:delimiter \";\"`",
        );
    }
    let mut places = std::collections::HashMap::new();
    for (idx, name) in names.iter().enumerate() {
        if name.is_empty() {
            let message = format!(
                "line {line} of the CSV text: column {} has no name",
                idx + 1
            );
            return refused(
                "invalid",
                message,
                "name it, or set `:header? false` if the first line is a row",
            );
        }
        if let Some(first) = places.insert(name.as_str(), idx) {
            let message = format!(
                "line {line} of the CSV text: columns {} and {} are both called `{name}`",
                first + 1,
                idx + 1
            );
            return refused("invalid", message, "give one of them another name");
        }
        if name == ROW_ID {
            let message = format!(
                "line {line} of the CSV text: a column is called `{ROW_ID}`, which is the store's own number of a row"
            );
            return refused("invalid", message, "rename or remove it");
        }
    }
    if let Some((unknown, _)) = ask
        .types
        .iter()
        .find(|(name, _)| !places.contains_key(name.as_str()))
    {
        let message =
            format!("`:columns` sets the type of `{unknown}`, but the CSV text has no such column");
        let known = format!("it has {}", listed(names.iter().map(String::as_str)));
        return refused("bad-config", message, &known);
    }
    Ok(())
}

/// Refuses bytes that are not text: another encoding, or not CSV.
fn check_text(splitter: &Splitter<Source<'_>>) -> Result<(), StoreError> {
    let text = splitter.text();
    let line = splitter.line;
    if memchr::memchr(0, text).is_some() {
        let message = format!("line {line} of the CSV text contains a NUL character");
        let error = rejected("E0641", "invalid", message);
        return Err(with_hint(
            error,
            "it may be UTF-16: set `:encoding \"utf-16le\"`; or it is not CSV, but a spreadsheet or an archive",
        ));
    }
    let Err(error) = std::str::from_utf8(text) else {
        return Ok(());
    };
    let byte = text.get(error.valid_up_to()).copied().unwrap_or_default();
    let message = format!("line {line} of the CSV text is not UTF-8: byte 0x{byte:02X}");
    Err(with_hint(
        rejected("E0641", "invalid", message),
        "name the encoding that it has, as in `:encoding \"latin1\"` or `:encoding \"windows-1252\"`",
    ))
}

/// Converts bytes that were checked to text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
