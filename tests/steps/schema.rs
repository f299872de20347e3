use flowstone_engine::codec::{decode as read, encode};
use flowstone_lang::value::Value;
use flowstone_steps::json::from_json;
use flowstone_steps::schema::{closed, decode, errors, explain, parse, to_json_schema, validate};

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
    let mut failures: Vec<String> = Vec::new();
    for (schema, given, expected) in [
        (":string", r#""a""#, "fits"),
        (":string", "3", "should be a string, but is 3 (an integer)"),
        (
            "[:string {:min 2 :max 3}]",
            r#""a""#,
            "should have at least 2 characters, but has 1",
        ),
        (
            "[:string {:max 1}]",
            r#""ab""#,
            "should have at most 1 character, but has 2",
        ),
        (
            "[:int {:min 1 :max 5}]",
            "6",
            "should be at most 5, but is 6 (an integer)",
        ),
        (":int", "1.0", "should be an integer, but is 1.0 (a double)"),
        (":double", "1.5", "fits"),
        (
            "[:> 0]",
            "0",
            "should be more than 0, but is 0 (an integer)",
        ),
        ("pos-int?", "3", "fits"),
        (":boolean", "nil", "should be true or false, but is nil"),
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
            "should be a string that matches #\"^a+$\", but is \"ab\" (a string)",
        ),
        (
            "[:enum :a :b]",
            ":c",
            "should be one of :a, :b, but is :c (a keyword)",
        ),
        ("[:= 1]", "2", "should be 1, but is 2 (an integer)"),
        ("[:maybe :int]", "nil", "fits"),
        (
            "[:or :int :string]",
            ":k",
            "should be an integer or a string, but is :k (a keyword)",
        ),
        (
            "[:and :int [:< 5]]",
            "7",
            "should be less than 5, but is 7 (an integer)",
        ),
        ("[:not :int]", "7", "should not be an integer"),
        (
            "[:vector :int]",
            "[1 :x 3]",
            "at [1]: should be an integer, but is :x (a keyword)",
        ),
        (
            "[:vector {:min 1} :int]",
            "[]",
            "should have at least 1 item, but has 0",
        ),
        (
            "[:vector :int]",
            "(1)",
            "should be a vector, but is (1) (a list)",
        ),
        ("[:sequential :int]", "(1 2)", "fits"),
        ("[:set :int]", "#{1 2}", "fits"),
        (
            "[:tuple :int :string]",
            "[1]",
            "should have 2 items, but has 1",
        ),
        (
            "[:tuple :int :string]",
            "[1 2]",
            "at [1]: should be a string, but is 2 (an integer)",
        ),
        ("[:map-of :keyword :int]", "{:a 1}", "fits"),
        (
            "[:map-of :keyword :int]",
            "{\"a\" 1}",
            "the key \"a\" should be a keyword, but is \"a\" (a string)",
        ),
        (
            "[:map [:a :int] [:b {:optional true} :string]]",
            "{:a 1 :c 2}",
            "fits",
        ),
        (
            "[:map {:closed true} [:a :int]]",
            "{:a 1 :c 2}",
            ":c is not expected; did you mean :a?",
        ),
        (
            "[:map {:closed true} [:owner :int] [:n :int]]",
            "{:owner 1 :n 2 :ownr 2}",
            ":ownr is not expected; did you mean :owner?",
        ),
        (
            "[:map [:order-id :int]]",
            "{:orderid 1}",
            ":order-id is missing (there is `orderid`)",
        ),
        (
            "[:map [:items [:vector [:map [:n :int]]]]]",
            "{:items [{:n 1} {:n \"x\"} {}]}",
            "at [:items 1 :n]: should be an integer, but is \"x\" (a string); at [:items 2]: :n is missing",
        ),
        (
            "[:map [:a [:int {:error/message \"give a count\"}]]]",
            "{:a :x}",
            "at [:a]: give a count",
        ),
        (
            "{:required [:action \"by\"]}",
            "{:action 1}",
            ":by is missing",
        ),
        (
            "[:multi {:dispatch :type} [:a [:map [:n :int]]] [:b :map]]",
            "{:type :a :n :x}",
            "at [:n]: should be an integer, but is :x (a keyword)",
        ),
        (
            "[:multi {:dispatch :type} [:a :map] [:b :map]]",
            "{:type :c}",
            "at [:type]: should be one of :a, :b, but is :c (a keyword)",
        ),
        (
            "[:schema {:registry {:tree [:map [:kids [:vector [:ref :tree]]]]}} :tree]",
            "{:kids [{:kids []} {:kids 3}]}",
            "at [:kids 1 :kids]: should be a vector, but is 3 (an integer)",
        ),
        (
            "[:or [:map [:a :int]] :string]",
            "{:a :x}",
            "at [:a]: should be an integer, but is :x (a keyword)",
        ),
    ] {
        let found = checked(schema, given);
        if found != expected {
            failures.push(format!("{expected}\t{found}\t{schema} of {given}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn problems_are_data_too() {
    for (schema, given, expected) in [
        (
            "[:map [:owner :string]]",
            "{:owner 5}",
            "[{:in [:owner] :path [:owner] :schema :string :message \"should be a string, but is 5 (an integer)\"}]",
        ),
        (
            "[:map [:n :int]]",
            "{}",
            "[{:in [:n] :path [:n] :schema [:map [:n :int]] :message \":n is missing\"}]",
        ),
        (
            "[:vector [:tuple :int :string]]",
            "[[1 \"a\"] [1 2]]",
            "[{:in [1 1] :path [0 1] :schema :string :message \"should be a string, but is 2 (an integer)\"}]",
        ),
        (
            "[:or [:map [:a :int]] :string]",
            "{:a nil}",
            "[{:in [:a] :path [0 :a] :schema :int :message \"should be an integer, but is nil\"}]",
        ),
        (
            "[:multi {:dispatch :type} [:a [:map [:n [:maybe :int]]]]]",
            "{:type :a :n :x}",
            "[{:in [:n] :path [:a :n 0] :schema :int :message \"should be an integer, but is :x (a keyword)\"}]",
        ),
        (
            "[:and :int [:> 5]]",
            "1",
            "[{:in [] :path [1] :schema [:> 5] :message \"should be more than 5, but is 1 (an integer)\"}]",
        ),
        (
            "[:schema {:registry {:tree [:map [:kids [:vector [:ref :tree]]]]}} :tree]",
            "{:kids [{:kids 3}]}",
            "[{:in [:kids 0 :kids] :path [0 :kids 0 0 :kids] :schema [:vector [:ref :tree]] :message \"should be a vector, \
             but is 3 (an integer)\"}]",
        ),
        // At most five errors are reported.
        ("[:vector :int]", "[:a :b :c :d :e :f :g]", "5"),
    ] {
        let schema = parse(&value(schema)).unwrap();
        let told = errors(&validate(&schema, &value(given)));
        let expected = value(expected);
        match expected {
            Value::Int(count) => assert_eq!(told.as_vector().unwrap().len() as i64, count),
            expected => assert_eq!(told, expected, "{}", encode(&told).unwrap()),
        }
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
            "error: [:map [:a :int] [:a :int]] is not a schema: duplicate key :a",
        ),
        (
            "[:int {:mim 3}]",
            "error: `[:int ...]` has no property :mim; there are: :min :max :title :description :default :json-schema",
        ),
        (
            "[:string :int]",
            "error: [:string :int] is not a schema: `:string` takes no schemas, got :int",
        ),
        (
            "[:maybe]",
            "error: [:maybe] is not a schema: `:maybe` takes one schema",
        ),
        (
            "[:ref :x]",
            "error: the schema refers to x, which is not in its registry",
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
            "error: [:string {:min -1}] is not a schema: `:min` must be a count, got -1",
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
fn json_is_decoded_according_to_the_schema() {
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
