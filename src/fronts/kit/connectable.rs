//! What a person is asked for when a program requests a connection: the secret that the connection reads, and the entry of
//! `flowstone.edn` where it has none yet.

use flowstone_flow::flow::Flow;
use flowstone_model::diagnostic::nearest;
use flowstone_project::connections::ConnectionReport;
use flowstone_project::webhooks::{Sender, webhooks};
use flowstone_steps::llm::PROVIDERS;

use super::context::KitCall;
use super::discovery::{Integration, Integrations, State};
use super::error::KitError;

/// The kinds of connections that a project can get, with the rest of the entry in `flowstone.edn`; `SLUG` is its name.
const KINDS: &[(&str, &str)] = &[
    (
        "database",
        "{:base-url \"postgres://USER@HOST:5432/NAME\" :auth {:type :basic :secret-ref :SLUG-token}}",
    ),
    (
        "http-api",
        "{:base-url \"https://...\" :auth {:type :bearer :secret-ref :SLUG-token}}",
    ),
    (
        "mcp",
        "{:backend :mcp :base-url \"https://...\" :auth {:type :bearer :secret-ref :SLUG-token}}",
    ),
    (
        "smtp",
        "{:base-url \"smtp://HOST:587\" :auth {:type :basic :username \"...\" :secret-ref :SLUG-token}}",
    ),
    (
        "ssh",
        "{:base-url \"ssh://USER@HOST:22\" :auth {:type :private-key :secret-ref :SLUG-token}}",
    ),
];
/// The systems whose events are known, which sign them with a shared secret.
const SENDERS: &[Sender] = &[Sender::Github, Sender::Slack, Sender::Stripe];

/// What a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the secret.
    pub secret: String,
    /// Where it is kept.
    pub place: String,
    /// What else is wrong with the connection.
    pub problem: Option<String>,
    /// The entry that `flowstone.edn` lacks.
    pub entry: Option<String>,
    /// The person logs in instead.
    pub has_login: bool,
}

impl Wanted {
    fn of(cx: &KitCall<'_>, secret: String, entry: Option<String>) -> Wanted {
        let profile = cx.engine.bindings().profile.as_deref();
        Wanted {
            place: cx.engine.secrets().place(profile, &secret),
            problem: None,
            has_login: false,
            secret,
            entry,
        }
    }
}

/// Returns what a person is asked for; `None` if nothing is missing.
///
/// # Errors
/// `invalid_arguments` for an integration that nobody knows, with the nearest name; `connection_not_ready` for one that needs an
/// entry in `flowstone.edn` and no secret.
pub fn wanted(
    cx: &KitCall<'_>,
    (flow, integrations): (Option<&Flow>, &Integrations),
    (integration, slug): (&str, &str),
) -> Result<Option<Wanted>, KitError> {
    let known = integrations
        .find(slug)
        .or_else(|| integrations.find(integration));
    if let Some(secret) = unset_hook(cx, known.map_or(integration, |known| &*known.slug)) {
        return Ok(Some(Wanted::of(cx, secret, None)));
    }
    if let Some(known) = known {
        return Ok((known.state != State::Ready).then(|| of_known(cx, known)));
    }
    if let Some(provider) = PROVIDERS.iter().find(|it| it.id == integration) {
        let Some(key) = provider.key else {
            let entry = format!("{{:connections {{:{slug} {{:backend :{integration}}}}}}}");
            return Err(
                KitError::connection_not_ready(integration, serde_json::json!({})).next(format!(
                    "it needs no key: ask the person to add {entry} to flowstone.edn"
                )),
            );
        };
        // Under its own name it is found by the key alone.
        let entry = (slug != integration)
            .then(|| format!(":connections {{:{slug} {{:backend :{integration}}}}}"));
        return Ok(Some(Wanted::of(cx, key.to_owned(), entry)));
    }
    if let Some(sender) = SENDERS.iter().find(|it| it.name() == integration) {
        let secret = format!("{slug}-hook");
        let kind = sender.name();
        let entry = format!(
            ":connections {{:{slug} {{:webhook {{:type :{kind} :secret-ref :{secret}}}}}}}"
        );
        return Ok(Some(Wanted::of(cx, secret, Some(entry))));
    }
    let is_server =
        flow.is_some_and(|flow| flow.mcp.iter().any(|it| &*it.connection == integration));
    let kind = if is_server { "mcp" } else { integration };
    match KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, rest)) => {
            let secret = format!("{slug}-token");
            Ok(Some(Wanted::of(cx, secret, Some(entry(slug, rest)))))
        }
        None => Err(unknown(integrations, integration)),
    }
}

fn of_known(cx: &KitCall<'_>, known: &Integration) -> Wanted {
    let report = &known.report;
    // A slot that only has a type does not lead anywhere yet.
    let is_bare = report.base_url.is_none() && report.backend.is_none();
    let kind = match report.kind.as_str() {
        _ if !is_bare => None,
        kind => KINDS.iter().find(|(name, _)| *name == kind),
    };
    let entry = match &known.unconfirmed {
        Some(unconfirmed) => Some(confirmation(&known.slug, report, &unconfirmed.base_url)),
        None => kind.map(|(_, rest)| entry(&known.slug, rest)),
    };
    let wanted = match &report.secret {
        Some(secret) => Wanted {
            place: secret.place.clone(),
            ..Wanted::of(cx, secret.name.clone(), entry)
        },
        None => Wanted::of(cx, format!("{}-token", known.slug), entry),
    };
    Wanted {
        problem: report.problem.clone(),
        has_login: report.login.is_some(),
        ..wanted
    }
}

/// Returns the entry of a connection in `flowstone.edn`.
fn entry(slug: &str, rest: &str) -> String {
    format!(":connections {{:{slug} {}}}", rest.replace("SLUG", slug))
}

/// Returns the entry with which a person confirms the address that a program wrote into a slot.
fn confirmation(slug: &str, report: &ConnectionReport, base_url: &str) -> String {
    let backend = report.backend.as_ref();
    let backend = backend.map_or_else(String::new, |backend| format!(" :backend {backend:?}"));
    let kind = &report.kind;
    format!(":connections {{:{slug} {{:type :{kind}{backend} :base-url {base_url:?}}}}}")
}

/// Returns the secret that the webhook of a connection lacks.
fn unset_hook(cx: &KitCall<'_>, name: &str) -> Option<String> {
    let mut found = webhooks(cx.engine.settings()).into_iter();
    let (_, read) = found.find(|(known, _)| known == name)?;
    cx.engine.unset_secret(&read.ok()?.proof)
}

fn unknown(integrations: &Integrations, integration: &str) -> KitError {
    let own = integrations.0.iter().map(|known| &*known.slug);
    let keyed = PROVIDERS.iter().filter(|it| it.key.is_some());
    let names = own
        .chain(keyed.map(|it| it.id))
        .chain(SENDERS.iter().map(|it| it.name()))
        .chain(KINDS.iter().map(|(name, _)| *name));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let near = nearest(integration, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    KitError::invalid(
        "/integration",
        format!("one of {}", names.join(", ")),
        format!("there is no integration `{integration}`{near}"),
    )
    .next("use the `connect` of `discover_tools`; for another API, give the integration `http-api` and a `slug`")
}
