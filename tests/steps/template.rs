use flowstone_steps::template::{check, render};
use serde_json::json;

fn shown(template: &str, strict: bool) -> String {
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
        assert_eq!(shown(template, false), expected, "{template}");
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
        assert_eq!(shown(template, true), expected, "{template}");
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
            "error: rendering the template failed: `truncate` needs a `length` of 0 or more, and got a long sentence that is cut (line 1, column 1)",
        ),
        (
            "{{> part}}",
            "error: rendering the template failed: Partial not found part (line 1, column 1)",
        ),
    ] {
        assert_eq!(shown(template, false), expected, "{template}");
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
            shown(template, false).starts_with("error: the template is not well formed"),
            "{template}"
        );
    }
}
