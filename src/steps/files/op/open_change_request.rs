//! `:open-change-request`: opens a request on GitHub or GitLab to merge a branch.

use flowstone_flow::flow::name_of;
use flowstone_flow::permission::Host;
use flowstone_flow::step::{Effect, Operation, Outcome, Progress, StepError};
use flowstone_lang::value::Value;

use super::super::change_request::{self, NewChangeRequest, Provider, Repo};
use super::super::manifest::Origin;
use super::super::source::{self, Source, Spec};
use super::super::value::map;
use super::super::{Call, Limit, blocking, publish};
use crate::connections::{self, Auth, Connection, Proof};
use crate::guard::host_of;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "open-change-request",
    doc: "Opens a pull request on GitHub or a merge request on GitLab, or returns the open one.",
    needs: &["branch", "title"],
    takes: &[
        "base",
        "body",
        "changeset",
        "connection",
        "draft?",
        "provider",
        "source",
    ],
    gives: r#"[:map [:url :string] [:number :int] [:created? :boolean]]"#,
    effect: Effect::External,
    for_agents: false,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let (cx, fields) = (call.cx, call.fields);
    let (address, kept) = repository(call).await?;
    let repo = Repo::read(&address)?;
    let given = fields
        .get("connection")
        .and_then(name_of)
        .map(|name| name.to_string());
    let asked = fields.name("provider")?;
    let named = given.or(kept);
    let connection = match &named {
        Some(name) => Some(connections::find(cx, name)?),
        None => None,
    };
    let backend = connection.as_ref().and_then(|it| it.backend.clone());
    let provider = Provider::of(asked.as_deref().or(backend.as_deref()), &repo)?;
    let connection = match connection {
        Some(connection) => connection,
        // The default connection is tried, so that one entry in the settings is enough for all flows.
        None if connections::is_known(cx, provider.name()) => {
            connections::find(cx, provider.name())?
        }
        None => return Err(change_request::without_connection(provider, &repo)),
    };
    let api = change_request::api(provider, &repo, connection.base_url.as_deref())?;
    let wanted = NewChangeRequest {
        branch: fields.text("branch")?.unwrap_or_default().to_string(),
        base: fields.name("base")?.map(|base| base.to_string()),
        title: fields.text("title")?.unwrap_or_default().to_string(),
        body: fields.text("body")?.unwrap_or_default().to_string(),
        draft: fields.bool("draft?")?.unwrap_or(false),
    };
    cx.emit(Progress::Status(format!("asking {}", repo.host)));
    let server = change_request::Server {
        secret_headers: vec![header(call, &connection, &host_of(&api))?],
        provider,
        api,
        repo,
        headers: connection.headers.clone(),
        route: crate::http::settings::usual(cx, &connection)?.route,
    };
    let opened = server.open(&wanted).await?;
    Ok(Outcome::Value(map([
        ("url", Value::from(opened.url)),
        ("number", Value::Int(opened.number)),
        ("created?", Value::Bool(opened.created)),
    ])))
}

/// Returns the address of the repository, and the name of the connection that the source was read with.
async fn repository(call: Call<'_>) -> Result<(String, Option<String>), StepError> {
    let readable = source::readable(call.cx, call.fields)?;
    let origin = match readable {
        Source::Spec(Spec::Git(repository)) => {
            return Ok((repository.repo, repository.connection));
        }
        Source::Spec(Spec::Folder(folder)) => Origin::Dir {
            path: folder.shown,
            ignored: false,
            hidden: false,
        },
        known @ (Source::Tree { .. } | Source::Changeset { .. }) => {
            let tree = call.files.tree(call.cx, &known).await?;
            tree.manifest.origin().cloned().ok_or_else(|| {
                StepError::new(
                    "E0796",
                    "bad-source",
                    "the repository of the source is not known",
                )
            })?
        }
    };
    let (folder, connection) = match origin {
        Origin::Dir { path, .. } => (call.cx.project_root().join(path), None),
        Origin::Git {
            repo, connection, ..
        } => match super::super::git::local_folder(call.cx.project_root(), &repo) {
            Some(folder) => (folder, connection),
            None => return Ok((repo, connection)),
        },
    };
    // For a repository on this machine, the push address counts.
    let address = blocking(move |cancelled| {
        let limit = Limit {
            cancelled,
            ..Limit::new(std::time::Duration::from_secs(30))
        };
        publish::remote_of(&folder, &limit)
    })
    .await?;
    Ok((address, connection))
}

/// Returns the header that authenticates requests.
fn header(
    call: Call<'_>,
    connection: &Connection,
    host: &Host,
) -> Result<(String, String), StepError> {
    let auth = match &connection.auth {
        Auth::Unsaid => Auth::Bearer { secret: None },
        auth => auth.clone(),
    };
    match auth.proof(call.cx, &connection.id, host)? {
        Proof::Header(name, value) => Ok((name, value)),
        Proof::None | Proof::Query(..) => Err(StepError::config(
            "E0796",
            format!(
                "the connection `:{}` sends no secret in a header",
                connection.id
            ),
        )
        .hint("GitHub and GitLab take `:auth {:type :bearer :secret-ref ...}`")),
    }
}
