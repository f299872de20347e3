//! Patterns by which rows name hosts.

use std::fmt;
use std::net::IpAddr;

use super::{ANY, Host};

/// A host, all hosts under a name, or a network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    Any,
    Host(String),
    /// A suffix with its dot: `.example.com`.
    Under(String),
    Network {
        address: IpAddr,
        bits: u8,
    },
}

/// A pattern for hosts, and the port if the pattern names one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NetRow {
    pub host: HostPattern,
    pub port: Option<u16>,
}

impl NetRow {
    /// Reads `api.internal`, `*.internal:8443`, `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:80` or `*`.
    pub fn read(text: &str) -> Option<NetRow> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let host = HostPattern::read(address)?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':')?.parse().ok()?),
            };
            return matches!(host, HostPattern::Network { .. }).then_some(NetRow { host, port });
        }
        match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => Some(NetRow {
                host: HostPattern::read(host)?,
                port: Some(port.parse().ok()?),
            }),
            _ => Some(NetRow {
                host: HostPattern::read(text)?,
                port: None,
            }),
        }
    }

    /// Returns the row for one host and port.
    pub fn of(host: &Host) -> NetRow {
        NetRow {
            host: HostPattern::read(&host.name).unwrap_or(HostPattern::Host(host.name.clone())),
            port: Some(host.port),
        }
    }

    pub fn is_any(&self) -> bool {
        self.host == HostPattern::Any
    }

    /// Tells whether the row names a host, by its name or by the address that the name was resolved to.
    pub fn covers(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.port.is_none_or(|port| port == host.port) && self.host.covers(&host.name, address)
    }
}

impl fmt::Display for NetRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (HostPattern::Network { address, .. }, Some(port)) if address.is_ipv6() => {
                write!(out, "[{}]:{port}", self.host)
            }
            (host, Some(port)) => write!(out, "{host}:{port}"),
            (host, None) => write!(out, "{host}"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => out.write_str(ANY),
            HostPattern::Host(name) => out.write_str(name),
            HostPattern::Under(end) => write!(out, "*{end}"),
            HostPattern::Network { address, bits } => {
                let all = if address.is_ipv4() { 32 } else { 128 };
                match *bits == all {
                    true => write!(out, "{address}"),
                    false => write!(out, "{address}/{bits}"),
                }
            }
        }
    }
}

impl HostPattern {
    /// Reads a pattern without a port.
    pub fn read(text: &str) -> Option<HostPattern> {
        let text = text.trim().to_ascii_lowercase();
        if text == ANY {
            return Some(HostPattern::Any);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.as_str(), None),
        };
        if let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            return network(address, bits);
        }
        let text = text.trim_end_matches('.');
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains(|it: char| "/*:@ []".contains(it) || it.is_control())
        };
        match text.strip_prefix('*') {
            Some(rest) if rest.starts_with('.') && is_name(&rest[1..]) => {
                Some(HostPattern::Under(rest.to_owned()))
            }
            Some(_) => None,
            None => is_name(text).then(|| HostPattern::Host(text.to_owned())),
        }
    }

    fn covers(&self, name: &str, found: Option<IpAddr>) -> bool {
        let found = found.or_else(|| name.parse().ok());
        match self {
            // `localhost` is the loopback address too, however it is written.
            HostPattern::Host(own) if own == "localhost" => {
                name == own || found.is_some_and(|it| is_localhost(it.to_canonical()))
            }
            _ => self.has_name(name) || found.is_some_and(|found| self.has_address(found)),
        }
    }

    /// Tells whether the pattern names a host, by its name alone.
    pub fn has_name(&self, name: &str) -> bool {
        match self {
            HostPattern::Any => true,
            HostPattern::Host(own) => own == name,
            HostPattern::Under(end) => name.ends_with(end.as_str()),
            HostPattern::Network { .. } => false,
        }
    }

    /// Tells whether the pattern is a network with this address.
    pub fn has_address(&self, found: IpAddr) -> bool {
        match self {
            HostPattern::Network { address, bits } => is_in(found, *address, *bits),
            HostPattern::Any | HostPattern::Host(_) | HostPattern::Under(_) => false,
        }
    }
}

fn network(address: IpAddr, bits: Option<&str>) -> Option<HostPattern> {
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    if bits > most {
        return None;
    }
    // An IPv4 address in IPv6 notation.
    let (address, bits) = match address.to_canonical() {
        inner @ IpAddr::V4(_) if address.is_ipv6() && bits >= 96 => (inner, bits - 96),
        _ => (address, bits),
    };
    Some(HostPattern::Network { address, bits })
}

fn is_localhost(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == std::net::Ipv4Addr::LOCALHOST,
        IpAddr::V6(address) => address == std::net::Ipv6Addr::LOCALHOST,
    }
}

fn is_in(found: IpAddr, address: IpAddr, bits: u8) -> bool {
    let same = |left: u128, right: u128, width: u32| {
        let ignored = width - u32::from(bits);
        left.checked_shr(ignored).unwrap_or(0) == right.checked_shr(ignored).unwrap_or(0)
    };
    match (address, found.to_canonical()) {
        (IpAddr::V4(left), IpAddr::V4(right)) => {
            same(left.to_bits().into(), right.to_bits().into(), 32)
        }
        (IpAddr::V6(left), IpAddr::V6(right)) => same(left.to_bits(), right.to_bits(), 128),
        _ => false,
    }
}

/// Returns a host in its normal form for comparison.
pub(super) fn plain(host: &str) -> String {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    host.to_ascii_lowercase()
}
