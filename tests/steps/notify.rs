//! Messages of `:notify` steps and of waits: the requests, the stored results, and retries.

use std::sync::{Arc, Mutex};

use flowstone_engine::codec::decode;
use flowstone_engine::ports::WaitFilter;

use crate::project::Project;
use crate::server::{Say, Server, reply};

const ASK: &str =
    "(flow/step :wait :ok {:key \"k\" :approval {} :timeout \"1h\" :notify {:data {:amount 1200}
  :channels {:http {:connection :chat :path \"/messages\"
                    :json {:text \"Pay {{amount}}? {{approval-url}} or {{rejection-url}}\"
                           :wait \"{{wait-id}}\" :run \"{{run-id}}\" :old \"{approvalUrl}\"}}}}})";

/// Creates a project whose connection `:chat` leads to a server with these responses.
fn project(answers: Vec<Say>, more: &str) -> (Project, Server) {
    let slot = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&slot);
    let (sent, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let server = Server::start(answers);
            *kept.lock().expect("free") = Some(server);
            sent.send(()).expect("somebody waits");
            std::future::pending::<()>().await;
        });
    });
    started.recv().expect("the server starts");
    let server = slot.lock().expect("free").take().expect("a server");
    let settings = format!(
        "{{:connections {{:chat {{:base-url \"{}\"}}}} {more}}}",
        server.url
    );
    (Project::with(&settings), server)
}

fn token(project: &Project) -> (String, String) {
    project.block_on(async {
        let waits = project.engine.list_waits(WaitFilter::default()).await;
        let id = waits.expect("waits").remove(0).id;
        let token = project.engine.stores().waits.token(&id).await;
        (id, token.expect("readable").expect("a token"))
    })
}

#[test]
fn a_notification_contains_links_to_answer() {
    let (project, server) = project(
        vec![reply("202 Accepted", &[], "")],
        ":server {:url \"https://flows.test/\" :workspace-id \"acme\"}",
    );
    assert!(project.eval(ASK).starts_with("waiting"));
    let (id, token) = token(&project);
    let body = server.body(0);
    let link = |action: &str| format!("https://flows.test/acme/waits/{id}/{action}?token={token}");
    assert_eq!(
        body["text"],
        format!("Pay 1200? {} or {}", link("approve"), link("reject"))
    );
    assert_eq!(body["old"], link("approve"));
    assert_eq!(body["wait"], id);
    let head = server.requests()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /messages "), "{head}");
    assert!(head.contains("/ok/notify\n"), "no idempotency key: {head}");
    // It is not sent again when the run resumes, nor by the next process.
    let project = project.reopen();
    assert!(project.resume_all().is_empty());
    let answered = project.answer("k", &decode("{:action :approve}").expect("EDN"));
    assert_eq!(answered, "{:action :approve}");
    assert_eq!(server.requests().len(), 1);
    let kept = project.everything_kept();
    assert!(kept.contains(":sent? true"), "{kept}");
    assert!(
        !kept.contains(&token),
        "the token is in the journal: {kept}"
    );
}

#[test]
fn without_an_address_the_links_are_commands() {
    let (project, server) = project(vec![reply("204 No Content", &[], "")], "");
    assert!(project.eval(ASK).starts_with("waiting"));
    let (id, token) = token(&project);
    let text = server.body(0)["text"].to_string();
    assert!(
        text.contains(&format!("flowstone waits approve {id}")),
        "{text}"
    );
    assert!(!text.contains(&token), "{text}");
}

#[test]
fn a_failed_notification_is_retried_and_the_wait_stays_open() {
    let (project, server) = project(
        vec![
            reply("503 Service Unavailable", &[], "busy"),
            reply("202 Accepted", &[], ""),
        ],
        "",
    );
    assert!(project.eval(ASK).starts_with("waiting"));
    assert_eq!(server.requests().len(), 2);
    let keys: Vec<String> = server
        .requests()
        .iter()
        .flat_map(|request| request.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.to_ascii_lowercase().starts_with("idempotency-key"))
        .collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(
        project.answer("k", &decode("{:action :reject}").expect("EDN")),
        "{:action :reject}"
    );
}

#[test]
fn a_permanent_failure_of_a_notification_is_not_retried() {
    let (project, server) = project(vec![reply("404 Not Found", &[], "no such place")], "");
    assert!(project.eval(ASK).starts_with("waiting"));
    assert_eq!(server.requests().len(), 1);
    let kept = project.everything_kept();
    assert!(
        kept.contains(":kind :notify") && kept.contains("404"),
        "{kept}"
    );
    assert_eq!(
        project.answer("k", &decode("{:action :reject}").expect("EDN")),
        "{:action :reject}"
    );
}

#[test]
fn a_notify_step_sends_a_message() {
    let (project, server) = project(
        vec![
            reply("202 Accepted", &[], ""),
            reply("400 Bad Request", &[], "what?"),
        ],
        "",
    );
    let step = "(flow/step :notify :tell {:data {:order \"o-1\"}
                  :channels {:http {:connection :chat :path \"/messages\" :json {:text \"{{order}} is paid\"}}}})";
    assert_eq!(
        project.eval(step),
        "{:sent? true :channels {:http {:sent? true :status 202}}}"
    );
    assert_eq!(server.body(0)["text"], "o-1 is paid");
    let failed = project.eval(step);
    assert!(
        failed
            .starts_with("{:sent? false :channels {:http {:sent? false}} :errors [{:channel :http"),
        "{failed}"
    );
    assert!(failed.contains(":status 400"), "{failed}");
    let strict = step.replace(":data", ":on-error :fail :data");
    assert!(project.eval(&strict).starts_with('E'));
}
