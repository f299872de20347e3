//! Limits of memory: the run that exceeds one ends, and nothing else does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::program::Scratch;

const HEAD: &str = ":concurrency {:type :singleton :on-new-version :coexist}";

fn flow(slug: &str, body: &str) -> String {
    format!("{{:slug :{slug} {HEAD} :flow '{body}}}")
}

/// Code that holds more and more.
const HOARD: &str = "(loop [v []] (recur (conj v (vec (range 1000)))))";

fn settings(scratch: &Scratch) {
    scratch.write("flowstone.edn", "{:limits {:memory \"40MB\"}}");
}

#[test]
fn a_run_that_exceeds_its_memory_fails_and_cannot_catch_it() {
    let scratch = Scratch::new();
    settings(&scratch);
    let catching = [
        ("body", format!("(try {HOARD} (catch Throwable e :caught))")),
        (
            "function",
            format!(
                "(try (flow/step :function :f {{:code '(fn [_] {HOARD})}}) (catch Throwable e :caught))"
            ),
        ),
        (
            "skipped",
            format!(
                "(do (flow/step :function :f {{:on-error :skip :code '(fn [_] {HOARD})}}) :skipped)"
            ),
        ),
        (
            "branches",
            format!("(try (flow/pmap (fn [_] {HOARD}) [1 2 3]) (catch Throwable e :caught))"),
        ),
    ];
    for (slug, body) in catching {
        scratch.write("hoard.edn", flow(slug, &body));
        let ran = scratch.run(&["run", "hoard.edn", "--json"]);
        assert_eq!(ran.code, Some(1), "{slug}: {}", ran.err);
        assert_eq!(
            ran.json()["error"]["code"],
            json!("E0903"),
            "{slug}: {}",
            ran.out
        );
    }
}

#[test]
fn an_endless_loop_ends_with_its_instructions() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:limits {:instructions 1000000}}");
    let body = "(try (loop [n 0] (recur (inc n))) (catch Throwable e :caught))";
    scratch.write("loop.edn", flow("loop", body));
    let ran = scratch.run(&["run", "loop.edn", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.json()["error"]["code"], json!("E0530"), "{}", ran.out);
}

#[test]
fn results_of_steps_that_the_flow_keeps_count() {
    let scratch = Scratch::new();
    settings(&scratch);
    let rows = "(flow/step :function :rows {:code '(fn [_] (mapv (fn [i] {:id i :name (str i)}) (range 10000)))})";
    scratch.write(
        "keeps.edn",
        flow(
            "keeps",
            &format!("(loop [all []] (recur (conj all {rows})))"),
        ),
    );
    let ran = scratch.run(&["run", "keeps.edn", "--json"]);
    assert_eq!(ran.json()["error"]["code"], json!("E0903"), "{}", ran.out);
}

#[test]
fn what_a_run_does_not_keep_does_not_add_up() {
    let scratch = Scratch::new();
    settings(&scratch);
    // Each round makes and drops some megabytes, inside functions, in requests and in results.
    let body = "(loop [n 0]
      (if (= n 60)
        n
        (let [rows (mapv (fn [i] {:id i :name (str i)}) (range 5000))
              kept (flow/step :function :f {:input {:rows rows} :code '(fn [{:keys [rows]}] {:rows (mapv :id rows)})})]
          (recur (+ n (if (= 5000 (count (:rows kept))) 1 0))))))";
    scratch.write("rounds.edn", flow("rounds", body));
    let ran = scratch.run(&["run", "rounds.edn"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "60"), "{}", ran.err);
}

#[test]
fn a_worker_survives_a_run_without_bounds() {
    let scratch = Scratch::new();
    settings(&scratch);
    scratch.write("hoard.edn", flow("hoard", HOARD));
    scratch.write(
        "good.edn",
        flow(
            "good",
            "(:value (flow/step :kv :n {:operation :increment :key \"n\"}))",
        ),
    );
    for file in ["hoard.edn", "good.edn"] {
        scratch.run(&["run", file, "--detach"]).ok();
    }
    scratch.run(&["serve", "--until-idle"]).ok();
    let listed = scratch.run(&["runs", "list", "--json"]).json();
    let ended = |flow: &str| {
        let runs = listed["runs"].as_array().expect("runs");
        let run = runs.iter().find(|run| run["flow"] == json!(flow));
        run.expect("the run")["status"].clone()
    };
    assert_eq!(
        (ended("hoard"), ended("good")),
        (json!("failed"), json!("completed"))
    );
}

#[test]
fn an_option_wins_over_the_settings_and_bad_sizes_are_refused() {
    let scratch = Scratch::new();
    settings(&scratch);
    scratch.write("some.edn", flow("some", "(count (vec (range 3000000)))"));
    assert_eq!(scratch.run(&["run", "some.edn"]).code, Some(1));
    scratch
        .run(&["run", "some.edn", "--max-memory", "400MB"])
        .ok();
    for size in ["12", "lots", "-1MB", "0"] {
        let option = format!("--max-memory={size}");
        let ran = scratch.run(&["run", "some.edn", &option]);
        assert_eq!(ran.code, Some(2), "{size}: {}", ran.err);
        assert!(ran.err.contains("such as 512MB"), "{}", ran.err);
        scratch.write("flowstone.edn", format!("{{:limits {{:memory {size:?}}}}}"));
        let ran = scratch.run(&["run", "some.edn"]);
        assert!(
            ran.err.contains("E0751") && ran.err.contains("512MB"),
            "{size}: {}",
            ran.err
        );
    }
    scratch.write("flowstone.edn", "{:limits {:memry \"1GB\"}}");
    let ran = scratch.run(&["run", "some.edn"]);
    assert!(ran.err.contains("did you mean `:memory`?"), "{}", ran.err);
}

#[test]
fn an_evaluation_has_a_limit_wherever_its_values_come_from() {
    let scratch = Scratch::new();
    let hoards = [
        "(vec (repeat 1e12 :x))",
        "(loop [s \"x\"] (recur (str s s)))",
        "(byte-array 100000000)",
        "(clojure.string/replace (apply str (repeat 10000 \"a\")) #\"a\" (apply str (repeat 10000 \"b\")))",
        "(clojure.string/replace (apply str (repeat 10000 \"a\")) \"a\" (apply str (repeat 10000 \"b\")))",
        "(.repeat \"abc\" 1000000000)",
        "(apply str (repeat 1e12 \"abcdefgh\"))",
        "(clojure.string/join (repeat 1e12 \"abc\"))",
        "(into {} (map (juxt identity str)) (range 1e12))",
        "(doall (map vector (range 1e12)))",
        "(try (set (range 1e12)) (catch Throwable e :caught))",
        "(clojure.pprint/cl-format nil \"~1000000000a\" 1)",
        "(reduce conj! (transient []) (range 1e12))",
        "(let [a (atom [])] (while true (swap! a conj (range 100) (str a))))",
        "(defmacro m [] (cons 'list (range 1e12))) (m)",
    ];
    for code in hoards {
        let ran = scratch.run(&["eval", "--max-memory", "30MB", code]);
        assert_eq!(ran.code, Some(1), "{code}: {}", ran.out);
        assert!(ran.err.contains("E0903"), "{code}: {}", ran.err);
    }
}

#[test]
fn macros_are_limited_while_a_flow_is_checked() {
    let scratch = Scratch::new();
    let cases = [
        ("E0903", "(cons 'list (range))"),
        ("E0901", "(loop [] (recur))"),
    ];
    for (code, expansion) in cases {
        let body = format!("(do (defmacro endless [] {expansion}) (endless))");
        scratch.write("macro.edn", flow("endless", &body));
        let checked = scratch.run(&["check", "macro.edn"]);
        let text = format!("{}{}", checked.out, checked.err);
        assert_eq!(checked.code, Some(1), "{expansion}: {text}");
        assert!(text.contains(code), "{expansion}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_included_and_not_waited_for() {
    let scratch = Scratch::new();
    let made = Command::new("mkfifo")
        .arg(scratch.path().join("pipe.edn"))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    scratch.write("flow.edn", flow("including", "#flow/include \"pipe.edn\""));
    let checked = scratch.run(&["check", "flow.edn"]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    let text = format!("{}{}", checked.out, checked.err);
    assert!(text.contains("not a regular file"), "{text}");
    let all = scratch.run(&["check", "."]);
    assert_eq!(all.code, Some(1), "{}", all.err);
}

/// A value of two to the power of 44 parts, made of 44 vectors.
const SHARED: &str = "(nth (iterate (fn [x] [x x]) 1) 44)";

#[test]
fn values_that_share_their_parts_end_with_a_limit_wherever_they_go() {
    let scratch = Scratch::new();
    settings(&scratch);
    let ways = [
        ("returned", SHARED.to_owned()),
        ("printed", format!("(count (pr-str {SHARED}))")),
        (
            "stored",
            format!("(flow/step :kv :put {{:operation :set :key \"k\" :value {SHARED}}})"),
        ),
        (
            "sent",
            format!("(flow/step :function :f {{:input {{:x {SHARED}}} :code '(fn [i] (:x i))}})"),
        ),
        (
            "written as JSON",
            format!(
                "(flow/step :function :f {{:input {{:x {SHARED}}} :code '(fn [i] (count (json/write-str i)))}})"
            ),
        ),
    ];
    for (way, body) in ways {
        scratch.write("shared.edn", flow("shared", &body));
        let ran = scratch.run(&["run", "shared.edn", "--json"]);
        assert_eq!(ran.code, Some(1), "{way}: {} {}", ran.out, ran.err);
        let code = ran.json()["error"]["code"].clone();
        let codes = [json!("E0903"), json!("E0740")];
        assert!(codes.contains(&code), "{way}: {}", ran.out);
    }
}

/// Returns the statuses of the runs of a flow.
fn statuses(scratch: &Scratch, flow: &str) -> Vec<String> {
    let listed = scratch.run(&["runs", "list", "--json"]).json();
    let runs = listed["runs"].as_array().expect("runs");
    let of_flow = runs.iter().filter(|run| run["flow"] == json!(flow));
    of_flow
        .map(|run| run["status"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Waits until all runs of a flow have a status.
fn await_status(scratch: &Scratch, flow: &str, status: &str) {
    let begun = Instant::now();
    loop {
        let found = statuses(scratch, flow);
        if !found.is_empty() && found.iter().all(|found| found == status) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{flow}: {found:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(unix)]
#[test]
fn endless_functions_do_not_stop_the_other_runs_of_a_worker() {
    let scratch = Scratch::new();
    let endless = [
        ("loops", "(loop [] (recur))"),
        ("fractions", "(reduce + (map #(/ 1 %) (range 1 100000000)))"),
    ];
    for (slug, code) in endless {
        let step = format!("(flow/step :function :f {{:timeout \"10m\" :code '(fn [_] {code})}})");
        scratch.write(&format!("{slug}.edn"), flow(slug, &step));
        for _ in 0..2 {
            scratch
                .run(&["run", &format!("{slug}.edn"), "--detach"])
                .ok();
        }
    }
    let good = "(do (flow/step :kv :n {:operation :increment :key \"n\"}) :good)";
    scratch.write("good.edn", flow("good", good));
    for _ in 0..4 {
        scratch.run(&["run", "good.edn", "--detach"]).ok();
    }
    let mut serve = scratch
        .command(&["serve", "--threads", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    await_status(&scratch, "good", "completed");
    let listed = scratch.run(&["runs", "list", "--json"]).json();
    for run in listed["runs"].as_array().expect("runs") {
        if run["flow"] != json!("good") {
            scratch.run(&["runs", "cancel", run["id"].as_str().expect("an id")]);
        }
    }
    await_status(&scratch, "loops", "cancelled");
    await_status(&scratch, "fractions", "cancelled");
    scratch.run(&["run", "loops.edn", "--detach"]).ok();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let sent = Command::new("kill").arg(serve.id().to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()));
    serve.wait().expect("it ends");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_timeout_ends_what_functions_and_native_code_compute() {
    let scratch = Scratch::new();
    let endless = [
        (
            "(flow/step :function :f {:code '(fn [_] (loop [] (recur)))})",
            "a function",
        ),
        (
            "(flow/step :function :f {:code '(fn [_] (sort (range)))})",
            "a native in a function",
        ),
        ("(reduce + (map #(/ 1 %) (range 1 100000000)))", "fractions"),
        ("(hash (range))", "a hash"),
        (
            "(loop [n 3N] (recur (mod (* n n n) (.pow 10N 100000))))",
            "products",
        ),
    ];
    for (body, what) in endless {
        scratch.write("endless.edn", flow("endless", body));
        let begun = Instant::now();
        let ran = scratch.run(&["run", "endless.edn", "--timeout", "1s", "--json"]);
        assert_ne!(ran.code, Some(0), "{what}: {}", ran.out);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{what}: {:?}",
            begun.elapsed()
        );
    }
}
