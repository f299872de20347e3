//! The JSON Schemas of step types accept what the docs show and refuse what the engine refuses.

use flowstone_engine::codec::decode;
use flowstone_engine::json::to_json;
use flowstone_flow::step::{
    COMMON, Field, FieldType, StepSpec, config_schema, operation_schema, respelled, result_schema,
    tool_schema,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use crate::project::Project;

fn specs() -> Vec<&'static StepSpec> {
    flowstone_project::all_steps()
        .iter()
        .map(|step| step.spec())
        .collect()
}

fn spec(kind: &str) -> &'static StepSpec {
    let mut specs = specs().into_iter();
    specs.find(|spec| spec.kind == kind).expect("a step type")
}

/// Returns the errors of an instance, if there are any.
fn problem(schema: &Json, instance: &Json) -> Option<String> {
    let validator = jsonschema::draft202012::new(schema).expect("a schema");
    validator
        .iter_errors(instance)
        .next()
        .map(|error| error.to_string())
}

/// Returns a config as JSON, with code as text; `None` if something else in it is computed.
fn as_json(form: &Value, field: Option<&Field>) -> Option<Json> {
    let takes_code = field.is_some_and(|field| takes_code(field.type_));
    match form {
        Value::List(_) | Value::Symbol(_) | Value::Name(_) if takes_code => Some(json!("code")),
        Value::List(_) | Value::Symbol(_) | Value::Name(_) => None,
        Value::Map(map) => {
            let mut object = serde_json::Map::new();
            for (key, value) in map.iter() {
                let name = flowstone_engine::json::name_text(key)?;
                let inner = field.and_then(|field| nested_field(field.type_, &name));
                object.insert(name, as_json(value, inner)?);
            }
            Some(Json::Object(object))
        }
        Value::Vector(items) => items.iter().map(|item| as_json(item, field)).collect(),
        Value::Set(items) => items.iter().map(|item| as_json(item, field)).collect(),
        Value::Object(_) => Some(json!("an object")),
        value => to_json(value).ok(),
    }
}

fn takes_code(type_: FieldType) -> bool {
    match type_ {
        FieldType::Function | FieldType::Any => true,
        FieldType::Either(types) => types.iter().any(|type_| takes_code(*type_)),
        _ => false,
    }
}

fn nested_field(type_: FieldType, name: &str) -> Option<&'static Field> {
    match type_ {
        FieldType::Keys(fields) => fields.iter().find(|field| field.name == name),
        FieldType::List(item) => nested_field(*item, name),
        FieldType::Either(types) => types.iter().find_map(|type_| nested_field(*type_, name)),
        _ => None,
    }
}

/// Returns the literal configs of a kind within a form.
fn configs(form: &Value, kind: &str, found: &mut Vec<Value>) {
    let parts: Vec<Value> = match form {
        Value::List(items) => items.iter().cloned().collect(),
        Value::Vector(items) => items.iter().cloned().collect(),
        Value::Map(map) => map.iter().map(|(_, value)| value.clone()).collect(),
        _ => return,
    };
    if let [head, Value::Keyword(name), _, config @ Value::Map(_)] = &parts[..]
        && head.as_symbol().is_some_and(|head| head.is("flow/step"))
        && *name.name() == *kind
    {
        found.push(config.clone());
    }
    parts.iter().for_each(|part| configs(part, kind, found));
}

#[test]
fn examples_pass_their_schemas() {
    let session = Session::new();
    let mut failures = Vec::new();
    for spec in specs() {
        let schema = config_schema(spec);
        for example in spec.examples {
            let mut found = Vec::new();
            for form in session.read("example", example).expect("it can be read") {
                configs(&form, spec.kind, &mut found);
            }
            for config in found {
                let map = config.as_map().expect("a map");
                let pairs = map.iter().map(|(key, value)| {
                    let name = flowstone_engine::json::name_text(key)?;
                    Some((name.clone(), as_json(value, spec.field(&name))?))
                });
                let Some(object) = pairs.collect::<Option<serde_json::Map<_, _>>>() else {
                    continue;
                };
                if let Some(problem) = problem(&schema, &Json::Object(object)) {
                    failures.push(format!("{example}: {problem}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn schemas_refuse_configs_that_the_engine_refuses() {
    let project = Project::new();
    for (kind, config) in [
        ("kv", "{:operation :get}"),
        ("kv", "{:operation :gett :key \"a\"}"),
        ("kv", "{:operation :get :key \"a\" :kee 1}"),
        ("kv", "{:operation :get :key \"a\" :delta 1}"),
        ("kv", "{:operation :get :key \"a\" :timeout :soon}"),
        ("kv", "{:operation :get :key \"a\" :on-error :stop}"),
        ("kv", "{:operation :get :key \"a\" :retry 3}"),
        (
            "kv",
            "{:operation :get :key \"a\" :retry {:max-attempts 0}}",
        ),
        ("kv", "{:operation :get :key \"a\" :retry {:max-attemps 2}}"),
        ("kv", "{:operation :get :key \"a\" :confirm {:message 5}}"),
        (
            "kv",
            "{:operation :get :key \"a\" :metering {:unit :request}}",
        ),
        ("sleep", "{:secs 1}"),
        ("sleep", "{:title 5}"),
        ("http", "{:url 5}"),
        ("http", "{:url \"u\" :method 5}"),
    ] {
        let refused = project.eval(&format!(
            "(let [config {config}] (flow/step :{kind} :a config))"
        ));
        assert!(refused.starts_with("E0"), "{config}: {refused}");
        let instance = to_json(&decode(config).expect("EDN")).expect("JSON");
        let problem = problem(&config_schema(spec(kind)), &instance);
        assert!(problem.is_some(), "{kind} {config} passes");
    }
}

#[test]
fn good_configs_pass() {
    for (kind, config) in [
        (
            "kv",
            "{:operation :get :key \"a\" :timeout \"1m30s\" :retry {:max-attempts 3 :initial-interval-ms \"10ms\"}}",
        ),
        (
            "kv",
            "{:operation :set :key \"a\" :value {:any [1]} :confirm true :title \"t\"}",
        ),
        (
            "kv",
            "{:operation :get :key \"a\" :review {:message \"m\" :roles [:ops]} :on-doubt {:probe {:type :kv}}}",
        ),
        (
            "kv",
            "{:operation :get :key \"a\" :persist {:type :table :table \"t\" :rows-path [:rows] :write-mode :upsert}}",
        ),
        (
            "kv",
            "{:operation :get :key \"a\" :persist {:type :blob :signed-url {:ttl-seconds 900}}}",
        ),
        ("sleep", "{:duration \"2h\"}"),
    ] {
        let instance = to_json(&decode(config).expect("EDN")).expect("JSON");
        assert_eq!(
            problem(&config_schema(spec(kind)), &instance),
            None,
            "{config}"
        );
    }
}

#[test]
fn each_operation_has_its_schemas() {
    for spec in specs() {
        for operation in spec.operations.iter().flat_map(|operations| operations.all) {
            let place = format!("{} {}", spec.kind, operation.name);
            for schema in [
                operation_schema(spec, operation),
                tool_schema(spec, Some(operation)),
            ] {
                jsonschema::draft202012::new(&schema)
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
            }
            assert!(
                result_schema(operation).is_some(),
                "{place}: {}",
                operation.gives
            );
            for name in operation.needs.iter().chain(operation.takes) {
                assert!(spec.field(name).is_some(), "{place} has no field {name}");
            }
        }
    }
}

/// Model providers accept only letters, digits, `_` and `-` in names.
#[test]
fn tools_have_plain_names() {
    fn names(schema: &Json, found: &mut Vec<String>) {
        if let Some(properties) = schema["properties"].as_object() {
            for (name, inner) in properties {
                found.push(name.clone());
                names(inner, found);
            }
        }
        names_of_parts(schema, found);
    }
    fn names_of_parts(schema: &Json, found: &mut Vec<String>) {
        for part in schema["anyOf"].as_array().into_iter().flatten() {
            names(part, found);
        }
        if schema["items"].is_object() {
            names(&schema["items"], found);
        }
    }
    let mut found = Vec::new();
    for spec in specs() {
        names(&tool_schema(spec, None), &mut found);
        for operation in spec.operations.iter().flat_map(|operations| operations.all) {
            names(&tool_schema(spec, Some(operation)), &mut found);
        }
    }
    let plain = |name: &&String| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let others: Vec<&String> = found.iter().filter(|name| !plain(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn other_spellings_are_normalized() {
    for (kind, given, expected) in [
        (
            "kv",
            "{:operation :append :key \"a\" :max_length 5 :item {:some_key 1}}",
            "{:operation :append :key \"a\" :max-length 5 :item {:some_key 1}}",
        ),
        (
            "kv",
            "{:operation :get :key \"a\" :onError :skip :retry {:maxAttempts 2 :retryOn [:timeout]}}",
            "{:operation :get :key \"a\" :on-error :skip :retry {:max-attempts 2 :retry-on [:timeout]}}",
        ),
        (
            "kv",
            "{:operation :set :key \"a\" :value 1 :ifNotExists true :persist {:type :table :rowsPath [:a_b]}}",
            "{:operation :set :key \"a\" :value 1 :if-not-exists true :persist {:type :table :rows-path [:a_b]}}",
        ),
        (
            "http",
            "{:url \"u\" :headers {:X_Y \"z\"}}",
            "{:url \"u\" :headers {:X_Y \"z\"}}",
        ),
    ] {
        let found = respelled(spec(kind), &decode(given).expect("EDN"));
        assert_eq!(found, decode(expected).expect("EDN"), "{given}");
    }
}

/// Each field and each operation of the step types in the reference has a row.
#[test]
fn each_field_has_a_row() {
    let mut missing = Vec::new();
    for kind in [
        "files", "function", "http", "kv", "notify", "search", "sleep", "table", "time",
    ] {
        let path = format!(
            "{}/../../tests/coverage/{kind}.tsv",
            env!("CARGO_MANIFEST_DIR")
        );
        let rows = std::fs::read_to_string(&path).expect("rows");
        let names: Vec<&str> = rows
            .lines()
            .filter_map(|row| row.split('\t').nth(1))
            .flat_map(|row| row.split(|char: char| " ,{}()".contains(char)))
            .map(|word| word.trim_start_matches(':'))
            .collect();
        let spec = spec(kind);
        let fields = spec.fields.iter().map(|field| field.name);
        let operations = spec.operations.iter().flat_map(|operations| operations.all);
        for name in fields.chain(operations.map(|operation| operation.name)) {
            let is_common = COMMON.iter().any(|common| common.name == name);
            if !names.contains(&name) && !is_common {
                missing.push(format!("tests/coverage/{kind}.tsv has no row for :{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
