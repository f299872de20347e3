//! Secrets and flows that the build kit commits: a flow's text that names an address of its own gets no secret for it.

use serde_json::{Value, json};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

const KEY: &str = "s3cret-of-openai";
const TOKEN: &str = "s3cret-of-the-crm";

/// Answers as a model does, and as any other server.
fn server() -> Server {
    Server::start(|request, _| match request.path.contains("chat") {
        true => {
            let choice = json!({"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"});
            let chunk = json!({"id": "1", "model": "m", "choices": [choice]});
            Answer::Events(vec![chunk.to_string(), "[DONE]".to_owned()])
        }
        false => Answer::Json("{}".to_owned()),
    })
}

/// A project with both secrets in the environment of its commands and in `.env`.
fn project(settings: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", settings);
    scratch.write(".env", format!("CRM_TOKEN={TOKEN}\nOPENAI_API_KEY={KEY}\n"));
    scratch
}

fn run(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(args);
    command.env("OPENAI_API_KEY", KEY).env("CRM_TOKEN", TOKEN);
    Ran::to_the_end(&mut command)
}

fn commit(scratch: &Scratch, text: &str) {
    let arguments: Value = json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}});
    let arguments = arguments.to_string();
    let args = [
        "kit",
        "commit_revision",
        "--flow",
        "probe",
        "--yes",
        "--json",
        &arguments,
    ];
    let ran = run(scratch, &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// The texts of the flow: its slot names this address, or leaves it to the project.
fn texts(base: &str) -> [(&'static str, String); 2] {
    let model = format!(
        "{{:slug :probe :requires [{{:slot :ai :type :http-api :backend :openai {base}}}]
          :flow '(:content (flow/step :llm :ask {{:connection :ai :model \"m\" :prompt \"hi\" :retry {{:max-attempts 1}}}}))}}"
    );
    let crm = format!(
        "{{:slug :probe :requires [{{:slot :crm :type :http-api {base} :auth {{:type :bearer}}}}]
          :flow '(:status (flow/step :http :ask {{:connection :crm :path \"/\" :retry {{:max-attempts 1}}}}))}}"
    );
    [("OPENAI_API_KEY", model), ("CRM_TOKEN", crm)]
}

#[test]
fn a_committed_flow_gets_no_secret_for_an_address_of_its_own() {
    let server = server();
    let base = format!(":base-url \"{}\"", server.url("/v1"));
    for (variable, text) in texts(&base) {
        // The address itself is allowed; the secret is not.
        let scratch = project("{:allow {:net [\"127.0.0.1\"]}}");
        commit(&scratch, &text);
        let from = server.requests().len();
        let ran = run(&scratch, &["run", "probe", "--quiet"]);
        assert_ne!(ran.code, Some(0), "{variable}: {ran:?}");
        let test = run(
            &scratch,
            &[
                "kit",
                "test_run",
                "--flow",
                "probe",
                "--yes",
                "--json",
                "{\"inputs\": {}}",
            ],
        );
        let shown = format!("{}{}{}{}", ran.out, ran.err, test.out, test.err);
        assert!(
            !shown.contains(KEY) && !shown.contains(TOKEN),
            "{variable}: {shown}"
        );
        for request in &server.requests()[from..] {
            assert_eq!(
                request.header("authorization"),
                None,
                "{variable}: {}",
                request.text
            );
            assert!(
                !request.text.contains(KEY) && !request.text.contains(TOKEN),
                "{variable}: {}",
                request.text
            );
        }
        let refused: Value = serde_json::from_str(test.out.trim()).expect("an answer");
        assert_eq!(
            (&refused["code"], &refused["details"]["base_url"]),
            (&json!("connection_not_ready"), &json!(server.url("/v1"))),
            "{variable}: {refused}"
        );
    }
}

/// The same servers do receive the secrets where a person has written the address down, so the test above would see one.
#[test]
fn an_address_of_the_project_gets_its_secret() {
    let server = server();
    let url = server.url("/v1");
    let settings = format!(
        "{{:allow {{:net [\"127.0.0.1\"]}}
          :connections {{:ai {{:backend :openai :base-url \"{url}\" :auth {{:type :bearer :secret-ref :OPENAI_API_KEY}}}}
                         :crm {{:base-url \"{url}\" :auth {{:type :bearer :secret-ref :crm-token}}}}}}}}"
    );
    for ((variable, text), secret) in texts("").into_iter().zip([KEY, TOKEN]) {
        let scratch = project(&settings);
        commit(&scratch, &text);
        let from = server.requests().len();
        let ran = run(&scratch, &["run", "probe", "--quiet"]);
        assert_eq!(ran.code, Some(0), "{variable}: {ran:?}");
        let requests = server.requests();
        let sent = requests[from..]
            .iter()
            .filter_map(|it| it.header("authorization"));
        let sent: Vec<&str> = sent.collect();
        assert_eq!(sent, [format!("Bearer {secret}")], "{variable}");
    }
}
