//! Finds the authorization server of a connection: the settings, else what its server says of itself (RFC 9728), and the
//! authorization server's own description (RFC 8414).

use flowstone_flow::step::StepError;
use reqwest::Url;
use serde_json::Value as Json;

use super::OAuth;
use super::error::{no_server, quoted};
use super::wire::{Wire, parsed};

/// An authorization server.
#[derive(Clone)]
pub(super) struct Server {
    pub issuer: Option<String>,
    pub authorization: Option<Url>,
    pub device: Option<Url>,
    pub token: Url,
    pub registration: Option<Url>,
    pub revocation: Option<Url>,
    /// Whether clients with a secret must send it in a header.
    pub is_basic: bool,
    /// The resource that tokens are requested for.
    pub resource: Option<String>,
    /// The scopes that the resource asks for.
    pub scopes: Vec<String>,
}

/// What the server of a connection says of itself.
#[derive(Default)]
struct Resource {
    issuer: Option<String>,
    name: Option<String>,
    scopes: Vec<String>,
}

/// Finds the authorization server of a connection.
///
/// # Errors
/// E1315 when none is found, or its description is wrong.
pub(super) async fn discover(
    wire: &Wire,
    oauth: &OAuth,
    (base, is_mcp): (&Url, bool),
) -> Result<Server, StepError> {
    let url = |text: &Option<String>| text.as_deref().map(parsed).transpose();
    let (authorization, device) = (
        url(&oauth.authorization_endpoint)?,
        url(&oauth.device_authorization_endpoint)?,
    );
    if let Some(token) = url(&oauth.token_endpoint)? {
        return Ok(Server {
            issuer: oauth.issuer.clone(),
            authorization,
            device,
            token,
            registration: None,
            revocation: None,
            is_basic: false,
            resource: is_mcp.then(|| base.to_string()),
            scopes: Vec::new(),
        });
    }
    let resource = match &oauth.issuer {
        Some(issuer) => Resource {
            issuer: Some(issuer.clone()),
            ..Resource::default()
        },
        None => resource(wire, base).await?,
    };
    let origin = base.origin().ascii_serialization();
    let issuer = resource.issuer.clone().unwrap_or(origin);
    let found = description(wire, &issuer).await?;
    let mut server = read(&found, &issuer)?;
    server.authorization = authorization.or(server.authorization);
    server.device = device.or(server.device);
    server.resource = resource.name.or(is_mcp.then(|| base.to_string()));
    server.scopes = resource.scopes;
    Ok(server)
}

/// Asks the server of a connection for its description as a resource.
async fn resource(wire: &Wire, base: &Url) -> Result<Resource, StepError> {
    let challenge = challenge(&wire.headers(base).await?);
    let mut places = Vec::new();
    if let Some(place) = parameter(&challenge, "resource_metadata") {
        places.push(parsed(&place)?);
    }
    places.extend(well_known(base, "oauth-protected-resource"));
    let scopes = parameter(&challenge, "scope").unwrap_or_default();
    let mut resource = Resource {
        scopes: words(&scopes),
        ..Resource::default()
    };
    for place in places {
        let Some(found) = document(wire, &place).await? else {
            continue;
        };
        let name = found["resource"].as_str().unwrap_or_default();
        let is_own = Url::parse(name).is_ok_and(|it| it.origin() == base.origin());
        if !is_own {
            return Err(no_server(format!(
                "the description at {place} is of another resource, {:?}",
                quoted(name)
            ))
            .hint("name the authorization server in `:auth`: `:issuer \"https://...\"`"));
        }
        resource.name = Some(name.to_owned());
        resource.issuer = found["authorization_servers"][0]
            .as_str()
            .map(str::to_owned);
        if resource.scopes.is_empty() {
            resource.scopes = texts(&found["scopes_supported"]);
        }
        break;
    }
    Ok(resource)
}

/// Returns the challenges of an answer, joined.
fn challenge(headers: &[(String, String)]) -> String {
    let all = headers.iter();
    let all = all.filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    all.map(|(_, value)| value.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns a parameter of a challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let at = rest.to_ascii_lowercase().find(name)?;
        let is_start = rest[..at]
            .chars()
            .next_back()
            .is_none_or(|it| it == ',' || it.is_ascii_whitespace());
        let after = rest[at + name.len()..].trim_start();
        match after.strip_prefix('=') {
            Some(value) if is_start => {
                let value = value.trim_start();
                return match value.strip_prefix('"') {
                    Some(quoted) => {
                        let (value, _) = quoted.split_once('"')?;
                        Some(value.to_owned())
                    }
                    None => value.split([',', ' ']).next().map(str::to_owned),
                };
            }
            _ => rest = &rest[at + name.len()..],
        }
    }
}

/// Returns the places of a description: below the path of an address, then without it.
fn well_known(base: &Url, name: &str) -> Vec<Url> {
    let path = base.path().trim_end_matches('/');
    let mut places = vec![format!("/.well-known/{name}{path}")];
    if !path.is_empty() {
        places.push(format!("/.well-known/{name}"));
    }
    places.iter().filter_map(|it| base.join(it).ok()).collect()
}

/// Requests a description; `None` if it does not exist.
async fn document(wire: &Wire, place: &Url) -> Result<Option<Json>, StepError> {
    let answer = wire.get(place, "application/json").await?;
    if answer.status != 200 {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&answer.body)
        .ok()
        .filter(Json::is_object))
}

/// Requests the description of an authorization server.
async fn description(wire: &Wire, issuer: &str) -> Result<Json, StepError> {
    let base = parsed(issuer)?;
    let mut places: Vec<Url> = well_known(&base, "oauth-authorization-server");
    places.truncate(1);
    places.extend(
        well_known(&base, "openid-configuration")
            .into_iter()
            .take(1),
    );
    let path = base.path().trim_end_matches('/');
    if !path.is_empty() {
        places.extend(
            base.join(&format!("{path}/.well-known/openid-configuration"))
                .ok(),
        );
    }
    for place in &places {
        if let Some(found) = document(wire, place).await? {
            return Ok(found);
        }
    }
    let message = format!(
        "{} does not describe an authorization server",
        quoted(issuer)
    );
    Err(no_server(message).hint(
        "name the server in `:auth`: `:issuer \"https://...\"`, or its `:token-endpoint` and `:authorization-endpoint`",
    ))
}

fn read(found: &Json, issuer: &str) -> Result<Server, StepError> {
    let own = found["issuer"].as_str().unwrap_or_default();
    if own.trim_end_matches('/') != issuer.trim_end_matches('/') {
        return Err(no_server(format!(
            "the description of {} is of another server, {:?}",
            quoted(issuer),
            quoted(own)
        )));
    }
    let url = |key: &str| found[key].as_str().map(parsed).transpose();
    let token = url("token_endpoint")?;
    let token = token.ok_or_else(|| {
        no_server(format!(
            "the description of {} has no `token_endpoint`",
            quoted(issuer)
        ))
    })?;
    let methods = texts(&found["code_challenge_methods_supported"]);
    let has_own_way = !methods.is_empty() && !methods.iter().any(|it| it == "S256");
    if has_own_way && found["device_authorization_endpoint"].is_null() {
        return Err(no_server(format!(
            "{} does not support PKCE with S256",
            quoted(issuer)
        )));
    }
    let ways = texts(&found["token_endpoint_auth_methods_supported"]);
    Ok(Server {
        issuer: Some(own.to_owned()),
        authorization: url("authorization_endpoint")?.filter(|_| !has_own_way),
        device: url("device_authorization_endpoint")?,
        token,
        registration: url("registration_endpoint")?,
        revocation: url("revocation_endpoint")?,
        // Without a list, the header is what every server accepts.
        is_basic: !ways.iter().any(|it| it == "client_secret_post"),
        resource: None,
        scopes: Vec::new(),
    })
}

fn texts(list: &Json) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_parameters() {
        let challenge = r#"Bearer error="invalid_token", resource_metadata="https://a.example/x?scope=1", scope="read write""#;
        assert_eq!(
            parameter(challenge, "resource_metadata").as_deref(),
            Some("https://a.example/x?scope=1")
        );
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("read write"));
        assert_eq!(parameter(challenge, "realm"), None);
        assert_eq!(
            parameter("Bearer scope=read", "scope").as_deref(),
            Some("read")
        );
    }

    #[test]
    fn a_description_must_be_of_the_server_that_was_asked() {
        let found = serde_json::json!({"issuer": "https://b.example", "token_endpoint": "https://b.example/token"});
        assert!(read(&found, "https://a.example").is_err());
        assert!(read(&found, "https://b.example/").is_ok());
        let plain = serde_json::json!({"issuer": "https://b.example", "token_endpoint": "http://b.example/token"});
        assert!(read(&plain, "https://b.example").is_err());
        let no_pkce = serde_json::json!({"issuer": "https://b.example", "token_endpoint": "https://b.example/token",
            "code_challenge_methods_supported": ["plain"]});
        assert!(read(&no_pkce, "https://b.example").is_err());
    }
}
