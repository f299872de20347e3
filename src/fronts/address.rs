//! Addresses of servers that a definition names: the host that a permission is about, and references beside a document.

use flowstone_flow::permission::Host;

/// Returns the host of an address that begins with `http://` or `https://` and has no credentials in it.
pub(crate) fn host_of(url: &str) -> Option<Host> {
    let (rest, usual) = match url.split_once("://") {
        Some(("https", rest)) => (rest, 443),
        Some(("http", rest)) => (rest, 80),
        _ => return None,
    };
    let authority = rest
        .split(['/', '?', '#'])
        .next()
        .filter(|it| !it.is_empty() && !it.contains('@'))?;
    let is_bracketed = authority.ends_with(']');
    match authority.rsplit_once(':') {
        Some((name, port)) if !is_bracketed => Some(Host::new(name, port.parse().ok()?)),
        _ => Some(Host::new(authority, usual)),
    }
}

/// Returns the address of what a document names by a relative path, or by a path from the root of its server.
pub(crate) fn beside(document: &str, path: &str) -> Option<String> {
    let (scheme, rest) = document.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let (authority, own) = rest.split_once('/').unwrap_or((rest, ""));
    let folder = match path.starts_with('/') {
        true => "",
        false => own.rsplit_once('/').map_or("", |(folder, _)| folder),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(format!("{scheme}://{authority}/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_port_and_no_credentials() {
        let host = |url: &str| host_of(url).map(|host| host.to_string());
        assert_eq!(
            host("https://docs.example/mcp").as_deref(),
            Some("docs.example:443")
        );
        assert_eq!(
            host("http://127.0.0.1:8080/mcp?x=1").as_deref(),
            Some("127.0.0.1:8080")
        );
        assert_eq!(host("http://[::1]:9/").as_deref(), Some("[::1]:9"));
        for wrong in [
            "ftp://a",
            "docs.example",
            "https://",
            "https://me:pw@docs.example",
            "http://a:port",
        ] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_beside_a_document_stays_on_its_server() {
        let document = "https://a.example:8443/trees/main.yaml?v=2";
        let named = |path: &str| beside(document, path);
        let at = |path: &str| Some(format!("https://a.example:8443/{path}"));
        assert_eq!(named("parts/b.yaml"), at("trees/parts/b.yaml"));
        assert_eq!(named("./b.yaml"), at("trees/b.yaml"));
        assert_eq!(named("../b.yaml"), at("b.yaml"));
        assert_eq!(named("/b.yaml"), at("b.yaml"));
        assert_eq!(named("../../b.yaml"), None);
    }
}
