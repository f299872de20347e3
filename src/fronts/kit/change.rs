//! What a call that waits for a person would change, so that the person need not read a delta.

use flowstone_engine::Engine;
use flowstone_model::triggers::TriggerRow;
use flowstone_project::registry::{
    DEFAULT_WORKSPACE, FlowRegistry, RegistryError, VersionFiles, VersionRef, diff,
};
use serde_json::Value as Json;

use super::approval::LinkedApproval;
use super::delta;
use super::error::KitError;

/// The names of both sides in a diff.
const SIDES: (&str, &str) = ("now", "after");

/// What a call would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Texts of the flow, as a unified diff.
    Texts(String),
    /// The delta changes nothing.
    Nothing,
    /// The delta cannot be applied to the newest revision, and why.
    Unclear(String),
    /// A schedule or a subscription that exists: names of its parts, and what they are.
    Trigger(Vec<(&'static str, String)>),
    /// The call has no delta: its arguments say what it does.
    InArguments,
}

impl Changes {
    /// Returns what a call would change now.
    pub async fn of(engine: &Engine, approval: &LinkedApproval) -> Changes {
        let Some(slug) = &approval.target else {
            return Changes::InArguments;
        };
        let (delta, id) = (
            approval.arguments.get("delta"),
            approval.arguments["id"].as_str(),
        );
        match (delta, id) {
            (Some(delta), _) => {
                let found = of_delta(engine, slug, delta).await;
                found.unwrap_or_else(|error| Changes::Unclear(error.message))
            }
            (None, Some(id)) => match engine.stores().triggers.trigger(id).await {
                Ok(Some(row)) if row.flow.slug == *slug => Changes::Trigger(parts(&row)),
                Ok(_) | Err(_) => Changes::InArguments,
            },
            (None, None) => Changes::InArguments,
        }
    }
}

/// Returns what a person needs to know a schedule or a subscription.
fn parts(row: &TriggerRow) -> Vec<(&'static str, String)> {
    let state = match row.is_active {
        true => "active",
        false => "paused",
    };
    let all = [
        ("Name", row.name.clone()),
        ("Event", Some(row.event_key.clone())),
        ("Schedule", row.schedule.clone()),
        ("Connection", row.connection.clone()),
        ("Inputs", row.inputs_fields.clone()),
        ("State", Some(state.to_owned())),
    ];
    let all = all.into_iter();
    all.filter_map(|(name, text)| Some((name, text?))).collect()
}

async fn of_delta(engine: &Engine, slug: &str, delta: &Json) -> Result<Changes, KitError> {
    let registry = FlowRegistry::in_workspace(engine.stores(), DEFAULT_WORKSPACE, engine.now_ms());
    let before = newest(&registry, slug).await?;
    let after = delta::apply(&before, delta, "/delta")?;
    let changed = diff(&before, &after, SIDES);
    if changed.files.is_empty() {
        return Ok(Changes::Nothing);
    }
    let files = changed.files.iter().map(|file| match file.diff.is_empty() {
        true => format!("{} is {}\n", file.path, file.change.name()),
        false => file.diff.clone(),
    });
    Ok(Changes::Texts(files.collect()))
}

/// Returns the texts of the newest revision; none of a flow that does not exist yet.
async fn newest(registry: &FlowRegistry, slug: &str) -> Result<VersionFiles, RegistryError> {
    let Some(row) = registry.find(slug).await? else {
        return Ok(VersionFiles::new());
    };
    let head = VersionRef::Number(row.head);
    let head = registry.version(slug, &head).await?;
    registry.files(&head).await
}
