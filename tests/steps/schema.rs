use flowstone_engine::codec::{decode as read, encode};
use flowstone_lang::value::Value;
use flowstone_steps::json::from_json;
use flowstone_steps::schema::{closed, decode, explain, parse, to_json_schema, validate};

fn value(text: &str) -> Value {
    read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn checked(schema: &str, given: &str) -> String {
    match parse(&value(schema)) {
        Ok(schema) => match validate(&schema, &value(given)).as_slice() {
            [] => "fits".to_owned(),
            problems => explain(problems),
        },
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn values_are_checked() {
    for (schema, given, expected) in [
        (":string", r#""a""#, "fits"),
        (":string", "3", "should be a string, is 3"),
        (
            "[:string {:min 2 :max 3}]",
            r#""a""#,
            "should have at least 2 characters, has 1",
        ),
        (
            "[:string {:max 1}]",
            r#""ab""#,
            "should have at most 1 character, has 2",
        ),
        ("[:int {:min 1 :max 5}]", "6", "should be at most 5, is 6"),
        (":int", "1.0", "should be an integer, is 1.0"),
        (":double", "1.5", "fits"),
        ("[:> 0]", "0", "should be more than 0, is 0"),
        ("pos-int?", "3", "fits"),
        (":boolean", "nil", "should be true or false, is nil"),
        (":keyword", ":a/b", "fits"),
        (
            ":uuid",
            r#"#uuid "00000000-0000-0000-0000-000000000001""#,
            "fits",
        ),
        (":inst", r#"#inst "2026-01-01T00:00:00.000Z""#, "fits"),
        (
            "[:re \"^a+$\"]",
            r#""ab""#,
            "should be a string that matches #\"^a+$\", is \"ab\"",
        ),
        ("[:enum :a :b]", ":c", "should be one of :a, :b, is :c"),
        ("[:= 1]", "2", "should be 1, is 2"),
        ("[:maybe :int]", "nil", "fits"),
        (
            "[:or :int :string]",
            ":k",
            "should be an integer or a string, is :k",
        ),
        ("[:and :int [:< 5]]", "7", "should be less than 5, is 7"),
        ("[:not :int]", "7", "should not be an integer"),
        (
            "[:vector :int]",
            "[1 :x 3]",
            "[1] should be an integer, is :x",
        ),
        (
            "[:vector {:min 1} :int]",
            "[]",
            "should have at least 1 item, has 0",
        ),
        ("[:vector :int]", "(1)", "should be a vector, is (1)"),
        ("[:sequential :int]", "(1 2)", "fits"),
        ("[:set :int]", "#{1 2}", "fits"),
        ("[:tuple :int :string]", "[1]", "should have 2 items, has 1"),
        (
            "[:tuple :int :string]",
            "[1 2]",
            "[1] should be a string, is 2",
        ),
        ("[:map-of :keyword :int]", "{:a 1}", "fits"),
        (
            "[:map-of :keyword :int]",
            "{\"a\" 1}",
            "the key \"a\" should be a keyword, is \"a\"",
        ),
        (
            "[:map [:a :int] [:b {:optional true} :string]]",
            "{:a 1 :c 2}",
            "fits",
        ),
        (
            "[:map {:closed true} [:a :int]]",
            "{:a 1 :c 2}",
            ":c is not expected; there are :a",
        ),
        (
            "[:map [:order-id :int]]",
            "{:orderid 1}",
            ":order-id is missing (there is `orderid`)",
        ),
        (
            "[:map [:items [:vector [:map [:n :int]]]]]",
            "{:items [{:n 1} {:n \"x\"} {}]}",
            "[:items 1 :n] should be an integer, is \"x\"; [:items 2] :n is missing",
        ),
        (
            "[:map [:a [:int {:error/message \"give a count\"}]]]",
            "{:a :x}",
            "[:a] give a count",
        ),
        (
            "{:required [:action \"by\"]}",
            "{:action 1}",
            ":by is missing",
        ),
        (
            "[:multi {:dispatch :type} [:a [:map [:n :int]]] [:b :map]]",
            "{:type :a :n :x}",
            "[:n] should be an integer, is :x",
        ),
        (
            "[:multi {:dispatch :type} [:a :map] [:b :map]]",
            "{:type :c}",
            "[:type] should be one of :a, :b, is :c",
        ),
        (
            "[:schema {:registry {:tree [:map [:kids [:vector [:ref :tree]]]]}} :tree]",
            "{:kids [{:kids []} {:kids 3}]}",
            "[:kids 1 :kids] should be a vector, is 3",
        ),
        (
            "[:or [:map [:a :int]] :string]",
            "{:a :x}",
            "[:a] should be an integer, is :x",
        ),
    ] {
        assert_eq!(checked(schema, given), expected, "{schema} of {given}");
    }
}

#[test]
fn bad_schemas_are_explained() {
    for (schema, expected) in [
        (
            ":strng",
            "error: `strng` is not a schema type; did you mean `:string`?",
        ),
        (
            "[:fn inc]",
            "error: a schema cannot have a function here: inc",
        ),
        (
            "[]",
            "error: [] is not a schema: the vector is empty; it starts with a type such as `:map`",
        ),
        (
            "[:map [:a]]",
            "error: [:a] is not a schema: an entry of `:map` is written `[:key :type]` or `[:key {:optional true} :type]`",
        ),
        (
            "[:map [:a :int] [:a :int]]",
            "error: [:map [:a :int] [:a :int]] is not a schema: the key :a is there twice",
        ),
        (
            "[:int {:mim 3}]",
            "error: `[:int ...]` has no property :mim; there are: :min :max :title :description :default :json-schema",
        ),
        (
            "[:string :int]",
            "error: [:string :int] is not a schema: `:string` takes no schemas, and got :int",
        ),
        (
            "[:maybe]",
            "error: [:maybe] is not a schema: `:maybe` takes one schema",
        ),
        (
            "[:ref :x]",
            "error: the schema refers to x, which its registry does not have",
        ),
        (
            "{:require [:a]}",
            "error: {:require [:a]} is not a schema: a map schema is written `{:required [:key ...]}` or `[:map ...]`",
        ),
        (
            "3",
            "error: 3 is not a schema: expected a keyword such as `:string`, or a vector such as `[:map ...]`",
        ),
        (
            "[:string {:min -1}]",
            "error: [:string {:min -1}] is not a schema: `:min` is a count, and -1 is not",
        ),
    ] {
        assert_eq!(checked(schema, "nil"), expected, "{schema}");
    }
    let mut deep = ":int".to_owned();
    for _ in 0..100 {
        deep = format!("[:vector {deep}]");
    }
    assert_eq!(
        checked(&deep, "nil"),
        "error: the schema is nested deeper than 64 levels"
    );
}

#[test]
fn json_is_decoded_as_the_schema_means_it() {
    for (schema, json, expected) in [
        (":keyword", "\"a\"", ":a"),
        ("[:enum :approve :reject]", "\"approve\"", ":approve"),
        ("[:enum \"x\" :y]", "\"x\"", "\"x\""),
        (":double", "3", "3.0"),
        (":int", "3.0", "3"),
        ("[:set :keyword]", "[\"a\"]", "#{:a}"),
        (
            "[:map [:k :keyword] [:n {:default 7} :int]]",
            r#"{"k": "a", "other": "b"}"#,
            "{:k :a :other \"b\" :n 7}",
        ),
        ("[:map-of :string :int]", r#"{"a b": 1}"#, "{\"a b\" 1}"),
        ("[:or :int :keyword]", "\"a\"", ":a"),
        ("[:maybe [:tuple :keyword :int]]", r#"["a", 1]"#, "[:a 1]"),
        (":int", "\"a\"", "\"a\""),
    ] {
        let schema = parse(&value(schema)).expect("a schema");
        let json = from_json(&serde_json::from_str(json).expect("JSON"));
        let decoded = decode(&schema, json);
        assert_eq!(encode(&decoded).expect("data"), expected);
    }
}

#[test]
fn schemas_become_json_schema() {
    for (schema, expected) in [
        (
            "[:string {:min 1 :description \"A name\"}]",
            r#"{"type":"string","minLength":1,"description":"A name"}"#,
        ),
        (
            "[:int {:min 1 :max 5}]",
            r#"{"type":"integer","minimum":1,"maximum":5}"#,
        ),
        ("[:enum :a \"b\"]", r#"{"type":"string","enum":["a","b"]}"#),
        (
            "[:map {:closed true} [:a :int] [:b {:optional true :description \"x\"} [:maybe :string]]]",
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"x"}},"required":["a"],"additionalProperties":false}"#,
        ),
        (
            "[:set :double]",
            r#"{"type":"array","items":{"type":"number"},"uniqueItems":true}"#,
        ),
        (
            "[:map-of :keyword :int]",
            r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        ),
        (
            "[:schema {:registry {:t [:map [:k [:vector [:ref :t]]]]}} :t]",
            r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"k":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["k"]}}}"##,
        ),
        (
            "[:string {:json-schema {:format \"email\"}}]",
            r#"{"type":"string","format":"email"}"#,
        ),
    ] {
        let schema = parse(&value(schema)).expect("a schema");
        assert_eq!(to_json_schema(&schema).to_string(), expected);
    }
    let mut open =
        to_json_schema(&parse(&value("[:map [:a [:map [:b :int]]] [:c :map]]")).expect("a schema"));
    closed(&mut open);
    assert_eq!(
        open.to_string(),
        r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false},"c":{"type":"object"}},"required":["a","c"],"additionalProperties":false}"#
    );
}
