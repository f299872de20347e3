//! Limits of the server, as `flowstone.edn` sets them.

use serde_json::json;

use crate::api::Api;
use crate::program::Scratch;

const IN: &str = r#"{:slug :in
  :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :in :invocation :default :auth {:type :api-key :secret-ref :hook}}]}
  :flow '1}"#;

fn project(limits: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "HOOK=s1\n");
    scratch.write("flows/in.edn", IN);
    scratch.write("flowstone.edn", format!("{{:server {{:limits {limits}}}}}"));
    scratch
}

#[test]
fn limits_of_the_settings_hold() {
    let scratch = project(
        r#"{:webhook-body "64KiB" :failed-proofs 2 :streams-per-token 1 :requests {:service 1}}"#,
    );
    let api = Api::serve(&scratch);
    let post = |key: &str, body: &str| {
        let headers = [
            &*format!("x-api-key: {key}"),
            "content-type: application/json",
        ];
        api.request("POST /api/flows/in/interfaces/live/in", &headers, body)
    };
    let large = json!({"p": "x".repeat(70_000)}).to_string();
    assert_eq!(post("s1", &large).problem(), "413 E1018");
    assert_eq!(post("s1", "{}").status, 200);
    let wrong = [(); 3].map(|()| post("no", "{}").status);
    assert_eq!(wrong, [401, 401, 429]);

    let first = api.follow("/api/v1/events", None);
    assert_eq!(first.status, 200);
    assert_eq!(api.get("/api/v1/events").problem(), "429 E1020");

    let args = ["tokens", "create", "--name", "t", "--scope", "read"];
    let service = scratch.run(&args).ok().trim_end().to_owned();
    let answers: Vec<u16> = (0..200)
        .map(|_| api.get_as(&service, "/api/v1/steps/kv").status)
        .collect();
    assert_eq!(answers[0], 200);
    assert!(answers.contains(&429), "one request a second");
    assert_eq!(api.get("/api/v1/steps/kv").status, 200);
}

#[test]
fn unknown_limits_are_refused_at_start() {
    for limits in [
        "{:conections 5}",
        "{:connections 0}",
        "{:requests {:robot 1}}",
    ] {
        let scratch = project(limits);
        let refused = scratch.run(&["serve", "--listen", "127.0.0.1:0", "--until-idle"]);
        assert_ne!(refused.code, Some(0), "{limits}");
        assert!(refused.err.contains("E0751"), "{limits}: {refused:?}");
    }
}
