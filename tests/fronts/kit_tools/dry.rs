//! Dry tests: nothing outside changes.

use serde_json::json;

use super::project::{Project, SLUG, flow, run};

#[test]
fn a_dry_test_changes_nothing() {
    run(async {
        let project = Project::with("");
        let body = "(do (flow/step :kv :keep {:operation :set :key \"seen\" :value 1})
                        (flow/step :send :ship {}))";
        project.commit(SLUG, &flow(body)).await;
        let arguments =
            |dry| json!({"inputs": {}, "dry": dry, "expectations": {"terminal_tool": "ship"}});
        let answer = project.test(arguments(true)).await;
        assert_eq!(
            (&answer["verdict"], &answer["dry"]),
            (&json!("pass"), &json!(true)),
            "{answer}"
        );
        assert_eq!(answer["output"], "{\"dry\":true}", "{answer}");
        let kept = project.stores.kv.get("seen", project.engine.now_ms()).await;
        assert_eq!((project.sent.get(), kept.expect("the store")), (0, None));
        let answer = project.test(arguments(false)).await;
        assert_eq!(answer["verdict"], "pass", "{answer}");
        let kept = project.stores.kv.get("seen", project.engine.now_ms()).await;
        assert!(project.sent.get() == 1 && kept.expect("the store").is_some());
    });
}
