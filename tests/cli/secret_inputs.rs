//! Secret inputs: encrypted at rest, left out of exports, and available to a resumed run; and the key they need.

use std::fs;

use crate::program::{Ran, Scratch};

const SECRET: &str = "correct horse battery";
const FLOW: &str = "{:slug :sign-in :concurrency {:type :singleton}
 :invocations {:default {:inputs [{:name :user :type :text} {:name :password :type :password :required true}]}}
 :flow '(let [{:keys [user password]} (flow/input)]
          (flow/step :wait :go {:timeout \"5m\"})
          (count password))}";

fn waiting() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.write("sign-in.edn", FLOW);
    let input = format!("{{:user \"ann\" :password \"{SECRET}\"}}");
    let ran = scratch.run(&["run", "sign-in.edn", "--input", &input]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let runs = scratch.json_of(&["runs", "list"]);
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    (scratch, id)
}

fn answered(scratch: &Scratch, home: &[&str]) {
    let waits = scratch.json_of(&[&["waits", "list"], home].concat());
    let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
    let ran = scratch.run(&[&["waits", "complete", &wait, "--value", "1"], home].concat());
    assert!(ran.code == Some(0) || ran.err.contains("E0984"), "{ran:?}");
}

fn resume(scratch: &Scratch, id: &str, extra: &[&str]) -> Ran {
    scratch.run(&[&["runs", "resume", id], extra].concat())
}

#[test]
fn an_interrupted_run_is_the_one_that_the_same_command_resumes() {
    let (scratch, id) = waiting();
    let input = format!("{{:user \"ann\" :password \"{SECRET}\"}}");
    let again = scratch.run(&["run", "sign-in.edn", "--input", &input]);
    assert!(again.err.contains(&id), "{again:?}");
    assert_eq!(
        scratch.json_of(&["runs", "list"])["runs"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn an_export_leaves_secrets_out_and_an_import_takes_them() {
    let (scratch, id) = waiting();
    scratch.run(&["runs", "export", &id, "run.edn"]).ok();
    let text = scratch.read("run.edn");
    assert!(!text.contains(SECRET) && !text.contains("fs1."), "{text}");
    let other = Scratch::new();
    other.write("run.edn", text.as_bytes());
    let imported = other.run(&["runs", "import", "run.edn"]);
    assert!(
        imported.err.contains(&format!(
            "runs resume {id} --secrets '{{:password \"...\"}}'"
        )),
        "{imported:?}"
    );
    let refused = resume(&other, &id, &[]);
    assert!(
        refused.err.contains("E0984") && refused.err.contains("`password`"),
        "{refused:?}"
    );
    let weak = resume(&other, &id, &["--secrets", "{:password \"abc\"}"]);
    assert!(weak.err.contains("E0981"), "{weak:?}");
    let waits = resume(
        &other,
        &id,
        &["--secrets", "{\"password\": \"another horse\"}"],
    );
    assert_eq!(waits.code, Some(3), "{waits:?}");
    answered(&other, &[]);
    let done = resume(&other, &id, &[]);
    assert_eq!(done.out, "13\n", "{done:?}");
    assert!(
        other
            .run(&["runs", "replay", &id])
            .ok()
            .contains("the same end")
    );

    let third = Scratch::new();
    third.write("run.edn", text.as_bytes());
    third.write("secrets.edn", "{:password \"one more horse\"}");
    third
        .run(&["runs", "import", "run.edn", "--secrets", "@secrets.edn"])
        .ok();
    assert_eq!(resume(&third, &id, &[]).code, Some(3));
}

#[test]
fn a_lost_key_is_named_and_loses_nothing_else() {
    let (scratch, id) = waiting();
    scratch.write("plain.edn", "(inc 1)");
    let key = scratch.path().join(".flowstone/secrets.key");
    let kept = fs::read(&key).expect("a key");
    fs::remove_file(&key).expect("it was there");
    for args in [
        &["runs", "resume", &id][..],
        &["runs", "replay", &id],
        &["runs", "fork", &id],
    ] {
        let ran = scratch.run(args);
        assert!(ran.err.contains("E0982"), "{args:?}: {ran:?}");
    }
    assert_eq!(scratch.run(&["run", "plain.edn", "--quiet"]).ok(), "2\n");
    assert!(
        scratch
            .run(&["runs", "show", &id])
            .ok()
            .contains("[secret]")
    );
    fs::write(&key, &kept).expect("written");
    answered(&scratch, &[]);
    assert_eq!(resume(&scratch, &id, &[]).out, "21\n");
}

#[test]
fn a_new_key_encrypts_what_the_old_one_did() {
    let (scratch, id) = waiting();
    let before = scratch.json_of(&["key", "show"]);
    let rotated = scratch.json_of(&["key", "rotate"]);
    assert_eq!(rotated["runs"], 1);
    assert_eq!(rotated["old"][0], before["current"]);
    assert_ne!(rotated["current"], before["current"]);
    // Doing it again changes nothing else.
    assert_eq!(
        scratch.json_of(&["key", "rotate", "--forget"])["old"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    answered(&scratch, &[]);
    assert_eq!(resume(&scratch, &id, &[]).out, "21\n");
    assert!(
        scratch
            .run(&["runs", "replay", &id])
            .ok()
            .contains("the same end")
    );
}

/// A rotation that was interrupted between the new key and the runs, and one in the middle of them.
#[test]
fn an_interrupted_rotation_loses_nothing() {
    let (scratch, id) = waiting();
    let key = scratch.path().join(".flowstone/secrets.key");
    let old = fs::read_to_string(&key).expect("a key");
    let new = "ab".repeat(32);
    fs::write(&key, format!("{new}\n{old}")).expect("written");
    assert_eq!(resume(&scratch, &id, &[]).code, Some(3));
    let rotated = scratch.json_of(&["key", "rotate"]);
    assert_eq!(
        (
            rotated["runs"].as_i64(),
            rotated["old"].as_array().map(Vec::len)
        ),
        (Some(1), Some(2))
    );
    answered(&scratch, &[]);
    assert_eq!(resume(&scratch, &id, &[]).out, "21\n");
}

#[test]
fn the_environment_may_have_the_key() {
    let scratch = Scratch::new();
    scratch.write("sign-in.edn", FLOW);
    let (one, two) = ("1a".repeat(32), "2b".repeat(32));
    let with =
        |key: &str, args: &[&str]| Ran::to_the_end(scratch.command(args).env("FLOWSTONE_KEY", key));
    let input = format!("{{:password \"{SECRET}\"}}");
    let ran = with(&one, &["run", "sign-in.edn", "--input", &input]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!scratch.path().join(".flowstone/secrets.key").exists());
    let id = scratch.json_of(&["runs", "list"])["runs"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert!(resume(&scratch, &id, &[]).err.contains("E0982"));
    assert!(with(&one, &["key", "rotate"]).err.contains("E0986"));
    let both = format!("{two},{one}");
    assert!(
        with(&both, &["key", "rotate"])
            .ok()
            .contains("1 run was encrypted")
    );
    assert_eq!(with(&two, &["runs", "resume", &id]).code, Some(3));
    assert!(
        with("short", &["runs", "resume", &id])
            .err
            .contains("E0985")
    );
}

#[test]
fn a_backup_has_the_key_and_says_so() {
    let (scratch, id) = waiting();
    let made = scratch.run(&["backup", "copy"]);
    assert!(
        made.err
            .contains("the key of the secret inputs is in the copy"),
        "{made:?}"
    );
    answered(&scratch, &["--home", "copy"]);
    let done = resume(&scratch, &id, &["--home", "copy"]);
    assert_eq!(done.out, "21\n", "{done:?}");
    let plain = Scratch::new();
    plain.write("plain.edn", "(inc 1)");
    plain.run(&["run", "plain.edn"]).ok();
    assert_eq!(plain.json_of(&["backup", "copy"])["key"], false);
}

#[test]
fn setup_values_may_be_secrets() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a :concurrency {:type :singleton}
 :requires [{:kind :form :collect :setup :fields [{:key :token :field-type :secret :required true} {:key :region :field-type :text}]}]
 :flow '(let [{:keys [token region]} (:activation (flow/input))]
          (flow/step :function :a {:input {:t token} :code '(fn [x] {:n (count (:t x)) :t (:t x)})}))}",
    );
    scratch.write(
        "flowstone.edn",
        format!("{{:setup {{:a {{:token \"{SECRET}\" :region \"EU\"}}}}}}"),
    );
    let ran = scratch.run(&["run", "a.edn", "--quiet"]);
    assert_eq!(ran.out, "{:n 21, :t \"[secret]\"}\n", "{ran:?}");
    let shown = scratch.run(&["runs", "list", "--json"]).out;
    let id = scratch.json_of(&["runs", "list"])["runs"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let shown = format!(
        "{shown}{}",
        scratch.run(&["runs", "show", &id, "--full"]).out
    );
    assert!(
        !shown.contains(SECRET) && shown.contains(":region \"EU\""),
        "{shown}"
    );
    let db = fs::read(scratch.path().join(".flowstone/flowstone.db")).expect("a database");
    let log = fs::read(scratch.path().join(".flowstone/flowstone.db-wal")).unwrap_or_default();
    let holds = |bytes: &[u8]| {
        bytes
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes())
    };
    assert!(!holds(&db) && !holds(&log));
}

#[test]
fn a_rotation_with_a_wrong_key_changes_nothing() {
    let (scratch, id) = waiting();
    let file = scratch.path().join(".flowstone/secrets.key");
    let right = fs::read(&file).expect("a key");
    let wrong = "ffeeddccbbaa99887766554433221100".repeat(2) + "\n";
    fs::write(&file, &wrong).expect("written");
    let ran = scratch.run(&["key", "rotate", "--forget"]);
    assert!(ran.code == Some(1) && ran.err.contains("E0982"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).expect("a key"), wrong);
    fs::write(&file, right).expect("written");
    answered(&scratch, &[]);
    assert_eq!(resume(&scratch, &id, &[]).code, Some(0));
}

#[test]
fn a_secret_as_a_concurrency_key_is_refused() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a :concurrency {:type :keyed :key-field :token}
 :invocations {:default {:inputs [{:name :token :type :secret :required true}]}}
 :flow '1}",
    );
    let ran = scratch.run(&[
        "run",
        "a.edn",
        "--input",
        &format!("{{:token \"{SECRET}\"}}"),
    ]);
    assert!(
        ran.err.contains("E0987") && !ran.err.contains(SECRET),
        "{ran:?}"
    );
}

#[test]
fn a_weak_secret_is_refused_by_name() {
    let scratch = Scratch::new();
    scratch.write("sign-in.edn", FLOW);
    for weak in ["1234", "password", "xxxxxxxx"] {
        let ran = scratch.run(&[
            "run",
            "sign-in.edn",
            "--input",
            &format!("{{:password \"{weak}\"}}"),
        ]);
        assert!(
            ran.err.contains("E0981") && ran.err.contains("`password`"),
            "{ran:?}"
        );
    }
    assert!(scratch.run(&["runs", "list"]).err.contains("no runs"));
}

#[test]
fn a_title_that_holds_a_secret_is_shown_without_it() {
    let scratch = Scratch::new();
    let flow = FLOW.replace(
        "{:timeout \"5m\"}",
        "{:timeout \"5m\" :title (str \"ask \" password)}",
    );
    scratch.write("sign-in.edn", flow);
    let input = format!("{{:user \"ann\" :password \"{SECRET}\"}}");
    let ran = scratch.run(&["run", "sign-in.edn", "--input", &input]);
    assert!(ran.err.contains("ask [secret]"), "{ran:?}");
    assert!(!ran.transcript().contains(SECRET), "{ran:?}");
}

/// A secret that was given wrongly makes the run do something else than before; giving it again mends that.
#[test]
fn a_wrong_secret_is_replaced_by_giving_it_again() {
    let scratch = Scratch::new();
    scratch.write(
        "sign-in.edn",
        "{:slug :sign-in
         :invocations {:default {:inputs [{:name :password :type :password :required true}]}}
         :flow '(let [n (count (:password (flow/input)))]
                  (flow/step :function :size {:code '(fn [{:keys [n]}] n) :input {:n n}})
                  (flow/step :wait :go {:timeout \"5m\"})
                  n)}",
    );
    let input = format!("{{:password \"{SECRET}\"}}");
    let ran = scratch.run(&["run", "sign-in.edn", "--input", &input]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let runs = scratch.json_of(&["runs", "list"]);
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    scratch.run(&["runs", "export", &id, "run.edn"]).ok();
    let other = Scratch::new();
    other.write("run.edn", scratch.read("run.edn"));
    other
        .run(&[
            "runs",
            "import",
            "run.edn",
            "--secrets",
            "{:password \"too short\"}",
        ])
        .ok();
    let wrong = resume(&other, &id, &[]);
    let hint = format!("flowstone runs resume {id} --secrets '{{:password \"...\"}}'");
    assert!(
        wrong.err.contains("E0501") && wrong.err.contains(&hint),
        "{wrong:?}"
    );
    let unknown = resume(&other, &id, &["--secrets", "{:pasword \"one more horse\"}"]);
    assert!(
        unknown.err.contains("E0988") && unknown.err.contains("did you mean `password`?"),
        "{unknown:?}"
    );
    let right = resume(&other, &id, &["--secrets", &input]);
    assert_eq!(right.code, Some(3), "{right:?}");
    answered(&other, &[]);
    assert_eq!(resume(&other, &id, &[]).out, "21\n");
}

/// Names that the journal would store as they are.
const NAMES: &[&str] = &[
    "(flow/step :kv password {:operation :get :key \"n\"})",
    "(flow/step :kv (str \"of-\" password) {:operation :get :key \"n\"})",
    "(flow/step :kv (keyword password) {:operation :get :key \"n\"})",
    "(flow/pmap {:id password} inc [1 2])",
    "(flow/race {password (fn [] 1) :other (fn [] 2)})",
];

#[test]
fn a_name_of_the_journal_with_a_secret_is_refused() {
    let scratch = Scratch::new();
    for (number, body) in NAMES.iter().enumerate() {
        scratch.write(
            "named.edn",
            format!(
                "{{:slug :named-{number}
 :invocations {{:default {{:inputs [{{:name :password :type :password :required true}}]}}}}
 :flow '(let [{{:keys [password]}} (flow/input)]
          (try {body} (catch Throwable e [:refused (ex-message e)])))}}"
            ),
        );
        let secret = format!("horse{number}battery");
        let input = format!("{{:password \"{secret}\"}}");
        let ran = scratch.run(&["run", "named.edn", "--input", &input]).ok();
        assert!(
            ran.contains(":refused") && ran.contains("contains a secret input"),
            "{body}: {ran}"
        );
        assert!(!is_stored(&scratch, &secret), "{body}");
    }
}

/// Tells whether a file of the project's data holds a text.
fn is_stored(scratch: &Scratch, text: &str) -> bool {
    let mut folders = vec![scratch.path().join(".flowstone")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                return true;
            }
        }
    }
    false
}
