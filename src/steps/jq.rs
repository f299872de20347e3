//! `:jq`: selects from data with a jq filter.
//!
//! The filter language is jq without definitions, clocks, files and variables of the environment: paths, pipes, conditions, arithmetic,
//! assignments, and the functions in [`functions`], [`paths`] and [`texts`]. It has no recursion of its own and no access to
//! anything but its input, and each run has a budget, so that a filter from a stranger ends.

mod evaluate;
mod functions;
mod lex;
mod order;
mod parse;
mod paths;
mod texts;

use std::borrow::Cow;

use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::json::{
    JsonError, compact, from_exact_json, large_integer, read_integers, to_json, write,
};

/// The code of a filter that is wrong.
pub const MALFORMED: &str = "E1284";
/// The code of a filter that fails, or that selects nothing.
pub const FAILED: &str = "E1285";
/// Maximum length of a filter, in bytes.
const FILTER_MAX: usize = 4_000;
/// The budget of a run: values that are made, and parts of 16 bytes of texts.
const BUDGET: usize = 4_000_000;

/// The `:jq` step.
pub struct Jq;

const SPEC: StepSpec = StepSpec {
    kind: "jq",
    operations: None,
    aliases: &[],
    doc: "Selects from data with a jq filter.\n\n\
        The data is `:value`, or the JSON text `:json`; a text that is not JSON is taken as a string. The value has all \
        outputs of the filter, the first of them, and `:text`: strings as they are, other outputs as JSON, each on a line of \
        its own. A filter that gives nothing, or only null, fails.",
    fields: FIELDS,
    examples: &[
        "(flow/step :jq :text {:json (:body answer) :filter \".data.transcription.text\"})",
        "(flow/step :jq :names {:value users :filter \"map(select(.active) | .name) | join(\\\", \\\")\"})",
    ],
    effect: Effect::Pure,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "filter",
        FieldType::Text,
        "The jq filter. Default `.`, all of the data.",
    ),
    Field::optional("json", FieldType::Text, "The data, as JSON text."),
    Field::optional("value", FieldType::Any, "The data."),
];

impl Step for Jq {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        _: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move { select(Fields::new(&config)).map(Outcome::Value) })
    }
}

fn select(fields: Fields<'_>) -> Result<Value, StepError> {
    let filter = Filter::read(fields.text("filter")?.unwrap_or("."))
        .map_err(|message| StepError::config(MALFORMED, message))?;
    let not_data =
        |error: JsonError| StepError::config(FAILED, format!("`:value` is not data: {error}"));
    let text = fields.text("json")?;
    let written = match (text, fields.get("value")) {
        (Some(text), _) => Cow::Borrowed(text),
        (None, Some(value)) => Cow::Owned(write(value).map_err(not_data)?),
        (None, None) => Cow::Borrowed("null"),
    };
    // Filters compute with numbers of 64 bits.
    if let Some(digits) = large_integer(&written)
        && let Ok(data) = read_integers(written.as_bytes())
    {
        return match filter.is_identity() {
            true => Ok(results(&[data])),
            false => Err(StepError::new(
                FAILED,
                "jq",
                format!("the data has the integer {digits:.60}, which is larger than 64 bits"),
            )
            .hint(
                "let the source give it as a string, or take all of the data with the filter `.`",
            )),
        };
    }
    let input = match text {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned())),
        None => match fields.get("value") {
            Some(value) => to_json(value).map_err(not_data)?,
            None => Json::Null,
        },
    };
    let outputs = filter
        .run(&input)
        .map_err(|message| StepError::new(FAILED, "jq", message))?;
    if outputs.iter().all(Json::is_null) {
        return Err(StepError::new(FAILED, "jq", "the filter selects nothing"));
    }
    Ok(results(&outputs))
}

/// Returns the value of the step for the outputs of a filter.
fn results(outputs: &[Json]) -> Value {
    let texts = outputs.iter().map(|output| match output {
        Json::String(text) => text.clone(),
        other => compact(other),
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let first = outputs.first().map_or(Value::Nil, from_exact_json);
    Value::map([
        (Value::keyword("text"), Value::from(text)),
        (Value::keyword("value"), first),
        (
            Value::keyword("values"),
            Value::vector(outputs.iter().map(from_exact_json)),
        ),
    ])
}

/// A filter that was read.
#[derive(Debug, Clone)]
pub struct Filter(parse::Expression);

impl Filter {
    /// Tells whether the filter is `.`, which gives its input.
    fn is_identity(&self) -> bool {
        matches!(self.0, parse::Expression::Identity)
    }

    /// Reads a filter.
    ///
    /// # Errors
    /// A message that says what is wrong, and where.
    pub fn read(text: &str) -> Result<Filter, String> {
        if text.len() > FILTER_MAX {
            return Err(format!("the jq filter is longer than {FILTER_MAX} bytes"));
        }
        parse::read(text).map(Filter)
    }

    /// Returns the outputs for an input.
    ///
    /// # Errors
    /// A message of the filter's first error; also when it needs too much.
    pub fn run(&self, input: &Json) -> Result<Vec<Json>, String> {
        let mut run = evaluate::Run::new(BUDGET);
        let outputs = run.outputs(&self.0, input);
        outputs.map_err(|stop| stop.message())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::Filter;

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        let input = json!({
            "data": {"text": "deep", "n": 2}, "items": [{"lang": "pt-BR", "text": "oi"}, {"lang": "en", "text": "hi"}],
            "segments": [{"text": "a"}, {"text": "b"}], "null": null, "list": [3, 1, 2, 1],
        });
        let found = Filter::read(filter).and_then(|filter| filter.run(&input));
        let found = match found {
            Ok(outputs) => outputs
                .iter()
                .map(Json::to_string)
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error,
        };
        assert_eq!(found, expected, "{filter}");
    }

    #[test]
    fn paths_select_parts() {
        check(".data.text", r#""deep""#);
        check(".items[] | select(.lang == \"pt-BR\") | .text", r#""oi""#);
        check(".text // .data.text // \"\"", r#""deep""#);
        check(".segments | map(.text) | join(\" \")", r#""a b""#);
        check(".list[0], .list[-1], .[\"data\"].n", "3 1 2");
        check(".list[1:3], .list[:1], .data.text[2:]", r#"[1,2] [3] "ep""#);
        check(".items[].lang", r#""pt-BR" "en""#);
        check(".\"data\".\"n\", .missing.deeper, (.list.x?)", "2 null");
        check("[.. | numbers] | length", "5");
    }

    #[test]
    fn values_are_made_and_compared() {
        check(
            "{n: .data.n, \"t\": .data.text, (\"k\" + \"1\"): 1}",
            r#"{"n":2,"t":"deep","k1":1}"#,
        );
        check("\"\\(.data.n) of \\(.list | length)!\"", r#""2 of 4!""#);
        check(
            "if .data.n > 1 then \"many\" elif . then 1 else 0 end",
            r#""many""#,
        );
        check("1 + 2 * 3 - 4 / 2, 7 % 4, -(.data.n)", "5 3 -2");
        check(
            "[1, \"a\"] + [null], {a: 1} + {b: 2}, null + 1",
            r#"[1,"a",null] {"a":1,"b":2} 1"#,
        );
        check(".list as $l | $l[0] + ($l | length)", "7");
        check("true and (null | not), false or false", "true false");
        check(
            "try error(\"x\") catch ., (.data.text | tonumber? // 0)",
            r#""x" 0"#,
        );
        check("reduce .list[] as $n (0; . + $n)", "7");
    }

    #[test]
    fn functions_are_those_of_jq() {
        check(
            ".list | sort, unique, min, max, add, reverse",
            "[1,1,2,3] [1,2,3] 1 3 7 [1,2,1,3]",
        );
        check(
            ".data | keys, length, has(\"n\"), to_entries[0].key",
            r#"["n","text"] 2 true "text""#,
        );
        check(
            ".items | map(.text) | first, last, index(\"hi\")",
            r#""oi" "hi" 1"#,
        );
        check(
            ".items | sort_by(.lang) | map(.lang), (group_by(.lang) | length)",
            r#"["en","pt-BR"] 2"#,
        );
        check(
            "\"a,b\" | split(\",\"), ascii_upcase, startswith(\"a\"), ltrimstr(\"a\")",
            r#"["a","b"] "A,B" true ",b""#,
        );
        check(
            "[limit(2; .list[])], any(.list[]; . > 2), all(.list[]; . > 2)",
            "[3,1] true false",
        );
        check(
            ".data | map_values(tostring), (tojson | fromjson | .n)",
            r#"{"text":"deep","n":"2"} 2"#,
        );
        check(
            "[.list[] | select(. != 1)] | flatten | contains([3])",
            "true",
        );
    }

    #[test]
    fn values_are_changed_where_they_are() {
        check(
            ".data | with_entries(.value |= tostring), (.n = 3), (.n += 1), (.x //= 7)",
            r#"{"text":"deep","n":"2"} {"text":"deep","n":3} {"text":"deep","n":3} {"text":"deep","n":2,"x":7}"#,
        );
        check(
            "del(.items, .segments, .data, .list[0, -1]), (.data | del(.n))",
            r#"{"null":null,"list":[1,2]} {"text":"deep"}"#,
        );
        check(
            "(.items[] | select(.lang == \"en\") | .text) |= ascii_upcase | .items | map(.text)",
            r#"["oi","HI"]"#,
        );
        check(".list | (.[] | select(. == 1)) |= empty", "[3,2]");
        check(
            "[.data | paths], [.data | leaf_paths], (.data | getpath([\"n\"])), [path(.items[0].text, ..)] [0:2]",
            r#"[["text"],["n"]] [["text"],["n"]] 2 [["items",0,"text"],[]]"#,
        );
        check(
            "{} | setpath([\"a\", 1, \"b\"]; 5), (.a.b |= 3), pick(.x)",
            r#"{"a":[null,{"b":5}]} {"a":{"b":3}} {"x":null}"#,
        );
        check(".data.text.x = 1", "cannot index a string with \"x\"");
        check("(1 + 2) = 3", "this is not a path that can be changed");
        check(
            "[] | .[1000000000] = 1",
            "the jq filter needs too much time or memory",
        );
    }

    #[test]
    fn texts_are_searched_and_written_in_formats() {
        check(
            "\"a1b22\" | test(\"[0-9]+\"), [scan(\"[0-9]+\")], sub(\"[0-9]+\"; \"-\"), gsub(\"[0-9]+\"; \"-\"), [splits(\"[0-9]+\")]",
            r#"true ["1","22"] "a-b22" "a-b-" ["a","b",""]"#,
        );
        check(
            "\"Ada Lovelace\" | capture(\"(?<first>\\\\w+) (?<last>\\\\w+)\"), gsub(\"(?<c>[AL])\"; \"<\\(.c)>\"), (match(\"l.v\"; \"i\") | .offset, .string)",
            r#"{"first":"Ada","last":"Lovelace"} "<A>da <L>ovelace" 4 "Lov""#,
        );
        check(
            "\"a\" | test(\"(\")",
            "`(` is not a regular expression: Parsing error at position 1: Opening parenthesis without closing parenthesis",
        );
        check(
            "\"a&b c\" | @json, @html, @uri, @base64, (@base64 | @base64d), @sh \"echo \\(.)\"",
            r#""\"a&b c\"" "a&amp;b c" "a%26b%20c" "YSZiIGM=" "a&b c" "echo 'a&b c'""#,
        );
        check(
            "[1, \"a\\\"b\", null, true] | @csv, @tsv, @text",
            r#""1,\"a\"\"b\",,true" "1\ta\"b\t\ttrue" "[1,\"a\\\"b\",null,true]""#,
        );
        check(
            "\" a \" | ltrim, rtrim, (explode | implode), utf8bytelength",
            r#""a " " a" " a " 3"#,
        );
    }

    #[test]
    fn values_are_made_step_by_step() {
        check("[foreach .list[] as $n (0; . + $n)]", "[3,4,6,7]");
        check(
            "[foreach .list[] as $n (0; . + $n; [$n, .])] | last",
            "[1,7]",
        );
        check(
            "1 | until(. > 100; . * 2), [while(. < 5; . + 1)]",
            "128 [1,2,3,4]",
        );
        check(
            "[2 | recurse(if . < 20 then . * . else empty end)]",
            "[2,4,16,256]",
        );
        check(
            "[1, [2, {a: 3}]] | walk(if type == \"number\" then . + 1 else . end)",
            r#"[2,[3,{"a":4}]]"#,
        );
        check(
            "[range(0; 10; 4)], [range(3; 0; -1)], (.list | indices(1), rindex(1), nth(0))",
            "[0,4,8] [3,2,1] [1,3] 3 3",
        );
        check(
            "[[1, [2, [3]]] | flatten(1)[]], ([[1], [2, 3]] | transpose)",
            "[1,2,[3]] [[1,2],[null,3]]",
        );
        check(
            "(.list | to_entries | map(.key)), [.list | add(.[])], (\"x\" | in({x: 1}))",
            "[0,1,2,3] [7] true",
        );
        check(
            "1 | recurse(. + 1)",
            "the jq filter needs too much time or memory",
        );
        check(".data.missing?//\"alt\"", r#""alt""#);
    }

    #[test]
    fn what_is_wrong_is_named() {
        check(".a[", "the jq filter ends where an expression was expected");
        check(".data | nothing", "there is no jq function `nothing/0`");
        check(".data.text.x", "cannot index a string with \"x\"");
        check("$x", "the jq filter has no variable `$x` at character 1");
        check("halt", "there is no jq function `halt/0`");
        check("env", "there is no jq function `env/0`");
    }

    #[test]
    fn filters_that_need_too_much_end() {
        let doubled = "[., .] | ".repeat(40);
        check(
            &format!("{doubled} length"),
            "the jq filter needs too much time or memory",
        );
        check(
            "\"x\" * 1000000000",
            "the jq filter needs too much time or memory",
        );
        check(
            "[range(100000000)] | length",
            "the jq filter needs too much time or memory",
        );
        check(
            "[range(5000)] | map(\"ab\") | join(\"\") | gsub(\"(?=b)b\"; \"c\") | length",
            "10000",
        );
        check(
            "[range(20000)] | map(\"ab\") | join(\"\") | gsub(\"(?=b)b\"; \"c\") | length",
            "the jq filter needs too much time or memory",
        );
        check(
            "\"a\" * 60 | test(\"(a|aa)+(?=b)b\")",
            "the jq filter needs too much time or memory",
        );
        let deep = format!("{}1{}", "[".repeat(90), "]".repeat(90));
        check(&deep, "the jq filter is nested too deeply");
    }
}
