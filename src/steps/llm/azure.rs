//! Addresses of Azure: by deployment, or as for OpenAI itself.

use super::sigv4::escaped;
use crate::http::joined;

/// The default version of the API.
const VERSION: &str = "2024-10-21";

/// Returns the address of calls. The base may end before `openai`, with it, or after it.
pub(super) fn address(
    base: &str,
    deployment: Option<&str>,
    version: Option<&str>,
    call: &str,
) -> String {
    let base = base.trim_end_matches('/');
    let version = version.map(escaped);
    if base.contains("/openai/deployments/") {
        let version = version.as_deref().unwrap_or(VERSION);
        return joined(base, &format!("{call}?api-version={version}"));
    }
    let ends = ["/openai/v1", "/openai"];
    let root = ends.iter().find_map(|end| base.strip_suffix(end));
    let root = root.unwrap_or(base);
    let path = match deployment {
        Some(deployment) => format!(
            "openai/deployments/{}/{call}?api-version={}",
            escaped(deployment),
            version.as_deref().unwrap_or(VERSION)
        ),
        None => match version {
            Some(version) => format!("openai/v1/{call}?api-version={version}"),
            None => format!("openai/v1/{call}"),
        },
    };
    joined(root, &path)
}
