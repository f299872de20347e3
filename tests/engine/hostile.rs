//! Tables of hostile input for what the engine reads: flow definitions, schedules and durations.

use flowstone_engine::disk;
use flowstone_engine::duration;
use flowstone_flow::flow::Checked;
use flowstone_flow::schedule::Cron;
use flowstone_lang::session::Session;

fn load(text: &str) -> Checked {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.edn");
    std::fs::write(&path, text).expect("a file");
    let session = Session::new();
    flowstone_flow::natives::install(&session);
    disk::check(&session, &path, "f.edn", &[])
}

/// Files that are not flows, or wrong ones, and the code of the first error.
#[rustfmt::skip]
const DEFINITIONS: &[(&str, &str)] = &[
    ("", "E0401"), (" ;; nothing\n", "E0401"), ("\u{0}", "E0204"), ("{", "E0101"), ("}", "E0102"), ("{:slug}", "E0109"), ("{:slug :a :slug :b :flow '1}", "E0110"),
    ("{:flow}", "E0109"), ("{:slug 7 :flow '1}", "E0405"), ("{:slug nil :flow '1}", "E0403"), ("{:slug \"../x\" :flow '1}", "E0405"), ("{:slug :a/b :flow '1}", "E0405"),
    ("{:slug (keyword \"a b\") :flow '1}", "E0405"), ("{:slug :a}", "E0403"), ("{:slug :a :flow nil}", "E0406"), ("{:slug :a :flow 7}", "E0406"), ("{:slug :a :flow '(}", "E0103"),
    ("{:slug :a :flow '(let [x] x)}", "E0210"), ("{:slug :a :flow '(nope)}", "E0204"), ("{:slug :a :flow '(def x 1)}", "ok"), ("{:slug :a :flow '(flow/step)}", "E0430"),
    ("{:slug :a :flow '(flow/step :nope :x {})}", "E0431"), ("{:slug :a :flow '1 :functions 7}", "E0404"), ("{:slug :a :flow '1 :functions [7]}", "E0404"),
    ("{:slug :a :flow '1 :functions [{:id :x}]}", "E0410"), ("{:slug :a :flow '1 :functions [{:id :x :code '(fn)}]}", "E0219"),
    ("{:slug :a :flow '1 :functions [{:id :x :code '(fn [_] (slurp \"/etc/hosts\"))}]}", "E0707"),
    ("{:slug :a :flow '1 :functions #flow/include \"/etc/hosts\"}", "E0119"), ("{:slug :a :flow '1 :functions #flow/include \"../../x.edn\"}", "E0119"),
    ("{:slug :a :flow '1 :functions #flow/include 7}", "E0119"), ("{:slug :a :flow '1 :functions #flow/include \"f.edn\"}", "E0119"), ("{:slug :a :flow #=(eval 1)}", "E0113"),
    ("{:slug :a :flow '1 :templates [{}]}", "E0411"), ("{:slug :a :flow '1 :templates {:id :x}}", "E0404"), ("{:slug :a :flow '1 :requires 7}", "E0404"),
    ("{:slug :a :flow '1 :requires [{}]}", "E0472"), ("{:slug :a :flow '1 :requires [{:slot :x :type :nope}]}", "E0472"),
    ("{:slug :a :flow '1 :requires [{:slot :x :type :http-api :command [\"sh\"]}]}", "E0466"), ("{:slug :a :flow '1 :invocations 7}", "E0407"),
    ("{:slug :a :flow '1 :invocations {:default {:inputs 7}}}", "E0408"), ("{:slug :a :flow '1 :invocations {:default {:inputs [{}]}}}", "E0408"),
    ("{:slug :a :flow '1 :invocations {:default {:inputs [{:name :x :type :nope}]}}}", "E0408"),
    ("{:slug :a :flow '1 :invocations {:default {:inputs [{:name :x :type :text} {:name :x :type :text}]}}}", "E0414"),
    ("{:slug :a :flow '1 :concurrency 7}", "E0404"), ("{:slug :a :flow '1 :concurrency {:type :nope}}", "E0404"), ("{:slug :a :flow '1 :concurrency {:type :keyed}}", "E0404"),
    ("{:slug :a :flow '1 :schedules 7}", "E0404"), ("{:slug :a :flow '1 :schedules [{}]}", "E0460"), ("{:slug :a :flow '1 :schedules [{:id :x}]}", "E0460"),
    ("{:slug :a :flow '1 :schedules [{:id :x :cron \"* * * *\"}]}", "E0461"), ("{:slug :a :flow '1 :schedules [{:id :x :cron \"@daily\" :timezone \"../../etc\"}]}", "E0462"),
    ("{:slug :a :flow '1 :schedules [{:id :x :every \"0s\"}]}", "E0463"), ("{:slug :a :flow '1 :schedules [{:id :x :every \"-1h\"}]}", "E0463"),
    ("{:slug :a :flow '1 :steps 7}", "E0404"), ("{:slug :a :flow '1 :agents 7}", "E0404"), ("{:slug :a :flow '1 :mcp 7}", "E0404"), ("{:slug :a :flow '1 :mcp [{}]}", "E0465"),
    ("{:slug :a :flow '1 :flwo 1}", "E0402"), ("{\"slug\" :a :flow '1}", "E0403"), ("#{:slug :a}", "ok"), ("[{:slug :a}]", "ok"), ("nope", "E0204"), ("(nope", "E0101"), ("#nope 1", "E0119"),
];

#[test]
fn definitions() {
    let mut differing = Vec::new();
    for (text, expected) in DEFINITIONS {
        let checked = load(text);
        let codes: Vec<&str> = checked.findings.iter().map(|it| it.code).collect();
        let found = codes.first().copied().unwrap_or("ok");
        if found != *expected {
            differing.push(format!(
                "{text:?}\n  expected {expected:?}\n  found    {found:?}"
            ));
        }
    }
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
    for deep in ["(", "[", "{:a ", "'", "#_", "#(", "@", "^"] {
        assert!(load(&deep.repeat(100_000)).has_errors(), "{deep}");
    }
}

/// Cron expressions that say nothing, or something else than a time.
#[rustfmt::skip]
const CRONS: &[&str] = &[
    "", " ", "*", "* * * *", "* * * * * *", "60 * * * *", "-1 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8",
    "*/0 * * * *", "*/-1 * * * *", "*/60x * * * *", "1-0 * * * *", "1--2 * * * *", "1- * * * *", "-1-5 * * * *", ",1 * * * *", "1, * * * *", "1,,2 * * * *",
    "a * * * *", "* * * FOO *", "* * * * FOO", "* * * JAN-FOO *", "1.5 * * * *", "1e1 * * * *", "0x1 * * * *", "99999999999999999999 * * * *", "*/99999999999999999999 * * * *",
    "+1 * * * *", "*/+2 * * * *", "** * * * *", "*-5 * * * *", "?/2 * * * *", "* * 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@never", "@", "@daily x", "@DAILYX", "１ * * * *", "* * L * *",
    "* * * * 1#6", "\u{0} * * * *", "1\u{202e} * * * *", "1;2 * * * *", "1/ * * * *", "/2 * * * *", "1-2-3 * * * *",
];

#[test]
fn crons() {
    let read: Vec<&&str> = CRONS
        .iter()
        .filter(|text| Cron::parse(text).is_ok())
        .collect();
    assert!(read.is_empty(), "{read:?}");
}

/// Texts that are not durations.
#[rustfmt::skip]
const DURATIONS: &[&str] = &[
    "", " ", "s", "-1s", "+1s", "1 s s", "1y", "1x", "1.5.5s", "1e3s", "0x1s", "٣s", "99999999999999999999s", "9223372036854775807h", "1s\u{0}", "∞s", "NaNs", "1sm", "h1",
];

#[test]
fn durations() {
    let read: Vec<_> = DURATIONS
        .iter()
        .filter_map(|text| Some((text, duration::parse(text)?)))
        .collect();
    assert!(read.is_empty(), "{read:?}");
}
