//! Addresses as messages show them.

/// Returns an address without its password.
pub(crate) fn without_password(repo: &str) -> String {
    let Some((scheme, rest)) = repo.split_once("://") else {
        return repo.to_string();
    };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => repo.to_string(),
    }
}
