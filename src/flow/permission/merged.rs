//! Missing permissions as text for `flowstone.edn`: each key once, so that the lines can be pasted together.

use super::line::{Missing, in_edn, key_of_name};
use super::{Access, OwnRows};

/// Returns the entries of `flowstone.edn` that grant all these permissions: at most one `:allow` and one `:flows`.
pub fn merged_lines(missing: &[Missing]) -> Vec<String> {
    let own = |flow: Option<&OwnRows>| {
        let rows = missing
            .iter()
            .filter(|it| slug(it.own.as_ref()) == slug(flow));
        format!(":allow {}", allow(&rows.collect::<Vec<_>>()))
    };
    let is_of_project = missing.iter().any(|it| it.own.is_none());
    let mut lines: Vec<String> = is_of_project.then(|| own(None)).into_iter().collect();
    let mut flows: Vec<&OwnRows> = Vec::new();
    for flow in missing.iter().filter_map(|it| it.own.as_ref()) {
        if !flows.iter().any(|known| known.slug == flow.slug) {
            flows.push(flow);
        }
    }
    let entries = flows.iter().map(|flow| {
        let name = key_of_name(&flow.slug);
        format!("{name} {{{}}}", own(Some(flow)))
    });
    let entries: Vec<String> = entries.collect();
    if !entries.is_empty() {
        lines.push(format!(":flows {{{}}}", entries.join(" ")));
    }
    lines
}

fn slug(flow: Option<&OwnRows>) -> Option<&str> {
    flow.map(|flow| &*flow.slug)
}

/// Returns the map of `:allow` with these rows.
fn allow(missing: &[&Missing]) -> String {
    let parts = Access::ALL.iter().filter_map(|access| {
        let rows = missing.iter().filter(|it| it.access == *access);
        let rows: Vec<&Missing> = rows.copied().collect();
        if rows.is_empty() {
            return None;
        }
        let value = match access {
            Access::Secret => secrets(&rows),
            Access::Read | Access::Write | Access::Net | Access::Program | Access::Env => {
                items(&rows)
            }
        };
        Some(format!(":{} {value}", access.key()))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(" "))
}

/// Returns the secrets with their hosts.
fn secrets(rows: &[&Missing]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in rows.iter().filter_map(|it| it.secret.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let entries = names.iter().map(|name| {
        let hosts = rows.iter().filter(|it| it.secret.as_deref() == Some(name));
        let hosts: Vec<&Missing> = hosts.copied().collect();
        format!("{} {}", key_of_name(name), items(&hosts))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
}

/// Returns a vector of items, each once.
fn items(rows: &[&Missing]) -> String {
    let mut items: Vec<String> = Vec::new();
    for row in rows {
        let item = in_edn(&row.item);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    format!("[{}]", items.join(" "))
}
