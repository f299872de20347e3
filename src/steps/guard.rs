//! The addresses that requests may go to.
//!
//! The flow's permissions decide, on the resolved address of a name. Beyond that, two kinds of address are refused
//! unless the project allows them by name: those on which only a machine's own cloud answers (link-local addresses and
//! services that return its credentials), and redirects to an address further inside than their origin.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use flowstone_flow::permission::{Host, HostPattern, NetAllow, OwnRows, Reach};
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::json::items;

/// A name or address that the guard refused.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{host} is refused")]
pub struct Refused {
    pub host: String,
    /// The resolved address, if known.
    pub address: Option<IpAddr>,
    pub why: Why,
    /// The place for the missing permission.
    pub own: Option<OwnRows>,
}

/// The reason why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is link-local, or belongs to a cloud's metadata service.
    Metadata,
    /// A redirect leads there from further outside.
    Redirect,
    /// The settings refuse this machine and private networks.
    Private,
    /// No permission allows the flow to connect to this port there.
    NotAllowed(u16),
    /// The flow itself names other hosts for its slot.
    Narrowed,
}

/// How far inside an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Zone {
    /// This machine.
    Loopback,
    /// A network that is not routed publicly.
    Private,
    Public,
}

/// The rules for addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Hosts and networks to which none of the rules below applies. Only the project names them, never a flow.
    pub allow: Arc<Vec<Pattern>>,
    /// Whether link-local and metadata addresses are allowed.
    pub allow_link_local: bool,
    /// Whether this machine and private networks are refused.
    pub deny_private: bool,
    /// The connections that the flow may make.
    pub net: Arc<NetAllow>,
    /// The port of the request; permissions may name one.
    pub port: u16,
    /// Whether the flow asks for link-local addresses: it gets those that the project names.
    pub asks_link_local: bool,
    /// The only hosts that the flow wants to reach.
    pub only: Option<Arc<Vec<Pattern>>>,
}

/// A host, all hosts under a name, or a network; never all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(HostPattern);

impl Pattern {
    /// Parses `api.internal`, `*.internal`, `10.1.2.3` or `10.0.0.0/8`.
    pub fn read(text: &str) -> Option<Pattern> {
        match HostPattern::read(text)? {
            HostPattern::Any => None,
            pattern => Some(Pattern(pattern)),
        }
    }

    fn has_host(&self, host: &str) -> bool {
        self.0.has_name(host)
    }

    fn has_address(&self, found: IpAddr) -> bool {
        self.0.has_address(found)
    }
}

impl Guard {
    /// Tells whether a host at an address is allowed; `least` is how far outside it must be.
    pub fn check(&self, host: &str, address: IpAddr, least: Zone) -> Result<(), Refused> {
        let name = plain(host);
        let has = |it: &Pattern| it.has_host(&name) || it.has_address(address);
        let is_allowed = self.allow.iter().any(has);
        let zone = zone(address);
        let asked = Host::new(host, self.port);
        let is_named = self.asks_link_local && self.net.names(&asked, Some(address));
        let why = if is_refused(address) && !self.allow_link_local && !is_allowed && !is_named {
            Why::Metadata
        } else if self.only.as_ref().is_some_and(|only| !only.iter().any(has)) {
            Why::Narrowed
        } else if zone < least && !is_allowed {
            Why::Redirect
        } else if self.deny_private && zone != Zone::Public && !is_allowed {
            Why::Private
        } else if !self.net.covers(&asked, Some(address), zone.reach()) {
            Why::NotAllowed(self.port)
        } else {
            return Ok(());
        };
        Err(Refused {
            host: host.to_owned(),
            address: Some(address),
            why,
            own: self.net.own.clone(),
        })
    }

    /// Returns the guard for requests to a port.
    #[must_use]
    pub fn at(&self, url: &Url) -> Guard {
        Guard {
            port: port(url),
            ..self.clone()
        }
    }

    /// Refuses what can be decided before a name is resolved: literal addresses, and names that only a machine's cloud
    /// knows.
    pub fn check_url(&self, url: &Url, least: Zone) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or_default();
        if let Some(address) = literal(url) {
            return self.check(host, address, least);
        }
        if is_local_name(host) {
            return self.check(host, IpAddr::V4(Ipv4Addr::LOCALHOST), least);
        }
        let name = plain(host);
        let asked = Host::new(host, self.port);
        let refused = |why| Refused {
            host: host.to_owned(),
            address: None,
            why,
            own: self.net.own.clone(),
        };
        let is_lifted = self.asks_link_local && self.net.names(&asked, None);
        let is_named =
            !is_lifted && METADATA_NAMES.contains(&name.as_str()) && !self.allow_link_local;
        if is_named && !self.allow.iter().any(|it| it.has_host(&name)) {
            return Err(refused(Why::Metadata));
        }
        // A name that no permission can cover is not even resolved.
        match self.net.may_cover(&asked) {
            true => Ok(()),
            false => Err(refused(Why::NotAllowed(self.port))),
        }
    }
}

impl Zone {
    fn reach(self) -> Reach {
        match self {
            Zone::Loopback | Zone::Private => Reach::Private,
            Zone::Public => Reach::Public,
        }
    }
}

fn port(url: &Url) -> u16 {
    let usual = match url.scheme() {
        "ssh" => 22,
        "git" => 9418,
        "mariadb" | "mysql" => 3306,
        "postgres" | "postgresql" => 5432,
        "smtp" => 25,
        "smtps" => 465,
        _ => 0,
    };
    url.port_or_known_default().unwrap_or(usual)
}

/// Returns the host and port of an address in the form of permissions.
pub fn host_of(url: &Url) -> Host {
    Host::new(url.host_str().unwrap_or_default(), port(url))
}

/// Returns the address of a URL whose host is an IP address and need not be resolved.
pub fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_matches(['[', ']']).parse().ok()
}

/// Normalises a host for comparisons.
fn plain(host: &str) -> String {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    host.to_ascii_lowercase()
}

/// Tells whether a name refers to this machine, whatever a resolver returns.
pub fn is_local_name(host: &str) -> bool {
    let name = plain(host);
    name == "localhost" || name.ends_with(".localhost")
}

/// Names of metadata services, which exist only inside a cloud.
const METADATA_NAMES: [&str; 4] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.goog",
    "metadata.google.internal",
];

/// Tells whether an address is link-local or that of a cloud's metadata service.
pub fn is_refused(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_refused_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_refused_v4(inner),
            None => address.is_unicast_link_local() || METADATA_V6.contains(&address),
        },
    }
}

/// Metadata services outside the link-local range: Alibaba, Azure, Oracle.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6: Amazon, Google.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn is_refused_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA_V4.contains(&address)
}

/// Returns how far inside an address is.
pub fn zone(address: IpAddr) -> Zone {
    match address {
        IpAddr::V4(address) => zone_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => zone_v4(inner),
            None if address.is_loopback() || address.is_unspecified() => Zone::Loopback,
            None => match address.segments()[0] {
                // Unique local, link-local, deprecated site-local, and multicast.
                0xfc00..=0xfdff | 0xfe80..=0xfeff | 0xff00..=0xffff => Zone::Private,
                // The discard prefix, and this network.
                0x100 if address.segments()[1..4] == [0; 3] => Zone::Private,
                _ => Zone::Public,
            },
        },
    }
}

fn zone_v4(address: Ipv4Addr) -> Zone {
    match address.octets() {
        [0 | 127, ..] => Zone::Loopback,
        // Shared address space of providers (CGNAT).
        [100, 64..=127, ..] => Zone::Private,
        // Reserved for protocols and benchmarks.
        [192, 0, 0, _] | [198, 18 | 19, ..] => Zone::Private,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => Zone::Private,
        _ if address.is_private() || address.is_link_local() => Zone::Private,
        _ => Zone::Public,
    }
}

/// Returns the IPv4 address inside one of IPv6: mapped, translated, compatible, 6to4, NAT64, Teredo or ISATAP.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(join(high, low)),
        // `::` and `::1` are addresses of IPv6 itself.
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => Some(join(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        // The prefix for local NAT64.
        [0x64, 0xff9b, 1, _, _, _, high, low] => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(join(high, low)),
        // The client's address is inverted.
        [0x2001, 0, _, _, _, _, high, low] => Some(join(!high, !low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

/// Resolves names with the system's resolver and refuses forbidden addresses. Since the connection goes to the very
/// address that was checked, a name cannot change its meaning in between.
pub struct GuardedResolver {
    pub guard: Guard,
    pub least: Zone,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, least) = (self.guard.clone(), self.least);
        Box::pin(async move {
            let found = lookup(name.as_str()).await?;
            match allowed(&guard, name.as_str(), found, least) {
                Ok(allowed) => Ok(Box::new(allowed.into_iter()) as Addrs),
                Err(refused) => Err(Box::new(refused) as Box<_>),
            }
        })
    }
}

/// Returns the addresses of a name.
pub async fn lookup(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.collect())
}

/// Returns the allowed addresses of a host; an error if it has addresses and none is allowed.
pub fn allowed(
    guard: &Guard,
    host: &str,
    found: Vec<SocketAddr>,
    least: Zone,
) -> Result<Vec<SocketAddr>, Refused> {
    let mut first = None;
    let mut allowed = Vec::with_capacity(found.len());
    for address in found {
        match guard.check(host, address.ip(), least) {
            Ok(()) => allowed.push(address),
            Err(refused) => first = first.or(Some(refused)),
        }
    }
    match first {
        Some(refused) if allowed.is_empty() => Err(refused),
        _ => Ok(allowed),
    }
}

/// Reads a list of hosts and networks; `None` where it is something else.
pub(crate) fn patterns(value: &Value) -> Option<Vec<Pattern>> {
    let items = items(value)?;
    items
        .iter()
        .map(|item| Pattern::read(item.as_str()?))
        .collect()
}

/// Reads hosts that the guard lets pass.
pub(crate) fn allowed_hosts(place: &str, value: &Value) -> Result<Vec<Pattern>, StepError> {
    patterns(value).ok_or_else(|| {
        StepError::config(
            "E0745",
            format!("`{place}` takes a list of hosts and networks"),
        )
        .hint("as in `[\"api.internal\" \"*.internal\" \"10.0.0.0/8\"]`")
    })
}
