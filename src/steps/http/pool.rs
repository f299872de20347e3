//! The clients of a thread: their connections belong to its runtime, and are reused by later requests.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Client;

use super::error::{HttpError, root_cause};
use super::route::{Route, Via};
use crate::guard::{Guard, GuardedResolver, Zone};

/// Maximum number of clients per thread.
const MOST: usize = 16;

/// The settings that requests of one client share. Connections made under another guard are not reused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    /// `None`: a proxy of the project or the environment resolves names, and is trusted.
    guard: Option<(Guard, Zone)>,
    via: Option<Via>,
    ca_file: Option<PathBuf>,
    connect_timeout: Duration,
}

thread_local! {
    /// Most recently used first.
    static CLIENTS: RefCell<Vec<(Key, Client)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the client for requests with these settings, created on first use.
pub(super) fn client(
    route: &Route,
    guard: Guard,
    via: Option<Via>,
    least: Zone,
) -> Result<Client, HttpError> {
    let key = Key {
        guard: match &via {
            None => Some((guard, least)),
            Some(via) if via.is_of_step => Some((via.guard(guard), Zone::Loopback)),
            Some(_) => None,
        },
        via,
        ca_file: route.ca_file.clone(),
        connect_timeout: route.connect_timeout,
    };
    CLIENTS.with_borrow_mut(|clients| {
        if let Some(at) = clients.iter().position(|(known, _)| *known == key) {
            clients[..=at].rotate_right(1);
            return Ok(clients[0].1.clone());
        }
        let client = build(&key)?;
        clients.insert(0, (key, client.clone()));
        clients.truncate(MOST);
        Ok(client)
    })
}

fn build(key: &Key) -> Result<Client, HttpError> {
    // Fails if one is installed already, which is fine.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let own = own_authorities(key)?;
    let builder = || -> Result<reqwest::ClientBuilder, reqwest::Error> {
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("flowstone/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(key.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(30))
            .referer(false)
            .no_proxy();
        if let Some(via) = &key.via {
            let mut proxy = reqwest::Proxy::all(&via.url)?;
            if let Some(auth) = &via.auth {
                proxy = proxy.custom_http_auth(auth.clone());
            }
            builder = builder.proxy(proxy);
        }
        if let Some((guard, least)) = key.guard.clone() {
            builder = builder.dns_resolver(GuardedResolver { guard, least });
        }
        Ok(builder)
    };
    let with_own = builder().and_then(|builder| match own.is_empty() {
        true => builder.build(),
        false => builder.tls_certs_merge(own.clone()).build(),
    });
    with_own
        .or_else(|error| {
            // A minimal container has no certificates of its own.
            tracing::debug!(%error, "the system's certificates cannot be used, taking the built-in ones");
            let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| reqwest::Certificate::from_der(der));
            let roots: Vec<_> = roots.chain(own.iter().cloned().map(Ok)).collect::<Result<_, _>>()?;
            builder()?.tls_certs_only(roots).build()
        })
        .map_err(|error| HttpError::BadRequest { message: format!("no HTTPS client can be made: {}", root_cause(&error)) })
}

/// Reads the additional certificate authorities of the project.
fn own_authorities(key: &Key) -> Result<Vec<reqwest::Certificate>, HttpError> {
    let Some(path) = &key.ca_file else {
        return Ok(Vec::new());
    };
    let bad = |cause: String| HttpError::BadRequest {
        message: format!(
            "the certificates in {} cannot be used: {cause}",
            path.display()
        ),
    };
    let text = fs::read(path).map_err(|error| bad(error.to_string()))?;
    let found = reqwest::Certificate::from_pem_bundle(&text);
    match found.map_err(|error| bad(root_cause(&error)))? {
        found if found.is_empty() => {
            Err(bad("it contains no certificate in PEM format".to_owned()))
        }
        found => Ok(found),
    }
}
