//! Images in messages: addresses, and resources of Flowstone's own stores, checked before they are sent.
//!
//! A resource is only read through the registry. Its bytes must match its content type; the dimensions of a picture are
//! read from its header before it is decoded.

mod picture;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::call::Part;
use super::family::data_url;
use crate::fields::Fields;
use crate::resource;
use picture::{MOST_BYTES, Picture, PictureError, Processing, unreadable};

/// The known abilities of the model that receives the images of a call.
pub(super) struct Sight<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    /// Whether it accepts images.
    pub sees: bool,
    /// Whether it fetches images from an address.
    pub fetches: bool,
    /// The content types of other files that it accepts.
    pub files: &'a [&'static str],
    /// Whether images that are too large for some provider are reduced.
    pub is_fitting: bool,
}

/// The lifetime of a signed link to an image: as long as a call may wait for its turn.
const LINK_MS: i64 = 900_000;

impl Sight<'_> {
    fn check(&self) -> Result<(), StepError> {
        if self.sees {
            return Ok(());
        }
        let message = format!(
            "`{}` of `:{}` does not accept images, but a message has one",
            self.model, self.provider
        );
        Err(StepError::new("E0821", "unsupported", message).hint(
            "use a model that accepts images, or declare that this one does: `:capabilities #{:vision ...}` in its connection or in `:llm-providers`",
        ))
    }

    fn processing(&self) -> Processing {
        match self.is_fitting {
            true => Processing::fitting(),
            false => Processing::default(),
        }
    }

    fn check_fetches(&self) -> Result<(), StepError> {
        if self.fetches {
            return Ok(());
        }
        let message = format!("`:{}` does not fetch images from an address", self.provider);
        Err(StepError::config("E0824", message)
            .hint("store the image and send it itself: `{:type :image-resource :resource ref}`"))
    }
}

/// Reads an image given by its address.
pub(super) async fn by_address(fields: Fields<'_>, sight: &Sight<'_>) -> Result<Part, StepError> {
    fields.only(&["detail", "type", "url"])?;
    sight.check()?;
    let detail = detail(fields)?;
    let url = fields.text("url")?.ok_or_else(|| need("url"))?;
    let Some((kind, text)) = data_url(url) else {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web {
            return Err(StepError::config(
                "E0822",
                "the `:url` of an image is an `https:` or a `data:` address",
            )
            .hint("a resource is given as `{:type :image-resource :resource ref}`"));
        }
        sight.check_fetches()?;
        return Ok(Part::Image {
            url: url.to_string(),
            detail,
        });
    };
    let bytes = STANDARD
        .decode(text.trim())
        .map_err(|error| unreadable("its `data:` address", &error.to_string()))?;
    let picture = checked(bytes, kind, sight.processing(), "the `:url`").await?;
    Ok(inline(&picture, detail))
}

/// Reads an image of Flowstone's own stores.
pub(super) async fn of_resource(
    cx: &StepContext,
    fields: Fields<'_>,
    sight: &Sight<'_>,
) -> Result<Part, StepError> {
    fields.only(&["detail", "processing", "resource", "transport", "type"])?;
    sight.check()?;
    let detail = detail(fields)?;
    let reference = fields.get("resource").ok_or_else(|| need("resource"))?;
    let processing = match fields.map("processing")? {
        Some(map) => Processing::read(map)?,
        None => sight.processing(),
    };
    let row = resource::find(cx, reference).await?;
    if let Some(size) = row.size.filter(|size| *size > MOST_BYTES) {
        let name = row.uri;
        return Err(PictureError::TooManyBytes { name, size }.into());
    }
    let uri = row.uri;
    let (row, bytes) = resource::bytes(cx, reference).await?;
    let kind = row.content_type.unwrap_or_default();
    match fields.name("transport")?.as_deref() {
        None | Some("data-url") => {
            let picture = checked(bytes, kind, processing, &uri).await?;
            Ok(inline(&picture, detail))
        }
        Some("signed-url") => {
            sight.check_fetches()?;
            if processing.is_any() {
                return Err(StepError::config(
                    "E0824",
                    "an image with `:processing` cannot be sent by `:transport :signed-url`",
                )
                .hint("a link refers to the stored image: remove one of them"));
            }
            checked(bytes, kind, processing, &uri).await?;
            Ok(Part::Image {
                url: link(cx, &uri)?,
                detail,
            })
        }
        Some(other) => Err(StepError::config(
            "E0824",
            format!("an image cannot be sent by `:transport :{other}`"),
        )
        .hint("there are `:data-url` and `:signed-url`")),
    }
}

fn need(what: &str) -> StepError {
    StepError::config("E0809", format!("a part of `:content` needs `:{what}`"))
}

fn detail(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    match fields.name("detail")?.as_deref() {
        None => Ok(None),
        Some(detail @ ("auto" | "high" | "low")) => Ok(Some(detail.to_string())),
        Some(other) => Err(StepError::config(
            "E0809",
            format!("an image has no `:detail :{other}`"),
        )
        .hint("there are `:low`, `:high` and `:auto`")),
    }
}

fn inline(picture: &Picture, detail: Option<String>) -> Part {
    let text = STANDARD.encode(&picture.bytes);
    Part::Image {
        url: format!("data:{};base64,{text}", picture.content_type),
        detail,
    }
}

/// Checks and processes an image on a thread that may block.
async fn checked(
    bytes: Vec<u8>,
    content_type: String,
    processing: Processing,
    name: &str,
) -> Result<Picture, StepError> {
    let name = name.to_string();
    let work = move || picture::process(bytes, &content_type, processing, &name);
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(unreadable("an image", &error.to_string())));
    Ok(done?)
}

fn link(cx: &StepContext, uri: &str) -> Result<String, StepError> {
    let server = cx.settings().get("server");
    let base = server
        .and_then(|server| server.get("url"))
        .and_then(Value::as_str);
    let Some(base) = base else {
        return Err(StepError::config(
            "E0824",
            "an image cannot be sent by `:transport :signed-url`: no public URL is set for this project",
        )
        .hint("set it in flowstone.edn, `{:server {:url \"https://...\"}}`, or leave out `:transport`"));
    };
    Ok(resource::signer(cx)?.link(base, uri, cx.now_ms().saturating_add(LINK_MS)))
}
