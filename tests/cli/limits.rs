//! Limits of memory: the run that exceeds one ends, and nothing else does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flowstone_engine::LIMITS;
use serde_json::json;

use crate::program::Scratch;
use crate::tidy::root;

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

/// The table of the guide says what the code does.
#[test]
fn the_guide_has_every_limit() {
    let guide = std::fs::read_to_string(root().join("docs/guide/limits.md")).expect("the guide");
    let rows: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| `:"))
        .collect();
    let expected: Vec<String> = LIMITS
        .iter()
        .map(|limit| {
            let (key, code) = (limit.key, limit.code);
            let default = limit.shown(limit.default);
            format!(
                "| `:{key}` | {} | {default} | [{code}](../errors/{code}.md) |",
                limit.what
            )
        })
        .collect();
    assert_eq!(rows, expected, "update the table:\n{}", expected.join("\n"));
    assert!(LIMITS.is_sorted_by_key(|limit| limit.key));
}

/// A flow that would make a run exceed a limit, the setting, and the code it ends with.
const EXCEEDING: &[(&str, &str, &str)] = &[
    (
        ":steps 5",
        "(dotimes [_ 6] (flow/step :kv :n {:operation :get :key \"n\"}))",
        "E0991",
    ),
    (
        ":steps 5",
        "(flow/pmap (fn [i] (flow/step :kv :n {:operation :get :key (str i)})) (range 9))",
        "E0991",
    ),
    (
        ":journal 20000",
        "(dotimes [i 20] (flow/step :function :long {:code '(fn [_] (apply str (repeat 2000 \"x\")))}))",
        "E0992",
    ),
    (":branches 4", "(flow/pmap {:max 9} inc (range 9))", "E0994"),
    (
        ":branches 4",
        "(flow/pmap {:max 3} (fn [_] (flow/pmap {:max 3} inc (range 3))) (range 3))",
        "E0994",
    ),
    (
        ":branches-in-total 20",
        "(dotimes [_ 5] (flow/pmap inc (range 9)))",
        "E0994",
    ),
    (
        ":output 5000",
        "(dotimes [i 100] (flow/log :info (apply str (repeat 100 \"x\"))))",
        "E0995",
    ),
    (
        ":output 5000",
        "(dotimes [i 100] (println (apply str (repeat 100 \"x\"))) (flow/now-ms))",
        "E0995",
    ),
    (
        ":output 5000",
        "(dotimes [i 100] (println (apply str (repeat 100 \"x\"))))",
        "E0995",
    ),
    (
        ":waits 3",
        "(flow/pmap {:max 9} (fn [i] (flow/step :wait :door {:key (str i)})) (range 9))",
        "E0996",
    ),
    (
        ":instructions 1000000",
        "(loop [n 0] (recur (inc n)))",
        "E0530",
    ),
    (":memory \"20MB\"", HOARD, "E0903"),
];

#[test]
fn a_run_that_exceeds_a_limit_ends_with_its_code_and_cannot_catch_it() {
    let scratch = Scratch::new();
    for (case, (limit, body, code)) in EXCEEDING.iter().enumerate() {
        let body = format!("(do (try {body} (catch Throwable e :caught)) :after)");
        let narrowed =
            |slug: &str| format!("{{:slug :{slug} {HEAD} :limits {{{limit}}} :flow '{body}}}");
        // The project's limit, and the flow's own.
        scratch.write("flowstone.edn", format!("{{:limits {{{limit}}}}}"));
        scratch.write("of_project.edn", flow(&format!("of-project-{case}"), &body));
        let of_project = scratch.run(&["run", "of_project.edn", "--json"]);
        scratch.write("flowstone.edn", "{}");
        scratch.write("of_flow.edn", narrowed(&format!("of-flow-{case}")));
        let of_flow = scratch.run(&["run", "of_flow.edn", "--json"]);
        for (ran, place) in [(of_project, "in flowstone.edn"), (of_flow, "of the flow")] {
            assert_eq!(ran.code, Some(1), "{limit}: {ran:?}");
            assert_eq!(ran.json()["error"]["code"], json!(code), "{limit}: {ran:?}");
            let hint = ran.json()["error"]["hints"].to_string();
            assert!(hint.contains("raise `:limits {"), "{limit}: {hint}");
            assert!(hint.contains(place), "{limit}: {hint}");
        }
    }
}

#[test]
fn limits_of_one_step_are_errors_that_a_flow_can_catch() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:limits {:result 2000 :attempts 2}}");
    let caught = |slug: &str, step: &str| {
        let body = format!("(try {step} (catch Throwable e (ex-message e)))");
        scratch.write("step.edn", flow(slug, &body));
        scratch.run(&["run", "step.edn"]).ok()
    };
    let long = "(apply str (repeat 3000 \"x\"))";
    let large = caught(
        "large",
        &format!("(flow/step :function :long {{:code '(fn [_] {long})}})"),
    );
    assert!(large.contains("at most 2KB are allowed"), "{large}");
    let often = caught(
        "often",
        "(flow/step :kv :n {:operation :get :key \"n\" :retry {:max-attempts 5}})",
    );
    assert!(often.contains("from 1 to 2"), "{often}");
    scratch.write("own.edn", flow("own", long));
    let own = scratch.run(&["run", "own.edn", "--json"]);
    assert_eq!(own.json()["error"]["code"], json!("E0993"), "{own:?}");
}

#[test]
fn a_step_that_exceeds_the_limit_of_its_flow_names_the_flow() {
    let scratch = Scratch::new();
    let step = "(flow/step :function :long {:code '(fn [_] (apply str (repeat 3000 \"x\")))})";
    let narrowed =
        |slug: &str, limits: &str| format!("{{:slug :{slug} {HEAD} {limits} :flow '{step}}}");
    for (slug, settings, limits, place) in [
        ("own", "{}", ":limits {:result 2000}", "of the flow"),
        (
            "of-project",
            "{:limits {:result 2000}}",
            "",
            "in flowstone.edn",
        ),
        (
            "higher",
            "{:limits {:result 2000}}",
            ":limits {:result 9000}",
            "in flowstone.edn",
        ),
    ] {
        scratch.write("flowstone.edn", settings);
        scratch.write("a.edn", narrowed(slug, limits));
        let ran = scratch.run(&["run", "a.edn", "--json"]);
        assert_eq!(ran.json()["error"]["code"], json!("E0993"), "{ran:?}");
        let hint = ran.json()["error"]["hints"].to_string();
        assert!(
            hint.contains(&format!("raise `:limits {{:result ...}}` {place}")),
            "{slug}: {hint}"
        );
    }
}

#[test]
fn compensations_of_a_run_at_its_limit_are_performed() {
    let scratch = Scratch::new();
    let body = "(do (flow/compensate 1 (fn [] (flow/step :kv :undone {:operation :set :key \"undone\" :value 1})))
                    (dotimes [_ 9] (flow/step :kv :n {:operation :get :key \"n\"})))";
    scratch.write(
        "saga.edn",
        format!("{{:slug :saga :limits {{:steps 5}} {HEAD} :flow '{body}}}"),
    );
    let ran = scratch.run(&["run", "saga.edn", "--json"]);
    assert_eq!(ran.json()["error"]["code"], json!("E0991"), "{ran:?}");
    scratch.write(
        "look.edn",
        "(:value (flow/step :kv :look {:operation :get :key \"undone\"}))",
    );
    assert_eq!(scratch.run(&["run", "look.edn"]).ok().trim(), "1");
}

#[test]
fn a_flow_can_only_narrow_the_limits() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:limits {:steps 3}}");
    scratch.write(
        "wide.edn",
        format!("{{:slug :wide :limits {{:steps 9}} {HEAD} :flow '(flow/now-ms)}}"),
    );
    let checked = scratch.run(&["check", "wide.edn"]);
    assert!(
        checked.err.contains("E0457")
            && checked
                .err
                .contains("has no effect: the limit of the project is 3"),
        "{checked:?}"
    );
    for (limit, message) in [
        (":steps \"9\"", "takes a whole number from 1"),
        (":memory \"lots\"", "such as 512MB"),
        (":steps 0", "takes a whole number from 1"),
        (":stepps 4", "`:steps`"),
        (":crashes 4", "unknown key `:crashes`"),
    ] {
        scratch.write(
            "wrong.edn",
            format!("{{:slug :wrong :limits {{{limit}}} {HEAD} :flow '(flow/now-ms)}}"),
        );
        let checked = scratch.run(&["check", "wrong.edn"]);
        assert_ne!(checked.code, Some(0), "{limit}");
        let said = format!("{}{}", checked.out, checked.err);
        assert!(
            said.contains("E0457") && said.contains(message),
            "{limit}: {said}"
        );
    }
}

#[test]
fn an_endless_or_large_input_is_refused() {
    let scratch = Scratch::new();
    scratch.write("flow.edn", "(flow/input)");
    let ran = scratch.run(&["run", "flow.edn", "--input", "@/dev/zero", "--json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.json()["error"]["code"], json!("E0905"), "{ran:?}");
    scratch.write("flowstone.edn", "{:limits {:input 10}}");
    scratch.write("input.edn", "{:name \"somebody\"}");
    let ran = scratch.run(&["run", "flow.edn", "--input", "@input.edn"]);
    assert!(ran.code == Some(2) && ran.err.contains("E0997"), "{ran:?}");
    let inline = "{\"name\": \"somebody\"}";
    let ran = scratch.run(&["run", "flow.edn", "--input", inline]);
    assert!(ran.code == Some(2) && ran.err.contains("E0997"), "{ran:?}");
}

#[test]
fn an_exception_with_data_that_shares_its_parts_ends_the_run_at_once() {
    let scratch = Scratch::new();
    for (slug, leaf) in [("numbers", "1"), ("functions", "inc")] {
        let data = format!("{{:d (nth (iterate (fn [x] [x x]) {leaf}) 60)}}");
        let thrown = format!("(throw (ex-info \"x\" {data}))");
        scratch.write("thrown.edn", flow(slug, &thrown));
        let ran = scratch.run(&["run", "thrown.edn", "--json"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let error = &ran.json()["error"];
        assert_eq!(error["message"], json!("ExceptionInfo: x"), "{ran:?}");
        assert_eq!(error["data"], json!("#<a map, more than 50 MB>"), "{ran:?}");
        assert_eq!(scratch.run(&["run", "thrown.edn", "--new"]).code, Some(1));
        let function = format!("(flow/step :function :f {{:code '(fn [_] {thrown})}})");
        scratch.write("inside.edn", flow("inside", &function));
        assert_eq!(scratch.run(&["run", "inside.edn", "--new"]).code, Some(1));
    }
}

#[test]
fn a_size_from_a_config_is_not_allocated() {
    let scratch = Scratch::new();
    scratch.write("tree/small.txt", "small");
    let sparse = std::fs::File::create(scratch.path().join("tree/sparse.bin")).expect("a file");
    sparse.set_len(40 << 30).expect("a sparse file");
    let listed = |slug: &str, limit: &str| {
        let source =
            format!("{{:type :dir :path \"tree\" :max-bytes 9223372036854775807 {limit}}}");
        let step = format!("(flow/step :files :all {{:op :list :source {source}}})");
        scratch.write(
            "list.edn",
            flow(slug, &format!("(mapv :path (:entries {step}))")),
        );
        scratch.run(&["run", "list.edn"])
    };
    let refused = listed("refused", ":max-file-bytes 9223372036854775807");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("1000000000"), "{refused:?}");
    // The file is listed, and not read.
    let large = listed("large", ":max-file-bytes 1000000000");
    assert_eq!(
        large.out.trim(),
        "[\"small.txt\" \"sparse.bin\"]",
        "{large:?}"
    );
}

#[test]
fn numbers_of_threads_and_runs_are_bounded() {
    let scratch = Scratch::new();
    for (option, most) in [("--threads", "1000"), ("--concurrency", "30000")] {
        let ran = scratch.run(&["serve", "--until-idle", option, "9000000000000000000"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(&format!("from 1 to {most}")), "{ran:?}");
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

const PRODUCT: &str = "(reduce *' (range 1 200000))";

#[test]
fn a_timeout_stops_a_product_of_many_numbers() {
    let scratch = Scratch::new();
    let bodies = [
        format!("(do {PRODUCT} 1)"),
        PRODUCT.to_owned(),
        format!("(flow/step :function :f {{:code '(fn [_] (do {PRODUCT} 1))}})"),
        format!("(first (flow/all [#(do {PRODUCT} 1) #(identity {PRODUCT})]))"),
    ];
    for body in bodies {
        scratch.write("product.edn", flow("product", &body));
        let begun = Instant::now();
        let ran = scratch.run(&["run", "product.edn", "--timeout", "1s", "--json", "--new"]);
        let took = begun.elapsed();
        assert_eq!(ran.json()["status"], json!("timed-out"), "{body}");
        assert!(took < Duration::from_secs(8), "{body}: {took:?}");
    }
}

#[test]
fn a_flow_tidies_up_after_a_timeout_in_native_work() {
    let scratch = Scratch::new();
    let counted = "(flow/step :kv :n {:operation :increment :key (str \"n\" (count (str (reduce *' (range 1 2000)))))})";
    let body = format!("(try {PRODUCT} (finally {counted}))");
    scratch.write("tidies.edn", flow("tidies", &body));
    let ran = scratch.run(&["run", "tidies.edn", "--timeout", "1s", "--json"]);
    assert_eq!(ran.json()["status"], json!("timed-out"));
    let read = "(:value (flow/step :kv :n {:operation :get :key \"n5733\"}))";
    scratch.write("reads.edn", flow("reads", read));
    let ran = scratch.run(&["run", "reads.edn", "--json"]).json();
    assert_eq!(ran["result"], json!(1), "{ran}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_suspends_a_run_in_native_work() {
    let scratch = Scratch::new();
    scratch.write("product.edn", flow("product", PRODUCT));
    let mut run = scratch
        .command(&["run", "product.edn"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    await_status(&scratch, "product", "running");
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
    let status = run.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_cancel_stops_a_run_in_native_work() {
    let scratch = Scratch::new();
    let sorted = "(count (sort (fn [a b] (compare b a)) (vec (range 30000000))))";
    for (slug, body) in [("product", PRODUCT), ("sorted", sorted)] {
        scratch.write("long.edn", flow(slug, body));
        let mut run = scratch
            .command(&["run", "long.edn", "--quiet"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        await_status(&scratch, slug, "running");
        std::thread::sleep(Duration::from_millis(300));
        let runs = scratch.json_of(&["runs", "list"]);
        let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
        let begun = Instant::now();
        scratch.run(&["runs", "cancel", &id]);
        let status = run.wait().expect("it ends");
        let took = begun.elapsed();
        assert_eq!(status.code(), Some(4), "{slug}");
        assert!(took < Duration::from_secs(4), "{slug}: {took:?}");
    }
}

/// What was registered while the flow computed, before it was told of its end, is registered in a replay, too.
#[test]
fn a_replay_sees_a_cancel_where_the_run_saw_it() {
    let scratch = Scratch::new();
    let computed = "(reduce (fn [a i] (+ a (rem i 7))) 0 (range 300000))";
    let native = "(count (pr-str (vec (range 200000))))";
    let step =
        |key: &str| format!("(flow/step :kv :{key} {{:operation :increment :key \"{key}\"}})");
    let undo = |key: &str| format!("(flow/on-cancel (fn [] {}))", step(key));
    for (slug, work) in [("computed", computed), ("native", native)] {
        let body = format!(
            "(do {} {} {work} {} {work}
                 (flow/on-cancel (fn [] (flow/step :wait :asked {{}})))
                 (loop [] (recur)))",
            step("begun"),
            undo("one"),
            undo("two"),
        );
        let beside = format!("(flow/all [(fn [] {body}) (fn [] {})])", step("other"));
        for (name, body) in [("alone", body), ("beside", beside)] {
            let slug = format!("{slug}-{name}");
            scratch.write("late.edn", flow(&slug, &body));
            // The last function to be registered runs first, and its wait ends the process.
            let ran = scratch.run(&["run", "late.edn", "--timeout", "6s", "--json"]);
            assert_eq!(ran.json()["status"], json!("waiting"), "{slug}: {ran:?}");
            let id = ran.json()["run"].as_str().expect("an id").to_owned();
            let waits = scratch.json_of(&["waits", "list"]);
            let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
            // An answer resumes the run.
            let ran = scratch.run(&["waits", "complete", &wait, "--value", "1"]);
            assert_eq!(ran.code, Some(4), "{slug}: {ran:?}");
            let shown = scratch.run(&["runs", "show", &id]).ok();
            for done in ["on-cancel/3/asked", "on-cancel/2/two", "on-cancel/1/one"] {
                assert!(shown.contains(done), "{slug}: {shown}");
            }
        }
    }
}
