use flowstone_steps::template::{check, render};
use serde_json::json;

fn rendered(template: &str, strict: bool) -> String {
    let data = json!({
        "name": "Ada <a@b.c>", "order-id": 17, "user": {"name": "Bo", "tags": ["x", "y"]},
        "items": [{"n": 1}, {"n": 2}, {"n": 3}], "empty": [], "none": null, "yes": true,
        "first": "variable", "text": "a long sentence that is cut", "ratio": 0.5, "cafe": "caf\u{e9}s"
    });
    match render(template, &data, strict) {
        Ok(text) => text,
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn templates_render() {
    for (template, expected) in [
        ("plain { text }", "plain { text }"),
        ("{{name}} & {{{name}}}", "Ada <a@b.c> & Ada <a@b.c>"),
        (
            "{{order-id}} {{ user.name }} {{user.tags.[1]}} {{items.0.n}}",
            "17 Bo y 1",
        ),
        (
            "[{{missing}}] [{{user.missing.deep}}] [{{none}}]",
            "[] [] []",
        ),
        (
            "{{user.tags}} {{user}}",
            r#"["x","y"] {"name":"Bo","tags":["x","y"]}"#,
        ),
        (
            "{{#if yes}}a{{else}}b{{/if}}{{#if empty}}a{{else}}b{{/if}}",
            "ab",
        ),
        ("{{#unless missing}}none{{/unless}}", "none"),
        (
            "{{#each items}}{{@index}}={{n}}{{#unless @last}}, {{/unless}}{{/each}}",
            "0=1, 1=2, 2=3",
        ),
        ("{{#each empty}}x{{else}}nothing{{/each}}", "nothing"),
        ("{{#each user.tags}}<{{this}}>{{/each}}", "<x><y>"),
        (
            "{{#with user}}{{name}} of {{../order-id}}{{/with}}",
            "Bo of 17",
        ),
        (
            "{{truncate text length=10}}|{{truncate text 9 \"~\"}}",
            "a long ...|a long s~",
        ),
        (
            "{{truncate name}}|{{truncate cafe length=5}}|{{truncate text length=2}}",
            "Ada <a@b.c>|caf\u{e9}s|..",
        ),
        ("{{json user}}", r#"{"name":"Bo","tags":["x","y"]}"#),
        ("{{json user.tags pretty=true}}", "[\n  \"x\",\n  \"y\"\n]"),
        (
            "{{length items}} {{length name}} {{length missing}} {{length user}}",
            "3 11 0 2",
        ),
        (
            "{{join user.tags}} {{join user.tags separator=\"-\"}} {{join user.tags \"/\"}}",
            "x, y x-y x/y",
        ),
        (
            "{{first user.tags}}{{last user.tags}}{{first missing}}{{json (first items)}}",
            "xy{\"n\":1}",
        ),
        ("{{first}}", "variable"),
        (
            "{{default missing \"none\"}} {{default name \"none\"}} {{default none order-id}}",
            "none Ada <a@b.c> 17",
        ),
        ("{{#if (length empty)}}some{{else}}none{{/if}}", "none"),
        ("a\n  {{#if yes}}\n  b\n  {{/if}}\nc", "a\n  b\nc"),
        (r"\{{name}}", "{{name}}"),
        ("{{!-- a comment --}}x{{! another }}", "x"),
        ("{{ratio}}", "0.5"),
    ] {
        assert_eq!(rendered(template, false), expected, "{template}");
    }
}

#[test]
fn strict_templates_name_what_is_missing() {
    for (template, expected) in [
        ("{{name}}{{default missing \"-\"}}{{none}}", "Ada <a@b.c>-"),
        (
            "{{nmae}}",
            "error: the template uses `nmae`, which its data does not have",
        ),
        (
            "{{#each items}}{{m}}{{/each}}",
            "error: the template uses `m`, which its data does not have",
        ),
        (
            "{{length misssing}}",
            "error: the template uses `misssing`, which its data does not have",
        ),
        ("{{#if missing}}a{{else}}b{{/if}}", "b"),
    ] {
        assert_eq!(rendered(template, true), expected, "{template}");
    }
}

#[test]
fn bad_templates_are_explained() {
    for (template, expected) in [
        (
            "{{upper name}}",
            "error: the template calls the helper `upper`, which does not exist; there are: default, first, join, json, last, length, truncate",
        ),
        (
            "{{join name}}",
            "error: rendering the template failed: `join` needs a list, and got Ada <a@b.c> (line 1, column 1)",
        ),
        (
            "{{truncate text length=-1}}",
            "error: rendering the template failed: `truncate` needs a `length` of 0 or more, and got -1 (line 1, column 1)",
        ),
        (
            "{{> part}}",
            "error: the template includes another with `{{>`, which templates here cannot; `#flow/include` puts texts together",
        ),
    ] {
        assert_eq!(rendered(template, false), expected, "{template}");
    }
    for template in [
        "{{#if a}}",
        "{{a",
        "{{#each a}}{{/if}}",
        "{{}}",
        "a {{/if}}",
    ] {
        assert!(check(template).is_err(), "{template}");
        assert!(
            rendered(template, false).starts_with("error: the template is not well formed"),
            "{template}"
        );
    }
}

#[test]
fn hostile_templates_terminate() {
    let numbers: Vec<u32> = (0..1000).collect();
    let data = json!({"a": numbers, "t": "x".repeat(100_000)});
    let each = |inner: &str, times: usize| {
        format!(
            "{}{inner}{}",
            "{{#each @root.a}}".repeat(times),
            "{{/each}}".repeat(times)
        )
    };
    let silent = each("", 4);
    let loud = each("{{@root.t}}", 2);
    let quiet = each("{{length (json @root.a)}}", 2);
    let blocks = format!(
        "{}{}",
        "{{#if a}}".repeat(100_000),
        "{{/if}}".repeat(100_000)
    );
    let calls = format!(
        "{{{{json {}a{}}}}}",
        "(first ".repeat(5000),
        ")".repeat(5000)
    );
    let lists = format!(
        "{{{{json {}{}}}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (template, words) in [
        (silent.as_str(), "turns its blocks more than 1000000 times"),
        (loud.as_str(), "writes more than 16777216 bytes"),
        (quiet.as_str(), "turns its blocks more than 1000000 times"),
        (blocks.as_str(), "nested deeper than 50 levels"),
        (calls.as_str(), "nested deeper than 50 levels"),
        (lists.as_str(), "nested deeper than 50 levels"),
        ("{{> template}}", "includes another"),
        ("{{#> template}}{{/template}}", "includes another"),
        (
            "{{#*inline \"a\"}}{{> a}}{{/inline}}{{> a}}",
            "includes another",
        ),
        ("{{#if a}}", "not well formed"),
        ("{{/if}}", "not well formed"),
        ("{{a", "not well formed"),
        ("{{trucate t}}", "did you mean `truncate`?"),
        ("{{length (jsn a)}}", "did you mean `json`?"),
        ("{{#eech a}}{{/eech}}", "did you mean `each`?"),
    ] {
        let began = std::time::Instant::now();
        let error = render(template, &data, false)
            .expect_err("refused")
            .to_string();
        assert!(error.contains(words), "{error}");
        assert!(began.elapsed().as_secs() < 30, "{words}");
    }
    assert_eq!(
        render("{{truncate t length=3 suffix=\"\"}}", &data, false).unwrap(),
        "xxx"
    );
}

#[test]
fn variables_of_a_template_are_known_before_it_is_rendered() {
    let names = |template: &str| -> Vec<String> {
        let uses = flowstone_steps::template::uses(template).unwrap();
        uses.into_iter().map(|it| it.name).collect()
    };
    assert_eq!(
        names("{{a.b}} {{c}} {{{d}}} {{join e}} {{a}}"),
        ["a", "c", "d", "e"]
    );
    assert_eq!(
        names("{{#if a}}{{a}}{{b}}{{else}}{{c}}{{/if}}{{default d \"x\"}}"),
        ["b", "c"]
    );
    assert_eq!(
        names(
            "{{#each items}}{{name}}{{@index}}{{../x}}{{this}}{{/each}}{{#with w}}{{v}}{{/with}}"
        ),
        ["items", "w"]
    );
    assert_eq!(names("{{length (json z)}} plain"), ["z"]);
}
