//! Conditions of nodes as code: the older form, a list for each type, and the newer one with operators.

use serde_json::Value as Json;

/// Returns conditions as code, and what of them is not understood.
pub(super) fn code(
    conditions: &Json,
    parameters: &Json,
    value: &mut dyn FnMut(&Json) -> String,
) -> (String, Vec<String>) {
    let mut wrong = Vec::new();
    let mut tests = Vec::new();
    let is_any;
    if let Some(list) = conditions.get("conditions").and_then(Json::as_array) {
        is_any = conditions.get("combinator").is_some_and(|it| it == "or");
        for condition in list {
            let operation = condition
                .pointer("/operator/operation")
                .and_then(Json::as_str)
                .unwrap_or_default();
            let left = value(condition.get("leftValue").unwrap_or(&Json::Null));
            let right = value(condition.get("rightValue").unwrap_or(&Json::Null));
            tests.push(test(operation, &left, &right, &mut wrong));
        }
    } else {
        is_any = parameters
            .get("combineOperation")
            .is_some_and(|it| it == "any");
        for (type_, list) in conditions.as_object().into_iter().flatten() {
            for condition in list.as_array().into_iter().flatten() {
                let usual = match type_.as_str() {
                    "number" => "smaller",
                    _ => "equal",
                };
                let operation = condition
                    .get("operation")
                    .and_then(Json::as_str)
                    .unwrap_or(usual);
                let left = value(condition.get("value1").unwrap_or(&Json::Null));
                let right = value(condition.get("value2").unwrap_or(&Json::Null));
                tests.push(test(operation, &left, &right, &mut wrong));
            }
        }
    }
    let code = match &tests[..] {
        [] => "true".to_owned(),
        [only] => only.clone(),
        many => {
            let joined = if is_any { "or" } else { "and" };
            format!("({joined} {})", many.join(" "))
        }
    };
    (format!("(boolean {code})"), wrong)
}

fn test(operation: &str, left: &str, right: &str, wrong: &mut Vec<String>) -> String {
    let text = |function: &str| format!("({function} (str {left}) (str {right}))");
    match operation {
        "equals" | "equal" => format!("(= {left} {right})"),
        "notEquals" | "notEqual" => format!("(not= {left} {right})"),
        "gt" | "larger" => format!("(> {left} {right})"),
        "gte" | "largerEqual" => format!("(>= {left} {right})"),
        "lt" | "smaller" => format!("(< {left} {right})"),
        "lte" | "smallerEqual" => format!("(<= {left} {right})"),
        "contains" => text("clojure.string/includes?"),
        "notContains" => format!("(not {})", text("clojure.string/includes?")),
        "startsWith" => text("clojure.string/starts-with?"),
        "notStartsWith" => format!("(not {})", text("clojure.string/starts-with?")),
        "endsWith" => text("clojure.string/ends-with?"),
        "notEndsWith" => format!("(not {})", text("clojure.string/ends-with?")),
        "regex" => format!("(re-find (re-pattern {right}) (str {left}))"),
        "notRegex" => format!("(not (re-find (re-pattern {right}) (str {left})))"),
        "exists" => format!("(some? {left})"),
        "notExists" => format!("(nil? {left})"),
        "empty" | "isEmpty" => format!("(contains? #{{nil \"\" [] {{}}}} {left})"),
        "notEmpty" | "isNotEmpty" => format!("(not (contains? #{{nil \"\" [] {{}}}} {left}))"),
        "true" => format!("(true? {left})"),
        "false" => format!("(false? {left})"),
        other => {
            wrong.push(format!("the operation `{other}` is not imported"));
            "false".to_owned()
        }
    }
}
