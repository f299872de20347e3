//! Addresses that programs wrote into the text of a flow, and that no person has confirmed.
//!
//! A slot of `:requires` may name its own `:base-url`. When a program adds or changes such a slot, by a commit of the kit or from a
//! run, it is noted, and the slot counts as unbound: nothing of the kit runs the flow, and the connection is asked for. A person confirms the address
//! with an entry for the slot in `flowstone.edn`, or by releasing a version that has the slot as it is; a release by the token that
//! wrote the address confirms nothing.

use std::collections::BTreeSet;
use std::rc::Rc;

use flowstone_flow::definition::{Flow, is_identifier};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::items;
use flowstone_model::registry::{Target, VersionFiles};
use flowstone_project::addresses::{self, addressed};
use flowstone_project::registry::{RegistryError, VersionRef};
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::flows::{bound_flow, flow_named, flow_of};

/// The name of the owner's token.
const OWNER: &str = "owner";

/// A slot whose address nobody has confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfirmed {
    pub slot: String,
    pub base_url: String,
}

impl Unconfirmed {
    /// Returns what is wrong with the connection, for a person.
    pub fn problem(&self) -> String {
        format!(
            "a program wrote its address `{}` into the flow, and no person has confirmed it",
            self.base_url
        )
    }
}

/// Notes the slots whose addresses a commit adds or changes, and returns the warnings about them.
///
/// # Errors
/// When the store cannot be written.
pub async fn note(
    cx: &KitCall<'_>,
    before: &VersionFiles,
    files: &VersionFiles,
) -> Result<Vec<Json>, KitError> {
    let slug = cx.flow()?;
    let old = flow_of(cx, slug, before.clone());
    let Some(new) = flow_of(cx, slug, files.clone()) else {
        return Ok(Vec::new());
    };
    let place = (cx.engine.stores(), cx.engine.now_ms());
    let by = cx.token.attributed_to();
    addresses::note(place, (cx.workspace, slug), (old.as_deref(), &new), by).await?;
    let found = of_flow(cx, slug, &new).await?;
    let warnings = found.iter().map(|slot| {
        json!({
            "severity": "warning",
            "code": "connection_not_ready",
            "message": format!("the connection `{}` is not ready: {}", slot.slot, slot.problem()),
            "file": "flow.edn",
            "line": null,
            "column": null,
            "hints": ["call `request_connection`, and let the person complete it"],
        })
    });
    Ok(warnings.collect())
}

/// Returns the slots of the bound flow whose addresses nobody has confirmed.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_bound(cx: &KitCall<'_>, flow: &Flow) -> Result<Vec<Unconfirmed>, KitError> {
    of_flow(cx, cx.flow()?, flow).await
}

async fn of_flow(cx: &KitCall<'_>, slug: &str, flow: &Flow) -> Result<Vec<Unconfirmed>, KitError> {
    let mut found = Vec::new();
    let mut live = None;
    for slot in addressed(flow) {
        if is_described(cx, &slot.slot) {
            continue;
        }
        let of = (cx.workspace, slug);
        let Some(writer) = addresses::writer(cx.engine.stores(), of, &slot).await? else {
            continue;
        };
        let live = match &live {
            Some(live) => live,
            None => live.insert(live_flow(cx, slug).await?),
        };
        let is_released = live.as_ref().is_some_and(|(live, by)| {
            addresses::find(live, &slot.slot).is_some_and(|it| it.text == slot.text)
                && may_confirm(by, &writer)
        });
        if !is_released {
            found.push(Unconfirmed {
                slot: slot.slot,
                base_url: slot.base_url,
            });
        }
    }
    Ok(found)
}

/// Tells whether a release confirms what a program wrote: not if the program's own token made it. The owner's token is that of
/// a person and of the programs that the person starts, and cannot be told apart.
fn may_confirm(by: &str, writer: &str) -> bool {
    by != writer || by == OWNER
}

/// Refuses to run the bound flow if it has such a slot, or may call a flow that has one.
///
/// # Errors
/// `connection_not_ready`.
pub async fn check(cx: &KitCall<'_>, flow: &Flow) -> Result<(), KitError> {
    let slug = cx.flow()?;
    if let Some(found) = of_flow(cx, slug, flow).await?.first() {
        return Err(refused(found, None));
    }
    let noted = addresses::flows(cx.engine.stores(), cx.workspace).await?;
    if noted.iter().all(|noted| noted == slug) {
        return Ok(());
    }
    let mut seen = BTreeSet::from([slug.to_owned()]);
    let mut pending = names(flow);
    while let Some(name) = pending.pop_first() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(called) = flow_named(cx, &name).await? else {
            continue;
        };
        if let Some(found) = of_flow(cx, &name, &called).await?.first() {
            return Err(refused(found, Some(&name)));
        }
        pending.append(&mut names(&called));
    }
    Ok(())
}

/// Returns the error about a slot of the bound flow, or of one that it may call.
fn refused(found: &Unconfirmed, of: Option<&str>) -> KitError {
    let mut details = json!({
        "slug": found.slot,
        "mode": "api_key",
        "base_url": found.base_url,
        "problem": found.problem(),
    });
    let Some(of) = of else {
        return KitError::connection_not_ready(&found.slot, details);
    };
    details["flow"] = json!(of);
    KitError::connection_not_ready(&found.slot, details).next(format!(
        "the slot is in the flow `{of}`, which this flow may call: `request_connection` at that flow, and let the person complete it"
    ))
}

/// Returns what a flow names: what it can call is among it, whichever step, agent or packaged step calls it.
fn names(flow: &Flow) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(&flow.definition, &mut names);
    collect(&flow.body, &mut names);
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    if let Some(name) = name_of(value) {
        if is_identifier(&name) {
            names.insert(name.to_string());
        }
        return;
    }
    if let Some(map) = value.as_map() {
        for (key, value) in map.iter() {
            collect(key, names);
            collect(value, names);
        }
        return;
    }
    for item in items(value).unwrap_or_default() {
        collect(&item, names);
    }
}

/// As [`check`], for the newest revision of the bound flow.
///
/// # Errors
/// `connection_not_ready`.
pub async fn check_bound(cx: &KitCall<'_>) -> Result<(), KitError> {
    match bound_flow(cx).await? {
        Some(flow) => check(cx, &flow).await,
        None => Ok(()),
    }
}

/// Tells whether the settings say where a slot leads.
fn is_described(cx: &KitCall<'_>, slot: &str) -> bool {
    let settings = cx.engine.settings();
    let bound = settings.get("bindings").and_then(|it| it.get(slot));
    let named = bound.and_then(|it| name_of(it).or_else(|| it.get("conn").and_then(name_of)));
    let inline = bound.filter(|it| it.as_map().is_some());
    let name = named.as_deref().unwrap_or(slot);
    let entry = settings.get("connections").and_then(|it| it.get(name));
    let has_address = |entry: &Value| entry.get("base-url").is_some_and(|it| !it.is_nil());
    inline.is_some_and(has_address) || entry.is_some_and(has_address)
}

/// Returns the released version of a flow, and who released it.
async fn live_flow(cx: &KitCall<'_>, slug: &str) -> Result<Option<(Rc<Flow>, String)>, KitError> {
    let registry = cx.registry();
    let live = VersionRef::Target(Target::Live);
    let row = match registry.version(slug, &live).await {
        Ok(row) => row,
        Err(
            RegistryError::NoVersion { .. }
            | RegistryError::NoFlow { .. }
            | RegistryError::NotReleased { .. },
        ) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let files = registry.files(&row).await?;
    let releases = registry.releases(slug, 1).await?;
    let by = releases.into_iter().next().map(|it| it.author);
    Ok(flow_of(cx, slug, files).map(|flow| (flow, by.unwrap_or_default())))
}
