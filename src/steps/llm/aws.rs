//! Who asks a provider of AWS, and in which region.

use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};

use super::provider::{environment, parsed, unclear};
use super::sigv4::Signer;
use crate::connections::{Auth, AwsNames, Connection, missing_secret};
use crate::guard::host_of;

/// The environment variables that say a region.
pub(super) const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The region of those who are asked elsewhere than at AWS, where it does not matter.
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

/// Returns where Bedrock is.
///
/// # Errors
/// When no region is configured.
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

/// Returns who signs, with credentials that are looked up now. None when a bearer token is to be shown instead.
///
/// # Errors
/// When a credential is missing.
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
        // Credentials of one's own do not go with a token of the environment's.
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

/// Returns the region that an address of AWS names.
fn region_of(base: &str) -> Option<String> {
    let (_, rest) = base.split_once("bedrock-runtime")?;
    let mut words = rest.split(['.', '/']);
    // Between them are the region and, for some, `-fips`.
    words.next()?;
    let region = words.next()?;
    rest.contains(".amazonaws.").then(|| region.to_string())
}
