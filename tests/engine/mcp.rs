//! `:mcp` of a definition: how it is read, and the findings about wrong ones.

use std::time::Duration;

use expect_test::{Expect, expect};
use flowstone_engine::disk;
use flowstone_flow::flow::{Checked, McpTransport};
use flowstone_lang::session::Session;

fn checked(mcp: &str) -> (Session, Checked) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.edn");
    let requires = "[{:slot :linear-mcp :type :http-api :backend :mcp :base-url \"https://mcp.example\"}\n \
        {:slot :crm :type :http-api :backend :openai :base-url \"https://api.example\"}]";
    let text = format!("{{:slug :f\n :requires {requires}\n :mcp {mcp}\n :flow '(flow/input)}}");
    std::fs::write(&path, text).expect("a file");
    let session = Session::new();
    let checked = disk::load(&session, &path, "f.edn");
    (session, checked)
}

fn check(mcp: &str, expected: Expect) {
    let (session, checked) = checked(mcp);
    let sources = session.world().sources.borrow();
    let mut lines = Vec::new();
    for finding in &checked.findings {
        let at = sources.get(finding.span.source).expect("a place");
        let from = at.line_column(finding.span.start);
        let mut line = format!(
            "{} {}:{} {}",
            finding.code, from.line, from.column, finding.message
        );
        for hint in &finding.hints {
            line.push_str(&format!(" | {hint}"));
        }
        lines.push(line);
    }
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn an_adapter_of_the_reference_is_read() {
    let (_session, checked) = checked(
        "[{:id :linear/issues :connection :linear-mcp :transport :streamable-http :path \"/mcp\"
           :allow-tools [\"list_issues\" \"get_issue\"] :tool-prefix \"linear\" :timeout-ms 30000
           :tools [{:name \"list_issues\" :description \"List Linear issues.\" :read-only? true
                    :input-schema {:type \"object\" :properties {:team_id {:type \"string\"}} :required [\"team_id\"]}}
                   {:name \"get_issue\" :input-schema [:map [:id :string]]}]}]",
    );
    assert_eq!(checked.findings.len(), 0, "{:?}", checked.findings);
    let flow = checked.loaded.expect("a flow").flow;
    let adapter = flow.mcp_adapter("linear/issues").expect("the adapter");
    assert_eq!(&*adapter.connection, "linear-mcp");
    assert_eq!(adapter.transport, McpTransport::StreamableHttp);
    assert_eq!(adapter.path.as_deref(), Some("/mcp"));
    assert_eq!(adapter.timeout, Some(Duration::from_secs(30)));
    assert!(adapter.allows("get_issue") && !adapter.allows("delete_issue"));
    assert_eq!(adapter.model_name("list_issues"), "linear_list_issues");
    let [list, get] = &adapter.tools[..] else {
        panic!("two tools")
    };
    assert_eq!(list.read_only, Some(true));
    assert_eq!(list.description.as_deref(), Some("List Linear issues."));
    assert_eq!(
        list.input_schema
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some(
            r#"{"type":"object","properties":{"team_id":{"type":"string"}},"required":["team_id"]}"#
        )
    );
    let malli = get.input_schema.as_ref().expect("a schema");
    assert_eq!(malli["properties"]["id"]["type"], "string");
}

#[test]
fn names_for_models_fit_what_providers_take() {
    let (_session, checked) = checked(
        "[{:id :my.org/one :connection :linear-mcp}
          {:id :my/two :connection :linear-mcp :tool-prefix \"\"}]",
    );
    let flow = checked.loaded.expect("a flow").flow;
    let one = flow.mcp_adapter("my.org/one").expect("the adapter");
    assert_eq!(one.model_name("files.read/all"), "my_org_files_read_all");
    let two = flow.mcp_adapter("my/two").expect("the adapter");
    assert_eq!(two.model_name("echo"), "echo");
    let (long, other) = (
        two.model_name(&"x".repeat(100)),
        two.model_name(&"x".repeat(101)),
    );
    assert_eq!((long.len(), other.len()), (64, 64));
    assert_ne!(long, other);
}

#[test]
fn what_is_wrong_with_an_adapter_is_located() {
    check(
        "[{:id :issues :connection :linear-mcp}\n  {:id :a/b}\n  {:connection :linear-mcp}\n  7]",
        expect![[r#"
            E0404 7:3 an entry of `:mcp` must be a map, not an integer
            E0465 4:13 `:issues` cannot be the `:id` of an adapter | it is a keyword with a namespace, both of letters, digits, `-` and `_`: `:linear/issues`
            E0465 5:3 the adapter `:a/b` needs a `:connection` | a slot of `:requires` with `:backend :mcp`, or a connection of flowstone.edn
            E0465 6:3 an entry of `:mcp` needs an `:id` | a keyword with a namespace, such as `:id :linear/issues`"#]],
    );
    check(
        "[{:id :a/b :connection :crm :transport :streamable-htp :path \"mcp\" :timeout-ms 0}\n  \
          {:id :a/c :connection 7 :transport :stdio :path \"/mcp\" :tool-prefix \"a b\"}]",
        expect![[r#"
            E0465 4:30 the slot `:crm` is for `:openai`, not for a server of MCP | give the slot `:backend :mcp`, or name another one
            E0465 4:46 `:transport` is one of `:stdio`, `:streamable-http` | did you mean `:streamable-http`?
            E0465 4:68 `:path` must begin with one `/` | it is appended to the connection's `:base-url`, as in `:path "/mcp"`
            E0465 4:86 `:timeout-ms` must be a number of milliseconds, at most a day | as in `:timeout-ms 30000`
            E0465 5:25 `:connection` is a keyword, not an integer
            E0465 5:71 this cannot be the prefix of tools | up to 32 letters, digits, `_` and `-`; `""` for none
            E0465 5:51 `:path` does not apply to `:transport :stdio`"#]],
    );
    check(
        "[{:id :a/b :connection :x :questions :perhaps :resources 1}]",
        expect![[r#"
            E0465 4:44 `:questions` is `:ask`, `:decline` or a map | as in `:questions {:timeout "1h" :roles [:ops]}`
            E0465 4:64 `:resources` is true or false, not an integer"#]],
    );
    check(
        "[{:id :a/b :connection :x :allow-tools []}\n  {:id :a/c :connection :x :allow-tools \"echo\"}\n  \
          {:id :a/d :connection :x :allow-tools [\"\" 7 \"echo\"] :tool-prefix :a}]",
        expect![[r#"
            E0465 4:46 `:allow-tools` must be a vector of tool names | as in `:allow-tools ["list_issues" "get_issue"]`; only the named tools can be used
            E0465 5:41 `:allow-tools` must be a vector of tool names | as in `:allow-tools ["list_issues" "get_issue"]`; only the named tools can be used
            E0465 6:42 `""` is not the name of a tool
            E0465 6:45 `7` is not the name of a tool
            E0465 6:68 `:tool-prefix` must be a string, not a keyword"#]],
    );
    check(
        "[{:id :a/b :connection :x :allow-tools [\"echo\"]\n   :tools [{:description \"?\"} {:name \"ecko\" :read-only? 1}\n           \
          {:name \"echo\" :input-schema {:type \"array\"}}]}\n  {:id :a/c :connection :x :tools [{:name \"sum\" :input-schema [:mapp]}]}]",
        expect![[r#"
            E0465 5:12 an entry of `:tools` needs the `:name` that the server gives the tool | as in `{:name "list_issues" :description "..."}`
            E0465 5:38 `:tools` describes `ecko`, which `:allow-tools` does not name | did you mean `echo`?
            E0465 5:57 `:read-only?` is true or false, not an integer
            E0465 6:40 `:input-schema` is not a schema of arguments: the arguments of a tool must be an object | JSON Schema as a map, `{:type "object" :properties {...}}`, or a Malli form, `[:map [:team_id :string]]`
            E0465 7:63 `:input-schema` is not a schema of arguments: `mapp` is not a schema type; did you mean `:map`? | JSON Schema as a map, `{:type "object" :properties {...}}`, or a Malli form, `[:map [:team_id :string]]`"#]],
    );
}

#[test]
fn keys_that_nobody_knows_are_named() {
    check(
        "[{:id :a/b :connection :x :allow-tool [\"echo\"] :tools [{:name \"echo\" :schema {}}]}]",
        expect![[r#"
            E0466 4:33 an adapter of `:mcp` has no key `:allow-tool` | did you mean `:allow-tools`?
            E0466 4:76 a tool of `:mcp` has no key `:schema` | its keys are `:description`, `:input-schema`, `:name`, `:read-only?`"#]],
    );
    check(
        "[{:id :a/b :connection :x :transport :stdio :command [\"rm\" \"-rf\"]}]",
        expect![[
            r#"E0466 4:51 an adapter of `:mcp` has no key `:command` | the URL or the command of a server belongs to its connection, in flowstone.edn: `{:connections {:files-mcp {:backend :mcp :command ["node" "server.js"]}}}`"#
        ]],
    );
}

#[test]
fn duplicate_names_are_reported() {
    check(
        "[{:id :a/b :connection :x :allow-tools [\"echo\" \"echo\"]}\n  {:id :a/b :connection :y}\n  \
          {:id :a/c :connection :y :tools [{:name \"sum\"} {:name \"sum\"}]}\n  {:id :a/d :connection :y :allow-tools [\"sum\"]}]",
        expect![[r#"
            E0467 4:54 `:allow-tools` contains `echo` twice
            E0467 5:8 there are two adapters `:a/b`
            E0467 6:57 `:tools` describes `sum` twice
            E0467 7:3 models would call `sum` of `:a/c` and `sum` of `:a/d` the same: `a_sum` | give one of the adapters another `:tool-prefix`"#]],
    );
}
