//! `flowstone check --format sarif`.

use serde_json::{Value, json};

use crate::program::Scratch;

fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A text, a message and a level.
fn common() -> [Value; 3] {
    let text = json!({"type": "string", "minLength": 1});
    let message = object(&["text"], json!({"text": text, "markdown": text}));
    [
        text,
        message,
        json!({"enum": ["none", "note", "warning", "error"]}),
    ]
}

/// A result: a finding with its places and changes.
fn result_schema() -> Value {
    let [text, message, level] = common();
    let number = json!({"type": "integer", "minimum": 1});
    let region = object(
        &["startLine"],
        json!({
            "startLine": number, "startColumn": number, "endLine": number, "endColumn": number,
            "snippet": object(&[], json!({"text": {"type": "string"}})),
        }),
    );
    let artifact = object(
        &["uri"],
        json!({"uri": {"type": "string", "pattern": "^[A-Za-z0-9._~/%:-]+$"}, "uriBaseId": text}),
    );
    let location = object(
        &["physicalLocation"],
        json!({
            "id": {"type": "integer", "minimum": 0},
            "message": message,
            "physicalLocation": object(
                &["artifactLocation"],
                json!({"artifactLocation": artifact, "region": region, "contextRegion": region}),
            ),
        }),
    );
    let replacement = object(
        &["deletedRegion"],
        json!({"deletedRegion": region, "insertedContent": object(&[], json!({"text": {"type": "string"}}))}),
    );
    let change = object(
        &["artifactLocation", "replacements"],
        json!({
            "artifactLocation": artifact,
            "replacements": {"type": "array", "minItems": 1, "items": replacement},
        }),
    );
    let fix = object(
        &["artifactChanges"],
        json!({"description": message, "artifactChanges": {"type": "array", "minItems": 1, "items": change}}),
    );
    object(
        &["message"],
        json!({
            "ruleId": text,
            "ruleIndex": {"type": "integer", "minimum": 0},
            "level": level,
            "message": message,
            "locations": {"type": "array", "items": location},
            "relatedLocations": {"type": "array", "items": location},
            "fixes": {"type": "array", "items": fix},
        }),
    )
}

/// The demands of the standard on the parts of a log that are written here, in our words: required members, no members that it
/// does not have, and the types of their values.
fn schema() -> Value {
    let [text, message, level] = common();
    let result = result_schema();
    let rule = object(
        &["id"],
        json!({
            "id": text,
            "shortDescription": message,
            "fullDescription": message,
            "help": message,
            "defaultConfiguration": object(&[], json!({"level": level})),
        }),
    );
    let driver = object(
        &["name"],
        json!({
            "name": text,
            "semanticVersion": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+"},
            "rules": {"type": "array", "items": rule, "uniqueItems": true},
        }),
    );
    let run = object(
        &["tool"],
        json!({
            "tool": object(&["driver"], json!({"driver": driver})),
            "invocations": {
                "type": "array",
                "items": object(&["executionSuccessful"], json!({"executionSuccessful": {"type": "boolean"}})),
            },
            "originalUriBaseIds": {
                "type": "object",
                "additionalProperties": object(&[], json!({"description": message, "uri": text})),
            },
            "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            "results": {"type": "array", "items": result},
        }),
    );
    object(
        &["version", "runs"],
        json!({"$schema": text, "version": {"const": "2.1.0"}, "runs": {"type": "array", "items": run}}),
    )
}

#[test]
fn a_log_has_rules_places_and_fixes() {
    let scratch = Scratch::new();
    scratch.write("flows/é b.edn", "{:slug :a :naem \"é\"\n :flow '1}");
    scratch.write("flows/c.edn", "{:slug :c\n :flow '(do (inc 1");
    scratch.write(
        "flows/d.edn",
        "{:slug :d :flow '(do (flow/step :code :f {:code '(fn [x] x)}) (let [total 1] totl))}",
    );
    let ran = scratch.run(&["check", "--format", "sarif", "flows"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&log)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{log:#}");

    let run = &log["runs"][0];
    let results = run["results"].as_array().expect("results");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(results.len(), 4, "{log:#}");
    for result in results {
        let idx = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[idx]["id"], result["ruleId"]);
        assert!(rules[idx]["help"]["markdown"].is_string(), "{}", rules[idx]);
    }
    let of = |code: &str| {
        let found = results.iter().find(|result| result["ruleId"] == code);
        found.unwrap_or_else(|| panic!("no {code}: {log:#}"))
    };
    let key = of("E0402");
    let place = &key["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "flows/%C3%A9%20b.edn");
    assert_eq!(
        place["region"],
        json!({"startLine": 1, "startColumn": 11, "endLine": 1, "endColumn": 16})
    );
    let change = &key["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], ":name");
    assert_eq!(of("E0655")["level"], "warning");
    // An insertion deletes an empty region.
    let inserted = &of("E0101")["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(inserted["insertedContent"]["text"], "))}");
    assert_eq!(
        inserted["deletedRegion"]["startColumn"],
        inserted["deletedRegion"]["endColumn"]
    );
}

#[test]
fn a_log_without_findings_is_valid() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    let ran = scratch.run(&["check", "--format", "sarif", "a.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    assert!(validator.is_valid(&log), "{log:#}");
    assert_eq!(log["runs"][0]["results"], json!([]));
}
