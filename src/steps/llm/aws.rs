//! The region and the credentials for providers of AWS.

use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};

use super::provider::{environment, parsed, unclear};
use super::sigv4::Signer;
use crate::connections::{Auth, AwsNames, Connection, missing_secret};
use crate::guard::host_of;

/// The environment variables that set a region.
pub(super) const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The region for servers outside AWS, where it has no effect.
const ANY_REGION: &str = "us-east-1";

/// Returns the region of a connection.
pub(super) fn region(cx: &StepContext, connection: &Connection, auth: &Auth) -> Option<String> {
    let configured = match auth {
        Auth::AwsSigV4(names) => names.region.clone(),
        _ => None,
    };
    configured
        .or_else(|| connection.region.clone())
        .or_else(|| REGIONS.iter().find_map(|name| environment(cx, name)))
}

/// Returns the address of Bedrock.
///
/// # Errors
/// Fails if no region is configured.
pub(super) fn base_url(
    cx: &StepContext,
    connection: &Connection,
    auth: &Auth,
) -> Result<String, StepError> {
    let region = region(cx, connection, auth).ok_or_else(|| {
        unclear("no AWS region is set").hint(
            "give the connection a `:region`, as in `:region \"eu-west-1\"`, or set AWS_REGION",
        )
    })?;
    let fits = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    match region.bytes().all(fits) && !region.is_empty() {
        true => Ok(format!("https://bedrock-runtime.{region}.amazonaws.com")),
        false => Err(unclear(format!("`{region}` cannot be a region of AWS"))
            .hint("a region looks like `eu-west-1`")),
    }
}

/// Returns the signer, with credentials that are looked up now; `None` if a bearer token is used instead.
///
/// # Errors
/// Fails if a credential is missing.
pub(super) fn signer(
    cx: &StepContext,
    connection: &Connection,
    auth: &Auth,
    owner: &str,
    base: &str,
) -> Result<Option<Signer>, StepError> {
    let host = host_of(&parsed(base)?);
    let unsaid = AwsNames::default();
    let names = match auth {
        Auth::AwsSigV4(names) => names,
        Auth::Unsaid if !cx.has_secret("AWS_BEARER_TOKEN_BEDROCK") => &unsaid,
        _ => return Ok(None),
    };
    let find = |named: &Option<String>, usual: &str| -> Result<Secret, StepError> {
        let name = named.as_deref().unwrap_or(usual);
        cx.secret_for(name, &host)?
            .ok_or_else(|| missing_secret(cx, name, owner))
    };
    let session_token = match &names.session_token {
        Some(name) => Some(
            cx.secret_for(name, &host)?
                .ok_or_else(|| missing_secret(cx, name, owner))?,
        ),
        // Configured credentials are not combined with a session token of the environment.
        None if names.access_key_id.is_some() => None,
        None => cx.secret_for("AWS_SESSION_TOKEN", &host)?,
    };
    let region = region_of(base)
        .or_else(|| region(cx, connection, auth))
        .unwrap_or_else(|| ANY_REGION.to_string());
    Ok(Some(Signer {
        access_key_id: find(&names.access_key_id, "AWS_ACCESS_KEY_ID")?,
        secret_access_key: find(&names.secret_access_key, "AWS_SECRET_ACCESS_KEY")?,
        session_token,
        region,
        service: names.service.clone().unwrap_or_else(|| "bedrock".into()),
    }))
}

/// Returns the region in an address of AWS.
fn region_of(base: &str) -> Option<String> {
    let (_, rest) = base.split_once("bedrock-runtime")?;
    let mut words = rest.split(['.', '/']);
    // Between them are the region and, for some addresses, `-fips`.
    words.next()?;
    let region = words.next()?;
    rest.contains(".amazonaws.").then(|| region.to_string())
}
