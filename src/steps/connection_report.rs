//! Reports the connections of a project, with the sources of their secrets.

use std::path::Path;

use flowstone_flow::flow::{Flow, name_of};
use flowstone_lang::value::Value;
use flowstone_model::ports::Secrets;

pub use crate::connection_facts::{
    ConnectionReport, ConnectionTest, LoginReport, LoginState, SecretReport, Verdict,
};
use crate::connections::{Auth, Binding, Connection, binding, resolve, setting};
use crate::json::items;
use crate::llm::PROVIDERS;
use crate::llm::dialect::Dialect;

/// The sources in which connections are looked up.
#[derive(Clone, Copy)]
pub struct ConnectionSources<'a> {
    pub settings: &'a Value,
    pub profile: Option<&'a str>,
    pub secrets: &'a dyn Secrets,
    /// The folder of the project's data, with the logins.
    pub home: &'a Path,
    pub now_ms: i64,
}

/// Returns the slots of flows, the connections in the settings, and the providers in the environment, in this order.
pub fn report(around: &ConnectionSources<'_>, flows: &[&Flow]) -> Vec<ConnectionReport> {
    let mut reports = Vec::new();
    let settings = around.settings;
    for flow in flows {
        for slot in items(&flow.requires).unwrap_or_default() {
            if let Some(name) = slot.get("slot").and_then(name_of) {
                reports.push(of_slot(around, flow, &name, &slot));
            }
        }
    }
    let bare = Flow::bare("none", Value::Nil);
    for name in names(settings.get("connections")) {
        reports.push(of_name(around, &bare, &name, "flowstone.edn"));
    }
    for provider in settings
        .get("llm-providers")
        .and_then(items)
        .unwrap_or_default()
    {
        let name = provider.get("id").and_then(name_of);
        let name = name.filter(|name| setting(settings, name).is_none());
        reports.extend(name.map(|name| of_provider(around, &name, &provider)));
    }
    for dialect in PROVIDERS {
        let is_known = reports.iter().any(|it| it.name == dialect.id);
        if !is_known && is_in_environment(around, dialect) {
            reports.push(of_environment(around, dialect));
        }
    }
    reports
}

/// Returns the names in a map, sorted.
fn names(map: Option<&Value>) -> Vec<String> {
    let map = map.and_then(Value::as_map);
    let names = map.into_iter().flat_map(|map| map.iter());
    let mut names: Vec<String> = names
        .filter_map(|(key, _)| Some(name_of(key)?.to_string()))
        .collect();
    names.sort();
    names
}

fn of_slot(
    around: &ConnectionSources<'_>,
    flow: &Flow,
    name: &str,
    slot: &Value,
) -> ConnectionReport {
    let mut report = of_name(around, flow, name, &flow.slug);
    report.is_optional = matches!(slot.get("optional"), Some(Value::Bool(true)));
    if report.kind == "secret" {
        let named = slot.get("secret-ref").and_then(name_of);
        let named = named.map_or_else(|| name.to_owned(), |it| it.to_string());
        report.secret = Some(secret(around, &[named]));
        report.problem = None;
    }
    report
}

fn of_name(
    around: &ConnectionSources<'_>,
    flow: &Flow,
    name: &str,
    source: &str,
) -> ConnectionReport {
    let settings = around.settings;
    let slot = flow.requirement(name);
    let bound = match binding(settings, name) {
        Some(Binding::To(bound)) => Some(bound.to_string()),
        Some(Binding::Inline(_)) | None => None,
    };
    let configured = setting(settings, bound.as_deref().unwrap_or(name));
    let text = |key: &str| {
        let text = configured
            .and_then(|it| it.get(key))
            .or_else(|| slot?.get(key));
        text.and_then(name_of).map(|it| it.to_string())
    };
    let kind = text("type").unwrap_or_else(|| "http-api".to_owned());
    let mut report = ConnectionReport {
        name: name.to_owned(),
        source: source.to_owned(),
        kind,
        backend: text("backend"),
        base_url: None,
        bound_to: bound,
        is_optional: false,
        secret: None,
        login: None,
        problem: None,
    };
    match resolve(settings, flow, name) {
        Err(error) => report.problem = Some(error.message),
        Ok(connection) => {
            describe(around, &mut report, &connection);
            if let (None, Some(kind)) = (text("type"), kind_of_address(&report)) {
                kind.clone_into(&mut report.kind);
            }
        }
    }
    report
}

/// Returns the type of a connection whose address says what it leads to.
fn kind_of_address(report: &ConnectionReport) -> Option<&'static str> {
    match report.base_url.as_deref()?.split_once(':')?.0 {
        "mariadb" | "mysql" | "postgres" | "postgresql" | "sqlite" => Some("database"),
        "smtp" | "smtps" => Some("smtp"),
        "ssh" => Some("ssh"),
        _ => None,
    }
}

/// Adds the facts of a connection, and those of its provider.
fn describe(
    around: &ConnectionSources<'_>,
    report: &mut ConnectionReport,
    connection: &Connection,
) {
    let dialect = connection.backend.as_deref();
    let dialect = dialect.and_then(|id| PROVIDERS.iter().find(|it| it.id == id));
    report.backend.clone_from(&connection.backend);
    let base_url = connection.base_url.clone();
    let base_url = base_url.or_else(|| usual_address(around, dialect?));
    report.base_url = base_url.map(|url| crate::shown_url::without_password(&url));
    if let Auth::Login(oauth) = &connection.auth {
        match crate::oauth::state(around.home, oauth, around.now_ms) {
            Ok(login) => {
                report.problem = (login.state == LoginState::NeedsLogin).then(|| {
                    format!(
                        "nobody is logged in: `flowstone connections login {}`",
                        connection.id
                    )
                });
                report.login = Some(login);
            }
            Err(error) => report.problem = Some(error.message),
        }
        return;
    }
    let own = match connection.id.as_str() {
        "" => dialect.map_or("", |it| it.id),
        id => id,
    };
    let names = match (&connection.auth, dialect) {
        (Auth::None, _) | (Auth::Unsaid, None) => return,
        (auth, dialect) => match auth.secret_name() {
            Some(name) => vec![name.to_owned()],
            // A provider without a key needs none, whatever the flow sets for keys in general.
            None if dialect.is_some_and(|it| it.keys().next().is_none()) => return,
            None => {
                let keys = dialect
                    .into_iter()
                    .flat_map(|it| it.keys().map(str::to_owned));
                let own = ["-api-key", "-token", ""].map(|ending| format!("{own}{ending}"));
                let own = own.into_iter().filter(|_| !own_is_guess(auth));
                keys.chain(own).collect()
            }
        },
    };
    if !names.is_empty() {
        report.secret = Some(secret(around, &names));
    }
}

/// Tells whether no setting names a key, so that only the provider's own key is looked up.
fn own_is_guess(auth: &Auth) -> bool {
    *auth == Auth::Unsaid
}

/// Returns the first of these secrets that is set; otherwise the first one, as missing.
fn secret(around: &ConnectionSources<'_>, names: &[String]) -> SecretReport {
    let profile = around.profile;
    let secrets = around.secrets;
    let is_set = |name: &str| secrets.find_in(profile, name).is_some();
    let set = names.iter().find(|name| is_set(name));
    let name = set.unwrap_or(&names[0]);
    let place = secrets.problem(profile, name);
    SecretReport {
        name: name.clone(),
        place: place.unwrap_or_else(|| secrets.place(profile, name)),
        is_set: set.is_some(),
    }
}

fn of_provider(around: &ConnectionSources<'_>, name: &str, provider: &Value) -> ConnectionReport {
    let mut connection = Connection {
        id: name.to_owned(),
        ..Connection::default()
    };
    let problem = connection.add(":llm-providers", provider).err();
    let family = provider.get("family").and_then(name_of);
    let mut report = ConnectionReport {
        name: name.to_owned(),
        source: "flowstone.edn".to_owned(),
        kind: "llm-provider".to_owned(),
        backend: None,
        base_url: None,
        bound_to: None,
        is_optional: false,
        secret: None,
        login: None,
        problem: problem.map(|error| error.message),
    };
    describe(around, &mut report, &connection);
    report.backend = family.map(|it| it.to_string());
    report
}

fn is_in_environment(around: &ConnectionSources<'_>, dialect: &Dialect) -> bool {
    let profile = around.profile;
    let configured = around.settings.get("environment");
    let has = |name: &str| configured.is_some_and(|it| it.get(name).is_some());
    let has_key = |name: &str| around.secrets.find_in(profile, name).is_some();
    dialect.keys().any(has_key)
        || has(&dialect.base_variable())
        || (dialect.id == "ollama" && has("OLLAMA_HOST"))
}

fn of_environment(around: &ConnectionSources<'_>, dialect: &Dialect) -> ConnectionReport {
    let connection = Connection {
        backend: Some(dialect.id.to_owned()),
        ..Connection::default()
    };
    let mut report = ConnectionReport {
        name: dialect.id.to_owned(),
        source: "environment".to_owned(),
        kind: "llm-provider".to_owned(),
        backend: None,
        base_url: None,
        bound_to: None,
        is_optional: false,
        secret: None,
        login: None,
        problem: None,
    };
    describe(around, &mut report, &connection);
    report
}

/// Returns the address of a provider for connections that set none.
fn usual_address(around: &ConnectionSources<'_>, dialect: &Dialect) -> Option<String> {
    let configured = around.settings.get("environment");
    let of = |name: &str| configured?.get(name)?.as_str().map(str::to_owned);
    of(&dialect.base_variable())
        .or_else(|| {
            (dialect.id == "ollama")
                .then(|| of("OLLAMA_HOST"))
                .flatten()
        })
        .or_else(|| dialect.base_url.map(str::to_owned))
}
