//! Questions of MCP servers over the end of a process: each command is a process of its own.

use crate::program::{Ran, Scratch};

const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) DISCOVER;;
    *'"initialize"'*) reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}';;
    *'"tools/list"'*) reply '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"book","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) echo call >> calls.txt; CALL;;
  esac
done
"#;
const OLD: (&str, &str) = (
    r#"reply '"error":{"code":-32601,"message":"Method not found"}'"#,
    r#"own=$id; printf '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Who travels?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}\n'; IFS= read -r answer; echo "$answer" >> answers.txt; id=$own; reply '"result":{"content":[{"type":"text","text":"booked"}]}'"#,
);
const NEW: (&str, &str) = (
    r#"reply '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'"#,
    r#"case $line in *'"requestState":"s1"'*) echo "$line" >> answers.txt; reply '"result":{"resultType":"complete","content":[{"type":"text","text":"booked"}]}';; *) reply '"result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"mode":"form","message":"Who travels?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},"requestState":"s1"}';; esac"#,
);

/// Returns a project whose run waits for the answer to a server's question.
fn waiting((discover, call): (&str, &str), more: &str) -> Scratch {
    let scratch = Scratch::new();
    let server = SERVER.replace("DISCOVER", discover).replace("CALL", call);
    scratch.write("server.sh", server);
    scratch.write(
        "flowstone.edn",
        "{:connections {:fake {:backend :mcp :command [\"sh\" \"server.sh\"]}}}",
    );
    let flow = format!(
        "{{:slug :f :mcp [{{:id :f/all :connection :fake :transport :stdio}}]
          :flow '(:content (flow/step :mcp :book {{:adapter :f/all :tool \"book\" :questions :ask {more}}}))}}"
    );
    scratch.write("flow.edn", flow);
    let ran = scratch.run(&["run", "flow.edn", "--quiet"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    scratch
}

fn only_wait(scratch: &Scratch) -> String {
    let listed = scratch.run(&["waits", "list", "--json"]).json();
    listed["waits"][0]["id"]
        .as_str()
        .expect("a wait")
        .to_owned()
}

fn shown(scratch: &Scratch) -> String {
    scratch.run(&["waits", "show", &only_wait(scratch)]).ok()
}

fn answer(scratch: &Scratch, value: &str) -> Ran {
    scratch.run(&["waits", "complete", &only_wait(scratch), "--value", value])
}

fn lines(scratch: &Scratch, file: &str) -> usize {
    let text = std::fs::read_to_string(scratch.path().join(file));
    text.map_or(0, |text| text.lines().count())
}

const ADA: &str = "{:action :accept :name \"Ada\"}";

#[test]
fn the_newer_revision_repeats_the_request_with_its_state() {
    let scratch = waiting(NEW, "");
    let shown = shown(&scratch);
    assert!(shown.contains("Who travels?"), "{shown}");
    let ran = answer(&scratch, ADA);
    assert_eq!(ran.out.trim(), "booked", "{ran:?}");
    let sent = scratch.read("answers.txt");
    assert!(sent.contains(r#""content":{"name":"Ada"}"#), "{sent}");
}

#[test]
fn an_open_call_that_ended_with_its_process_follows_on_doubt() {
    let scratch = waiting(OLD, ":on-doubt :fail");
    let ran = answer(&scratch, ADA);
    assert!(ran.err.contains("E1298"), "{ran:?}");
    assert_eq!(lines(&scratch, "calls.txt"), 1);
    // The repeated call gets the answer that was given, without another wait.
    let scratch = waiting(OLD, ":on-doubt :retry");
    let ran = answer(&scratch, ADA);
    assert_eq!(ran.out.trim(), "booked", "{ran:?}");
    assert_eq!(lines(&scratch, "calls.txt"), 2);
    let sent = scratch.read("answers.txt");
    assert!(sent.contains(r#""content":{"name":"Ada"}"#), "{sent}");
}

#[test]
fn without_on_doubt_a_person_decides_about_the_ended_call() {
    for (choice, expected) in [("retry", "booked"), ("fail", "E1298")] {
        let scratch = waiting(OLD, "");
        let ran = answer(&scratch, ADA);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let shown = shown(&scratch);
        assert!(
            shown.contains("Call it again from its beginning?"),
            "{shown}"
        );
        let ran = answer(&scratch, &format!("{{:action :{choice}}}"));
        assert!(
            ran.out.contains(expected) || ran.err.contains(expected),
            "{ran:?}"
        );
    }
}
