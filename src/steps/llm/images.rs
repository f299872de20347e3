//! Images in messages.

use base64::Engine as _;
use flowstone_engine::step::{StepContext, StepError};

use super::call::Part;
use crate::fields::Fields;

/// What is known of whoever is to look at the images of a call.
pub(super) struct Sight<'a> {
    pub provider: &'a str,
}

fn need(what: &str) -> StepError {
    StepError::config("E0809", format!("a part of `:content` needs `:{what}`"))
}

pub(super) async fn by_address(fields: Fields<'_>, _sight: &Sight<'_>) -> Result<Part, StepError> {
    fields.only(&["detail", "type", "url"])?;
    Ok(Part::Image {
        url: fields.text("url")?.ok_or_else(|| need("url"))?.to_string(),
        detail: fields.name("detail")?.map(|it| it.to_string()),
    })
}

pub(super) async fn of_resource(
    cx: &StepContext,
    fields: Fields<'_>,
    sight: &Sight<'_>,
) -> Result<Part, StepError> {
    fields.only(&["detail", "resource", "transport", "type"])?;
    if let Some(transport) = fields.name("transport")?
        && &*transport != "data-url"
    {
        return Err(StepError::config(
            "E0809",
            format!(
                "an image cannot be sent to `:{}` by `:transport :{transport}`",
                sight.provider
            ),
        )
        .hint("there is `:data-url`"));
    }
    let resource = fields.get("resource").ok_or_else(|| need("resource"))?;
    let (bytes, content_type) = crate::http::load(cx, resource).await?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(Part::Image {
        url: format!("data:{content_type};base64,{encoded}"),
        detail: fields.name("detail")?.map(|it| it.to_string()),
    })
}
