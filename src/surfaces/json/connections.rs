//! Connections, without their secrets, and tests of them.

use flowstone_project::connections::{ConnectionReport, ConnectionTest as Test, LoginReport};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::object;

/// A connection, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    name: String,
    /// `flowstone.edn`, `environment`, or the slug of a flow.
    source: String,
    r#type: String,
    backend: Option<String>,
    base_url: Option<String>,
    /// The connection that a slot of a flow is bound to.
    bound_to: Option<String>,
    optional: bool,
    secret: Option<SecretPlace>,
    /// The login, of a connection that uses one.
    login: Option<Login>,
    /// Why it cannot be used as it is.
    problem: Option<String>,
}

/// The name of a secret, and whether it is set.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretPlace {
    name: String,
    /// Where it is looked for.
    place: String,
    is_set: bool,
}

/// The login of a connection, without its tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// `logged-in` or `needs-login`.
    state: &'static str,
    /// When the token expires.
    expires_at: Option<String>,
    /// Whether the token is renewed before it expires.
    renewed: bool,
}

/// Returns the state of a login as data.
fn login(report: &LoginReport) -> Login {
    Login {
        state: report.state.name(),
        expires_at: report.expires_at_ms.map(flowstone_flow::codec::instant),
        renewed: report.is_renewed,
    }
}

/// Returns the state of a login as JSON. The names of the fields are stable.
pub fn login_json(report: &LoginReport) -> Json {
    object(&login(report))
}

/// Returns a connection as JSON, without its secret. The names of the fields are stable.
pub fn connection_json(report: &ConnectionReport) -> Json {
    object(&Connection {
        name: report.name.clone(),
        source: report.source.clone(),
        r#type: report.kind.clone(),
        backend: report.backend.clone(),
        base_url: report.base_url.clone(),
        bound_to: report.bound_to.clone(),
        optional: report.is_optional,
        secret: report.secret.as_ref().map(|secret| SecretPlace {
            name: secret.name.clone(),
            place: secret.place.clone(),
            is_set: secret.is_set,
        }),
        login: report.login.as_ref().map(login),
        problem: report.problem.clone(),
    })
}

/// The test of a connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionTest {
    name: String,
    /// `works`, `fails` or `untried`.
    verdict: &'static str,
    millis: u64,
    detail: String,
    code: Option<String>,
    hints: Vec<String>,
}

/// Returns the test of a connection as JSON. The names of the fields are stable.
pub fn connection_test_json(test: &Test) -> Json {
    object(&ConnectionTest {
        name: test.name.clone(),
        verdict: test.verdict.name(),
        millis: test.millis,
        detail: test.detail.clone(),
        code: test.code.clone(),
        hints: test.hints.clone(),
    })
}
