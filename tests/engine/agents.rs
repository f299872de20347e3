//! `:agents` and the tools of agents, as far as a check can say.

use expect_test::{Expect, expect};

use crate::flow::findings;

/// Checks a flow with these `:agents` and this body.
fn agents(entries: &str, body: &str, expected: Expect) {
    let text = format!("{{:slug :x\n:agents [{entries}]\n:flow '{body}}}");
    findings(&[("x.edn", &text)], expected);
}

/// Checks the tools of an agent in a flow with a packaged step, two named agents and MCP adapters.
fn tools(config: &str, expected: Expect) {
    let text = format!(
        "{{:slug :x
:functions [{{:id :f :code \"identity\"}}]
:steps [{{:id :git/pr :type :function :defaults {{:ref :f}}}}]
:agents [{{:id :review/security :objective \"Secure.\"}} {{:id :review/style :objective \"Nice.\" :tools {{:agents [:review/security]}}}}]
:mcp [{{:id :linear/issues :connection :c :allow-tools [\"list_issues\"] :tool-prefix \"ln\"}} {{:id :open/all :connection :c}}]
:flow '(do (flow/step :git/pr {{:a 1}}) (flow/step :review/style {{}})
(flow/step :agent :a {{:objective \"x\"
{config}}}))}}"
    );
    findings(&[("x.edn", &text)], expected);
}

#[test]
fn a_named_agent_is_called_like_a_packaged_step() {
    agents(
        "{:id :review/security :description \"Looks.\" :objective \"Find problems.\" :input-schema [:map [:diff :string]] :max-iterations 5}",
        "(flow/step :review/security {:diff \"x\"})",
        expect![[""]],
    );
    agents(
        "{:id :review/security :objective \"Find problems.\" :input-schema [:map [:diff :string]]}",
        "(do (flow/step :review/security {:diff 5}) (flow/step :review/security) (flow/step :review/securty {}))",
        expect![[r#"
            E0425 x.edn:3:47 <5> the input of `:review/security`: at [:diff]: should be a string, but is 5 (an integer)
              its input is [:map [:diff :string]]
            E0432 x.edn:3:51 <(flow/step :review/secur> the packaged step `:review/security` has no input
              write it as `(flow/step :review/security {...})`
            E0418 x.edn:3:91 <:review/securty> there is no packaged step `:review/securty` in `:steps`
              did you mean `:review/security`?
        "#]],
    );
}

#[test]
fn wrong_entries_of_agents() {
    agents(
        "{:id :security :objective \"x\"} {:objective \"x\"} {:id :a/b} {:id :c/d :objective \"x\" :type :http :objektive 5}
         {:id :e/f :objective 5 :max-iterations 1000 :tool {:nam \"x\"} :prepare :no}
         {:id :g/h :objective \"x\" :tool {:name \"e_f\"} :after-tool-call (fn [x] (undefined-here x))} {:id :g/h :objective \"y\"}",
        "(do (flow/step :e/f {}) (flow/step :c/d {}))",
        expect![[r#"
            E0468 x.edn:2:15 <:security> `:security` cannot be the `:id` of a named agent
              it is a keyword with a namespace, both of letters, digits, `-` and `_`: `:review/security`
            E0468 x.edn:2:41 <{:objective "x"}> an entry of `:agents` needs an `:id`
              a keyword with a namespace, such as `:id :review/security`
            E0468 x.edn:2:58 <{:id :a/b}> the named agent `:a/b` needs an `:objective`
              add one: `:objective "Look for security problems."`; the arguments of a call are in `:inputs`
            E0468 x.edn:2:100 <:http> the named agent `:c/d` is not an `:http`
              remove `:type`: every entry of `:agents` is an agent; other steps belong in `:steps`
            E0468 x.edn:3:61 <:nam> `:tool` has no key `:nam`
              did you mean `:name`?
            E0427 x.edn:3:80 <:no> there is no function `:no`
              `:prepare` names one of the flow's `:functions`
            E0468 x.edn:4:10 <{:id :g/h :objective "x"> `:e/f` and `:g/h` are the same tool `e_f`
              give one of them another name: `:tool {:name "..."}`
            E0414 x.edn:4:106 <:g/h> there are two named agents `:g/h`
        "#]],
    );
}

#[test]
fn fields_of_a_named_agent_are_those_of_an_agent() {
    agents(
        "{:id :a/b :objective 5 :objektive \"x\" :max-iterations 1000 :tools {:allowed [\"fils\"]} :after-tool-call (fn [x] (undefined-here x))}",
        "1",
        expect![[r#"
            E0419 x.edn:2:10 <{:id :a/b :objective 5 :> nothing uses the named agent `:a/b`
              call it: `(flow/step :a/b {...})`
            E0712 x.edn:2:20 <:objective> the named agent `:a/b`: `:objective` of a `:agent` step must be a string, not 5 (an integer)
              `:objective`: What it is for.
            E0710 x.edn:2:33 <:objektive> the named agent `:a/b`: a `:agent` step has no option `:objektive`
              did you mean `:objective`?
            E0712 x.edn:2:48 <:max-iterations> the named agent `:a/b`: `:max-iterations` of a `:agent` step must be an integer from 1 to 100, not 1000 (an integer)
              `:max-iterations`: A cap.
            E0469 x.edn:2:87 <"fils"> there is no built-in tool `fils`
              did you mean `files`?
        "#]],
    );
}

#[test]
fn a_step_and_an_agent_do_not_share_an_id() {
    findings(
        &[(
            "x.edn",
            "{:slug :x :steps [{:id :a/b :type :http}] :agents [{:id :a/b :objective \"x\"}] :flow '(flow/step :a/b {:url \"u\"})}",
        )],
        expect![[r#"
            E0414 x.edn:1:57 <:a/b> `:a/b` is in `:steps` and in `:agents`
        "#]],
    );
}

#[test]
fn known_tools_are_found() {
    tools(
        ":available-steps [:files :table]
         :tools {:mode :execute :allowed [\"files\" \"search\"] :steps [:git/pr] :agents [:review/security]
                 :mcp [:linear/list_issues :ln/list_issues :linear/issues :open/anything]
                 :breyta {:allow [:flows/list :runs/show :flows/push-draft] :mutations :draft-only :require-approval [:flows/push-draft]}
                 :require {:tool-names [\"files\"] :steps [:git/pr] :agents [:review/security]}
                 :max-iterations 8 :max-tool-calls 80 :max-repeated-tool-calls 3}",
        expect![[""]],
    );
    tools(
        ":tools [\"files\" :table :git/pr :review/security :linear/issues]",
        expect![[""]],
    );
    tools(
        ":tools [{:name \"add\" :parameters {:type \"object\"}} {:type \"function\" :function {:name \"sub\"}}]",
        expect![[""]],
    );
    // A call of what is only defined is the flow's to answer.
    tools(
        ":tools {:definitions [{:name \"ask\"}] :allowed [\"files\"]}",
        expect![[""]],
    );
    // What is computed may be anything.
    tools(
        ":available-steps (vec names) :tools {:steps (conj more :a/b) :allowed [name] :require {:steps [:git/pr]}}",
        expect![[r#"
            E0204 x.edn:8:23 <names> `names` is not defined
              did you mean `name`?
        "#]],
    );
}

#[test]
fn unknown_tools_are_reported() {
    tools(
        ":available-steps [:file :http :breyta 5]
         :tools {:allowd [] :mode :run :choice :some
                 :allowed [\"tabel\" :git/pr]
                 :steps [:git/rp :review/security :no/thing]
                 :agents [:review/securty :git/pr]
                 :mcp [:linear/list_issue :other/x :open/all]
                 :require {:tool-names [\"search\"] :step [] :steps [:git/pr] :agents [:review/stile]}
                 :max-iterations 200}",
        expect![[r#"
            E0469 x.edn:8:19 <:file> there is no built-in tool `file`
              did you mean `files`?
            E0469 x.edn:8:25 <:http> there is no built-in tool `http`
              a `:http` step becomes a tool when it is packaged: `:steps [{:id :my/http :type :http :input-schema [...]}]` and `:tools {:steps [:my/http]}`
            E0469 x.edn:8:31 <:breyta> there is no built-in tool `breyta`
              set the allowed operations: `:tools {:breyta {:allow [:runs/list :runs/show]}}`
            E0469 x.edn:8:39 <5> the name of a tool is a string or a keyword, not an integer
            E0469 x.edn:9:18 <:allowd> `:tools` has no key `:allowd`
              did you mean `:allowed`?
            E0469 x.edn:9:35 <:run> `:mode` of `:tools` cannot be `:run`
              `:execute` runs the calls; `:return`, with `:definitions`, gives them to the flow
            E0469 x.edn:9:48 <:some> `:choice` of `:tools` is `:auto`, `:required` or `:none`, not `:some`
            E0469 x.edn:10:28 <"tabel"> there is no built-in tool `tabel`
              did you mean `table`?
            E0469 x.edn:10:36 <:git/pr> there is no built-in tool `git/pr`
              ids are listed under `:tools {:steps [:git/pr]}`, or `:agents` or `:mcp`; the built-in tools are `files`, `search` and `table`
            E0469 x.edn:11:26 <:git/rp> there is no packaged step `:git/rp`
              did you mean `:git/pr`?
            E0469 x.edn:11:34 <:review/security> `:review/security` is a named agent, not a packaged step
              put it under `:agents`
            E0469 x.edn:11:51 <:no/thing> there is no packaged step `:no/thing`
              add it to the flow: `:steps [{:id :no/thing ...}]`
            E0469 x.edn:12:27 <:review/securty> there is no named agent `:review/securty`
              did you mean `:review/security`?
            E0469 x.edn:12:43 <:git/pr> `:git/pr` is a packaged step, not a named agent
              put it under `:steps`
            E0469 x.edn:13:24 <:linear/list_issue> there is no MCP adapter or tool `:linear/list_issue`
              did you mean `:linear/list_issues`?
            E0469 x.edn:13:43 <:other/x> there is no MCP adapter or tool `:other/x`
              there are `:linear/issues`, `:linear/list_issues`, `:open/all`
            E0469 x.edn:13:52 <:open/all> `:open/all` does not name the tools that may be used
              give the adapter `:allow-tools ["..."]`, or name one tool: `:open/tool_name`
            E0469 x.edn:14:40 <["search"]> the tool `search` is required, and the model does not have it
              it has no tools
            E0469 x.edn:14:51 <:step> `:require` has no key `:step`
              did you mean `:steps`?
            E0469 x.edn:14:67 <[:git/pr]> `:git/pr` is required, and the model does not have it
              add it: `:tools {:steps [:git/pr]}`
            E0469 x.edn:14:86 <:review/stile> there is no named agent `:review/stile`
              did you mean `:review/style`?
            E0469 x.edn:15:34 <200> `:max-iterations` is a whole number from 1 to 100, not 200
        "#]],
    );
}

#[test]
fn what_is_wrong_with_the_rest_of_the_envelope() {
    tools(
        ":tools {:breyta {:allow [:flows/lst :flows/run :runs/show] :mutations :some :require-approval [:runs/list] :extra 1} :workspace {:allow []}}",
        expect![[r#"
            E0469 x.edn:8:26 <:flows/lst> the workspace has no operation `:flows/lst`
              did you mean `:flows/list`?
            E0469 x.edn:8:37 <:flows/run> `:flows/run` changes something, and `:mutations` is `:none`
              say `:mutations :run-only`, or `:write`
            E0469 x.edn:8:71 <:some> `:mutations` cannot be `:some`
              it is `:none`, `:draft-only`, `:run-only` or `:write`
            E0469 x.edn:8:96 <:runs/list> `:runs/list` is not in `:allow`
            E0469 x.edn:8:108 <:extra> `:breyta` has no key `:extra`
              its keys are `:allow`, `:mutations`, `:require-approval`
            E0469 x.edn:8:129 <{:allow []}> `:breyta` and `:workspace` are the same tool: name one
        "#]],
    );
    tools(
        ":tools [5 :git/rp {:description \"x\"} {:name \"a\"} {:name \"a\"}]",
        expect![[r#"
            E0469 x.edn:8:9 <5> a tool is a definition, a name or an id, not an integer
            E0469 x.edn:8:11 <:git/rp> there is no tool `:git/rp`
              did you mean `:git/pr`?
            E0469 x.edn:8:19 <{:description "x"}> the definition of a tool needs a `:name`
            E0469 x.edn:8:50 <{:name "a"}> there are two tools `a`
        "#]],
    );
    tools(
        ":tools \"files\" :available-steps :files",
        expect![[r#"
            E0469 x.edn:8:8 <"files"> `:tools` is a map or a vector, not a string
              such as `:tools {:allowed ["files"] :steps [:github/open-pr]}`
            E0712 x.edn:8:33 <:files> `:available-steps` of a `:agent` step must be a vector, not :files (a keyword)
              `:available-steps`: Built-in tools.
        "#]],
    );
    tools(
        ":tools {:workspace {}}",
        expect![[r#"
        E0469 x.edn:8:20 <{}> `:workspace` needs `:allow`
          the operations that the model may use: `:allow [:flows/list :runs/show]`
    "#]],
    );
    // A hook may add tools.
    tools(
        ":tools {:require {:steps [:git/pr]}} :after-tool-call (fn [x] nil)",
        expect![[""]],
    );
    tools(
        ":tools {:require {:tool-names [\"memory_plan\"]}} :memory {:table \"t\" :plan {}}",
        expect![[""]],
    );
}
