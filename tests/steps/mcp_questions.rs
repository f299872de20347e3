//! Questions that an MCP server asks a person in the middle of a call, in both revisions, over stdio and HTTP.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::channel;

use expect_test::{Expect, expect};
use flowstone_engine::codec::decode;
use flowstone_engine::ports::WaitFilter;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::agent::{calls, says};
use crate::mcp::run;
use crate::project::Project;
use crate::server::Server as Model;
use crate::test_server::{Answer, Server, event_stream, reply};

const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
done_() { reply '"result":{"resultType":"complete","content":[{"type":"text","text":"booked"}]}'; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) DISCOVER;;
    *'"initialize"'*) echo "$line" >> hello.txt; reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"fake","version":"1"}}';;
    *'"tools/list"'*) reply '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"book","inputSchema":{"type":"object"}}]}';;
    *'"resources/list"'*) reply '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","resources":[{"uri":"x://1","name":"one"}]}';;
    *'"resources/read"'*) reply '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[{"uri":"x://1","text":"the fare is 70"},{"uri":"x://2","mimeType":"application/zip","blob":"aGk="}]}';;
    *'"tools/call"'*) echo "$line" >> calls.txt; CALL;;
  esac
done
"#;
const OLD: &str = r#"reply '"error":{"code":-32601,"message":"Method not found"}'"#;
const NEW: &str = r#"reply '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}'"#;
const FORM: &str = r#"{"mode":"form","message":"Who travels?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Full name","minLength":2},"seats":{"type":"integer","minimum":1,"maximum":9},"class":{"type":"string","enum":["first","second"]},"action":{"type":"boolean"}},"required":["name"]}}"#;
const LINK: &str = r#"{"mode":"url","message":"Sign in first.","url":"https://example.com/in","elicitationId":"e1"}"#;
const BOOK: &str =
    "(:content (flow/step :mcp :book {:adapter :f/all :tool \"book\" :questions QUESTIONS}))";

/// A server of the older handshake: it asks in the middle of a call.
fn old(params: &str) -> String {
    let ask = format!(
        r#"own=$id; printf '{{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{params}}}\n'; IFS= read -r answer; echo "$answer" >> answers.txt; id=$own; done_"#
    );
    SERVER.replace("DISCOVER", OLD).replace("CALL", &ask)
}

/// A server of the newer revision: its first answer is a question, with a state.
fn new(params: &str) -> String {
    let ask = format!(
        r#"case $line in *'"requestState":"s1"'*) echo "$line" >> answers.txt; done_;; *) reply '"result":{{"resultType":"input_required","inputRequests":{{"who":{{"method":"elicitation/create","params":{params}}}}},"requestState":"s1"}}';; esac"#
    );
    SERVER.replace("DISCOVER", NEW).replace("CALL", &ask)
}

fn project(script: &str) -> Project {
    let settings = "{:connections {:fake {:backend :mcp :command [\"sh\" \"server.sh\"]}}}";
    Project::with_files(&[("server.sh", script), ("flowstone.edn", settings)])
}

fn book(questions: &str) -> String {
    BOOK.replace("QUESTIONS", questions)
}

fn only_wait(project: &Project) -> (String, Value) {
    let waits = project.engine.list_waits(WaitFilter::default());
    let waits = project.block_on(waits).expect("waits");
    assert_eq!(waits.len(), 1);
    let details = decode(&waits[0].details).expect("details");
    (waits[0].id.to_string(), details)
}

fn answer(project: &Project, payload: &str) -> String {
    let (wait, _) = only_wait(project);
    project.answer(&wait, &decode(payload).expect("a payload"))
}

/// Returns the answers that the server got, as it wrote them down: only the results.
fn answers(project: &Project) -> Vec<Json> {
    let text = fs::read_to_string(project.path().join("answers.txt")).unwrap_or_default();
    let read = |line: &str| -> Json {
        let line: Json = serde_json::from_str(line).expect("a message");
        match line.get("result") {
            Some(result) => result.clone(),
            None => line["params"]["inputResponses"]["who"].clone(),
        }
    };
    text.lines().map(read).collect()
}

#[test]
fn a_question_opens_a_wait_and_its_answer_goes_back_in_both_revisions() {
    let accepted = r#"{:action :accept :name "Ada" :seats 2 :action-value true}"#;
    for script in [old(FORM), new(FORM)] {
        for (payload, expected) in [
            (
                accepted,
                r#"{"action":"accept","content":{"action":true,"name":"Ada","seats":2}}"#,
            ),
            ("{:action :decline}", r#"{"action":"decline"}"#),
            ("{:action :cancel}", r#"{"action":"cancel"}"#),
        ] {
            let project = project(&script);
            let found = run(&project, &book(":ask"));
            assert!(found.contains("Waiting"), "{found}");
            assert_eq!(answer(&project, payload), "\"booked\"", "{payload}");
            let expected: Json = serde_json::from_str(expected).expect("JSON");
            assert_eq!(answers(&project), [expected]);
        }
    }
}

#[test]
fn the_form_of_the_wait_is_that_of_the_requested_schema() {
    let project = project(&new(FORM));
    run(&project, &book("{:timeout \"1h\" :roles [:travel]}"));
    let (_, details) = only_wait(&project);
    expect![[r#"
        {:step "question", :title "question", :on-timeout :continue, :default-value {:action :cancel}, :validation [:and [:map [:action [:enum :accept :decline :cancel]]] [:multi {:dispatch :action} [:accept [:map [:name {:title "Full name"} [:string {:min 2}]] [:seats {:optional true} [:int {:min 1, :max 9}]] [:class {:optional true} [:enum "first" "second"]] [:action-value {:optional true} :boolean]]] [:decline [:map]] [:cancel [:map]]]], :show {:data {:warning "The answer is sent to the server `:fake` and stays in the journal. Do not enter passwords, keys or other secrets."}, :message "The tool `book` of the server `:fake` asks: Who travels?", :actions [:accept :decline :cancel], :roles [:travel]}}
    "#]]
    .assert_eq(&format!("{details}\n"));
    let refused = answer(&project, "{:action :accept :name \"A\"}");
    assert!(refused.starts_with("refused"), "{refused}");
    let refused = answer(&project, "{:action :maybe :name \"Ada\"}");
    assert!(refused.starts_with("refused"), "{refused}");
}

#[test]
fn an_address_to_open_is_in_the_wait() {
    for script in [old(LINK), new(LINK)] {
        let project = project(&script);
        run(&project, &book(":ask"));
        let (_, details) = only_wait(&project);
        let shown = details.to_string();
        assert!(shown.contains("https://example.com/in"), "{shown}");
        assert!(shown.contains("Open it only if you trust"), "{shown}");
        assert_eq!(answer(&project, "{:action :accept}"), "\"booked\"");
        assert_eq!(answers(&project), [serde_json::json!({"action": "accept"})]);
    }
}

#[test]
fn a_field_for_a_secret_is_warned_of() {
    let form = r#"{"message":"Log in","requestedSchema":{"type":"object","properties":{"api_key":{"type":"string"}}}}"#;
    let project = project(&new(form));
    run(&project, &book(":ask"));
    let (_, details) = only_wait(&project);
    let shown = details.to_string();
    assert!(
        shown.contains("The field `api_key` looks like one"),
        "{shown}"
    );
}

#[test]
fn the_newer_revision_continues_after_a_restart() {
    let project = project(&new(FORM));
    run(&project, &book(":ask"));
    let project = project.reopen();
    assert_eq!(
        answer(&project, "{:action :accept :name \"Ada\"}"),
        "\"booked\""
    );
    let asked = fs::read_to_string(project.path().join("calls.txt")).expect("calls");
    assert_eq!(asked.lines().count(), 2);
}

#[test]
fn a_question_that_nobody_answers_is_cancelled() {
    for (on_timeout, expected) in [("", "cancel"), (":on-timeout :decline", "decline")] {
        let project = project(&new(FORM));
        run(
            &project,
            &book(&format!("{{:timeout \"1m\" {on_timeout}}}")),
        );
        project.clock.advance(61_000);
        assert_eq!(project.resume_all(), ["\"booked\""]);
        assert_eq!(answers(&project), [serde_json::json!({"action": expected})]);
    }
}

#[test]
fn without_the_option_questions_are_declined() {
    for (script, expected, declined) in [
        // The server of the older handshake is free to go on after the refusal.
        (old(FORM), "\"booked\"", 1),
        (
            new(FORM),
            "E0832 the tool `book` of `:fake` asks for more input",
            0,
        ),
    ] {
        let project = project(&script);
        let found = run(&project, &book(":decline"));
        assert!(found.starts_with(expected), "{found}");
        assert_eq!(answers(&project).len(), declined);
        for answer in answers(&project) {
            assert_eq!(answer["action"], "decline");
        }
        let hello = fs::read_to_string(project.path().join("hello.txt")).unwrap_or_default();
        assert!(!hello.contains("elicitation"), "{hello}");
    }
}

#[test]
fn a_flow_can_answer_questions_itself() {
    let body = "(let [asked (flow/step :mcp :book {:adapter :f/all :tool \"book\" :questions :return})
                      question (first (:questions asked))]
                  [(:message question) (:mode question)
                   (:content (flow/step :mcp :on {:op :answer :adapter :f/all :tool \"book\" :resume (:resume asked)
                                                  :answers {(:id question) {:action :accept :content {:name \"Ada\"}}}}))])";
    for script in [old(FORM), new(FORM)] {
        let project = project(&script);
        assert_eq!(
            run(&project, body),
            "[\"Who travels?\" \"form\" \"booked\"]"
        );
        assert_eq!(
            answers(&project),
            [serde_json::json!({"action": "accept", "content": {"name": "Ada"}})]
        );
    }
}

#[test]
fn a_server_that_asks_without_end_is_stopped() {
    let script = SERVER.replace("DISCOVER", NEW).replace(
        "CALL",
        r#"reply '"result":{"resultType":"input_required","requestState":"s"}'"#,
    );
    let project = project(&script);
    expect!["E0832 the tool `book` asks again and again"].assert_eq(&run(&project, &book(":ask")));
}

#[test]
fn what_a_person_cannot_answer_is_an_error() {
    let sampling = r#"case x in x) reply '"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}';; esac"#;
    let local = LINK.replace("https://example.com/in", "file:///etc/passwd");
    for (script, expected) in [
        (
            SERVER.replace("DISCOVER", NEW).replace("CALL", sampling),
            "a list of folders",
        ),
        (new(&local), "a visit of an address that is not of the web"),
        (old(&local), "a visit of an address that is not of the web"),
    ] {
        let project = project(&script);
        let found = run(&project, &book(":ask"));
        let told = format!("E0832 the tool `book` of `:fake` asks for {expected}");
        assert!(found.starts_with(&told), "{found}");
    }
}

#[test]
fn wrong_options_are_reported() {
    let check = |questions: &str, expected: Expect| {
        let project = project(&new(FORM));
        let body = format!(
            "(let [config {{:adapter :f/all :tool \"book\" :questions {questions}}}] (flow/step :mcp :x (merge config {{}})))"
        );
        expected.assert_eq(&run(&project, &body));
    };
    check(
        ":perhaps",
        expect![
            "E0712 `:questions` of a `:mcp` step must be one of `:ask`, `:decline`, `:return` or a map of `:notify`, `:on-timeout`, `:roles`, `:timeout`, not :perhaps (a keyword)"
        ],
    );
    check(
        "{:on-timeout :approve}",
        expect![
            "E0712 `:questions :on-timeout` of a `:mcp` step must be one of `:cancel`, `:decline`, `:fail`, not :approve (a keyword)"
        ],
    );
    let project = project(&new(FORM));
    let body = "(let [config {:op :answer :adapter :f/all :tool \"book\" :resume {:state \"s1\"} :answers {\"who\" {:action :yes}}}] (flow/step :mcp :x (merge config {})))";
    expect![[r#"
        E1299 the answer `who` of `:answers` needs an `:action`: `:accept`, `:decline` or `:cancel`
          such as `{"q1" {:action :accept :content {:name "Ada"}}}`"#]]
    .assert_eq(&run(&project, body));
}

/// Starts a server of the older handshake over HTTP: the stream of the call ends after the answer to its question.
fn http_old() -> Server {
    let (sender, answered) = channel::<()>();
    let (sender, answered) = (
        std::sync::Mutex::new(sender),
        Arc::new(std::sync::Mutex::new(answered)),
    );
    Server::start(move |request, _| {
        let message: Json = serde_json::from_str(&request.body).unwrap_or_default();
        let id = message["id"].clone();
        let json = |inner: &str| {
            let headers = ["content-type: application/json", "mcp-session-id: s1"];
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{inner}}}"#);
            reply("200 OK", &headers, body)
        };
        match message["method"].as_str() {
            Some("server/discover") => json(r#""error":{"code":-32601,"message":"no"}"#),
            Some("initialize") => json(
                r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}"#,
            ),
            Some("tools/list") => {
                json(r#""result":{"tools":[{"name":"book","inputSchema":{"type":"object"}}]}"#)
            }
            Some("tools/call") => {
                let first = format!(
                    "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"elicitation/create\",\"params\":{FORM}}}\n\n"
                );
                let answered = answered.clone();
                Answer::Then(
                    event_stream(&first),
                    Arc::new(move || {
                        let answered = answered.lock().expect("no test panics with it");
                        answered.recv().ok();
                        format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"booked\"}}]}}}}\n\n").into_bytes()
                    }),
                )
            }
            None if message.get("result").is_some() => {
                let sender = sender.lock().expect("no test panics with it");
                sender.send(()).ok();
                reply("202 Accepted", &[], "")
            }
            _ if request.method == "POST" => reply("202 Accepted", &[], ""),
            _ => reply("405 Method Not Allowed", &[], ""),
        }
    })
}

fn http_new() -> Server {
    Server::start(move |request, _| {
        let message: Json = serde_json::from_str(&request.body).unwrap_or_default();
        let inner = match message["method"].as_str() {
            Some("server/discover") => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#.to_owned(),
            Some("tools/list") => r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"book","inputSchema":{"type":"object"}}]}"#.to_owned(),
            Some("tools/call") if message["params"]["requestState"] == "s1" => {
                r#"{"resultType":"complete","content":[{"type":"text","text":"booked"}]}"#.to_owned()
            }
            Some("tools/call") => format!(
                r#"{{"resultType":"input_required","inputRequests":{{"who":{{"method":"elicitation/create","params":{FORM}}}}},"requestState":"s1"}}"#
            ),
            _ => return reply("202 Accepted", &[], ""),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{inner}}}"#,
            message["id"]
        );
        reply("200 OK", &["content-type: application/json"], body)
    })
}

#[test]
fn questions_over_http_are_asked_in_both_revisions() {
    for (server, restarts) in [(http_old(), false), (http_new(), false), (http_new(), true)] {
        let project = Project::with(&format!(
            "{{:http {{:proxy false}} :connections {{:fake {{:backend :mcp :base-url \"{}\"}}}}}}",
            server.url("/mcp")
        ));
        let flow = format!(
            "{{:slug :f :mcp [{{:id :f/all :connection :fake}}] :flow '{}}}",
            book(":ask")
        );
        project.run(&flow).expect("the run waits");
        let project = match restarts {
            true => project.reopen(),
            false => project,
        };
        let found = answer(&project, "{:action :accept :name \"Ada\"}");
        assert_eq!(found, "\"booked\"");
        let requests = server.requests();
        let is_answer = |body: &str| body.contains(r#""content":{"name":"Ada"}"#);
        assert!(requests.iter().any(|it| is_answer(&it.body)));
    }
}

/// A project with a model of these turns, and the server.
fn with_model(turns: Vec<crate::server::Say>, script: &str) -> (Project, Model) {
    let model = Model::start(turns);
    let settings = format!(
        "{{:connections {{:ai {{:backend :openai :base-url \"{}/v1\" :model \"m\" :auth {{:type :none}}}}
                          :fake {{:backend :mcp :command [\"sh\" \"server.sh\"]}}}}}}",
        model.url
    );
    let project = Project::with_files(&[("server.sh", script), ("flowstone.edn", &settings)]);
    (project, model)
}

fn offered(model: &Model, turn: usize) -> Vec<String> {
    let body = model.body(turn);
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Json| tool["function"]["name"].as_str().map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

#[test]
fn a_question_to_a_tool_of_an_agent_waits_inside_the_agent() {
    for (adapter, agent) in [
        (
            ":allow-tools [\"book\"] :questions :ask",
            ":tools {:mode :execute :mcp [:f/all]}",
        ),
        (
            "",
            ":tools {:mode :execute} :mcp-tools [{:name \"f\" :adapter :f/all :questions {:timeout \"1h\"}}]",
        ),
    ] {
        let turns = vec![calls(&[("c1", "f_book", "{}")]), says("It is booked.")];
        let (project, _model) = with_model(turns, &new(FORM));
        let flow = format!(
            "{{:slug :f :mcp [{{:id :f/all :connection :fake :transport :stdio {adapter}}}]
              :flow '(:content (flow/step :agent :a {{:connection :ai :objective \"Book.\" {agent}}}))}}"
        );
        project.run(&flow).expect("the run waits");
        let found = answer(&project, "{:action :accept :name \"Ada\"}");
        assert_eq!(found, "\"It is booked.\"");
        assert_eq!(answers(&project).len(), 1);
    }
}

#[test]
fn an_agent_lists_and_reads_resources() {
    for (adapter, agent) in [
        (":resources true", ":tools {:mode :execute :mcp [:f/all]}"),
        (
            "",
            ":tools {:mode :execute} :mcp-tools [{:name \"f\" :adapter :f/all :resources true}]",
        ),
    ] {
        let turns = vec![
            calls(&[("c1", "f_list_resources", "{}")]),
            calls(&[("c2", "f_read_resource", "{\"uri\": \"x://1\"}")]),
            says("It is 70."),
        ];
        let (project, model) = with_model(turns, &old(FORM));
        let flow = format!(
            "{{:slug :f :mcp [{{:id :f/all :connection :fake :transport :stdio {adapter}}}]
              :flow '(:content (flow/step :agent :a {{:connection :ai :objective \"The fare?\" {agent}}}))}}"
        );
        let found = project.run(&flow).expect("the run ends");
        assert!(format!("{found:?}").contains("It is 70."), "{found:?}");
        let names = offered(&model, 0);
        assert!(
            names.ends_with(&["f_list_resources".into(), "f_read_resource".into()]),
            "{names:?}"
        );
        let said = |turn: usize| {
            let body = model.body(turn);
            let messages = body["messages"].as_array().expect("messages").clone();
            messages.last().expect("a message")["content"].to_string()
        };
        assert!(said(1).contains("x://1"), "{}", said(1));
        let read = said(2);
        assert!(read.contains("the fare is 70"), "{read}");
        // Bytes are named, and never sent to a model.
        assert!(
            read.contains("application/zip, 2 bytes") && !read.contains("aGk="),
            "{read}"
        );
    }
}
