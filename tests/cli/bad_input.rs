//! Whatever is wrong with what comes in: an error with its place or its name, a hint, a code that is not 0, and
//! nothing of what was there before is lost.

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// One thing that is wrong.
struct Case {
    what: &'static str,
    /// The text of the flow file.
    flow: String,
    input: &'static str,
    /// Has to be in what is shown.
    says: &'static [&'static str],
}

fn case(what: &'static str, flow: &str, says: &'static [&'static str]) -> Case {
    Case {
        what,
        flow: flow.to_owned(),
        input: "{}",
        says,
    }
}

const TYPED: &str = "{:slug :typed :concurrency {:type :singleton :on-new-version :supersede}
 :invocations {:default {:inputs [{:name :count :type :number :required true}]}}
 :flow '(:count (flow/input))}";

const CSV: &str = "(let [tree (flow/step :files :open {:op :resolve-source :source {:type :dir :path \"data\"}})
      text (-> (flow/step :files :read {:op :read :source tree :paths [\"bad.csv\"]}) :files first :content)]
  (flow/step :function :parse {:input {:text text} :code '(fn [{:keys [text]}] (flow.util/parse-csv text))}))";

/// A call that is not repeated.
fn fetch(url: &str) -> String {
    format!(
        "(flow/step :http :fetch {{:url \"{url}\" :response-as :json :timeout \"400ms\" :retry {{:max-attempts 1}}}})"
    )
}

fn cases(server: &Server) -> Vec<Case> {
    vec![
        case(
            "an unclosed paren",
            "(let [a 1]\n  (+ a 1)",
            &["error[E0101]", "flow.edn:1:1", "hint"],
        ),
        case(
            "a map with a key alone",
            "(let [m {:a}]\n m)",
            &["flow.edn:1:10", "hint"],
        ),
        case(
            "an unknown step type",
            "(flow/step :fiels :list {:op :list})",
            &["flow.edn:1:12", "`:fiels`", "`:files`"],
        ),
        case(
            "a misspelt config key",
            "(flow/step :kv :look {:operation :get :kye \"a\"})",
            &["flow.edn:1:", "`:kye`", "`:key`"],
        ),
        case(
            "a missing required input",
            TYPED,
            &["error[E0420]", "count", "hint"],
        ),
        Case {
            input: "{:count \"many\"}",
            ..case(
                "a wrong input type",
                TYPED,
                &["error[E0421]", "count", "hint"],
            )
        },
        case(
            "a path that leaves the folder",
            "(flow/step :files :open {:op :resolve-source :source {:type :dir :path \"../..\"}})",
            &["error[E0960]: the flow may not read /", "../..", "hint"],
        ),
        case(
            "a path that leaves the tree",
            "(flow/step :files :read {:op :read :source {:type :dir :path \"data\"} :paths [\"../flow.edn\"]})",
            &["error[E07", "../flow.edn", "hint"],
        ),
        case(
            "a CSV with a bad row",
            CSV,
            &["error[E07", "3", "flow.edn:"],
        ),
        case(
            "a server that fails",
            &fetch(&server.url("/fails")),
            &["error[E07", "500", "flow.edn:1:"],
        ),
        case(
            "a server that hangs",
            &fetch(&server.url("/hangs")),
            &["error[E0", "400", "flow.edn:1:"],
        ),
        case(
            "half a body",
            &fetch(&server.url("/half")),
            &["error[E07", "flow.edn:1:"],
        ),
        case(
            "a server that is not there",
            &fetch("http://127.0.0.1:1/"),
            &["error[E07", "flow.edn:1:"],
        ),
    ]
}

fn server() -> Server {
    Server::start(|request, _| match &*request.path {
        "/fails" => Answer::Status(500, "something broke"),
        "/hangs" => Answer::Hang(Vec::new()),
        _ => Answer::HalfBody,
    })
}

/// A project that has already done something.
fn project() -> Scratch {
    let scratch = Scratch::with_local_servers();
    scratch.write("data/bad.csv", "id,name\n1,Ada\n2,Bo,extra\n");
    scratch.write("count.edn", COUNT);
    assert_eq!(scratch.run(&["run", "count.edn", "--quiet"]).ok(), "1\n");
    scratch
}

const COUNT: &str = "(:value (flow/step :kv :count {:operation :increment :key \"times\"}))";

#[test]
fn bad_input_is_reported_and_changes_nothing() {
    let server = server();
    let mut problems = Vec::new();
    let scratch = project();
    let cases = cases(&server);
    for case in &cases {
        scratch.write("flow.edn", &case.flow);
        let ran = scratch.run(&["run", "flow.edn", "--input", case.input]);
        problems.extend(complaint(case.what, case.says, &ran));
        let as_json = scratch.run(&[
            "run", "flow.edn", "--new", "--json", "--quiet", "--input", case.input,
        ]);
        if as_json.code != ran.code || as_json.json()["error"]["code"].is_null() {
            problems.push(format!("{}: as JSON: {as_json:?}", case.what));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert_eq!(scratch.run(&["run", "count.edn", "--quiet"]).ok(), "2\n");
}

#[test]
fn a_damaged_journal_is_named_and_left_as_it_is() {
    let mut problems = Vec::new();
    for (what, damage) in [
        (
            "a journal that is cut off",
            (|bytes| bytes[..bytes.len() / 2].to_vec()) as fn(&[u8]) -> Vec<u8>,
        ),
        ("a journal that is not SQLite", |_| {
            b"this is no database, but long enough to look at\n".repeat(40)
        }),
    ] {
        let scratch = project();
        let path = database(&scratch);
        let damaged = damage(&std::fs::read(&path).expect("a database"));
        std::fs::write(&path, &damaged).expect("it is written");
        for name in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{name}", path.display()));
        }
        for args in [&["run", "count.edn", "--quiet"][..], &["runs", "list"]] {
            let ran = scratch.run(args);
            problems.extend(complaint(what, &["error[E0", "hint"], &ran));
        }
        assert_eq!(
            std::fs::read(&path).expect("it is there"),
            damaged,
            "{what}"
        );
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

fn database(scratch: &Scratch) -> std::path::PathBuf {
    let home = scratch.path().join(".flowstone");
    let entries = std::fs::read_dir(&home).expect("a home");
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            path.extension()
                .is_some_and(|ending| ending == "db" || ending == "sqlite")
        })
        .expect("a database")
}

fn complaint(what: &str, says: &[&str], ran: &Ran) -> Option<String> {
    let missing: Vec<_> = says
        .iter()
        .filter(|word| !ran.err.contains(**word))
        .collect();
    if ran.code == Some(1) && ran.out.is_empty() && missing.is_empty() {
        return None;
    }
    Some(format!(
        "{what}: exit {:?}, does not say {missing:?} but\n{}{}",
        ran.code, ran.out, ran.err
    ))
}
