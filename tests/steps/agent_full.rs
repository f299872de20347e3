//! The complete configuration of an agent, with each field set; only the connection differs from a real project.

use serde_json::{Value as Json, json};

use crate::agent::Bench;
use crate::server::Say;

const DEFINITIONS: &str = r#"
 :templates [{:id :agent-review :type :llm-prompt :system "You review. Style: {{style}}." :prompt "{{objective}} {{instructions}} {{json input-summary}} {{json tool-summary}}"}]
 :functions [{:id :publish :code (fn [{:keys [title]}] {:published title})}]
 :steps [{:id :review/publish-changeset :type :function :description "Publishes the changeset." :input-schema [:map [:title :string]] :defaults {:ref :publish} :tool {:name "publish_changeset"}}]
 :agents [{:id :review/security :description "Looks for security problems." :objective "Look for security problems." :input-schema [:map [:area :string]] :connection :ai :max-iterations 2}]
"#;

/// A flow that uses every option of an agent. Its `:base-url` is that of the test's server; `:deployment` and
/// `:api-version`, which only Azure has, are left out.
const FLOW: &str = r##"
(let [changeset-ref (flow/step :files :draft {:op :init-changeset :source {:type :dir :path "src"}})
      memory-table "agent-memory"]
  (flow/step :agent :review
    {:connection :ai
     :provider :openai
     :model "gpt-5.2"
     :objective "Review the proposed changes and return JSON findings."
     :instructions "Use tools for facts. Do not speculate."
     :inputs {:draft changeset-ref
              :risk-level "high"}
     :template :agent-review
     :data {:style "concise"}
     :expect {:contains ["findings"]}
     :temperature 0.2
     :top-p 0.9
     :stop ["\nDONE"]
     :max-tokens 4000
     :seed 42
     :presence-penalty 0.0
     :frequency-penalty 0.1
     :reasoning-effort :medium
     :prompt-cache-key "review-v1"
     :previous-response-id "resp_previous"
     :cache-system? true
     :provider-opts {:openai {:responses {:store false}}}
     :base-url "BASE"
     :available-steps [:files :table :search]
     :tools {:mode :execute
             :allowed ["files" "table" "search"]
             :breyta {:allow [:flows/list :runs/show]
                      :mutations :none}
             :steps [:review/publish-changeset]
             :agents [:review/security]
             :require {:tool-names ["files"]
                       :steps [:review/publish-changeset]
                       :agents [:review/security]}
             :max-iterations 8
             :max-tool-calls 80
             :max-repeated-tool-calls 3}
     :max-iterations 20
     :max-tool-calls 100
     :max-repeated-tool-calls 4
     :max-tokens-budget 120000
     :output {:format :json
              :schema [:map
                       [:findings [:vector :string]]
                       [:risk [:enum "low" "medium" "high"]]]
              :style :deterministic
              :strict? true}
     :response-format :json
     :json-schema {"type" "object"}
     :output-persist {:type :blob
                      :name "review-report"
                      :content-type "application/json"}
     :memory {:table memory-table
              :scope :task
              :scope-key "review-42"
              :auto-recall true
              :auto-summarize true
              :recall-limit 20
              :types ["observation" "decision"]
              :plan {:enforce true :max-steps 6 :strict false}}
     :cost {:enabled true
            :budget {:max-tokens-total 500000 :window-hours 720}}
     :evaluate {:criteria [:relevance :completeness :accuracy]
                :model "gpt-4o-mini"
                :persist-to-memory true}
     :approval {:mode :tools :tool-names #{"files" "publish_changeset"}}
     :trace {:name "review-trace"}
     :before-tool-call (fn [{:keys [proposed-tool-calls]}] nil)
     :after-tool-call (fn [{:keys [tool-calls last-results]}] nil)
     :auth {:type :api-key :header "Authorization" :prefix "Bearer"}
     :workspace-id "ws-runtime-override"}))
"##;

/// The scripted model of the next test.
const SCRIPTED: &str = r#"{:backend :scripted :script {:turns
  [{:tool-calls [{:name "memory_plan" :arguments {:steps [{:name "look"} {:name "publish"}]}}]}
   {:tool-calls [{:name "files" :arguments {:op "list" :source "x"}}]}]}}"#;

#[test]
fn a_script_stands_in_for_the_provider_that_the_reference_names() {
    let azure = ":base-url \"https://api.openai.com/v1\"\n     :deployment \"prod-reviewer\"\n     :api-version \"2025-04-01-preview\"";
    let flow = FLOW.replace(":base-url \"BASE\"", azure);
    assert!(flow.contains(azure));
    let bench = Bench::behind(SCRIPTED, DEFINITIONS, Vec::new());
    bench.project.write("src/a.txt", b"a\n");
    let found = bench.run(&format!("(let [r {flow}] [(:abort? r) (:abort-reason r) (:iterations r) (:provider r) (mapv :tool (:actions (:approval-request r))) (some? (:trace-ref r))])"));
    assert_eq!(
        found,
        "[true \"approval-required\" 2 :scripted [\"files\"] true]"
    );
    assert!(bench.asked().is_empty());
}

/// The part after the approval: the same fields except `:approval`, up to the end.
#[test]
fn every_field_except_approval_runs_to_the_end() {
    let look = Bench::new(Vec::new());
    look.project.write("src/a.txt", b"a\n");
    let tree = look.run(
        "(:uri (flow/step :files :tree {:op :resolve-source :source {:type :dir :path \"src\"}}))",
    );
    let connection = r#"{:backend :scripted :script {:scripts
      [{:when "Look for security problems." :turns ["None found."]}
       {:when "completeness" :turns ["{\"scores\": {\"relevance\": 5, \"completeness\": 4, \"accuracy\": 3}, \"overall\": 4, \"summary\": \"Fine.\"}"]}
       {:turns
        [{:tool-calls [{:name "memory_plan" :arguments {:steps [{:name "look"} {:name "publish"}]}}]}
         {:tool-calls [{:name "files" :arguments {:op "list" :source TREE}}
                       {:name "review_security" :arguments {:area "src"}}
                       {:name "publish_changeset" :arguments {:title "t"}}]}
         "{\"findings\": [\"none\"], \"risk\": \"low\"}"]}]}}"#;
    let bench = Bench::behind(&connection.replace("TREE", &tree), DEFINITIONS, Vec::new());
    bench.project.write("src/a.txt", b"a\n");
    let approval = "     :approval {:mode :tools :tool-names #{\"files\" \"publish_changeset\"}}\n";
    assert!(FLOW.contains(approval));
    let flow = FLOW
        .replace(approval, "")
        .replace("BASE", "https://api.openai.com/v1");
    let found = bench.run(&format!(
        "(let [r {flow}
               rows (:rows (flow/step :table :rows {{:op :query :table \"agent-memory\" :page {{:limit 50}}}}))]
           [(:content r) (mapv (juxt :name :success) (:tool-calls r)) (:iterations r)
            (:scores (:evaluation r)) (some? (:persisted-ref r)) (some? (:trace-ref r)) (:warnings r)
            (frequencies (map :type rows))])"
    ));
    assert_eq!(
        found,
        "[{:findings [\"none\"] :risk \"low\"} \
          [[\"memory_plan\" true] [\"files\" true] [\"review_security\" true] [\"publish_changeset\" true]] 3 \
          {:relevance 5 :completeness 4 :accuracy 3} true true nil \
          {\"plan-step\" 2 \"run-summary\" 2}]"
    );
}

/// Returns a response in the format that `:previous-response-id` requires.
fn answers(output: &[Json]) -> Say {
    let body = json!({
        "id": "resp_1", "object": "response", "model": "gpt-5.2", "status": "completed", "output": output,
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    });
    crate::server::json(&body.to_string())
}

fn call(id: &str, name: &str, arguments: &Json) -> Json {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string(), "status": "completed"})
}

fn plan() -> Say {
    answers(&[call(
        "p1",
        "memory_plan",
        &json!({"steps": [{"name": "look"}, {"name": "publish"}]}),
    )])
}

fn run(turns: Vec<Say>, change: impl Fn(&str) -> String, body: &str) -> (Bench, String) {
    let bench = Bench::with(DEFINITIONS, turns);
    bench.project.write("src/a.txt", b"a\n");
    let flow = change(FLOW).replace("BASE", &format!("{}/v1", bench.server.url));
    let found = bench.run(&format!("(let [r {flow}] {body})"));
    (bench, found)
}

#[test]
fn every_field_at_once_pauses_for_approval() {
    let turns = vec![
        plan(),
        answers(&[call("f1", "files", &json!({"op": "list", "source": "x"}))]),
    ];
    let (bench, found) = run(
        turns,
        str::to_owned,
        "[(:abort-reason r) (:iterations r) (mapv :tool (:actions (:approval-request r))) (some? (:trace-ref r))]",
    );
    assert_eq!(found, "[\"approval-required\" 2 [\"files\"] true]");
    let first = &bench.asked()[0];
    for (field, expected) in [
        ("/model", json!("gpt-5.2")),
        ("/temperature", json!(0.2)),
        ("/top_p", json!(0.9)),
        ("/max_output_tokens", json!(4000)),
        ("/reasoning/effort", json!("medium")),
        ("/prompt_cache_key", json!("review-v1")),
        ("/previous_response_id", json!("resp_previous")),
        ("/store", json!(false)),
    ] {
        assert_eq!(first.pointer(field), Some(&expected), "{field}: {first}");
    }
    let names: Vec<&str> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in [
        "files",
        "table",
        "search",
        "breyta",
        "publish_changeset",
        "review_security",
        "memory_plan",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}

#[test]
fn thoughts_of_the_model_are_sent_back_unchanged() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl+/=="});
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": "Done.", "annotations": []}]});
    let turns = vec![
        answers(&[
            thought.clone(),
            call("c1", "publish_changeset", &json!({"title": "t"})),
        ]),
        answers(&[said]),
    ];
    let bench = Bench::with(DEFINITIONS, turns);
    let base = format!("{}/v1", bench.server.url);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :review
           {{:connection :ai :provider :openai :model \"gpt-5.2\" :base-url \"{base}\" :objective \"Publish.\"
             :tools {{:steps [:review/publish-changeset]}}
             :provider-opts {{:openai {{:responses {{:store false}}}}}}
             :auth {{:type :api-key :header \"Authorization\" :prefix \"Bearer\"}}}}))"
    ));
    assert_eq!(found, "\"Done.\"");
    let second = &bench.asked()[1];
    let items = second["input"].as_array().unwrap();
    let at = items.iter().position(|item| item["type"] == "reasoning");
    let at = at.unwrap_or_else(|| panic!("no reasoning in {second}"));
    assert_eq!(items[at]["encrypted_content"], thought["encrypted_content"]);
    assert_eq!(items[at + 1]["type"], "function_call", "{second}");
}
