//! `flowstone doctor`.

use serde_json::Value;

use crate::program::Scratch;

fn states(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings
        .iter()
        .map(|finding| (text(finding, "part"), text(finding, "state")))
        .collect()
}

fn state_of<'a>(states: &'a [(String, String)], part: &str) -> Option<&'a str> {
    let found = states.iter().find(|(name, _)| name == part);
    found.map(|(_, state)| &**state)
}

#[test]
fn a_project_in_order_has_no_errors_and_is_not_changed() {
    let scratch = Scratch::new();
    scratch.run(&["init"]).ok();
    let before = scratch.run(&["doctor", "--json"]).json();
    assert_eq!(before["ok"], true, "{before}");
    assert!(!scratch.path().join(".flowstone").exists());
    scratch
        .run(&["run", "flows/hello.edn", "--input", r#"{"who": "Ada"}"#])
        .ok();
    let report = scratch.run(&["doctor", "--json"]).json();
    let states = states(&report);
    for part in ["project", "settings", "data", "flows", "connections"] {
        assert_eq!(state_of(&states, part), Some("ok"), "{report}");
    }
    let left: Vec<_> = std::fs::read_dir(scratch.path().join(".flowstone"))
        .expect("the folder is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("doctor"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn wrong_settings_flows_and_missing_secrets_are_named() {
    let scratch = Scratch::new();
    scratch.run(&["init"]).ok();
    scratch
        .run(&["run", "flows/hello.edn", "--input", r#"{"who": "Ada"}"#])
        .ok();
    scratch.run(&["new", "list", "--kind", "http"]).ok();
    scratch.write(
        "flowstone.edn",
        r#"{:connections {:api {:base-url "https://api.example.com"
                                :auth {:type :bearer :secret-ref :doctor-token}}}}"#,
    );
    let report = scratch.run(&["doctor", "--json"]).json();
    let found = states(&report);
    assert_eq!(state_of(&found, "connections"), Some("warning"), "{report}");
    assert!(report.to_string().contains("DOCTOR_TOKEN"), "{report}");

    scratch.write("flows/broken.edn", "{:slug :broken :flow '(nope)}");
    let broken = scratch.run(&["doctor"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.out.contains("flows/broken.edn"), "{broken:?}");

    scratch.write("flowstone.edn", "{:connections");
    let report = scratch.run(&["doctor", "--json"]);
    assert_eq!(report.code, Some(1));
    let found = states(&serde_json::from_str(&report.out).expect("JSON"));
    assert_eq!(state_of(&found, "settings"), Some("error"), "{report:?}");
}
