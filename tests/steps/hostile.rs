//! Tables of hostile input for the parts that read external text: patches, templates, model responses, MCP messages,
//! CSV, JSON, XML and YAML. Each row is an input and its outcome: `ok`, or a part of the error.

use flowstone_engine::codec::encode;
use flowstone_lang::value::Value;
use flowstone_steps::files::patch;
use flowstone_steps::http::{xml, yaml};
use flowstone_steps::{mcp, template};
use serde_json::json;

use crate::project::Project;
use crate::wire;

/// Compares each row with its actual outcome, and fails with all that differ.
#[track_caller]
fn check(rows: &[(&str, &str)], find: impl Fn(&str) -> String) {
    let differing: Vec<String> = rows
        .iter()
        .map(|(input, expected)| (input, expected, find(input)))
        .filter(|(_, expected, found)| match **expected {
            "ok" => found != "ok",
            part => !found.contains(part),
        })
        .map(|(input, expected, found)| {
            let input: String = input.chars().take(200).collect();
            format!("{input:?}\n  expected {expected:?}\n  found    {found:?}")
        })
        .collect();
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// Patches that are applied to the lines `a` to `d`.
#[rustfmt::skip]
const PATCHES: &[(&str, &str)] = &[
    ("", "line 1: it contains no file: a diff has lines such"),
    ("nothing that is a patch\n", "line 1: it contains no file: a diff has lines such"),
    ("--- a/f\n", "line 1: it contains no file: a diff has lines such"),
    ("+++ b/f\n", "line 1: it contains no file: a diff has lines such"),
    ("--- a/f\n+++ b/f\n", "line 1: it changes nothing, because it has no hunk"),
    ("@@ -1 +1 @@\n-a\n+x\n", "line 1: a hunk before the names of the files: lines"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n", "line 3: the hunk `@@ -1 +1 @@` declares 1 old"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+x\n+y\n", "line 6: it is outside of any hunk: the numbers of lines"),
    ("--- a/f\n+++ b/f\n@@ -1,4294967295 +1 @@\n-a\n", "line 3: the hunk `@@ -1,4294967295 +1 @@` declares"),
    ("--- a/f\n+++ b/f\n@@ -18446744073709551616 +1 @@\n-a\n+x\n", "line 3: `@@ -18446744073709551616 +1 @@` is not the header of a hunk"),
    ("--- a/f\n+++ b/f\n@@ -18446744073709551615 +1 @@\n-a\n+x\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -18446744073709551615,0 +1 @@\n+x\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ --1 +1 @@\n-a\n+x\n", "line 3: `@@ --1 +1 @@` is not the header of a hunk"),
    ("--- a/f\n+++ b/f\n@@ -a +b @@\n-a\n+x\n", "line 3: `@@ -a +b @@` is not the header of a hunk"),
    ("--- a/f\n+++ b/f\n@@ -1 +1\n-a\n+x\n", "line 3: `@@ -1 +1` is not the header of a hunk"),
    ("--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n--a\n++x\n", "line 1: it changes nothing, because it has no hunk"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-z\n+x\n", "hunk 1: line 1 is `a` where it has `z`"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a \n+x\n", "hunk 1: line 1 is `a` where it has `a `"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+x\n", "hunk 1: line 1 is `a` where it has `a`"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+x\n", "hunk 1: line 1 differs only in whether it ends with a"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+x\n\\ No newline at end of file\n", "its last line has no newline, but line 2"),
    ("--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", "its last line has no newline, but line 1"),
    ("--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n+\n\\ No newline at end of file\n", "line 3: the hunk `@@ -4 +4 @@` has an empty line"),
    ("--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n+x\n\\ No newline at end of file\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+x\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "hunk 2: line 3 is `c` where it has `a`"),
    ("--- a/f\n+++ b/f\n@@ -3 +3 @@\n-c\n+x\n@@ -1 +1 @@\n-a\n+x\n", "hunk 2: line 4 is `d` where it has `a`"),
    // Hunks without lines, and a mark before any line, have no effect; refusing them would be right as well.
    ("--- a/f\n+++ b/f\n@@ -1,0 +1,0 @@\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -0,0 +0,0 @@\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n*x\n", "line 3: the hunk `@@ -1 +1 @@` declares 1 old"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+\u{0}\n", "ok"),
    ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+\u{202e}x\n", "ok"),
    ("diff --git a/f b/f\nGIT binary patch\nliteral 3\nKcmZQzU|?Wi\n", "line 2: changes of binary files are not applied: use"),
    ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "line 2: changes of binary files are not applied: use"),
    ("diff --git a/f b/f\nold mode 100644\nnew mode 120000\n", "line 3: a diff cannot create or change links"),
    ("diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+/etc/passwd\n", "line 2: a diff cannot create or change links"),
    ("diff --git a/f b/f\nnew file mode 160000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+Subproject commit 1\n", "line 2: a diff cannot create or change submodules"),
    ("diff --git a/f b/f\nrename from f\n", "line 1: `rename from` and `rename to` belong together"),
    ("diff --git a/f b/f\nrename to g\n", "line 1: it changes nothing, because it has no hunk"),
    ("diff --git a/f b/f\ncopy from f\ncopy to g\n", "line 2: copies are not applied: write the new file instead"),
    ("--- \"a/f\\\n+++ b/f\n@@ -1 +1 @@\n-a\n+x\n", "ok"),
    ("--- \"a/\\777\"\n+++ \"b/\\0\"\n@@ -1 +1 @@\n-a\n+x\n", "ok"),
    ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+x\n", "line 1: both names are /dev/null"),
];

#[test]
fn patches() {
    check(PATCHES, |text| match patch::parse(text) {
        Err(bad) => format!("line {}: {}", bad.line, bad.why),
        Ok(files) => {
            let applied = files
                .iter()
                .map(|it| patch::apply("a\nb\nc\nd\n", &it.hunks));
            match applied.collect::<Result<Vec<_>, _>>() {
                Ok(texts) if texts.is_empty() => "no files".to_owned(),
                Ok(_) => "ok".to_owned(),
                Err(misfit) => format!("hunk {}: {}", misfit.hunk, misfit.why),
            }
        }
    });
}

/// Templates that are rendered strictly over `{"a": 1, "items": [1, 2, 3]}`.
#[rustfmt::skip]
const TEMPLATES: &[(&str, &str)] = &[
    ("{{", "the template is not well formed: invalid handlebars"),
    ("}}", "ok"),
    ("{{}}", "the template is not well formed: invalid handlebars"),
    ("{{{a}}", "the template is not well formed: invalid handlebars"),
    ("{{a}}}", "ok"),
    ("{{{{a}}}}", "the template is not well formed: invalid handlebars"),
    ("{{#if a}}", "the template is not well formed: invalid handlebars"),
    ("{{/if}}", "the template is not well formed: invalid handlebars"),
    ("{{#if a}}{{/each}}", "the template is not well formed: helper \"if\" was"),
    ("{{else}}", "the template is not well formed: invalid handlebars"),
    ("{{#each}}{{/each}}", "rendering the template failed: Helper/Decorator each"),
    ("{{#each items}}{{#each items}}{{/each}}", "the template is not well formed: invalid handlebars"),
    ("{{#each a}}{{this}}{{/each}}", "the template uses `a`, which its data does not have"),
    ("{{> /etc/passwd}}", "the template includes another with `{{>`, which"),
    ("{{> (lookup this \"a\")}}", "the template includes another with `{{>`, which"),
    ("{{#> layout}}{{/layout}}", "the template includes another with `{{>`, which"),
    ("{{#*inline \"x\"}}{{> x}}{{/inline}}{{> x}}", "the template includes another with `{{>`, which"),
    ("{{* decorator}}", "the template includes another with `{{>`, which"),
    ("{{missing}}", "the template uses `missing`, which its data does not"),
    ("{{a.b.c.d}}", "the template uses `a.b.c.d`, which its data does not"),
    ("{{../../../a}}", "ok"),
    ("{{@root}}", "the template uses `@root`, which its data does not have"),
    ("{{@key}}", "the template uses `@key`, which its data does not have"),
    ("{{this.constructor}}", "the template uses `this.constructor`, which its data"),
    ("{{__proto__}}", "the template uses `__proto__`, which its data does not"),
    ("{{constructor.constructor \"return process\"}}", "the template is not well formed: invalid handlebars"),
    ("{{log \"x\"}}", "the template calls the helper `log`, which does not"),
    ("{{lookup}}", "the template uses `lookup`, which its data does not have"),
    ("{{lookup items 99}}", "the template uses `?`, which its data does not have"),
    ("{{lookup items -1}}", "the template uses `?`, which its data does not have"),
    ("{{eval \"1\"}}", "the template calls the helper `eval`, which does not"),
    ("{{#with}}{{/with}}", "rendering the template failed: Helper/Decorator with"),
    ("{{truncate a length=-1}}", "a `length` of 0 or more, and got -1"),
    ("{{truncate a length=99999999999999999999}}", "rendering the template failed: `truncate` needs a"),
    ("{{truncate a length=\"x\"}}", "rendering the template failed: `truncate` needs a"),
    ("{{length a b c}}", "rendering the template failed: `length` needs a list, a"),
    ("{{json}}", "the template uses `json`, which its data does not have"),
    ("{{#each items}}{{#each ../items}}{{#each ../../items}}{{#each ../../../items}}x{{/each}}{{/each}}{{/each}}{{/each}}", "ok"),
    ("{{items.[0}}", "the template is not well formed: invalid handlebars"),
    ("{{items.[99]}}", "the template uses `items.[99]`, which its data does not"),
    ("{{\"a}}", "the template is not well formed: invalid handlebars"),
    ("{{a\u{0}b}}", "the template is not well formed: invalid handlebars"),
    ("{{a\u{202e}}}", "the template uses `a\u{202e}`, which its data does not"),
    ("\\{{a}}", "ok"),
    ("{{!-- --", "the template is not well formed: invalid handlebars"),
    ("{{~~a~~}}", "the template is not well formed: invalid handlebars"),
];

#[test]
fn templates() {
    let data = json!({"a": 1, "items": [1, 2, 3]});
    check(TEMPLATES, |text| {
        match template::render(text, &data, true) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    });
    let deep = format!("{}x{}", "{{#if a}}".repeat(5_000), "{{/if}}".repeat(5_000));
    let parens = format!("{{{{{}a{}}}}}", "(json ".repeat(5_000), ")".repeat(5_000));
    let wide = format!(
        "{}x{}",
        "{{#each items}}".repeat(24),
        "{{/each}}".repeat(24)
    );
    for text in [deep, parens, wide] {
        assert!(template::render(&text, &data, true).is_err());
    }
}

/// Bodies that no provider should send; each is passed to every format.
#[rustfmt::skip]
const BODIES: &[&str] = &[
    "", " ", "null", "true", "1", "\"text\"", "[]", "{}", "[[]]", "{\"a\":", "{\"a\":1}}", "\u{feff}{}", "<html><body>502</body></html>",
    r#"{"error":null}"#, r#"{"error":"no"}"#, r#"{"error":{}}"#, r#"{"error":[]}"#, r#"{"error":{"message":null}}"#, r#"{"error":7}"#,
    r#"{"choices":null}"#, r#"{"choices":{}}"#, r#"{"choices":[]}"#, r#"{"choices":[null]}"#, r#"{"choices":["a"]}"#,
    r#"{"content":null}"#, r#"{"content":{}}"#, r#"{"content":[null]}"#, r#"{"content":["a"]}"#,
    r#"{"candidates":null}"#, r#"{"candidates":{}}"#, r#"{"candidates":[null]}"#, r#"{"promptFeedback":7}"#,
    r#"{"output":null}"#, r#"{"output":{}}"#, r#"{"output":[null]}"#, r#"{"output":["a"]}"#, r#"{"output":{"message":7}}"#,
];

#[test]
fn bodies_without_a_known_format() {
    for provider in [
        "anthropic",
        "bedrock",
        "deepseek",
        "google",
        "mistral",
        "openai",
    ] {
        for body in BODIES {
            let shown = wire::whole(provider, body);
            assert!(shown.starts_with("E08"), "{provider} {body}: {shown}");
        }
    }
}

/// Server-sent events that do not complete a response; each is streamed to every format, cut at every byte.
#[rustfmt::skip]
const STREAMS: &[&str] = &[
    "", "\n\n", ":\n\n", "data\n\n", "data:\n\n", "data: \n\n", "event: message_stop\n\n", "id: 1\n\nretry: 0\n\n", "data: null\n\n", "data: {}\n\n",
    "data: []\n\n", "data: {\n\n", "data: {}{}\n\n", "data: \"x\"\n\n", "data: {\"type\":7}\n\n", "data: {\"type\":null}\n\n",
    "data: {\ndata: }\n\n", "data: [DONE] \n\n", "data:[done]\n\n", "\u{feff}\u{feff}data: {}\n\n", "data: \u{0}\n\n", "DATA: {}\n\n", " data: {}\n\n",
    "data: {\"choices\":7}\n\n", "data: {\"choices\":[7]}\n\n", "data: {\"type\":\"content_block_delta\"}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{}}\n\n", "data: {\"type\":\"content_block_start\",\"index\":1e99}\n\n",
    "data: {\"type\":\"response.output_text.delta\"}\n\n", "data: {\"type\":\"response.output_item.added\",\"output_index\":-1,\"item\":{}}\n\n",
    "data: {\"candidates\":7}\n\n", "data: {\"error\":{\"code\":\"x\"}}\n\n", "event: error\ndata: {}\n\n", "event: error\ndata: no\n\n",
];

#[test]
fn streams_without_a_complete_answer() {
    for provider in ["anthropic", "deepseek", "google", "mistral", "openai"] {
        for text in STREAMS {
            let shown = wire::stream(provider, text.as_bytes());
            assert!(shown.starts_with("E08"), "{provider} {text:?}: {shown}");
        }
    }
}

/// Invalid results of tools: each is refused, and none ends the process.
#[rustfmt::skip]
const RESULTS: &[(&str, &str)] = &[
    ("", "refused"), ("null", "refused"), ("[]", "refused"), ("7", "refused"), ("{\"content\":null}", "refused"), ("{\"content\":{}}", "refused"),
    ("{\"content\":[null]}", "refused"), ("{\"content\":[{}]}", "refused"), ("{\"content\":[{\"type\":7}]}", "refused"),
    ("{\"content\":[{\"type\":\"text\"}]}", "refused"), ("{\"content\":[{\"type\":\"text\",\"text\":7}]}", "refused"),
    ("{\"content\":[{\"type\":\"image\",\"data\":\"!\"}]}", "refused"), ("{\"content\":[{\"type\":\"resource\",\"resource\":{}}]}", "refused"),
    ("{\"content\":[{\"type\":\"resource_link\"}]}", "refused"), ("{\"content\":[],\"isError\":\"no\"}", "refused"),
    ("{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{\"content\":[]}}", "refused"), ("{\"jsonrpc\":\"2.0\",\"id\":1}", "refused"),
    ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}", "refused"), ("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"x\"}}", "refused"),
    ("{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{\"content\":[]}}", "refused"),
    ("{\"content\":[{\"type\":\"text\",\"text\":\"\\u001b[8m\"}]}", "ok"),
    ("{\"content\":[],\"structuredContent\":[[[[[[]]]]]]}", "ok"),
];

#[test]
fn results_of_tools() {
    check(RESULTS, |text| match mcp::answer_of(text.as_bytes()) {
        Some(_) => "ok".to_owned(),
        None => "refused".to_owned(),
    });
    let deep = format!(
        "{{\"content\":[],\"structuredContent\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(mcp::answer_of(deep.as_bytes()).is_none());
}

/// Schemas of tools, validated against `{"a": 1}`.
#[rustfmt::skip]
const TOOL_SCHEMAS: &[&str] = &[
    "{}", r#"{"type":7}"#, r#"{"type":"nothing"}"#, r##"{"$ref":"#"}"##, r##"{"$ref":"#/$defs/x"}"##, r#"{"$ref":"http://127.0.0.1:9/s.json"}"#,
    r#"{"$ref":"file:///etc/hosts"}"#, r##"{"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x"}},"$ref":"#/$defs/x"}"##,
    r#"{"pattern":"("}"#, r#"{"properties":{"a":{"pattern":"(a+)+$"}}}"#, r#"{"properties":7}"#, r#"{"required":[1]}"#, r#"{"minimum":"x"}"#,
    r#"{"maxLength":-1}"#, r#"{"multipleOf":0}"#, r#"{"enum":[]}"#, r#"{"$schema":"http://127.0.0.1:9/meta"}"#, r#"{"allOf":[]}"#, r#"{"not":{"not":7}}"#,
];

#[test]
fn schemas_of_tools() {
    for schema in TOOL_SCHEMAS {
        let tool = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        let problems = mcp::misfits(tool.as_bytes(), br#"{"a":1}"#);
        assert!(problems.len() <= 10, "{schema}: {problems:?}");
    }
}

/// CSV texts that function code reads.
#[rustfmt::skip]
const CSV: &[(&str, &str)] = &[
    ("", "ok"), ("\n", "ok"), ("\n\n\n", "ok"), ("\"", "E0741"), ("a\n\"", "E0741"), ("a,b\n1", "E0741"), ("a\n1,2", "E0741"), ("a,a\n1,2", "E0741"),
    ("a,\n1,2", "E0741 field 2 of the header row has no name | give it a"), (",\n,", "E0741 field 1 of the header row has no name | give it a"), ("a\n\"x\"y", "E0741 line 2: `y` follows a closing quote | write a"), ("a\nx\"y", "ok"), ("a\n\"\"\"", "E0741"), ("a\r1\r2", "ok"),
    ("\u{feff}a\n1", "ok"), ("a\n\u{0}", "ok"), ("a\n=cmd|' /C calc'!A0", "ok"), ("a\tb\n1\t2", "ok"), ("a;b\n1;2", "ok"), ("a\n\u{202e}", "ok"),
];

#[test]
fn csv() {
    let project = Project::new();
    check(CSV, |text| {
        let text = encode(&Value::from(text)).expect("text");
        let body = format!(
            "(let [r (flow/step :function :it {{:code '(fn [_] (do (flow.util/parse-csv {text}) :ok))}})] r)"
        );
        project.eval(&body).trim_start_matches(':').to_owned()
    });
}

/// XML and YAML texts of responses.
#[rustfmt::skip]
const XML: &[(&str, &str)] = &[
    ("", "it has no element (line 1, column 1)"), ("text", "there is text outside its root element (line 1, column"), ("<a>", "it ends before `a` is closed (line 1, column 4)"), ("</a>", "ill-formed document: close tag `</a>` does not match"), ("<a></b>", "ill-formed document: expected `</a>`, but `</b>` was"), ("<a/><b/>", "it has two root elements (line 1, column 9)"), ("<a x=1/>", "position 4: attribute value must be enclosed in `\"` or"), ("<a x=\"1\" x=\"2\"/>", "`a` has two attributes `x` (line 1, column 17)"),
    ("<a>&b;</a>", "the entity `&b;` is not defined (line 1, column 7)"), ("<a>&#0;</a>", "invalid character reference: 0x0 character is not"), ("<a>&#xFFFFFFFF;</a>", "invalid character reference: `4294967295` is not a"), ("<a>&#xD800;</a>", "invalid character reference: `55296` is not a valid"), ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "it declares entities, which is refused (line 1, column"),
    ("<!DOCTYPE a SYSTEM \"file:///etc/hosts\"><a/>", "ok"), ("<a><![CDATA[</a>", "syntax error: CDATA not closed: `]]>` not found before"), ("<a><!-- </a>", "syntax error: comment not closed: `-->` not found"), ("<?xml version=\"9\"?><a/>", "ok"),
    ("<a:b/>", "ok"), ("<1/>", "`1` is not a name (line 1, column 5)"), ("<a\u{0}/>", "`a\0` is not a name (line 1, column 6)"),
];

#[rustfmt::skip]
const YAML: &[(&str, &str)] = &[
    ("", "ok"), ("a: b: c", "mapping values are not allowed in this context (line 1,"), ("\t- a", "ok"), ("[", "while parsing a node, did not find expected node"), ("{", "while parsing a node, did not find expected node"), ("*a", "while parsing node, found unknown anchor (line 1,"), ("a: *a", "while parsing node, found unknown anchor (line 1,"), ("a: &a [*a]", "an alias names what is not complete (line 1, column 8)"), ("a: 1\na: 2", "a map has the same key twice (line 2, column 4)"),
    ("!!python/object:os.system x", "ok"), ("!!binary '*'", "`*` is not what its tag says (line 1, column 1)"), ("%YAML 9.9\n---\na", "ok"), ("--- a\n--- b", "it holds several documents (line 2, column 1)"), ("<<: 7", "`<<` takes maps (line 1, column 5)"), ("<<: *a", "while parsing node, found unknown anchor (line 1,"),
    ("? [a]\n: b", "ok"), ("'a", "while scanning a quoted scalar, found unexpected end of"), ("\"\\xZZ\"", "while parsing a quoted scalar, did not find expected"), ("a: |\n\tb", "a block scalar content cannot start with a tab (line 1,"), ("- - - -", "ok"), ("0o99999999999999999999999", "ok"), ("1e999", "ok"),
];

#[test]
fn xml_and_yaml() {
    check(XML, |text| {
        xml::read(text).map_or_else(|error| error, |_| "ok".to_owned())
    });
    check(YAML, |text| {
        yaml::read(text).map_or_else(|error| error, |_| "ok".to_owned())
    });
    let laughs: String = (1..12)
        .map(|n| format!("x{n}: &x{n} [{}]\n", format!("*x{},", n - 1).repeat(9)))
        .collect();
    assert!(yaml::read(&format!("x0: &x0 ha\n{laughs}")).is_err());
    assert!(xml::read(&"<a>".repeat(100_000)).is_err());
    for text in ["[", "- ", "{a: ", "? "] {
        assert!(yaml::read(&text.repeat(100_000)).is_err(), "{text}");
    }
}
