//! The servers that git may connect to, as the guard of HTTP requests decides.
//!
//! Git resolves names itself. For HTTP it gets the checked addresses, so that a name cannot change its meaning in
//! between; for SSH and git's own protocol, the addresses are checked just before.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use reqwest::Url;

use super::error::FilesError;
use crate::guard::{Guard, Zone, allowed, literal};
use crate::http::error::HttpError;
use crate::shown_url::without_password;

/// The server in the address of a repository.
#[derive(Debug, PartialEq, Eq)]
struct Server {
    host: String,
    port: u16,
    is_http: bool,
}

/// Checks the server of a repository. Returns settings with which git only connects to that server.
///
/// # Errors
/// Fails if the guard refuses the server.
pub(super) fn settings(guard: &Guard, address: &str) -> Result<Vec<String>, FilesError> {
    let refused = |error: HttpError| FilesError::Refused {
        repo: without_password(address),
        cause: error.to_string(),
        hint: error.hint(),
    };
    let Some(server) = server(address) else {
        return Err(FilesError::BadGitSource {
            cause: format!("`{}` does not name a server", without_password(address)),
        });
    };
    let url = Url::parse(&format!(
        "http://{}:{}/",
        bracketed(&server.host),
        server.port
    ))
    .ok();
    let guard = &url
        .as_ref()
        .map_or_else(|| guard.clone(), |url| guard.at(url));
    if let Some(url) = &url {
        guard
            .check_url(url, Zone::Loopback)
            .map_err(|error| refused(error.into()))?;
        if literal(url).is_some() {
            return Ok(Vec::new());
        }
    }
    let found: Vec<SocketAddr> = match (server.host.as_str(), server.port).to_socket_addrs() {
        Ok(found) => found.collect(),
        // An alias of the SSH configuration, or a name that only a proxy knows: git reports errors of the name.
        Err(_) => return Ok(Vec::new()),
    };
    let allowed = allowed(guard, &server.host, found, Zone::Loopback)
        .map_err(|error| refused(error.into()))?;
    if !server.is_http {
        return Ok(Vec::new());
    }
    let addresses: Vec<String> = allowed.iter().map(|it| shown(it.ip())).collect();
    let (host, port) = (&server.host, server.port);
    Ok(vec![format!(
        "http.curloptResolve={host}:{port}:{}",
        addresses.join(",")
    )])
}

fn shown(address: IpAddr) -> String {
    bracketed(&address.to_string())
}

fn bracketed(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// Reads `scheme://[user@]host[:port]/path`, or `[user@]host:path` as SSH writes it.
fn server(address: &str) -> Option<Server> {
    if address.contains("://") {
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']);
        let (port, is_http) = match url.scheme() {
            "http" => (80, true),
            "https" => (443, true),
            "git" => (9418, false),
            _ => (22, false),
        };
        return Some(Server {
            host: host.to_owned(),
            port: url.port().unwrap_or(port),
            is_http,
        });
    }
    let place = address.split_once('@').map_or(address, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        // `[host:port]:path` and `[::1]:path`.
        Some(rest) => {
            let inner = rest.split_once(']')?.0;
            match inner.parse::<IpAddr>() {
                Ok(_) => inner,
                Err(_) => inner.split_once(':').map_or(inner, |(host, _)| host),
            }
        }
        None => place.split_once(':')?.0,
    };
    (!host.is_empty()).then(|| Server {
        host: host.to_owned(),
        port: 22,
        is_http: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use flowstone_flow::permission::NetAllow;

    /// Returns a guard that allows a flow to connect to every address that is not refused.
    fn open() -> Guard {
        let net = NetAllow {
            any: true,
            ..NetAllow::default()
        };
        Guard {
            net: Arc::new(net),
            ..Guard::default()
        }
    }

    #[test]
    fn the_server_of_each_form_of_address_is_found() {
        for (address, host, port) in [
            ("https://example.com/a.git", "example.com", 443),
            ("http://u:p@example.com:8080/a", "example.com", 8080),
            ("http://[::1]:8080/a", "::1", 8080),
            ("http://2130706433/a", "127.0.0.1", 80),
            ("git://example.com/a", "example.com", 9418),
            ("ssh://git@example.com:2222/a", "example.com", 2222),
            ("git@example.com:a/b.git", "example.com", 22),
            ("example.com:a@b:c", "b", 22),
            ("git@[::1]:a", "::1", 22),
            ("git@[example.com:2222]:a", "example.com", 22),
        ] {
            let found = server(address).map(|it| (it.host, it.port));
            assert_eq!(found, Some((host.to_owned(), port)), "{address}");
        }
        assert_eq!(server(":a"), None);
    }

    #[test]
    fn the_guard_of_the_project_decides() {
        let inside = Guard {
            deny_private: true,
            ..open()
        };
        for address in [
            "http://127.0.0.1:1/a",
            "http://localhost/a",
            "http://[::1]/a",
            "http://[::ffff:0:0]/a",
            "http://2130706433/a",
            "git://10.0.0.1/a",
            "ssh://git@192.168.0.1/a",
            "git@127.0.0.1:a",
            "git@localhost:a",
            "git@[::1]:a",
            "git@169.254.169.254:a",
        ] {
            let found = settings(&inside, address);
            assert!(
                matches!(found, Err(FilesError::Refused { .. })),
                "{address}: {found:?}"
            );
        }
        let usual = open();
        assert!(settings(&usual, "http://169.254.169.254/a").is_err());
        assert!(settings(&usual, "http://metadata.google.internal/a").is_err());
        assert_eq!(
            settings(&usual, "http://127.0.0.1:1/a").expect("allowed"),
            [""; 0]
        );
        let pinned = settings(&usual, "http://localhost:8080/a").expect("allowed");
        assert!(
            pinned[0].starts_with("http.curloptResolve=localhost:8080:"),
            "{pinned:?}"
        );
    }
}
