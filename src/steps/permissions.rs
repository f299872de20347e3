//! The permissions of a project's flows: settings, connections and environment combined.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowstone_flow::flow::name_of;
use flowstone_flow::permission::{
    Allow, Decision, Grants, Known, ManifestError, Need, NetAllow, Permissions, Reach, decide,
    derived, read,
};
use flowstone_lang::reader::read_data;
use flowstone_lang::value::Value;
use reqwest::Url;

use crate::guard::{Zone, host_of, is_local_name, literal, zone};
use crate::llm::PROVIDERS;
use crate::settings::SettingsError;

/// Returns the permissions of the project's flows.
///
/// # Errors
/// When `:allow` cannot be read.
pub fn of_project(
    settings: &Value,
    root: &Path,
    home: &Path,
) -> Result<Permissions, SettingsError> {
    let wrong = |error: ManifestError| SettingsError::Wrong {
        message: error.message,
    };
    let resolve = |path: &str| absolute(root, path);
    let grants = |place: &str, value: Option<&Value>| match value {
        Some(value) => read(place, value, &resolve).map_err(wrong),
        None => Ok(Grants::default()),
    };
    let mut permissions = Permissions {
        defaults: Allow {
            read: vec![real(root)],
            write: vec![real(root)],
            home: real(home),
            net: Arc::new(NetAllow {
                public: true,
                ..NetAllow::default()
            }),
            programs: vec!["git".to_owned()],
            ..Allow::default()
        },
        derived: derived(settings, &known()),
        project: grants(":allow", settings.get("allow"))?,
        known: known(),
        ..Permissions::default()
    };
    let flows = settings.get("flows").and_then(Value::as_map);
    for (slug, flow) in flows.into_iter().flat_map(|map| map.iter()) {
        if let Some(slug) = name_of(slug) {
            let place = format!(":flows :{slug} :allow");
            let own = grants(&place, flow.get("allow"))?;
            permissions.flows.insert(slug.to_string(), own);
        }
    }
    Ok(permissions)
}

/// Reads recorded permissions.
///
/// # Errors
/// When one of them cannot be read.
pub fn of_rows(rows: &[String], root: &Path) -> Result<Allow, SettingsError> {
    let wrong = |message: String| SettingsError::Wrong { message };
    let mut allow = Allow::default();
    for row in rows {
        let value = read_data(row).map_err(|error| wrong(error.message))?;
        let grants = read(":allow", &value, &|path| absolute(root, path));
        allow.add(&grants.map_err(|error| wrong(error.message))?.allow);
    }
    Ok(allow)
}

/// Tells whether permissions cover an address, as far as this is known before its name is resolved.
pub fn may_reach(allow: &Allow, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let is_local = is_local_name(url.host_str().unwrap_or_default());
    let address = literal(&url).or(is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let host = host_of(&url);
    let Some(address) = address else {
        return allow.all || allow.net.may_cover(&host);
    };
    let need = Need::Net {
        host,
        address: Some(address),
        reach: match zone(address) {
            Zone::Public => Reach::Public,
            Zone::Loopback | Zone::Private => Reach::Private,
        },
    };
    matches!(decide(allow, &need), Decision::Granted)
}

/// Makes a path absolute, relative to a folder, and resolves links if it exists.
pub fn absolute(root: &Path, path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let path = match path
        .strip_prefix("~/")
        .and_then(|rest| Some(home()?.join(rest)))
    {
        Some(path) => path,
        None => root.join(path),
    };
    real(&path)
}

fn real(path: &Path) -> PathBuf {
    flowstone_flow::step::real_path(path)
}

/// Returns the servers that need no description in the settings.
fn known() -> Vec<Known> {
    let host = |url: &str| Url::parse(url).ok()?.host_str().map(str::to_owned);
    let providers = PROVIDERS.iter().map(|dialect| {
        let port = |url: &str| Url::parse(url).ok()?.port_or_known_default();
        let own = dialect
            .base_url
            .and_then(|url| Some((host(url)?, port(url)?)));
        let mut hosts: Vec<String> = own
            .into_iter()
            .map(|(host, port)| format!("{host}:{port}"))
            .collect();
        let mut keys: Vec<String> = dialect.keys().map(str::to_owned).collect();
        let mut variables = vec![dialect.base_variable()];
        match dialect.id {
            "bedrock" => {
                hosts.extend(["*.amazonaws.com:443", "*.amazonaws.com.cn:443"].map(str::to_owned));
                keys.extend(AWS_KEYS.map(str::to_owned));
            }
            "azure-openai" => hosts.push("*.openai.azure.com:443".to_owned()),
            "ollama" => variables.push("OLLAMA_HOST".to_owned()),
            _ => {}
        }
        Known {
            id: dialect.id.to_owned(),
            hosts,
            keys,
            variables,
        }
    });
    let forge = |id: &str, hosts: &[&str]| Known {
        id: id.to_owned(),
        hosts: hosts.iter().map(|host| format!("{host}:443")).collect(),
        ..Known::default()
    };
    providers
        .chain([
            forge("github", &["api.github.com", "github.com"]),
            forge("gitlab", &["gitlab.com"]),
        ])
        .collect()
}

/// The credentials of AWS, under their usual names.
const AWS_KEYS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];
