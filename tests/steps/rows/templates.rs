//! The rows of `tests/coverage/templates.tsv`.

use flowstone_steps::template::render;
use serde_json::json;

use crate::net::{Net, contains};
use crate::project::Project;
use crate::server::{events, reply};

/// Renders a template over data that all cases share.
fn rendered(template: &str) -> String {
    let data = json!({
        "a": {"b": 1, "c-d": "x"}, "name": "Ada <a@b.c>", "items": ["x", "y", "z"],
        "people": [{"name": "Bo"}, {"name": "Cy"}], "prices": {"tea": 2, "jam": 3}, "yes": true,
        "no": false, "empty": [], "long": "a".repeat(120), "text": "a long sentence"
    });
    match render(template, &data, false) {
        Ok(text) => text,
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        assert_eq!(rendered(template), *expected, "{template}");
    }
}

/// Runs a body in a flow with these templates.
fn flow(net: &Net, templates: &str, body: &str) -> String {
    net.eval(&whole(templates, body))
}

fn quiet() -> Net {
    Net::with(
        vec![reply("204 No Content", &[], "")],
        &[(
            "flowstone.edn",
            "{:connections {:chat {:base-url \"URL\"}}}",
        )],
    )
}

/// Returns a flow with these templates.
fn whole(templates: &str, body: &str) -> String {
    format!(
        "{{:slug :s :concurrency {{:type :singleton :on-new-version :supersede}}
          :templates [{templates}] :flow '(let [r {body}] r)}}"
    )
}

/// Returns the findings of `check` for a flow with these templates.
fn checked(templates: &str, body: &str) -> String {
    Project::new().check(&whole(templates, body))
}

#[test]
fn type_http_request() {
    let net = quiet();
    let template = "{:id :t :type :http-request :request {:url \"URL/{{n}}\"}}";
    contains(
        &flow(
            &net,
            template,
            "(flow/step :http :it {:template :t :data {:n 7}})",
        ),
        ":status 204",
    );
    contains(&net.server.requests()[0], "GET /7 ");
    contains(
        &checked(template, "(flow/step :notify :it {:template :t})"),
        "E0755 the template `:t` is of type `:http-request` | this step takes templates of type `:notification`",
    );
}

#[test]
fn type_notification() {
    let net = quiet();
    let template =
        "{:id :t :type :notification :channels {:http {:connection :chat :json {:n \"{{n}}\"}}}}";
    contains(
        &flow(
            &net,
            template,
            "(flow/step :notify :it {:template :t :data {:n 7}})",
        ),
        ":sent? true",
    );
    contains(
        &checked(template, "(flow/step :http :it {:template :t :data {}})"),
        "is of type `:notification`",
    );
    contains(
        &checked("{:id :t :type :notificaton}", "1"),
        "the `:type` of a template is one of",
    );
}

#[test]
fn http_request_request() {
    let net = quiet();
    let template = "{:id :t :type :http-request :request {:url \"URL/a\" :method :put :headers {:x-a \"{{n}}\"} :query {:q \"{{n}}\"} :body \"<{{n}}>\"}}";
    flow(
        &net,
        template,
        "(flow/step :http :it {:template :t :data {:n 7}})",
    );
    let sent = net.server.requests().remove(0);
    contains(&sent, "PUT /a?q=7 ");
    contains(&sent, "x-a: 7");
    contains(&sent, "\n\n<7>");
}

#[test]
fn notification_channels() {
    let net = quiet();
    let template = "{:id :t :type :notification :channels {:http {:connection :chat :path \"/{{n}}\" :json {:text \"{{n}}\"}}}}";
    flow(
        &net,
        template,
        "(flow/step :notify :it {:template :t :data {:n 7}})",
    );
    contains(&net.server.requests()[0], "POST /7 ");
    assert_eq!(net.server.body(0)["text"], "7");
    contains(
        &flow(
            &net,
            "{:id :t :type :notification}",
            "(flow/step :notify :it {:template :t})",
        ),
        "has no `:channels`",
    );
}

#[test]
fn path() {
    check(&[
        ("{{a.b}} {{ a.c-d }} {{a.missing.deep}}|", "1 x |"),
        (
            "{{people.0.name}} {{people.[1].name}} {{items}}",
            "Bo Cy [\"x\",\"y\",\"z\"]",
        ),
        ("{{a}}", "{\"b\":1,\"c-d\":\"x\"}"),
        ("{{! a note }}{{!-- {{a.b}} --}}\\{{a.b}}", "{{a.b}}"),
    ]);
}

#[test]
fn if_block() {
    check(&[
        ("{{#if yes}}a{{else}}b{{/if}}", "a"),
        ("{{#if no}}a{{else}}b{{/if}}", "b"),
        (
            "{{#if empty}}a{{/if}}{{#if missing}}b{{/if}}{{#if name}}c{{/if}}",
            "c",
        ),
        ("{{#if no}}a{{else if yes}}b{{else}}c{{/if}}", "b"),
    ]);
    contains(&rendered("{{#if yes}}a"), "not well formed");
}

#[test]
fn unless_block() {
    check(&[(
        "{{#unless no}}a{{else}}b{{/unless}}{{#unless yes}}c{{/unless}}",
        "a",
    )]);
}

#[test]
fn each_block() {
    check(&[
        (
            "{{#each items}}{{@index}}{{this}}{{#unless @last}},{{/unless}}{{/each}}",
            "0x,1y,2z",
        ),
        (
            "{{#each people}}{{name}} of {{../a.b}};{{/each}}",
            "Bo of 1;Cy of 1;",
        ),
        (
            "{{#each prices}}{{@key}}={{this}} {{/each}}",
            "tea=2 jam=3 ",
        ),
        (
            "{{#each people as |it|}}{{it.name}}{{@root.a.b}}{{/each}}",
            "Bo1Cy1",
        ),
        ("{{#each empty}}a{{else}}none{{/each}}", "none"),
    ]);
}

#[test]
fn with_block() {
    check(&[
        ("{{#with a}}{{b}}{{../name}}{{/with}}", "1Ada <a@b.c>"),
        ("{{#with missing}}a{{else}}none{{/with}}", "none"),
    ]);
}

#[test]
fn helper_truncate() {
    let short = format!("{}...", "a".repeat(97));
    check(&[
        ("{{truncate long}}", &short),
        (
            "{{truncate text length=6}}|{{truncate text length=6 suffix=\"~\"}}",
            "a l...|a lon~",
        ),
        ("{{truncate text length=100}}", "a long sentence"),
    ]);
    contains(
        &rendered("{{truncate text length=-1}}"),
        "`truncate` needs a `length` of 0 or more",
    );
}

#[test]
fn helper_json() {
    check(&[
        (
            "{{json a}} {{json name}} {{json missing}}",
            "{\"b\":1,\"c-d\":\"x\"} \"Ada <a@b.c>\" null",
        ),
        (
            "{{json items pretty=true}}",
            "[\n  \"x\",\n  \"y\",\n  \"z\"\n]",
        ),
        ("{{json items pretty=false}}", "[\"x\",\"y\",\"z\"]"),
    ]);
}

#[test]
fn helper_length() {
    check(&[(
        "{{length items}} {{length a}} {{length text}} {{length missing}}",
        "3 2 15 0",
    )]);
    contains(
        &rendered("{{length yes}}"),
        "`length` needs a list, a map or a string",
    );
}

#[test]
fn helper_join() {
    check(&[(
        "{{join items}}|{{join items separator=\" / \"}}|{{join empty}}",
        "x, y, z|x / y / z|",
    )]);
    contains(&rendered("{{join name}}"), "`join` needs a list");
}

#[test]
fn helper_first() {
    check(&[
        (
            "{{first items}} {{first empty}}|{{length (first people)}}",
            "x |1",
        ),
        ("{{first people}}", "{\"name\":\"Bo\"}"),
    ]);
}

#[test]
fn helper_last() {
    check(&[
        ("{{last items}} {{last empty}}|{{last text}}", "z |e"),
        ("{{last people}}", "{\"name\":\"Cy\"}"),
        ("{{lookup people 0}}", "{\"name\":\"Bo\"}"),
    ]);
}

#[test]
fn helper_default() {
    check(&[
        (
            "{{default missing \"none\"}} {{default name \"none\"}} {{default a.x 7}}",
            "none Ada <a@b.c> 7",
        ),
        (
            "{{default no \"x\"}} {{default (first empty) \"x\"}}",
            "false x",
        ),
        (
            "{{default a 1}} {{default missing items}}",
            "{\"b\":1,\"c-d\":\"x\"} [\"x\",\"y\",\"z\"]",
        ),
    ]);
}

#[test]
fn other_options() {
    let template = "{:id :t :type :http-request :request {:url \"URL\" :persist {:type :blob}}}";
    contains(
        &flow(&quiet(), template, "(flow/step :http :it {:template :t})"),
        "`template :request` has no key `:persist`",
    );
}

/// The responses of two models, and a project that calls them.
fn model() -> Net {
    let said = events(&[
        "{\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}",
        "[DONE]",
    ]);
    Net::with(
        vec![said],
        &[
            (
                "flowstone.edn",
                "{:connections {:ai {:backend :openai :base-url \"URL\" :model \"m\" :auth {:type :api-key :secret-ref :ai-key}}}}",
            ),
            (".env", "AI_KEY=k-of-templates"),
        ],
    )
}

#[test]
fn type_llm_prompt() {
    let net = model();
    let template = "{:id :t :type :llm-prompt :prompt \"Hello {{n}}\"}";
    let found = flow(
        &net,
        template,
        "(flow/step :llm :it {:connection :ai :template :t :data {:n 7}})",
    );
    contains(&found, "hi");
    assert_eq!(net.server.body(0)["messages"][0]["content"], "Hello 7");
    contains(
        &checked(
            "{:id :t :type :http-request :request {:url \"http://a.b\"}}",
            "(flow/step :llm :it {:template :t})",
        ),
        "E0755 the template `:t` is of type `:http-request` | this step takes templates of type `:llm-prompt`",
    );
}

#[test]
fn llm_prompt_system_and_prompt() {
    let net = model();
    let template = "{:id :t :type :llm-prompt :system \"You are {{role}}.\" :prompt \"{{#each items}}{{this}};{{/each}}\"}";
    let data = "{:role \"a <critic>\" :items [1 \"b\"]}";
    flow(
        &net,
        template,
        &format!("(flow/step :llm :it {{:connection :ai :template :t :data {data}}})"),
    );
    let asked = net.server.body(0)["messages"].clone();
    assert_eq!(
        asked,
        json!([{"role": "system", "content": "You are a <critic>."}, {"role": "user", "content": "1;b;"}])
    );
    // Options of the step override it.
    flow(
        &net,
        template,
        &format!(
            "(flow/step :llm :it {{:connection :ai :template :t :data {data} :prompt \"own\"}})"
        ),
    );
    assert_eq!(net.server.body(1)["messages"][1]["content"], "own");
}

/// Runs a template of SQL, whose variable is a parameter.
#[track_caller]
fn database(kind: &str, body: &str) {
    let template = format!("{{:id :t :type {kind} {body}}}");
    assert_eq!(checked(&template, "1"), "");
    let settings = "{:connections {:shop {:base-url \"sqlite:shop.db\"}}}";
    let project = Project::with(settings);
    project.write("shop.db", b"");
    let step =
        "(flow/step :db :it {:database :sqlite :connection :shop :template :t :data {:n \"a'b\"}})";
    let found = project.eval(&format!(
        "{{:slug :t :templates [{template}] :flow '{step}}}"
    ));
    assert_eq!(found, "[{:n \"a'b\"}]");
    contains(
        &checked(&template, "(flow/step :http :it {:template :t})"),
        "the template `:t` is of type `:db-query`",
    );
}

#[test]
fn type_db_query() {
    database(":db-query", ":sql \"select {{n}} as n\"");
}

#[test]
fn type_sql() {
    database(":sql", ":query \"select {{n}} as n\"");
}

#[test]
fn db_query_sql() {
    database(
        ":db-query",
        ":sql \"with t as (select {{n}} as n) select n from t where n = {{n}}\"",
    );
}

#[test]
fn total_size() {
    let half = "x".repeat(600_000);
    let template =
        |id: &str| format!("{{:id :{id} :type :llm-prompt :system \"a\" :prompt \"{half}\"}}");
    assert_eq!(checked(&template("a"), "1"), "");
    contains(
        &checked(&(template("a") + &template("b")), "1"),
        "E0756 the templates of the flow are larger than 1048576 bytes together, from `:b` on",
    );
}

#[test]
fn missing_variable() {
    let template = |text: &str| {
        format!("{{:id :t :type :http-request :request {{:url \"http://a.b/\" :body \"{text}\"}}}}")
    };
    let step = |data: &str| format!("(flow/step :http :it {{:template :t {data}}})");
    for (text, data, expected) in [
        ("{{a}} {{b.c}}", ":data {:a 1 \"b\" 2}", ""),
        (
            "{{a}} {{b.c}}",
            ":data {:a 1}",
            "E0757 the template `:t` uses `b`, which `:data` lacks | add it, or say what is written without it: `{{default b \"...\"}}`",
        ),
        (
            "{{titel}}",
            ":data {:title 1}",
            "E0757 the template `:t` uses `titel`, which `:data` lacks | did you mean `title`?",
        ),
        (
            "{{a}}",
            "",
            "E0757 the template `:t` uses `a`, which `:data` lacks | add it, or say what is written without it: `{{default a \"...\"}}`",
        ),
        // Tested first, computed, or defined by a surrounding block.
        ("{{#if a}}{{a}}{{/if}}{{default b 1}}", ":data {}", ""),
        ("{{#if (eq a 1)}}{{a}}{{/if}}", ":data {}", ""),
        (
            "{{#each a}}{{b}}{{this}}{{@index}}{{else}}none{{/each}}",
            ":data {}",
            "",
        ),
        ("{{#each a}}{{b}} {{../c}}{{/each}}", ":data {:a []}", ""),
        ("{{a}}", ":data (flow/input)", ""),
        ("{{a}}", ":data {(str \"a\") 1}", ""),
        (
            "{{#if a}}",
            ":data {}",
            "E0755 template `:t`: the template is not well formed",
        ),
        (
            "{{shuot a}}",
            ":data {}",
            "E0755 template `:t`: the template calls the helper `shuot`",
        ),
    ] {
        let found = checked(&template(text), &step(data));
        match expected {
            "" => assert_eq!(found, "", "{text} {data}"),
            expected => contains(&found, expected),
        }
    }
    contains(
        &checked(
            "{:id :create :type :http-request}",
            "(flow/step :http :it {:template :creat})",
        ),
        "E0755 the flow has no template `:creat` | did you mean `:create`?",
    );
    // Messages can also use the flow's input.
    assert_eq!(
        checked(
            "{:id :t :type :notification :channels {:http {:connection :chat :json {:n \"{{n}}\"}}}}",
            "(flow/step :notify :it {:template :t})"
        ),
        ""
    );
    // The flow still runs.
    contains(
        &flow(
            &quiet(),
            "{:id :t :type :http-request :request {:url \"URL/{{n}}\"}}",
            &step(":data {}"),
        ),
        ":status 204",
    );
}

#[test]
fn no_escaping() {
    check(&[("{{name}} {{{name}}}", "Ada <a@b.c> Ada <a@b.c>")]);
}

#[test]
fn strict() {
    let net = quiet();
    let template = |strict: &str| {
        format!(
            "{{:id :t :type :http-request {strict} :request {{:url \"URL\" :query {{:q \"{{{{n}}}}\"}}}}}}"
        )
    };
    let step = "(flow/step :http :it {:template :t :data {}})";
    contains(&flow(&net, &template(""), step), ":status 204");
    contains(
        &flow(&net, &template(":strict true"), step),
        "E0755 template `:t`: the template uses `n`, which its data does not have",
    );
}
