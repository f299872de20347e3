//! What each fuzzing target of the engine does with an input: stored values, archives, schedules, schemas and JSON. Any
//! input may be refused; none may panic, hang, or break what is asserted here.

#![allow(dead_code, reason = "each target uses one of these")]

use std::str::from_utf8;

use flowstone_engine::archive::Archive;
use flowstone_engine::{codec, duration, json, schema};
use flowstone_flow::schedule::{Cron, Timing};
use flowstone_lang::value::Value;
use jiff::tz::TimeZone;

/// Does something with an input.
pub type Target = fn(&[u8]);

/// The targets, each named after its folder in the corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("archive", archive),
    ("codec", codec_text),
    ("json", json_text),
    ("schedule", schedule),
    ("schema", schema_text),
];

/// Reads an archive of runs, with its digest corrected, so that changed contents are reached. An archive that is read is
/// written to the same archive.
pub fn archive(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let _ = Archive::read(text);
    let Some(text) = with_digest(text) else {
        return;
    };
    if let Ok(archive) = Archive::read(&text) {
        let again = archive.write();
        let back = Archive::read(&again).unwrap_or_else(|error| panic!("{again}: {error}"));
        assert!(archive == back, "{again} is another archive");
        assert!(archive.main().is_some(), "an archive holds a run");
    }
}

/// Puts the digests of the contents and of each program where the file has others.
fn with_digest(text: &str) -> Option<String> {
    let (first, rest) = text.split_once('\n')?;
    let (_, body) = rest.split_once('\n')?;
    let digest = codec::digest_bytes(body.as_bytes());
    Some(format!("{first}\n :digest \"{digest}\"\n{body}"))
}

/// Reads stored values. What is read is written as a text that reads as the same text.
pub fn codec_text(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let _ = codec::decode_all(text);
    let Ok(value) = codec::decode(text) else {
        return;
    };
    let _ = codec::digest(&value);
    let Ok(once) = codec::encode(&value) else {
        return;
    };
    let back = codec::decode(&once).unwrap_or_else(|error| panic!("{once}: {error}"));
    assert_eq!(codec::encode(&back).as_deref(), Ok(&*once));
    assert_eq!(
        codec::digest(&value).ok(),
        codec::digest(&back).ok(),
        "{once} has another digest"
    );
}

/// Makes values of JSON, and JSON of them.
pub fn json_text(input: &[u8]) {
    let Ok(parsed) = serde_json::from_slice::<serde_json::Value>(input) else {
        return;
    };
    for value in [
        json::from_json(&parsed),
        json::from_json_with_string_keys(&parsed),
    ] {
        let once = json::to_json(&value).expect("JSON is data");
        let back = json::to_json(&json::from_json(&once)).expect("JSON is data");
        assert_eq!(back.to_string(), once.to_string());
        let stored = codec::encode(&value).expect("JSON can be stored");
        codec::decode(&stored).expect("what was stored is read");
    }
}

/// Reads a cron expression, on the first line, and a zone; looks for the next moments of each. Reads a duration.
pub fn schedule(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, "UTC"));
    let _ = duration::parse(first);
    let _ = json::instant_millis(first);
    let zone = TimeZone::get(rest.trim()).unwrap_or(TimeZone::UTC);
    let Ok(cron) = Cron::parse(first) else {
        return;
    };
    assert_eq!(cron.text(), first.trim());
    let timing = Timing::Cron {
        cron: Box::new(cron),
        zone,
    };
    for start in [
        i64::MIN,
        -1,
        0,
        1_772_323_200_000,
        253_402_300_799_000,
        i64::MAX,
    ] {
        let mut after = start;
        for _ in 0..20 {
            let Some(next) = timing.next_ms(after) else {
                break;
            };
            assert!(next > after, "{timing}: {next} is not after {after}");
            after = next;
        }
    }
}

/// Reads a schema and holds a value against it: two forms.
pub fn schema_text(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let Ok(forms) = codec::decode_all(text) else {
        return;
    };
    let given = forms.get(1).cloned().unwrap_or(Value::Nil);
    let Some(Ok(schema)) = forms.first().map(schema::parse) else {
        return;
    };
    let problems = schema::validate(&schema, &given);
    let _ = schema::explain(&problems);
    let decoded = schema::decode(&schema, given);
    let _ = schema::validate(&schema, &decoded);
    let mut shown = schema::to_json_schema(&schema);
    schema::closed(&mut shown);
}
