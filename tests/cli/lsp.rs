//! `flowstone lsp`: a scripted client on standard input and output, through every request.

#[path = "lsp/client.rs"]
mod editor;

use serde_json::{Value, json};

use crate::program::Scratch;
use editor::{Client, applied, at};

const FLOW: &str = r#"{:slug :notes
 :concurrency {:type :singleton :on-new-version :coexist}
 :requires [{:slot :api :base-url "https://example.com"}]
 :functions [{:id :measure :language :clojure :code '(fn [{:keys [text]}] {:size (count text)})}]
 :invocations {:default {:inputs [{:name :path :type :string}]}}
 :flow
 '(let [{:keys [path] :as input} (flow/input)
        stored (flow/step :kv :recall {:operation :get :key path})
        sized (flow/step :function :size {:ref :measure :input {:text (str stored)}})]
    (flow/step :http :send {:connection :api :path "/x" :method :get})
    (assoc sized :input input))}
"#;

fn client(scratch: &Scratch) -> Client {
    client_with(scratch, json!({}))
}

fn client_with(scratch: &Scratch, capabilities: Value) -> Client {
    Client::start(scratch.command(&["lsp"]), scratch.path(), &capabilities)
}

/// Starts a server with the flow above open.
fn started(scratch: &Scratch) -> Client {
    scratch.write("flowstone.edn", "{}");
    scratch.write("flows/notes.edn", FLOW);
    let mut client = client(scratch);
    client.open("flows/notes.edn", FLOW);
    client
}

fn labels(items: &Value) -> Vec<String> {
    let items = items
        .as_array()
        .or_else(|| items["items"].as_array())
        .cloned()
        .unwrap_or_default();
    items
        .iter()
        .map(|item| item["label"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_handshake_negotiates_the_encoding_and_the_end_is_clean() {
    let scratch = Scratch::new();
    let mut client = client(&scratch);
    assert_eq!(client.capabilities["positionEncoding"], "utf-16");
    assert_eq!(client.capabilities["textDocumentSync"]["change"], 2);
    let refused = client.refusal("no/such/method", json!({}));
    assert_eq!(refused["code"], -32601);
    let refused = client.refusal("textDocument/hover", json!({"textDocument": 1}));
    assert_eq!(refused["code"], -32602);
    assert_eq!(client.end(), Some(0));

    let client = client_with(
        &scratch,
        json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}}),
    );
    assert_eq!(client.capabilities["positionEncoding"], "utf-8");
    assert_eq!(client.leave(), Some(1));
}

#[test]
fn findings_are_those_of_check_and_follow_the_text() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    assert_eq!(client.diagnostics("flows/notes.edn"), json!([]));
    let broken = FLOW
        .replace(":operation :get", ":operation :gett")
        .replace("(assoc sized", "(asoc sized");
    client.replace("flows/notes.edn", &broken);
    let found = client.diagnostics("flows/notes.edn");
    scratch.write("flows/notes.edn", &broken);
    let checked = scratch.run(&["check", "--json", "flows/notes.edn"]).json();
    let checked = checked["findings"].as_array().cloned().unwrap_or_default();
    let found = found.as_array().cloned().unwrap_or_default();
    assert_eq!(found.len(), checked.len(), "{found:?}\n{checked:?}");
    for (one, other) in found.iter().zip(&checked) {
        assert_eq!(one["code"], other["code"]);
        assert_eq!(
            one["range"]["start"]["line"].as_u64(),
            other["line"].as_u64().map(|line| line - 1)
        );
    }
    // A change is sent as an edit of the middle of the text.
    let (line, column) = at(&broken, "asoc", 0);
    client.edit(
        "flows/notes.edn",
        (line, column),
        (line, column + 4),
        "assoc",
    );
    let found = client.diagnostics("flows/notes.edn");
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    client.replace("flows/notes.edn", "{:slug :notes :flow '(let [a");
    let found = client.diagnostics("flows/notes.edn");
    assert!(
        found[0]["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("E01")),
        "{found}"
    );
    client.notify(
        "textDocument/didClose",
        json!({"textDocument": {"uri": client.uri("flows/notes.edn")}}),
    );
    assert_eq!(client.diagnostics("flows/notes.edn"), json!([]));
    client.end();
}

#[test]
fn changes_that_mend_a_finding_are_offered() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    let broken = FLOW
        .replace(":operation :get", ":operation :gett")
        .replace("(assoc sized", "(asoc sized");
    client.replace("flows/notes.edn", &broken);
    client.diagnostics("flows/notes.edn");
    let end = json!({"line": 99, "character": 0});
    let params = json!({
        "textDocument": {"uri": client.uri("flows/notes.edn")},
        "range": {"start": {"line": 0, "character": 0}, "end": end},
        "context": {"diagnostics": []},
    });
    let actions = client.call("textDocument/codeAction", params);
    let actions = actions.as_array().cloned().unwrap_or_default();
    let uri = client.uri("flows/notes.edn");
    let new: Vec<&str> = actions
        .iter()
        .filter_map(|action| action["edit"]["changes"][&uri][0]["newText"].as_str())
        .collect();
    assert!(
        new.contains(&":get") && new.contains(&"assoc"),
        "{actions:?}"
    );
    client.end();
}

#[test]
fn open_texts_are_included_instead_of_files() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("flows/part.edn", "(+ 1 2)");
    let text = "{:slug :whole :concurrency {:type :singleton :on-new-version :coexist} :flow '#flow/include \"part.edn\"}";
    let mut client = client(&scratch);
    client.open("flows/part.edn", "(+ 1 nope)");
    client.diagnostics("flows/part.edn");
    client.open("flows/whole.edn", text);
    let found = client.diagnostics("flows/whole.edn");
    let message = found[0]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("part.edn:1:6") && message.contains("nope"),
        "{found}"
    );
    client.end();
}

#[test]
fn steps_keys_operations_and_values_are_completed() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    let mut complete = |marked: &str| {
        let offset = marked.find('|').expect("a mark");
        let text = marked.replace('|', "");
        client.replace("flows/notes.edn", &text);
        let before = &text[..offset];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, str::len);
        labels(&client.at("textDocument/completion", "flows/notes.edn", (line, column)))
    };
    let has = |found: &[String], names: &[&str]| {
        names
            .iter()
            .all(|name| found.iter().any(|label| label == name))
    };
    let found = complete("{:slug :a :flow '(flow/step :|)}");
    assert!(
        has(&found, &[":http", ":kv", ":agent", ":wait"]),
        "{found:?}"
    );
    let found = complete("{:slug :a :flow '(flow/step :kv :id {:|})}");
    assert!(
        has(&found, &[":operation", ":key", ":retry", ":timeout"]),
        "{found:?}"
    );
    let found = complete("{:slug :a :flow '(flow/step :kv :id {:operation :|})}");
    assert!(has(&found, &[":get", ":set"]), "{found:?}");
    let found = complete("{:slug :a :flow '(flow/step :kv :id {:operation :get :|})}");
    assert!(
        has(&found, &[":key", ":default"]) && !has(&found, &[":operation"]),
        "{found:?}"
    );
    let found = complete("{:slug :a :flow '(flow/step :http :id {:retry {:max|}})}");
    assert_eq!(found, [":max-attempts", ":max-interval-ms"]);
    let found = complete("{:slug :a :flow '(flow/step :http :id {:on-error :|})}");
    assert_eq!(found, [":checkpoint", ":fail", ":skip"]);
    let found = complete("{:slug :a :conc| :flow '1}");
    assert_eq!(found, [":concurrency"]);
    let found = complete("{:slug :a :concurrency {:type :|} :flow '1}");
    assert_eq!(found, [":keyed", ":singleton"]);
    let found = complete("{:slug :a :invocations {:default {:inputs [{:req|}]}} :flow '1}");
    assert_eq!(found, [":required"]);
    let found = complete(
        "{:slug :a :functions [{:id :one :code '1}] :flow '(flow/step :function :x {:ref :|})}",
    );
    assert_eq!(found, [":one"]);
    let found =
        complete("{:slug :a :flow '(let [{:keys [alpha]} (flow/input) alphabet 1] (str alp|))}");
    assert_eq!(found, ["alphabet", "alpha"]);
    let found = complete("{:slug :a :flow '(str/uppe|)}");
    assert_eq!(found, ["str/upper-case"]);
    let found = complete("{:slug :a :flow '(redu|)}");
    assert!(
        has(&found, &["reduce", "reduce-kv", "reductions"]) || found.contains(&"reduce".to_owned()),
        "{found:?}"
    );
    let found = complete("{:slug :a :flow '(flow/call-flow :no|)}");
    assert_eq!(found, [":notes"]);
    assert!(complete("{:slug :a ; :co|\n :flow '1}").is_empty());
    let resolved = client.call(
        "completionItem/resolve",
        json!({"label": "reduce", "data": {"name": "reduce"}}),
    );
    assert!(
        resolved["documentation"]["value"]
            .as_str()
            .is_some_and(|text| text.contains("reduce")),
        "{resolved}"
    );
    client.end();
}

#[test]
fn hover_and_signatures_describe_names_keys_and_calls() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    let mut hover = |word: &str, nth: usize| {
        let found = client.at("textDocument/hover", "flows/notes.edn", at(FLOW, word, nth));
        found["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(hover("assoc", 0).contains("clojure.core/assoc"));
    assert!(hover(":kv", 0).contains("step type"));
    assert!(hover(":operation", 0).contains("key of :kv"));
    assert!(hover(":get", 0).contains("operation of :kv"));
    assert!(hover("flow/step", 0).contains("Performs a step"));
    assert!(hover("stored", 1).contains("local, bound in line 8"));
    assert!(hover(":concurrency", 0).contains("Whether runs"));
    assert!(hover(":method", 0).contains(":http"));
    assert!(hover("https", 0).contains(":base-url"));
    let help = client.at(
        "textDocument/signatureHelp",
        "flows/notes.edn",
        at(FLOW, ":input input", 0),
    );
    assert_eq!(help["activeParameter"], 1, "{help}");
    assert!(
        help["signatures"][0]["label"]
            .as_str()
            .is_some_and(|label| label.starts_with("(assoc")),
        "{help}"
    );
    client.end();
}

#[test]
fn definitions_references_and_renames_agree() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    let file = "flows/notes.edn";
    let found = client.at("textDocument/definition", file, at(FLOW, "sized", 1));
    assert_eq!(found["range"]["start"]["line"], 8, "{found}");
    let found = client.at("textDocument/definition", file, at(FLOW, ":measure", 1));
    assert_eq!(found["range"]["start"]["line"], 3, "{found}");
    let found = client.at("textDocument/definition", file, at(FLOW, ":api", 1));
    assert_eq!(found["range"]["start"]["line"], 2, "{found}");
    let found = client.at("textDocument/definition", file, at(FLOW, "assoc", 0));
    assert_eq!(found, Value::Null, "it is written in Rust");
    let lines = |found: &Value| -> Vec<u64> {
        let found = found.as_array().cloned().unwrap_or_default();
        found
            .iter()
            .filter_map(|place| place["range"]["start"]["line"].as_u64())
            .collect()
    };
    let mut params = client.place(file, at(FLOW, "input", 5));
    params["context"] = json!({"includeDeclaration": true});
    let found = client.call("textDocument/references", params.clone());
    assert_eq!(lines(&found), [6, 10], "{found}");
    params["context"] = json!({"includeDeclaration": false});
    assert_eq!(lines(&client.call("textDocument/references", params)), [10]);
    let marks = client.at(
        "textDocument/documentHighlight",
        file,
        at(FLOW, ":measure", 0),
    );
    assert_eq!(lines(&marks), [3, 8]);

    let range = client.at("textDocument/prepareRename", file, at(FLOW, "stored", 0));
    assert_eq!(range["start"]["line"], 7);
    let mut params = client.place(file, at(FLOW, "stored", 0));
    params["newName"] = json!("kept");
    let edit = client.call("textDocument/rename", params.clone());
    let edits = edit["changes"][client.uri(file)]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(edits.len(), 2, "{edit}");
    assert!(edits.iter().all(|edit| edit["newText"] == "kept"));
    params["newName"] = json!("not a name");
    assert_eq!(
        client.refusal("textDocument/rename", params)["code"],
        -32803
    );
    let mut params = client.place(file, at(FLOW, "path", 1));
    params["newName"] = json!("file");
    let refused = client.refusal("textDocument/rename", params);
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("key")),
        "{refused}"
    );
    let mut params = client.place(file, at(FLOW, "assoc", 0));
    params["newName"] = json!("put");
    assert!(
        client.refusal("textDocument/rename", params)["message"]
            .as_str()
            .is_some_and(|text| text.contains("library"))
    );
    client.end();
}

#[test]
fn names_lead_to_other_files_and_to_the_library() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("flows/other.edn", "{:slug :other :flow '1}");
    let text = "{:slug :a :flow '(do (flow/call-flow :other {}) (clojure.set/union #{1} #{2}))}";
    let mut client = client(&scratch);
    client.open("flows/a.edn", text);
    let found = client.at(
        "textDocument/definition",
        "flows/a.edn",
        at(text, ":other", 0),
    );
    assert!(
        found["uri"]
            .as_str()
            .is_some_and(|uri| uri.ends_with("flows/other.edn")),
        "{found}"
    );
    let found = client.at(
        "textDocument/definition",
        "flows/a.edn",
        at(text, "clojure.set/union", 0),
    );
    let path = found["uri"]
        .as_str()
        .unwrap_or_default()
        .trim_start_matches("file://")
        .to_owned();
    let line = usize::try_from(found["range"]["start"]["line"].as_u64().unwrap_or(0)).unwrap_or(0);
    let library = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        library
            .lines()
            .nth(line)
            .is_some_and(|line| line.starts_with("(defn union")),
        "{found}"
    );
    client.end();
}

#[test]
fn outlines_folds_selections_and_semantic_tokens_are_made() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    let document = json!({"textDocument": {"uri": client.uri("flows/notes.edn")}});
    let symbols = client.call("textDocument/documentSymbol", document.clone());
    let children = symbols[0]["children"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names: Vec<&str> = children
        .iter()
        .filter_map(|child| child["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [":api", ":measure", ":recall", ":size", ":send"],
        "{symbols}"
    );
    let symbols = client.call("workspace/symbol", json!({"query": "reca"}));
    assert_eq!(symbols[0]["name"], ":recall", "{symbols}");
    let folds = client.call("textDocument/foldingRange", document.clone());
    assert!(
        folds
            .as_array()
            .is_some_and(|folds| folds.iter().any(|fold| fold["startLine"] == 6)),
        "{folds}"
    );
    let (line, column) = at(FLOW, "sized", 1);
    let mut params = document.clone();
    params["positions"] = json!([{"line": line, "character": column}]);
    let selected = client.call("textDocument/selectionRange", params);
    assert_eq!(
        selected[0]["range"]["start"],
        json!({"line": line, "character": column}),
        "{selected}"
    );
    assert!(selected[0]["parent"]["parent"].is_object(), "{selected}");
    let tokens = client.call("textDocument/semanticTokens/full", document);
    assert!(
        tokens["data"]
            .as_array()
            .is_some_and(|data| data.len() > 50 && data.len() % 5 == 0),
        "{tokens}"
    );
    client.end();
}

#[test]
fn texts_are_formatted_whole_in_part_and_while_typing() {
    let scratch = Scratch::new();
    let mut client = client(&scratch);
    let text = "(defn f [x]\n(+ x\n1))\n\n\n(defn g [y]\n(- y))\n";
    client.open("a.clj", text);
    let options = json!({"tabSize": 2, "insertSpaces": true});
    let whole = json!({"textDocument": {"uri": client.uri("a.clj")}, "options": options});
    let edits = client.call("textDocument/formatting", whole);
    assert_eq!(
        applied(text, &edits),
        "(defn f [x]\n  (+ x\n     1))\n\n(defn g [y]\n  (- y))\n"
    );
    let mut part = json!({"textDocument": {"uri": client.uri("a.clj")}, "options": options});
    part["range"] =
        json!({"start": {"line": 6, "character": 0}, "end": {"line": 6, "character": 2}});
    let edits = client.call("textDocument/rangeFormatting", part);
    assert_eq!(applied(text, &edits), text.replace("(- y)", "  (- y)"));
    let typed = "(let [a 1]\n)";
    client.replace("a.clj", typed);
    let mut params = client.place("a.clj", (1, 0));
    params["ch"] = json!("\n");
    params["options"] = options.clone();
    let edits = client.call("textDocument/onTypeFormatting", params);
    assert_eq!(applied(typed, &edits), "(let [a 1]\n  )");
    client.replace("a.clj", "(a");
    let broken = json!({"textDocument": {"uri": client.uri("a.clj")}, "options": options});
    assert_eq!(client.call("textDocument/formatting", broken), json!([]));
    client.end();
}

#[test]
fn characters_outside_of_the_first_plane_count_as_the_client_counts() {
    let text = "(def s \"\u{1F600}\") (def tail s)\n";
    for (encodings, column) in [(json!(["utf-16"]), 12), (json!(["utf-8"]), 14)] {
        let scratch = Scratch::new();
        let mut client = client_with(
            &scratch,
            json!({"general": {"positionEncodings": encodings}}),
        );
        client.open("a.clj", text);
        let document = json!({"textDocument": {"uri": client.uri("a.clj")}});
        let symbols = client.call("textDocument/documentSymbol", document);
        assert_eq!(
            symbols[1]["range"]["start"]["character"],
            column + 1,
            "{symbols}"
        );
        client.end();
    }
}

#[test]
fn cancelled_requests_are_refused_and_stale_findings_are_dropped() {
    let scratch = Scratch::new();
    let mut client = started(&scratch);
    client.diagnostics("flows/notes.edn");
    // Many versions at once: only the last one's findings come, or some of those before it in their order.
    for number in 0..50 {
        client.replace(
            "flows/notes.edn",
            &FLOW.replace("(assoc sized", &format!("(asoc{number} sized")),
        );
    }
    let found = client.diagnostics("flows/notes.edn");
    assert!(
        found[0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("asoc49")),
        "{found}"
    );
    client.end();
}

/// Every beginning of every example, with the requests of somebody who types.
#[test]
fn no_beginning_of_an_example_does_harm() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    let flows = crate::tidy::files("flows", &[".edn"]);
    for path in &flows {
        scratch.write(&path.display().to_string(), crate::tidy::text(path));
    }
    let mut client = client(&scratch);
    for path in flows {
        if path.components().count() != 2 {
            continue;
        }
        let text = crate::tidy::text(&path);
        let name = path.display().to_string();
        client.open(&name, "");
        let mut typed = String::new();
        let (mut line, mut column) = (0, 0);
        let mut sent = Vec::new();
        for (idx, char) in text.chars().enumerate() {
            client.edit(&name, (line, column), (line, column), &char.to_string());
            typed.push(char);
            (line, column) = match char {
                '\n' => (line + 1, 0),
                char => (line, column + char.len_utf16()),
            };
            let methods: &[&str] = match idx % 40 {
                0 => &[
                    "textDocument/documentSymbol",
                    "textDocument/semanticTokens/full",
                    "textDocument/foldingRange",
                    "textDocument/formatting",
                    "textDocument/definition",
                    "textDocument/documentHighlight",
                ],
                idx if idx % 5 == 0 => &["textDocument/hover", "textDocument/signatureHelp"],
                _ => &["textDocument/completion"],
            };
            for method in methods {
                let mut params = client.place(&name, (line, column));
                params["options"] = json!({"tabSize": 2, "insertSpaces": true});
                sent.push(client.send(method, params));
            }
            if sent.len() > 200 {
                sent.drain(..).for_each(|id| drop(client.answer(id)));
            }
        }
        sent.drain(..).for_each(|id| drop(client.answer(id)));
        assert_eq!(client.diagnostics(&name), json!([]), "{name}");
    }
    assert_eq!(client.end(), Some(0));
}
