//! Runs that are exported and imported: completely, or not at all.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::archive::{Archive, ImportOptions};
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunFilter, WaitFilter};
use flowstone_engine::{Engine, EngineError, ExecuteOptions, codec};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

const FLOW: &str = "(let [a (flow/step :write :first {:value \"ä \\\"quoted\\\"\"})
      b (flow/step :look :large {:value (apply str (repeat 20000 \"x\"))})
      c (flow/step :look :again {:times 1 :value (apply str (repeat 20000 \"x\"))})]
  {:count (count (str a b c)) :dice (flow/rand)})";

const ASK: &str = "(let [a (flow/step :write :first {:value 1})
      b (flow/step :hold :door {})]
  [a (:action b) (flow/step :write :last {:value 2})])";

fn export(engine: &Engine, run: &RunId) -> Archive {
    block_on(engine.export_run(run, false)).expect("it is exported")
}

fn import(engine: &Engine, text: &str, new_id: bool) -> Result<RunId, EngineError> {
    let archive = Archive::read(text)?;
    let imported = block_on(engine.import_runs(archive, ImportOptions { new_id }))?;
    Ok(imported.runs[0].clone())
}

/// Returns the reason for a refusal, as text.
fn refused(result: Result<RunId, EngineError>) -> String {
    match result {
        Ok(run) => format!("imported {run}"),
        Err(error) => format!("{} {error}", error.code()),
    }
}

#[test]
fn an_imported_finished_run_has_the_same_outcome() {
    let here = Bench::over(STORE);
    let engine = here.engine();
    let run = here.start(&engine, FLOW);
    let first = outcome(&engine, &run);
    let archive = export(&engine, &run);
    let text = archive.write();
    assert_eq!(Archive::read(&text).expect("it is read"), archive);

    let there = Bench::over(STORE);
    let other = there.engine();
    assert_eq!(import(&other, &text, false).expect("it is imported"), run);
    // The run is replayed from the imported journal, and nothing is performed.
    assert_eq!(outcome(&other, &run), first);
    assert_eq!(there.effects(), "");
    let row = block_on(other.find_run(run.as_str())).expect("it is there");
    assert_eq!((&*row.started_by, row.held), ("import", false));
    // Exported again, the journal is the same.
    assert_eq!(
        export(&other, &run).runs[0].entries,
        archive.runs[0].entries
    );
}

#[test]
fn a_taken_id_is_refused_or_replaced() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    let first = outcome(&engine, &run);
    let text = export(&engine, &run).write();
    let again = refused(import(&engine, &text, false));
    assert_eq!(again, format!("E0563 the run `{run}` exists already"));
    let copy = import(&engine, &text, true).expect("it is imported");
    assert_ne!(copy, run);
    assert_eq!(outcome(&engine, &copy), first);
    let row = block_on(engine.find_run(copy.as_str())).expect("it is there");
    assert_eq!(row.origin, Some(run));
}

#[test]
fn an_unfinished_imported_run_is_held_until_it_is_named() {
    let here = Bench::over(STORE);
    let engine = here.engine();
    let run = here.start(&engine, ASK);
    expect!["waiting: `door` waits for an answer"].assert_eq(&outcome(&engine, &run));
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let token = block_on(engine.stores().waits.token(&waits[0].id)).expect("readable");
    let token = token.expect("a token");
    let text = export(&engine, &run).write();
    assert!(!text.contains(&token), "a token is in the file");
    assert_eq!(
        refused(import(&engine, &text, true)),
        format!("E0564 the run {run} is not over, and an unfinished run keeps its id")
    );

    let there = Bench::over(STORE);
    let other = there.engine();
    import(&other, &text, false).expect("it is imported");
    let answer = codec::decode("{:action :approve}").expect("EDN");
    block_on(other.complete_wait("door", &answer, false)).expect("answered");
    let executed = block_on(other.resume_all(Rc::new(NoObserver), ExecuteOptions::default()));
    assert_eq!(executed.expect("listed").len(), 0);
    expect!["[1 :approve 2]"].assert_eq(&outcome(&other, &run));
    expect!["last=1"].assert_eq(&there.effects());
}

#[test]
fn a_damaged_file_changes_nothing() {
    let here = Bench::over(STORE);
    let engine = here.engine();
    let run = here.start(&engine, ASK);
    outcome(&engine, &run);
    let text = export(&engine, &run).write();
    let there = Bench::over(STORE);
    let other = there.engine();
    let cases = [
        ("", "E0560"),
        ("{:slug :hello}", "E0560"),
        ("PK\u{3}\u{4}", "E0560"),
        ("{:flowstone-archive 1", "E0561"),
        ("{:flowstone-archive x\n", "E0561"),
        ("{:flowstone-archive 3\n :anything", "E0562"),
        (&text[..text.len() / 2], "E0561"),
        (&text[..text.len() - 1], "E0561"),
        (&text.replacen("door", "roof", 1), "E0561"),
        (&text.replace('\n', "\r\n"), "E0561"),
        (&format!("{text}\n"), "E0561"),
    ];
    for (text, code) in cases {
        let result = import(&other, text, false);
        let shown: String = text.chars().take(40).collect();
        assert_eq!(result.expect_err(&shown).code(), code, "{shown}");
    }
    let runs = block_on(other.list_runs(RunFilter::default())).expect("runs");
    assert!(runs.is_empty());
}

#[test]
fn every_truncation_of_a_file_is_detected() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :pure :one {:value 1})");
    outcome(&engine, &run);
    let text = export(&engine, &run).write();
    for end in 0..text.len() {
        assert!(Archive::read(&text[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn an_invalid_record_is_named() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :pure :one {:value 1})");
    outcome(&engine, &run);
    let text = export(&engine, &run).write();
    let cases = [
        (":kind \"result\"", ":kind \"wish\"", "unknown kind `wish`"),
        (
            ":status \"completed\"",
            ":status \"asleep\"",
            "unknown status `asleep`",
        ),
        (
            ":at 1000000",
            ":at \"noon\"",
            "`:at` of a journal entry is missing or wrong",
        ),
        (
            ":source \"",
            ":source \" ",
            "a program is not what its hash says",
        ),
        (
            ":flow \"",
            ":folw \"",
            "`:flow` of a run's row is missing or wrong",
        ),
    ];
    for (from, to, words) in cases {
        let body = text.splitn(3, '\n').nth(2).expect("a body");
        assert!(body.contains(from), "{from}");
        let body = body.replacen(from, to, 1);
        let digest = codec::digest_bytes(body.as_bytes());
        let text = format!("{{:flowstone-archive 1\n :digest \"{digest}\"\n{body}");
        let error = Archive::read(&text).expect_err(to);
        assert_eq!(error.to_string(), format!("the file is damaged: {words}"));
    }
}

/// Changes of a file whose digest was corrected: each is refused, whichever field it changes.
#[rustfmt::skip]
const RECORDS: &[(&str, &str)] = &[
    (":engine-abi 1", ":engine-abi \"1\""), (":engine-abi 1", ":engine-abi"), (":engine-abi 1", ":engine-abi 1.5"),
    (":status \"", ":status \"x"), (":status \"", ":status 7 :x \""), (":seed \"", ":seed \"g"), (":seed \"", ":seed 7 :x \""),
    (":seed \"", ":seed \"ffffffffffffffffffff"), (":priority ", ":priority \"high\" :x "), (":pass ", ":pass nil :x "), (":created ", ":created #{} :x "),
    (":updated ", ":updated 1e99 :x "), (":started-by \"", ":started-by nil :x \""), (":program \"", ":program \"0"), (":id \"", ":id 7 :x \""), (":input \"", ":input {} :x \""),
    (":kind \"", ":kind \"x"), (":kind \"", ":kind nil :x \""), (":path \"", ":path [] :x \""), (":what \"", ":what :k :x \""), (":payload \"", ":payload 1 :x \""),
    (":digest \"", ":digest 1 :x \""), (":at ", ":at 99999999999999999999 :x "), (":at ", ":at -1.0 :x "),
    (":runs [", ":runs {} :x ["), (":runs [", ":runs [7 "), (":runs [", ":runs [nil "), (":programs [", ":programs nil :x ["), (":programs [", ":programs [[] "),
    (":blobs [", ":blobs \"\" :x ["), (":blobs [", ":blobs [{} "), (":journal [", ":journal [{} "), (":journal [", ":journal 7 :x ["), (":waits [", ":waits [{} "), (":waits [", ":waits nil :x ["),
    (":row {", ":row 7 :x {"), (":row {", ":row nil :x {"), (":blobs [", ":blobs [{:uri \"u\" :hash \"h\" :base64 \"!\"} "), (":blobs [", ":blobs [{:uri \"u\" :hash \"h\" :base64 \"aGk=\"} "),
    (":id \"", ":id \"../../../"), (":id \"", ":id \"\\u001b[8m\" :x \""), (":id \"", ":id \"\" :x \""), (":pass ", ":pass -1 :x "), (":pass ", ":pass 9223372036854775807 :x "),
    (":created ", ":created -1 :x "), (":updated ", ":updated 9223372036854775807 :x "), (":ended ", ":ended -9223372036854775808 :x "),
    (":runs [", ":runs #inst \"2026-99-01T00:00:00.000Z\" :x ["), (":runs [", ":runs ##NaN :x ["), (":runs [", ") :x ["), (":runs [", "\"\\u\" :x ["),
];

#[test]
fn changed_records_are_refused() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :pure :one {:value 1})");
    outcome(&engine, &run);
    let text = export(&engine, &run).write();
    let body = text.splitn(3, '\n').nth(2).expect("a body");
    for (from, to) in RECORDS {
        assert!(body.contains(from), "{from} is not in {body}");
        let body = body.replacen(from, to, 1);
        let digest = codec::digest_bytes(body.as_bytes());
        let text = format!("{{:flowstone-archive 1\n :digest \"{digest}\"\n{body}");
        match Archive::read(&text) {
            Ok(_) => panic!("{from} as {to} is read"),
            Err(error) => assert_eq!(error.code(), "E0561", "{to}: {error}"),
        }
    }
    for version in ["0", "-1", "3", "1.5", "", "x", "99999999999999999999"] {
        let text = text.replacen("archive 1", &format!("archive {version}"), 1);
        assert!(Archive::read(&text).is_err(), "version {version}");
    }
}
