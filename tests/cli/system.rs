//! Limits of the system: few file handles, and a home that cannot be written.

use std::process::Command;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// The exit code of a program whose libraries do not fit.
const NOT_LOADED: i32 = 127;

fn limited(scratch: &Scratch, limit: &str, args: &str) -> Ran {
    let script = format!("{limit}; exec \"$0\" {args}");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_flowstone")])
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    Ran::to_the_end(&mut command)
}

fn scratch() -> (Scratch, Server) {
    let server = Server::start(|_, _| Answer::Json("{}".to_owned()));
    let scratch = Scratch::with_local_servers();
    scratch.write(
        "wide.edn",
        format!(
            "(count (flow/pmap {{:max 300}}
                      (fn [n] (flow/step :http :write {{:method :post :url \"{}\"}})) (range 300)))",
            server.url("/")
        ),
    );
    (scratch, server)
}

#[cfg(unix)]
#[test]
fn a_run_with_few_file_handles_waits_for_them_and_loses_nothing() {
    for limit in ["ulimit -n 48", "ulimit -n 128", "ulimit -Sn 32"] {
        let (scratch, server) = scratch();
        let ran = limited(&scratch, limit, "run wide.edn --quiet");
        assert_eq!(
            (ran.code, ran.out.trim()),
            (Some(0), "300"),
            "{limit}: {ran:?}"
        );
        assert_eq!(server.requests().len(), 300, "{limit}");
    }
}

#[cfg(unix)]
#[test]
fn lack_of_resources_is_not_reported_as_a_bug() {
    let (scratch, _server) = scratch();
    scratch.run(&["runs", "list"]).ok();
    let files = limited(&scratch, "ulimit -n 12", "run wide.edn");
    // The system loads the program only if there is room for all of it, which depends on its size.
    let memory = (90_000..300_000)
        .step_by(10_000)
        .map(|limit| limited(&scratch, &format!("ulimit -v {limit}"), "run wide.edn"))
        .find(|ran| ran.code.is_some_and(|code| code != NOT_LOADED))
        .expect("a limit with which the program is loaded");
    for (ran, code) in [(files, "E0644"), (memory, "E0645")] {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(code), "{code}: {}", ran.err);
        assert!(!ran.err.contains("mistake in Flowstone"), "{}", ran.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_without_memory_ends_with_a_message() {
    let scratch = Scratch::new();
    for text in [
        "(vec (range 10000000))",
        "(apply str (repeat 100000000 \"a\"))",
    ] {
        for limit in [150_000, 200_000, 300_000] {
            let limit = format!("ulimit -v {limit}");
            let ran = limited(&scratch, &limit, &format!("eval '{text}'"));
            assert_eq!(ran.code, Some(1), "{limit} {text}: {ran:?}");
            let is_clear = ["E0647", "E0645", "memory allocation of"]
                .iter()
                .any(|words| ran.err.contains(words));
            assert!(is_clear, "{limit} {text}: {}", ran.err);
            assert!(!ran.err.contains("panicked"), "{}", ran.err);
        }
    }
}

/// How many handles a process needs before it performs steps is not the same everywhere: there is no number of them with
/// which it would wait for ever.
#[cfg(unix)]
#[test]
fn a_run_for_which_no_handle_will_come_stops_and_is_resumed() {
    let ended = std::thread::scope(|threads| {
        let trials: Vec<_> = (11..20)
            .map(|files| {
                threads.spawn(move || {
                    let (scratch, server) = scratch();
                    scratch.run(&["runs", "list"]).ok();
                    let limit = format!("ulimit -n {files}");
                    let ran = limited(&scratch, &limit, "run wide.edn --quiet");
                    if ran.code != Some(0) {
                        assert_eq!(ran.code, Some(1), "{limit}: {ran:?}");
                        assert!(ran.err.contains("E0644"), "{limit}: {}", ran.err);
                    }
                    let has_stopped = ran.err.contains("the run stopped at pmap.");
                    if has_stopped {
                        assert_eq!(scratch.run(&["run", "wide.edn", "--quiet"]).ok(), "300\n");
                        assert_eq!(server.requests().len(), 300, "{limit}");
                    }
                    (ran.code, has_stopped)
                })
            })
            .collect();
        let ended = trials
            .into_iter()
            .map(|trial| trial.join().expect("a trial"));
        ended.collect::<Vec<_>>()
    });
    assert!(ended.contains(&(Some(1), true)), "{ended:?}");
    assert!(ended.contains(&(Some(0), false)), "{ended:?}");
}

#[test]
fn a_backup_is_verified_and_takes_the_place_of_a_lost_home() {
    let scratch = Scratch::new();
    scratch.write(
        "note.edn",
        "(:value (flow/step :kv :count {:operation :increment :key \"n\"}))",
    );
    assert_eq!(scratch.run(&["run", "note.edn", "--quiet"]).ok(), "1\n");
    let made = scratch.run(&["backup", "copy", "--json"]).json();
    assert_eq!(
        (&made["ok"], &made["runs"]),
        (&true.into(), &1.into()),
        "{made}"
    );
    let found = scratch.run(&["runs", "verify", "--home", "copy", "--json"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(found.json()["flaws"], serde_json::json!([]));
    assert_eq!(scratch.run(&["run", "note.edn", "--quiet"]).ok(), "2\n");
    scratch.write(".flowstone/flowstone.db", "");
    let lost = scratch.run(&["run", "note.edn", "--quiet"]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    assert!(lost.err.contains("E0619"), "{}", lost.err);
    std::fs::remove_dir_all(scratch.path().join(".flowstone")).expect("removed");
    std::fs::rename(
        scratch.path().join("copy"),
        scratch.path().join(".flowstone"),
    )
    .expect("moved");
    assert_eq!(scratch.run(&["run", "note.edn", "--quiet"]).ok(), "2\n");
    scratch.run(&["runs", "verify"]).ok();
}

/// Values in the database itself are looked at, too; a step that meets a damaged one says which it is.
#[test]
fn damaged_values_and_cells_are_found() {
    let scratch = Scratch::new();
    scratch.write(
        "keep.edn",
        "(do (flow/step :kv :a {:op :set :key \"n\" :value {:x 1}})
             (flow/step :table :b {:op :insert :table \"t\" :rows [{:id 1 :data {:y 2}}]})
             (flow/input))",
    );
    scratch.write("read.edn", "(flow/step :kv :a {:op :get :key \"n\"})");
    scratch.write("add.edn", "(flow/step :kv :a {:op :increment :key \"n\"})");
    scratch.write(
        "rows.edn",
        "(flow/step :table :a {:op :query :table \"t\"})",
    );
    scratch.run(&["run", "keep.edn", "--quiet"]).ok();
    scratch.run(&["runs", "verify"]).ok();
    let db = rusqlite::Connection::open(scratch.path().join(".flowstone/flowstone.db"));
    let db = db.expect("a database");
    db.execute_batch(
        "UPDATE kv SET value = '{:x'; UPDATE run SET input = '{]';
         UPDATE t_1 SET c2 = '{:y';",
    )
    .expect("written");
    drop(db);
    let found = scratch.run(&["runs", "verify", "--json"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let flaws = found.json()["flaws"].clone();
    let kinds: Vec<&str> = flaws
        .as_array()
        .expect("flaws")
        .iter()
        .filter_map(|flaw| flaw["what"].as_str())
        .collect();
    assert_eq!(kinds, ["key", "run", "table"], "{flaws:#}");
    for flow in ["read.edn", "add.edn", "rows.edn"] {
        let ran = scratch.run(&["run", flow, "--quiet"]);
        assert!(
            ran.code == Some(1) && ran.err.contains("E0602") && ran.err.contains("cannot be read"),
            "{flow} {ran:?}"
        );
    }
}

/// Returns the flaws that `runs verify` lists, each as its kind and what is wrong.
fn flaws(scratch: &Scratch) -> Vec<String> {
    let found = scratch.run(&["runs", "verify", "--json"]).json();
    let flaws = found["flaws"].as_array().expect("a list").iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let named = |flaw: &serde_json::Value| {
        let name = text(&flaw["name"]);
        let name = name.split(" of ").next().unwrap_or_default();
        let is_hash = name.len() == 64;
        let name = if is_hash { "(hash)" } else { name };
        format!("{} {name}: {}", text(&flaw["what"]), text(&flaw["detail"]))
    };
    flaws.map(named).collect()
}

#[test]
fn damaged_and_missing_files_of_source_trees_are_found() {
    let scratch = Scratch::new();
    scratch.write("src/a.txt", "the text of a source tree\n");
    scratch.write(
        "draft.edn",
        "(let [draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path \"src\"}})]
           (flow/step :files :write {:op :write-file :changeset draft :path \"b.txt\" :content \"the text of an edit\\n\"})
           :done)",
    );
    scratch.run(&["run", "draft.edn", "--quiet"]).ok();
    assert_eq!(flaws(&scratch), [""; 0]);
    let found = scratch.run(&["runs", "verify", "--json"]).json();
    assert_eq!(found["files"], 2, "{found}");
    let objects = scratch.path().join(".flowstone/trees/objects");
    for path in files_below(&objects) {
        let bytes = std::fs::read(&path).expect("an object");
        let changed = bytes.windows(8).position(|part| part == b"the text");
        if let Some(at) = changed {
            let mut bytes = bytes;
            bytes[at] = b'X';
            std::fs::write(&path, bytes).expect("written");
        }
    }
    let changed = "its contents do not match its hash";
    let expected = [
        format!("file a.txt: {changed}"),
        format!("file (hash): {changed}"),
    ];
    assert_eq!(flaws(&scratch), expected);
    // Looking changes nothing: the same is found again.
    assert_eq!(flaws(&scratch), expected);
    std::fs::remove_dir_all(&objects).expect("removed");
    let missing = "its contents are missing";
    assert_eq!(
        flaws(&scratch),
        [
            format!("file a.txt: {missing}"),
            format!("file (hash): {missing}")
        ]
    );
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path => found.push(path),
            }
        }
    }
    found
}

/// The marker says that there is a database, also where its text is damaged.
#[test]
fn a_damaged_marker_is_read_the_same_by_all_commands() {
    let scratch = Scratch::new();
    scratch.write(
        "one.edn",
        "(:value (flow/step :kv :a {:op :increment :key \"n\"}))",
    );
    scratch.run(&["run", "one.edn", "--quiet"]).ok();
    scratch.write(".flowstone/database.edn", [0xff, 0xfe, 0x00]);
    for command in [
        &["runs", "list"][..],
        &["runs", "verify"],
        &["run", "one.edn", "--quiet"],
    ] {
        scratch.run(command).ok();
    }
    scratch.write(".flowstone/database.edn", [0xff, 0xfe, 0x00]);
    std::fs::remove_file(scratch.path().join(".flowstone/flowstone.db")).expect("removed");
    for command in [
        &["runs", "list"][..],
        &["runs", "verify"],
        &["run", "one.edn", "--quiet"],
    ] {
        let ran = scratch.run(command);
        assert!(ran.err.contains("E0619"), "{command:?} {ran:?}");
    }
}
