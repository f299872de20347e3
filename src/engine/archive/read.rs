//! Text to archives. Nothing in a file is believed before its digest was checked.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_lang::value::Value;

use super::write::state_name;
use super::{Archive, ArchiveError, ArchivedBlob, ArchivedRun, ArchivedWait, FORMAT, HEAD};
use crate::blob::BlobHash;
use crate::codec;
use crate::ids::RunId;
use crate::ports::{
    BlobRow, Entry, EntryKind, Parent, ParentClose, Program, RunRow, RunStatus, WaitEnding,
    WaitEvent, WaitState,
};
use crate::resource::{ResourceKind, SearchEntry, Tier};
use crate::trace::TraceOrigin;

type Read<T> = Result<T, ArchiveError>;

/// The end of the year 9999, in milliseconds.
const LATEST_MS: i64 = 253_402_300_799_999;

pub(super) fn read(text: &str) -> Read<Archive> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix(HEAD).ok_or(ArchiveError::Foreign)?;
    let (version, rest) = rest
        .split_once('\n')
        .ok_or_else(|| damaged("it is cut off"))?;
    let found: i64 = version
        .trim_end()
        .parse()
        .ok()
        .filter(|version| *version > 0)
        .ok_or_else(|| damaged("its first line has no version"))?;
    if found > FORMAT {
        return Err(ArchiveError::TooNew {
            found,
            known: FORMAT,
        });
    }
    let (second, body) = rest
        .split_once('\n')
        .ok_or_else(|| damaged("it is cut off"))?;
    let digest = second
        .strip_prefix(" :digest \"")
        .and_then(|digest| digest.strip_suffix('"'))
        .ok_or_else(|| damaged("its second line has no digest"))?;
    if !body.ends_with("}\n") {
        return Err(damaged("it is cut off"));
    }
    if codec::digest_bytes(body.as_bytes()) != digest {
        return Err(damaged("its contents are not what its digest says"));
    }
    let whole = codec::decode(text).map_err(|error| damaged(error.to_string()))?;
    let whole = Fields(&whole, "the file");
    let mut programs = BTreeMap::new();
    for program in whole.items("programs")? {
        let program = read_program(&Fields(program, "a program"))?;
        programs.insert(program.hash.clone(), program);
    }
    let runs = whole.items("runs")?;
    let runs = runs.iter().map(|run| read_run(&Fields(run, "a run")));
    let blobs = whole.items("blobs")?;
    let blobs = blobs.iter().map(|blob| read_blob(&Fields(blob, "a blob")));
    let archive = Archive {
        runs: runs.collect::<Read<_>>()?,
        programs,
        blobs: blobs.collect::<Read<_>>()?,
    };
    match archive
        .runs
        .iter()
        .find(|run| archive.program(run).is_none())
    {
        Some(run) => Err(damaged(format!(
            "the program of the run {} is missing",
            run.row.id
        ))),
        None if archive.runs.is_empty() => Err(damaged("it holds no run")),
        None => Ok(archive),
    }
}

fn damaged(detail: impl Into<String>) -> ArchiveError {
    ArchiveError::Damaged {
        detail: detail.into(),
    }
}

/// A record that is read, and what it is in words.
struct Fields<'a>(&'a Value, &'static str);

impl<'a> Fields<'a> {
    fn wrong(&self, key: &str) -> ArchiveError {
        damaged(format!("`:{key}` of {} is missing or wrong", self.1))
    }

    fn items(&self, key: &str) -> Read<Vec<&'a Value>> {
        let items = self.0.get(key).and_then(Value::as_vector);
        Ok(items.ok_or_else(|| self.wrong(key))?.iter().collect())
    }

    fn maybe(&self, key: &str) -> Read<Option<String>> {
        match self.0.get(key) {
            None => Ok(None),
            Some(value) => match value.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(self.wrong(key)),
            },
        }
    }

    fn text(&self, key: &str) -> Read<String> {
        self.maybe(key)?.ok_or_else(|| self.wrong(key))
    }

    fn maybe_int(&self, key: &str) -> Read<Option<i64>> {
        match self.0.get(key) {
            None => Ok(None),
            Some(value) => value.as_int().map(Some).ok_or_else(|| self.wrong(key)),
        }
    }

    fn int(&self, key: &str) -> Read<i64> {
        self.maybe_int(key)?.ok_or_else(|| self.wrong(key))
    }

    fn int_in(&self, key: &str, range: RangeInclusive<i64>) -> Read<i64> {
        let int = self.int(key)?;
        let is_in = range.contains(&int);
        is_in.then_some(int).ok_or_else(|| self.wrong(key))
    }

    /// Reads an instant that has a date of four digits.
    fn time(&self, key: &str) -> Read<i64> {
        self.int_in(key, 0..=LATEST_MS)
    }

    fn maybe_time(&self, key: &str) -> Read<Option<i64>> {
        match self.0.get(key) {
            None => Ok(None),
            Some(_) => self.time(key).map(Some),
        }
    }

    fn run(&self, key: &str) -> Read<RunId> {
        RunId::read(&self.text(key)?).ok_or_else(|| self.wrong(key))
    }

    /// Reads a name that stands for something that this build knows.
    fn named<T>(&self, key: &str, known: impl Fn(&str) -> Option<T>) -> Read<T> {
        let name = self.text(key)?;
        known(&name).ok_or_else(|| damaged(format!("unknown {key} `{name}`")))
    }

    /// Like [`Fields::named`], with the default if the field is missing, as in files of older builds.
    fn maybe_named<T: Default>(&self, key: &str, known: impl Fn(&str) -> Option<T>) -> Read<T> {
        match self.0.get(key) {
            None => Ok(T::default()),
            Some(_) => self.named(key, known),
        }
    }
}

fn read_program(fields: &Fields<'_>) -> Read<Program> {
    let program = Program {
        hash: fields.text("hash")?,
        source: fields.text("source")?,
        engine_abi: fields.int("engine-abi")?,
    };
    if codec::digest_bytes(program.source.as_bytes()) != program.hash {
        return Err(damaged("a program is not what its hash says"));
    }
    Ok(program)
}

fn read_run(fields: &Fields<'_>) -> Read<ArchivedRun> {
    let row = fields.0.get("row").ok_or_else(|| fields.wrong("row"))?;
    let waits = fields.items("waits")?;
    let waits = waits.iter().map(|wait| read_wait(&Fields(wait, "a wait")));
    let entries = fields.items("journal")?;
    let entries = entries
        .iter()
        .map(|entry| read_entry(&Fields(entry, "a journal entry")));
    Ok(ArchivedRun {
        row: read_row(&Fields(row, "a run's row"))?,
        entries: entries.collect::<Read<_>>()?,
        waits: waits.collect::<Read<_>>()?,
    })
}

fn read_row(fields: &Fields<'_>) -> Read<RunRow> {
    let parent = fields.0.get("parent");
    let parent = parent.map(|parent| read_parent(&Fields(parent, "a run's parent")));
    let seed = fields.named("seed", |seed| u64::from_str_radix(seed, 16).ok())?;
    Ok(RunRow {
        id: fields.run("id")?,
        external_id: fields.maybe("external-id")?,
        program: fields.text("program")?,
        flow: fields.text("flow")?,
        status: fields.named("status", RunStatus::from_name)?,
        wait_reason: fields.maybe("wait-reason")?,
        due_ms: fields.maybe_int("due")?,
        input: fields.text("input")?,
        sealed: fields.maybe("secrets")?,
        seed,
        result: fields.maybe("result")?,
        error: fields.maybe("error")?,
        cancel_requested: fields.maybe("cancel")?,
        // Written again when the run waits next.
        is_unwinding: false,
        executing: false,
        created_ms: fields.time("created")?,
        updated_ms: fields.time("updated")?,
        invocation: fields.maybe("invocation")?,
        key: fields.maybe("key")?,
        priority: fields.int("priority")?,
        bindings: fields.maybe("bindings")?,
        started_by: fields.text("started-by")?,
        origin: fields.maybe("origin")?.map(RunId::from_text),
        parent: parent.transpose()?,
        trace: fields
            .maybe("trace")?
            .and_then(|text| TraceOrigin::parse(&text)),
        // A number in the registry of another project.
        version: None,
        pass: fields.int_in("pass", 0..=i64::from(u32::MAX))?,
        force: fields.0.get("force").is_some(),
        ended_ms: fields.maybe_time("ended")?,
        deadline_ms: fields.maybe_int("deadline")?,
        begun: true,
        held: false,
        pruned_ms: None,
        setback: None,
        quarantine: None,
    })
}

fn read_parent(fields: &Fields<'_>) -> Read<Parent> {
    let depth = u32::try_from(fields.int("depth")?).map_err(|_| fields.wrong("depth"))?;
    Ok(Parent {
        run: fields.run("run")?,
        root: fields.run("root")?,
        depth,
        close: fields.named("close", ParentClose::from_name)?,
    })
}

fn read_wait(fields: &Fields<'_>) -> Read<ArchivedWait> {
    let states = [WaitState::Open, WaitState::Completed, WaitState::Closed];
    Ok(ArchivedWait {
        path: fields.text("path")?,
        key: fields.text("key")?,
        state: fields.named("state", |name| {
            states.into_iter().find(|state| state_name(*state) == name)
        })?,
        deadline_ms: fields.maybe_int("deadline")?,
        details: fields.text("details")?,
        payload: fields.maybe("payload")?,
        opened_ms: fields.int("opened")?,
        ending: fields
            .maybe("ending")?
            .and_then(|name| WaitEnding::from_name(&name)),
        decided_by: fields.maybe("decided-by")?,
        decided_ms: fields.maybe_int("decided")?,
        event: match fields.maybe("event")? {
            Some(name) => Some(WaitEvent {
                name,
                key: fields.maybe("event-key")?,
                path: fields.maybe("event-path")?,
            }),
            None => None,
        },
        webhook: fields.maybe("webhook")?,
    })
}

fn read_entry(fields: &Fields<'_>) -> Read<Entry> {
    Ok(Entry {
        kind: fields.named("kind", EntryKind::from_name)?,
        path: fields.text("path")?,
        what: fields.text("what")?,
        digest: fields.text("digest")?,
        request: fields.maybe("request")?,
        payload: fields.text("payload")?,
        at_ms: fields.int("at")?,
    })
}

fn read_blob(fields: &Fields<'_>) -> Read<ArchivedBlob> {
    let bytes = STANDARD
        .decode(fields.text("base64")?)
        .map_err(|_| fields.wrong("base64"))?;
    let hash = fields.text("hash")?;
    if codec::digest_bytes(&bytes) != hash {
        return Err(damaged("a blob is not what its hash says"));
    }
    let uri = fields.text("uri")?;
    Ok(ArchivedBlob {
        row: BlobRow {
            filename: fields.maybe("filename")?,
            content_type: fields.maybe("content-type")?,
            kind: fields.maybe_named("kind", ResourceKind::from_name)?,
            tier: fields.maybe_named("tier", Tier::from_name)?,
            expires_ms: fields.maybe_int("expires")?,
            run: fields.maybe("run")?,
            path: fields.maybe("path")?,
            bucket: fields.maybe("bucket")?,
            folder: fields.maybe("folder")?,
            search: read_search(fields)?,
            ..BlobRow::new(uri, BlobHash(hash), bytes.len() as u64)
        },
        bytes,
    })
}

fn read_search(fields: &Fields<'_>) -> Read<Option<SearchEntry>> {
    if fields.0.get("search-tags").is_none() {
        return Ok(None);
    }
    let tags = fields.items("search-tags")?;
    let tags = tags.into_iter().map(|tag| tag.as_str().map(str::to_owned));
    Ok(Some(SearchEntry {
        text: fields.maybe("search-text")?,
        tags: tags
            .collect::<Option<_>>()
            .ok_or_else(|| fields.wrong("search-tags"))?,
        source_label: fields.maybe("search-label")?,
        without_contents: fields.maybe("search-contents")?.as_deref() == Some("no"),
    }))
}
