//! The project's settings: `flowstone.edn` beside the flows.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use flowstone_flow::dependencies::dependencies;
use flowstone_flow::diagnostic::nearest;
use flowstone_flow::duration;
use flowstone_flow::flow::name_of;
use flowstone_flow::permission;
use flowstone_flow::ports::Durability;
use flowstone_flow::proof::Network;
use flowstone_flow::resource::ResourceLimits;
use flowstone_flow::retention::Retention;
use flowstone_flow::rooted::read_regular;
use flowstone_flow::server_limits::ServerLimits;
use flowstone_lang::reader::read_data;
use flowstone_lang::value::{Sources, Span, Value};
use flowstone_model::limits::Limits;

use crate::llm::prices;
pub use crate::settings_error::SettingsError;
use crate::{connections, embedder, http, llm, secrets};

/// The name of the file.
pub const FILE: &str = "flowstone.edn";
/// The key under which [`load`] puts settings from the environment.
const ENVIRONMENT: &str = "environment";

const KEYS: &[&str] = &[
    "agent",
    "allow",
    "bindings",
    "connections",
    "deps",
    "durability",
    "flows",
    "http",
    "kit",
    "limits",
    "llm-providers",
    "paths",
    "prices",
    "profiles",
    "resources",
    "retention",
    "search",
    "secrets",
    "server",
    "setup",
    "waits",
];

/// A key inside a setting: a description of its values, and the check of a value.
type Inner = (&'static str, &'static str, fn(&Value) -> bool);

/// Settings of all agents of the project.
const AGENT: &[Inner] = &[
    ("max-depth", "a whole number from 0 to 16", is_depth),
    (
        "max-result-chars",
        "a whole number from 500 to 1000000",
        is_result_chars,
    ),
];
/// The server: its names, and the base of links to this project.
const SERVER: &[Inner] = &[
    (
        "hosts",
        "a vector of names such as [\"flows.example.com\"]",
        is_texts,
    ),
    (
        "limits",
        "a map such as {:connections 500 :webhook-body \"5MB\" :requests {:service 100}}",
        is_limits,
    ),
    (
        "mcp",
        "a map such as {:elicit-approvals true :wait \"50s\" :progress-wait \"3m\"}",
        is_mcp,
    ),
    ("metrics", "`:open`, or left out", is_open),
    (
        "origins",
        "a vector of origins such as [\"https://app.example.com\"]",
        is_texts,
    ),
    (
        "proxies",
        "a vector of addresses and ranges such as [\"10.0.0.0/8\"]",
        is_networks,
    ),
    (
        "public",
        "a vector of interfaces such as [\"slug/id\"]",
        is_texts,
    ),
    (
        "url",
        "an address such as \"https://flows.example.com\"",
        is_address,
    ),
    (
        "workspace-id",
        "a name for links, and not the first part of another address",
        is_workspace,
    ),
];
/// The build kit: which of its tools may be used, and which ask a person.
const KIT: &[Inner] = &[
    (
        "enable",
        "a vector of tools such as [:read_config]",
        is_names,
    ),
    (
        "permissions",
        "a map such as {:commit_revision :allow :test_run :deny}",
        is_kit_permissions,
    ),
    (
        "tokens",
        "permissions by the names of tokens, such as {\"ci\" {:commit_revision :deny}}",
        is_kit_tokens,
    ),
];
const WAITS: &[Inner] = &[(
    "max-timeout",
    "a length of time such as \"30d\"",
    is_duration,
)];

/// First parts of addresses of the server, which no workspace can have.
const RESERVED: &[&str] = &[
    "api", "assets", "docs", "healthz", "http", "mcp", "metrics", "r", "readyz", "runs", "v1",
    "waits",
];

fn is_workspace(value: &Value) -> bool {
    let name = value.as_str();
    is_text(value) && name.is_some_and(|name| !RESERVED.contains(&name) && !name.contains('/'))
}

fn is_networks(value: &Value) -> bool {
    let items = value.as_vector();
    items.is_some_and(|items| {
        let parsed = |item: &Value| item.as_str().and_then(Network::parse).is_some();
        items.iter().all(parsed)
    })
}

fn is_limits(value: &Value) -> bool {
    ServerLimits::read(value).is_ok()
}

fn is_address(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
}

fn is_depth(value: &Value) -> bool {
    value
        .as_int()
        .is_some_and(|depth| (0..=16).contains(&depth))
}

fn is_result_chars(value: &Value) -> bool {
    let chars = value.as_int();
    chars.is_some_and(|chars| (500..=1_000_000).contains(&chars))
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_texts(value: &Value) -> bool {
    value
        .as_vector()
        .is_some_and(|items| items.iter().all(is_text))
}

/// What clients of MCP may do, and how long their calls wait.
fn is_mcp(value: &Value) -> bool {
    let mut entries = value.as_map().into_iter().flat_map(|map| map.iter());
    value.as_map().is_some()
        && entries.all(|(key, value)| match name_of(key).as_deref() {
            Some("elicit-approvals") => matches!(value, Value::Bool(_)),
            Some("progress-wait" | "wait") => is_duration(value),
            _ => false,
        })
}

fn is_names(value: &Value) -> bool {
    let items = value.as_vector();
    items.is_some_and(|items| items.iter().all(|item| name_of(item).is_some()))
}

fn is_kit_permissions(value: &Value) -> bool {
    let is_permission = |value: &Value| {
        let name = name_of(value);
        name.is_some_and(|name| matches!(&*name, "allow" | "ask" | "deny"))
    };
    let map = value.as_map();
    map.is_some_and(|map| map.iter().all(|(_, value)| is_permission(value)))
}

fn is_kit_tokens(value: &Value) -> bool {
    let map = value.as_map();
    map.is_some_and(|map| map.iter().all(|(_, value)| is_kit_permissions(value)))
}

fn is_open(value: &Value) -> bool {
    value.as_keyword().is_some_and(|word| word.is("open"))
}

fn is_duration(value: &Value) -> bool {
    duration::of_value(value).is_some()
}

/// Checks the keys of a map inside the settings.
fn inner(place: &str, map: &Value, known: &[Inner]) -> Result<(), SettingsError> {
    let wrong = |message: String| SettingsError::Wrong { message };
    for (key, value) in map.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        let Some((_, words, fits)) = known.iter().find(|(known, ..)| *known == &*name) else {
            let known = known.iter().map(|(name, ..)| *name);
            return Err(wrong(flowstone_flow::diagnostic::unknown_key(
                &format!(":{place}"),
                &name,
                known,
            )));
        };
        if !fits(value) {
            return Err(wrong(format!("`:{place} :{name}` must be {words}")));
        }
    }
    Ok(())
}

/// Reads the settings of the project in a folder. Settings of model providers from the environment and `.env`, except
/// keys, are added under `:environment`.
///
/// # Errors
/// When the file cannot be read, is not one EDN map, or has an unknown key.
pub fn load(root: &Path) -> Result<Value, SettingsError> {
    let settings = read(root)?;
    let dotenv = secrets::dotenv(&root.join(".env"))?;
    let variables = llm::variables().into_iter().filter_map(|name| {
        let text = std::env::var(&name)
            .ok()
            .or_else(|| dotenv.get(&name).cloned())?;
        (!text.trim().is_empty()).then(|| (Value::keyword(&name), Value::from(text.trim())))
    });
    Ok(with_key(&settings, ENVIRONMENT, Value::map(variables)))
}

/// Returns the settings of model providers from the environment, as [`load`] found them.
pub fn environment(settings: &Value) -> BTreeMap<String, String> {
    let variables = settings.get(ENVIRONMENT).and_then(Value::as_map);
    let variables = variables.into_iter().flat_map(|map| map.iter());
    variables
        .filter_map(|(key, value)| Some((name_of(key)?.to_string(), value.as_str()?.to_owned())))
        .collect()
}

/// Returns settings with another environment.
pub fn with_environment(settings: &Value, variables: &BTreeMap<String, String>) -> Value {
    let variables = variables.iter();
    let variables =
        variables.map(|(name, text)| (Value::keyword(name), Value::from(text.as_str())));
    with_key(settings, ENVIRONMENT, Value::map(variables))
}

fn with_key(settings: &Value, key: &str, value: Value) -> Value {
    let mut entries = settings
        .as_map()
        .map(|map| map.entries().clone())
        .unwrap_or_default();
    entries.insert(Value::keyword(key), value);
    Value::map(
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    )
}

fn read(root: &Path) -> Result<Value, SettingsError> {
    let path = root.join(FILE);
    let unreadable = |cause: String| SettingsError::Unreadable {
        path: path.display().to_string(),
        cause,
    };
    let text = match read_regular(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Value::map([])),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let settings = read_data(&text).map_err(|error| {
        let place = place_in(&text, error.span);
        unreadable(format!("{}{place}", error.message))
    })?;
    let Some(entries) = settings.as_map() else {
        return Err(SettingsError::Wrong {
            message: format!("it takes a map, not {}", settings.kind()),
        });
    };
    for (key, value) in entries.iter() {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        if !KEYS.contains(&&*name) {
            let meant = nearest(&name, KEYS.iter().copied())
                .map(|near| format!("; did you mean `:{near}`?"))
                .unwrap_or_default();
            return Err(SettingsError::UnknownKey {
                message: format!("there is no key `:{name}`{meant}"),
            });
        }
        let fits = match &*name {
            "durability" => durability(value).is_some(),
            "llm-providers" | "paths" | "prices" => value.as_vector().is_some(),
            _ => value.as_map().is_some(),
        };
        if !fits {
            let message = match &*name {
                "durability" => "`:durability` is `:full` or `:relaxed`".to_owned(),
                "llm-providers" | "paths" | "prices" => {
                    format!("`:{name}` takes a vector, not {}", value.kind())
                }
                _ => format!("`:{name}` takes a map, not {}", value.kind()),
            };
            return Err(SettingsError::Wrong { message });
        }
        match &*name {
            "agent" => inner(&name, value, AGENT)?,
            "allow" => check_allow(":allow", value, &text)?,
            "deps" => check_deps(&settings)?,
            "flows" => check_flows(value, &text)?,
            "http" => inner(&name, value, http::settings::KEYS)?,
            "kit" => inner(&name, value, KIT)?,
            "server" => inner(&name, value, SERVER)?,
            "paths" => check_paths(value)?,
            "setup" => check_setup(value)?,
            "waits" => inner(&name, value, WAITS)?,
            _ => {}
        }
    }
    check_profiles(&settings)?;
    prices::check_settings(&settings).map_err(|message| SettingsError::Wrong { message })?;
    embedder::check_settings(&settings).map_err(|message| SettingsError::Wrong {
        message: message.replace("flowstone.edn ", ""),
    })?;
    Retention::read(&settings).map_err(|message| SettingsError::Wrong { message })?;
    Limits::read(&settings).map_err(|message| SettingsError::Wrong { message })?;
    ResourceLimits::read(&settings).map_err(|message| SettingsError::Wrong { message })?;
    Ok(settings)
}

/// Checks `:allow`, of the project or of a flow.
fn check_allow(place: &str, allow: &Value, text: &str) -> Result<(), SettingsError> {
    permission::check(place, allow).map_err(|error| {
        let is_placed = error.span.end > error.span.start;
        let place = is_placed.then(|| place_in(text, error.span));
        SettingsError::Wrong {
            message: format!("{}{}", error.message, place.unwrap_or_default()),
        }
    })
}

/// Checks `:flows`: settings of single flows, by their slugs.
fn check_flows(flows: &Value, text: &str) -> Result<(), SettingsError> {
    let wrong = |message: String| SettingsError::Wrong { message };
    for (slug, flow) in flows.as_map().into_iter().flat_map(|map| map.iter()) {
        let slug = name_of(slug).unwrap_or_else(|| "?".into());
        let Some(map) = flow.as_map() else {
            let kind = flow.kind();
            return Err(wrong(format!("`:flows :{slug}` takes a map, not {kind}")));
        };
        for (key, value) in map.iter() {
            match name_of(key).as_deref() {
                Some("allow") => check_allow(&format!(":flows :{slug} :allow"), value, text)?,
                key => {
                    let key = key.unwrap_or("?");
                    let message =
                        format!("`:flows :{slug}` has no key `:{key}`; it takes `:allow`");
                    return Err(wrong(message));
                }
            }
        }
    }
    Ok(())
}

/// Returns a path in the file, in brackets.
fn place_in(text: &str, span: Span) -> String {
    let mut sources = Sources::default();
    let id = sources.add(FILE, text);
    let place = sources.get(id).map(|source| source.line_column(span.start));
    place.map_or_else(String::new, |at| {
        format!(" (line {}, column {})", at.line, at.column)
    })
}

/// Checks the dependencies.
fn check_deps(settings: &Value) -> Result<(), SettingsError> {
    match dependencies(settings) {
        Ok(_) => Ok(()),
        Err(message) => Err(SettingsError::Wrong { message }),
    }
}

/// Checks the folders of shared code: they are in the project.
fn check_paths(paths: &Value) -> Result<(), SettingsError> {
    let wrong = |message: String| Err(SettingsError::Wrong { message });
    let Value::Vector(items) = paths else {
        return wrong(format!(
            "`:paths` takes a vector of folders, as in [\"lib\"], not {}",
            paths.kind()
        ));
    };
    for item in items.iter() {
        let Some(path) = item.as_str() else {
            return wrong(format!("`:paths` has {}: a folder is a text", item.kind()));
        };
        let mut parts = std::path::Path::new(path).components();
        let is_inside = !path.is_empty()
            && parts.all(|part| {
                matches!(
                    part,
                    std::path::Component::Normal(_) | std::path::Component::CurDir
                )
            });
        if !is_inside {
            return wrong(format!(
                "`:paths` has \"{path}\": a folder of shared code is in the project, such as \"lib\""
            ));
        }
    }
    Ok(())
}

/// Checks that `:setup` has a map of values for each flow.
fn check_setup(setup: &Value) -> Result<(), SettingsError> {
    let flows = setup.as_map().into_iter().flat_map(|map| map.iter());
    match flows
        .into_iter()
        .find(|(_, values)| values.as_map().is_none())
    {
        None => Ok(()),
        Some((slug, values)) => Err(SettingsError::Wrong {
            message: format!(
                "`:setup` has {} for `:{}`: it takes a map of values for each flow, by its slug",
                values.kind(),
                name_of(slug).unwrap_or_default()
            ),
        }),
    }
}

/// The keys of a profile.
const PROFILE: &[&str] = &[
    "bindings",
    "connections",
    "http",
    "llm-providers",
    "prices",
    "search",
    "secrets",
    "server",
];

/// Checks `:bindings`, and the profiles with theirs.
fn check_profiles(settings: &Value) -> Result<(), SettingsError> {
    let wrong = |message: String| SettingsError::Wrong { message };
    let entries = |value: Option<&Value>| {
        let map = value.and_then(Value::as_map);
        map.map(|map| map.entries().clone()).unwrap_or_default()
    };
    let bindings = |place: &str, of: &Value| {
        for (slot, binding) in entries(of.get("bindings")).iter() {
            let slot = name_of(slot).unwrap_or_else(|| "?".into());
            connections::check_binding(binding)
                .map_err(|why| wrong(format!("`{place}:bindings :{slot}` {why}")))?;
        }
        Ok(())
    };
    bindings("", settings)?;
    for (name, profile) in entries(settings.get("profiles")).iter() {
        let name = name_of(name).unwrap_or_else(|| "?".into());
        let place = format!(":profiles :{name}");
        let Some(map) = profile.as_map() else {
            let kind = profile.kind();
            return Err(wrong(format!("`{place}` takes a map, not {kind}")));
        };
        for (key, value) in map.iter() {
            let key = name_of(key).unwrap_or_else(|| "?".into());
            if !PROFILE.contains(&&*key) {
                let known = PROFILE.iter().copied();
                return Err(wrong(flowstone_flow::diagnostic::unknown_key(
                    &place, &key, known,
                )));
            }
            let fits = match &*key {
                "llm-providers" | "paths" | "prices" => value.as_vector().is_some(),
                _ => value.as_map().is_some(),
            };
            if !fits {
                let kind = value.kind();
                let takes = match &*key {
                    "llm-providers" | "prices" => "a vector",
                    _ => "a map",
                };
                return Err(wrong(format!("`{place} :{key}` takes {takes}, not {kind}")));
            }
            if &*key == "http" {
                inner(
                    &format!("{} :http", &place[1..]),
                    value,
                    http::settings::KEYS,
                )?;
            }
        }
        bindings(&format!("{place} "), profile)?;
    }
    Ok(())
}

/// Returns the durability of commits in this project.
pub fn of_durability(settings: &Value) -> Durability {
    settings
        .get("durability")
        .and_then(durability)
        .unwrap_or_default()
}

fn durability(value: &Value) -> Option<Durability> {
    match &*name_of(value)? {
        "full" => Some(Durability::Full),
        "relaxed" => Some(Durability::Relaxed),
        _ => None,
    }
}
