//! The route of requests: the guard, the proxy and the trusted authorities, from the project's `:http` settings, the
//! connection, and the step's `:client-opts`.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use flowstone_flow::ports::StepExchanges;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::error::HttpError;
use crate::guard::{Guard, Zone, allowed, is_local_name, literal, lookup, zone};

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub guard: Guard,
    pub proxy: Proxy,
    /// A file of additional certificate authorities, in PEM format.
    pub ca_file: Option<PathBuf>,
    pub connect_timeout: Duration,
    /// The recorder or replayer of the run.
    pub exchanges: Option<StepExchanges>,
}

impl Default for Route {
    fn default() -> Self {
        Route {
            guard: Guard::default(),
            proxy: Proxy::default(),
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            exchanges: None,
        }
    }
}

/// The configured proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxy {
    /// The settings of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    None,
    At {
        url: Arc<str>,
        /// Hosts that are contacted directly, as in `NO_PROXY`.
        except: Arc<str>,
        /// Whether a step named it: then the guard checks it like any other server.
        is_of_step: bool,
    },
}

/// The proxy for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Via {
    pub url: String,
    pub auth: Option<HeaderValue>,
    /// Whether a step named it.
    pub is_of_step: bool,
}

impl Via {
    /// Returns the address for messages, without user and password.
    pub(super) fn shown(&self) -> String {
        crate::shown_url::without_password(&self.url)
    }

    /// Returns the rules for the proxy's own address.
    pub(super) fn guard(&self, guard: Guard) -> Guard {
        match Url::parse(&self.url) {
            Ok(url) => guard.at(&url),
            Err(_) => guard,
        }
    }
}

static ENVIRONMENT: LazyLock<Matcher> = LazyLock::new(Matcher::from_env);

impl Proxy {
    /// Returns the proxy of a request. The environment's proxies never apply to this machine.
    pub(super) fn via(&self, url: &Url) -> Result<Option<Via>, HttpError> {
        let target: Option<http::Uri> = url.as_str().parse().ok();
        let Some(target) = target else {
            return Ok(None);
        };
        let found = match self {
            Proxy::None => None,
            Proxy::Environment if is_here(url) => None,
            Proxy::Environment => ENVIRONMENT.intercept(&target),
            Proxy::At { url, except, .. } => {
                let matcher = Matcher::builder().all(&**url).no(&**except).build();
                matcher.intercept(&target)
            }
        };
        let Some(found) = found else {
            return Ok(None);
        };
        if !matches!(found.uri().scheme_str(), Some("http" | "https")) {
            return Err(HttpError::BadRequest {
                message: format!("the proxy {} is not one of HTTP", found.uri()),
            });
        }
        Ok(Some(Via {
            url: found.uri().to_string(),
            auth: found.basic_auth().cloned(),
            is_of_step: matches!(
                self,
                Proxy::At {
                    is_of_step: true,
                    ..
                }
            ),
        }))
    }
}

fn is_here(url: &Url) -> bool {
    is_local_name(url.host_str().unwrap_or_default())
        || literal(url).is_some_and(|address| zone(address) == Zone::Loopback)
}

/// Checks a request through a proxy, as far as names mean the same on both sides, and the proxy itself if a step named
/// it. Returns how far outside the target is.
pub(super) async fn check_behind_proxy(
    guard: &Guard,
    via: &Via,
    url: &Url,
    least: Zone,
) -> Result<Zone, HttpError> {
    if via.is_of_step
        && let Ok(proxy) = Url::parse(&via.url)
    {
        // A name is checked when the connection is made.
        guard.at(&proxy).check_url(&proxy, Zone::Loopback)?;
    }
    if let Some(address) = literal(url) {
        return Ok(zone(address));
    }
    let host = url.host_str().unwrap_or_default();
    if is_local_name(host) {
        return Ok(Zone::Loopback);
    }
    // Names unknown here are left to the proxy.
    let found = lookup(host).await.unwrap_or_default();
    let allowed = allowed(guard, host, found, least).map_err(HttpError::from)?;
    let zones = allowed.iter().map(|address| zone(address.ip()));
    Ok(zones.min().unwrap_or(Zone::Public))
}
