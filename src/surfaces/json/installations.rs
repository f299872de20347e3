//! Installations, and what they need.

use flowstone_project::installations::{Shown, name_of_runs};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{instant, object};

/// An installation of a flow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Installation {
    name: String,
    /// The workspace of the installer.
    workspace: String,
    slug: String,
    /// The workspace of the author.
    author: String,
    /// The name of the flow that its runs have.
    flow: String,
    /// The version that its runs use.
    version: i64,
    /// The digest of the files of that version.
    content: String,
    /// `ready` or `needs_input`.
    status: &'static str,
    auto_upgrade: bool,
    readable: bool,
    max_tokens: Option<i64>,
    needs: Vec<InstallationNeed>,
    /// Why it does not run yet.
    problem: Option<InstallationProblem>,
    /// A released version that it does not use.
    upgrade: Option<InstallationUpgrade>,
    created_at: Json,
    updated_at: Json,
}

/// Something that a flow needs from its installer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationNeed {
    /// `connection`, `value` or `worker`.
    kind: &'static str,
    name: String,
    label: Option<String>,
    /// All that somebody agrees to.
    text: String,
    optional: bool,
    /// Who provides it: `author` or `installer`.
    provided_by: &'static str,
    /// The name of the connection that the installer has bound.
    bound: Option<String>,
}

/// Why an installation does not run yet.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstallationProblem {
    code: &'static str,
    /// `profile_missing`, `profile_bindings_incomplete` or `profile_activation_inputs_incomplete`.
    kind: &'static str,
    message: String,
    /// What to do.
    hint: Option<String>,
}

/// A released version that an installation does not use.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstallationUpgrade {
    version: i64,
    /// `ready`, or `needs_input` if it needs more.
    status: &'static str,
    /// What it needs more.
    needs: Vec<String>,
}

/// Returns an installation as JSON. The names of the fields are stable.
pub fn installation_json(shown: &Shown) -> Json {
    let row = &shown.row;
    let needs = shown.needs.iter().map(|need| InstallationNeed {
        kind: need.kind.name(),
        name: need.name.clone(),
        label: need.label.clone(),
        text: need.text.clone(),
        optional: need.is_optional,
        provided_by: match need.is_of_author {
            true => "author",
            false => "installer",
        },
        bound: row
            .set
            .get(&need.name)
            .filter(|_| !need.is_of_author)
            .cloned(),
    });
    let status = |is_ready: bool| match is_ready {
        true => "ready",
        false => "needs_input",
    };
    object(&Installation {
        name: row.at.name.clone(),
        workspace: row.at.workspace.clone(),
        slug: row.flow.slug.clone(),
        author: row.flow.workspace.clone(),
        flow: name_of_runs(row).to_string(),
        version: row.version,
        content: row.content.clone(),
        status: status(shown.problem.is_none()),
        auto_upgrade: row.auto_upgrade,
        readable: row.is_readable,
        max_tokens: row.max_tokens,
        needs: needs.collect(),
        problem: shown.problem.as_ref().map(|problem| InstallationProblem {
            code: problem.code(),
            kind: problem.kind(),
            message: problem.to_string(),
            hint: problem.hint(),
        }),
        upgrade: shown.upgrade.as_ref().map(|upgrade| InstallationUpgrade {
            version: upgrade.version,
            status: status(upgrade.grew.is_empty()),
            needs: upgrade.grew.clone(),
        }),
        created_at: instant(row.created_ms),
        updated_at: instant(row.updated_ms),
    })
}
