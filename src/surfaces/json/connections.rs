//! Connections, without their secrets, and tests of them.

use flowstone_project::connections::{ConnectionReport, ConnectionTest};
use serde_json::{Value as Json, json};

/// Returns a connection as JSON, without its secret. The names of the fields are stable.
pub fn connection_json(report: &ConnectionReport) -> Json {
    json!({
        "name": report.name,
        "source": report.source,
        "type": report.kind,
        "backend": report.backend,
        "baseUrl": report.base_url,
        "boundTo": report.bound_to,
        "optional": report.is_optional,
        "secret": report.secret.as_ref().map(|secret| json!({
            "name": secret.name, "place": secret.place, "isSet": secret.is_set,
        })),
        "problem": report.problem,
    })
}

/// Returns the test of a connection as JSON. The names of the fields are stable.
pub fn connection_test_json(test: &ConnectionTest) -> Json {
    json!({
        "name": test.name,
        "verdict": test.verdict.name(),
        "millis": test.millis,
        "detail": test.detail,
        "code": test.code,
        "hints": test.hints,
    })
}
