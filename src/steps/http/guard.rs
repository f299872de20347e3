//! Which addresses a request may go to.
//!
//! Loopback and private networks are fine: people run their own servers. What is refused, unless it is
//! allowed in so many words, is what only a machine's own cloud answers on: link-local addresses and the
//! services that hand out its credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A name or address that the guard refused.
#[derive(Debug, thiserror::Error)]
#[error("{host} is {address}, which is refused")]
pub struct Refused {
    pub host: String,
    pub address: IpAddr,
}

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

/// Returns the IPv4 address inside one of IPv6: mapped, compatible, 6to4 or NAT64.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] if (high, low) > (0, 1) => Some(join(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// Refuses an address written out in a URL; names are checked when they are resolved.
pub fn check_host(url: &reqwest::Url) -> Result<(), Refused> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if is_refused(address) => Err(Refused {
            host: host.to_string(),
            address,
        }),
        _ => Ok(()),
    }
}

/// Resolves names with the system's resolver and refuses what may not be reached. Since the connection
/// goes to the very address that was checked, a name cannot change its meaning in between.
pub struct GuardedResolver;

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_string();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|it| !is_refused(it.ip()))
                .collect();
            match (allowed.is_empty(), found.first()) {
                (true, Some(refused)) => Err(Box::new(Refused {
                    host,
                    address: refused.ip(),
                }) as Box<_>),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
