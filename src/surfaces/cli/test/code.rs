//! Files with tests of `clojure.test`: each `deftest` is a test with a result of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flowstone_engine::disk::SharedCode;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Result as Evaluated, Value};
use flowstone_lang::vm::Vm;
use serde_json::json;

use super::super::App;
use super::super::args::Home;
use super::super::eval::describe;
use super::super::home::Project;
use super::super::interrupt::Interrupt;
use super::super::program::{Grants, ProgramHost};
use super::super::report::{Report, unreadable};
use super::super::stack;
use super::trial::{Ended, Reached, Verdict, not_tried};
use super::{Test, outcome};

/// Runs the tests of all namespaces that have any, and returns a vector of maps: the name of each test, its milliseconds, and
/// its failed assertions as texts. What tests print goes to standard error.
const HARNESS: &str = r#"
(do
  (require 'clojure.test 'clojure.string)
  (let [begun (atom nil)
        failed (atom [])
        ended (atom [])
        tests (fn [space] (some :test (map meta (vals (ns-interns space)))))
        shown (fn [x]
                (if (instance? Throwable x)
                  (str (.getName (class x)) ": " (ex-message x) (when-let [data (ex-data x)] (str " " (pr-str data))))
                  (pr-str x)))
        assertion (fn [m]
                    (clojure.string/join
                      "\n"
                      (remove clojure.string/blank?
                              [(when (:file m) (str (:file m) ":" (:line m)))
                               (clojure.test/testing-contexts-str)
                               (when (:message m) (str (:message m)))
                               (str "expected: " (pr-str (:expected m)))
                               (str "actual: " (shown (:actual m)))])))
        report (fn [m]
                 (case (:type m)
                   :begin-test-var (do (reset! failed []) (reset! begun (System/nanoTime)))
                   (:fail :error) (do (clojure.test/inc-report-counter (:type m))
                                      (swap! failed conj (assertion m)))
                   :pass (clojure.test/inc-report-counter :pass)
                   :end-test-var (let [{:keys [ns name]} (meta (:var m))]
                                   (swap! ended conj {:name (str (ns-name ns) "/" name)
                                                      :millis (quot (- (System/nanoTime) @begun) 1000000)
                                                      :failed @failed})
                                   (reset! failed []))
                   nil))]
    (binding [*out* *err*
              clojure.test/report report]
      (apply clojure.test/run-tests (filter tests (all-ns))))
    {:tests @ended :outside @failed}))
"#;

/// Runs the tests of a file.
pub fn perform(file: &Path, args: &Test, app: &dyn App) -> Vec<Ended> {
    let started = Instant::now();
    let name = file.display().to_string();
    let whole = |verdict: Verdict, json: serde_json::Value| Ended {
        file: name.clone(),
        case: None,
        verdict,
        took: started.elapsed(),
        json,
        reached: Reached::default(),
        source: None,
        corrections: Vec::new(),
    };
    let refused = |report: Report| {
        let json = not_tried(&name, &report);
        vec![whole(Verdict::NotTried(Box::new(report)), json)]
    };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return refused(unreadable(&name, &error)),
    };
    let session = app.plain_session();
    session.defer_host_names();
    let grants = Grants {
        paths: paths(file, args, app),
        ..Grants::default()
    };
    let host = ProgramHost::new(grants, Interrupt::listen());
    let mut vm = session.vm(Box::new(host));
    vm.set_native_stack_limit(stack::limit());
    let ran = perform_in(&session, &mut vm, (&name, &text));
    let found = match ran {
        Ok(found) => found,
        Err(signal) => return refused(describe(&session, &signal).0),
    };
    let mut ended: Vec<Ended> = items(found.get("tests"))
        .iter()
        .map(|test| of_test(&name, test))
        .collect();
    let outside = texts(found.get("outside"));
    if ended.is_empty() && outside.is_empty() {
        let message = format!("{name} has no tests");
        return refused(Report::error("E0926", message).hint("define tests with `deftest`"));
    }
    if !outside.is_empty() {
        let (verdict, json) = verdict(&name, outside);
        ended.push(whole(verdict, json));
    }
    ended
}

fn perform_in(session: &Session, vm: &mut Vm, (name, text): (&str, &str)) -> Evaluated<Value> {
    session.eval_text(vm, name, text)?;
    session.eval_text(vm, "<tests>", HARNESS)
}

/// Returns the folders in which `require` looks: those of the command line, the project's, and the file's own.
fn paths(file: &Path, args: &Test, app: &dyn App) -> Vec<PathBuf> {
    let project = Project::find(&Home { home: None });
    let settings = app.settings(&project).unwrap_or(Value::Nil);
    let shared = SharedCode::of(&project.root, &settings).paths();
    let root = project.root;
    let own = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut paths = args.paths.clone();
    paths.extend(shared);
    paths.extend([root, own]);
    paths
}

fn of_test(file: &str, test: &Value) -> Ended {
    let millis = test.get("millis").and_then(Value::as_int).unwrap_or(0);
    let (verdict, json) = verdict(file, texts(test.get("failed")));
    Ended {
        file: file.to_owned(),
        case: test.get("name").and_then(Value::as_str).map(str::to_owned),
        verdict,
        took: Duration::from_millis(u64::try_from(millis).unwrap_or(0)),
        json,
        reached: Reached::default(),
        source: None,
        corrections: Vec::new(),
    }
}

fn verdict(file: &str, failed: Vec<String>) -> (Verdict, serde_json::Value) {
    let json = json!({"ok": failed.is_empty(), "flow": file, "problems": failed});
    let verdict = match failed.is_empty() {
        true => Verdict::Passed,
        false => Verdict::Failed(failed.into_iter().map(outcome::problem).collect()),
    };
    (verdict, json)
}

fn items(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::Vector(items)) => items.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = items(value);
    let texts = items.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
