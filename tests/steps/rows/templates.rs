//! The rows of `tests/coverage/templates.tsv`.

use flowstone_steps::template::render;
use serde_json::json;

use crate::net::{Net, contains};
use crate::server::reply;

/// Renders over data that all cases share.
fn shown(template: &str) -> String {
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
        assert_eq!(shown(template), *expected, "{template}");
    }
}

/// Runs a body in a flow with these templates.
fn flow(net: &Net, templates: &str, body: &str) -> String {
    net.eval(&format!(
        "{{:slug :s :concurrency {{:type :singleton :on-new-version :supersede}}
          :templates [{templates}] :flow '(let [r {body}] r)}}"
    ))
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

/// What a check of a flow with these templates says.
fn refused(templates: &str) -> String {
    let refused = std::panic::catch_unwind(|| flow(&quiet(), templates, "1"));
    match refused {
        Ok(found) => found,
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
    }
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
        &flow(
            &net,
            template,
            "(flow/step :notify :it {:template :t :data {:n 7}})",
        ),
        "is of type `:http-request`",
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
        &flow(
            &net,
            template,
            "(flow/step :http :it {:template :t :data {}})",
        ),
        "is of type `:notification`",
    );
    contains(
        &refused("{:id :t :type :notificaton}"),
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
    contains(&shown("{{#if yes}}a"), "not well formed");
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
        &shown("{{truncate text length=-1}}"),
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
        &shown("{{length yes}}"),
        "`length` needs a list, a map or a string",
    );
}

#[test]
fn helper_join() {
    check(&[(
        "{{join items}}|{{join items separator=\" / \"}}|{{join empty}}",
        "x, y, z|x / y / z|",
    )]);
    contains(&shown("{{join name}}"), "`join` needs a list");
}

#[test]
fn helper_first() {
    check(&[(
        "{{first items}} {{first empty}}|{{length (first people)}}",
        "x |1",
    )]);
}

#[test]
fn helper_last() {
    check(&[("{{last items}} {{last empty}}|{{last text}}", "z |e")]);
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
