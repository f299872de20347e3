//! Addresses that programs wrote into the texts of flows, and that no person has confirmed.
//!
//! A slot of `:requires` may name its own `:base-url`. A program that commits such a text, through the build kit or from a run, is
//! noted here. A note is never replaced by another one, so what a commit that fails has noted changes nothing for what the flow has.

use std::collections::BTreeSet;

use flowstone_engine::EngineError;
use flowstone_engine::ports::Stores;
use flowstone_flow::definition::Flow;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::codec::{self, digest_bytes};
use serde_json::{Value as Json, json};

use crate::rows::Rows;

/// The slots, by workspace, flow, slot and the digest of where it leads.
const SLOTS: Rows = Rows("flowstone_kit_slots");
/// The keys of a slot that say where it leads, and with what.
const KEYS: [&str; 4] = ["type", "backend", "base-url", "auth"];

/// A slot that names an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressed {
    pub slot: String,
    pub base_url: String,
    /// Where the slot leads, as EDN text.
    pub text: String,
}

/// Returns the slots of a flow that name an address.
pub fn addressed(flow: &Flow) -> Vec<Addressed> {
    let entries = flow.requires.as_vector().into_iter();
    let entries = entries.flat_map(|entries| entries.iter());
    let slots = entries.filter_map(|entry| entry.get("slot").and_then(name_of));
    slots.filter_map(|slot| find(flow, &slot)).collect()
}

/// Returns a slot, if it names an address.
pub fn find(flow: &Flow, slot: &str) -> Option<Addressed> {
    let entry = flow.requirement(slot)?;
    let base_url = entry.get("base-url")?.as_str()?.to_string();
    let parts = KEYS.map(|key| entry.get(key).cloned().unwrap_or(Value::Nil));
    Some(Addressed {
        slot: slot.to_owned(),
        base_url,
        text: codec::encode(&Value::vector(parts)).ok()?,
    })
}

/// Notes the slots whose addresses a program adds or changes. `by` is the program, as the log of releases names it.
///
/// # Errors
/// When the store cannot be written.
pub async fn note(
    (stores, now_ms): (&Stores, i64),
    (workspace, slug): (&str, &str),
    (old, new): (Option<&Flow>, &Flow),
    by: &str,
) -> Result<(), EngineError> {
    for slot in addressed(new) {
        let before = old.and_then(|old| find(old, &slot.slot));
        if before.is_some_and(|before| before.text == slot.text) {
            continue;
        }
        let row = json!({
            "workspace": workspace, "flow": slug, "slot": slot.slot, "text": slot.text, "by": by,
        });
        let op = SLOTS.putting(&key((workspace, slug), &slot), &row);
        stores.tables.apply(op, now_ms).await?;
    }
    Ok(())
}

/// Returns the program that wrote the address of a slot, if one did.
///
/// # Errors
/// When the store cannot be read.
pub async fn writer(
    stores: &Stores,
    of: (&str, &str),
    slot: &Addressed,
) -> Result<Option<String>, EngineError> {
    let row = SLOTS.get_in(stores, &key(of, slot)).await?;
    Ok(row.map(|row| row["by"].as_str().unwrap_or_default().to_owned()))
}

/// Returns the flows of a workspace for which addresses are noted.
///
/// # Errors
/// When the store cannot be read.
pub async fn flows(stores: &Stores, workspace: &str) -> Result<BTreeSet<String>, EngineError> {
    let rows: Vec<Json> = SLOTS.list_in(stores).await?;
    let own = rows.iter().filter(|row| row["workspace"] == workspace);
    let slugs = own.filter_map(|row| row["flow"].as_str());
    Ok(slugs.map(str::to_owned).collect())
}

fn key((workspace, slug): (&str, &str), slot: &Addressed) -> String {
    let digest = digest_bytes(slot.text.as_bytes());
    format!("{workspace}/{slug}/{}/{digest}", slot.slot)
}
