//! Walks through trees, by the tools.

use serde_json::json;

use super::project::{Project, run};

const DEPLOY: &str = r#"
name: deploy
version: 1.0.0
tree:
  type: sequence
  name: Deploy_Service
  children:
    - type: action
      name: Run_Tests
      steps:
        - instruct: |
            Run tests.
            Store pass/fail at $VAR.tests_passed.
        - evaluate: |
            $VAR.tests_passed is true.
    - type: action
      name: Build_And_Push
      steps:
        - instruct: |
            Build and push image to $CONST.registry.
state:
  var:
    tests_passed: null
    image_tag: null
  const:
    threshold: 80
    registry: ghcr.io/my-app
"#;

#[test]
fn a_tree_is_driven_to_its_end() {
    run(async {
        let project = Project::with(&[("deploy.yaml", DEPLOY)]);
        let uri = &project.uri("run.json");
        let started = project
            .on(
                uri,
                "start_execution",
                json!({"tree_uri": project.uri("deploy.yaml")}),
            )
            .await;
        println!("{started:#}");
        for (tool, arguments) in [
            ("next_step", json!({})),
            ("submit", json!({"status": "success"})),
            ("next_step", json!({})),
            (
                "var_write",
                json!({"path": "tests_passed", "value": "true"}),
            ),
            ("think", json!({"thought": "green"})),
            ("submit", json!({"status": "success", "note": "n"})),
            ("eval", json!({"result": true})),
            ("next_step", json!({})),
            ("eval", json!({"result": true})),
            ("next_step", json!({})),
            ("submit", json!({"status": "success"})),
            ("next_step", json!({})),
            ("next_step", json!({})),
            ("read_trace", json!({})),
            ("get_execution", json!({})),
        ] {
            println!(
                "{tool} {arguments}\n  {:#}",
                project.on(uri, tool, arguments.clone()).await
            );
        }
        println!(
            "{}",
            std::fs::read_to_string(project.path("run.json")).unwrap_or_default()
        );
        panic!("look");
    });
}
