//! Reads `:allow` of `flowstone.edn`, and the command-line options with the same meaning.

use std::path::PathBuf;
use std::sync::Arc;

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;

use super::{Access, Allow, Grants, NetAllow, NetRow, SecretRow};
use crate::diagnostic::unknown_key;
use crate::json::items;

/// The keys of `:allow`.
pub const KEYS: &[&str] = &[
    "defaults", "env", "net", "programs", "read", "secrets", "write",
];

/// The name of all public addresses in `:net`.
const PUBLIC: &str = "public";

/// An error in `:allow`, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ManifestError {
    pub message: String,
    pub span: Span,
}

/// Makes the paths of rows absolute.
pub(super) type Resolve<'a> = &'a dyn Fn(&str) -> PathBuf;

/// Reads `:allow`. `place` is its name in errors.
///
/// # Errors
/// Fails if a key is unknown or a row cannot be read.
pub fn read(place: &str, value: &Value, resolve: Resolve<'_>) -> Result<Grants, ManifestError> {
    let Some(map) = value.as_map() else {
        return Err(wrong(
            value,
            format!("`{place}` takes a map, not {}", value.kind()),
        ));
    };
    let mut grants = Grants::default();
    for (key, rows) in map.iter() {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        let at = format!("{place} :{name}");
        let access = Access::ALL.into_iter().find(|it| it.key() == &*name);
        match access {
            Some(Access::Secret) => secrets(&at, rows, &mut grants.allow)?,
            Some(access) => {
                for row in list(&at, rows)? {
                    text_of(access, &row)
                        .and_then(|text| add(&mut grants.allow, access, &text, resolve))
                        .map_err(|why| wrong(rows, format!("`{at}` {why}")))?;
                }
            }
            None if &*name == "defaults" => match rows {
                Value::Bool(has) => grants.has_defaults = *has,
                other => {
                    let message = format!("`{at}` takes true or false, not {}", other.kind());
                    return Err(wrong(value, message));
                }
            },
            None => {
                let message = unknown_key(place, &name, KEYS.iter().copied());
                return Err(wrong(value, message));
            }
        }
    }
    Ok(grants)
}

/// Returns the text of a row.
fn text_of(access: Access, row: &Value) -> Result<String, String> {
    let accepted = match access {
        Access::Read | Access::Write => "paths such as \"data\"",
        Access::Net => "hosts such as \"api.internal:8443\"",
        Access::Program => "programs such as \"node\"",
        Access::Env => "variables such as \"CI_TOKEN\"",
        Access::Secret => "names of secrets with their hosts",
    };
    match (row.as_str(), access) {
        (Some(text), _) if text.trim().is_empty() => {
            let all = match access {
                Access::Read | Access::Write => "; the project's folder is \".\"",
                _ => "",
            };
            Err(format!(
                "contains an empty string; it takes {accepted}{all}"
            ))
        }
        (Some(text), _) => Ok(text.to_owned()),
        (None, Access::Net) if name_of(row).is_some_and(|it| &*it == PUBLIC) => {
            Ok(format!(":{PUBLIC}"))
        }
        (None, _) => Err(format!("contains {}; it takes {accepted}", row.kind())),
    }
}

/// Checks `:allow` without resolving its paths.
///
/// # Errors
/// As [`read`].
pub fn check(place: &str, value: &Value) -> Result<(), ManifestError> {
    read(place, value, &|path| PathBuf::from(path)).map(drop)
}

/// Adds the permission that an option allows.
///
/// # Errors
/// A message that states why the row cannot be read.
pub fn add_flag(
    allow: &mut Allow,
    access: Access,
    text: &str,
    resolve: Resolve<'_>,
) -> Result<(), String> {
    let Some((name, hosts)) = text.split_once('=').filter(|_| access == Access::Secret) else {
        return match access {
            Access::Secret => Err("takes NAME=HOST, as in crm-token=api.example.com".to_owned()),
            access => add(allow, access, text, resolve),
        };
    };
    let hosts = hosts.split(',').map(host).collect::<Result<_, _>>()?;
    allow.secrets.push(SecretRow {
        name: name.trim_start_matches(':').to_owned(),
        hosts,
    });
    Ok(())
}

fn add(allow: &mut Allow, access: Access, text: &str, resolve: Resolve<'_>) -> Result<(), String> {
    match access {
        Access::Read => allow.read.push(resolve(text)),
        Access::Write => allow.write.push(resolve(text)),
        Access::Net => {
            let net: &mut NetAllow = Arc::make_mut(&mut allow.net);
            match text.strip_prefix(':') {
                Some(PUBLIC) => net.public = true,
                _ => net.rows.push(host(text)?),
            }
        }
        Access::Program => allow.programs.push(text.to_owned()),
        Access::Env => allow.env.push(text.to_owned()),
        Access::Secret => {}
    }
    Ok(())
}

fn host(text: &str) -> Result<NetRow, String> {
    NetRow::read(text).ok_or_else(|| {
        format!(
            "contains {text:?}, which is not a host; write `\"api.internal\"`, `\"*.internal:8443\"`, `\"10.0.0.0/8\"`, or `:public` for all public addresses"
        )
    })
}

fn secrets(at: &str, rows: &Value, allow: &mut Allow) -> Result<(), ManifestError> {
    let Some(map) = rows.as_map() else {
        let message = format!(
            "`{at}` takes a map of names and hosts, such as `{{:crm-token [\"crm.example.com\"]}}`, not {}",
            rows.kind()
        );
        return Err(wrong(rows, message));
    };
    for (key, hosts) in map.iter() {
        let Some(name) = name_of(key).filter(|name| !name.is_empty()) else {
            let message = format!("`{at}` has {} as a name", key.kind());
            return Err(wrong(rows, message));
        };
        let place = format!("{at} :{name}");
        let mut read = Vec::new();
        for item in list(&place, hosts)? {
            let text = item.as_str().unwrap_or_default();
            read.push(host(text).map_err(|why| wrong(hosts, format!("`{place}` {why}")))?);
        }
        allow.secrets.push(SecretRow {
            name: name.to_string(),
            hosts: read,
        });
    }
    Ok(())
}

fn list(at: &str, rows: &Value) -> Result<Vec<Value>, ManifestError> {
    items(rows).ok_or_else(|| {
        wrong(
            rows,
            format!("`{at}` takes a vector of strings, not {}", rows.kind()),
        )
    })
}

fn wrong(value: &Value, message: String) -> ManifestError {
    ManifestError {
        message,
        span: value.span(),
    }
}
