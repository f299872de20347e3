//! One image as bytes: checks its type and size, and reduces it.
//!
//! Blocking; nothing here knows of steps.

use std::io::Cursor;

use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Rgb, RgbImage};

use crate::fields::Fields;

/// Maximum size of a stored image in bytes.
pub(super) const MOST_BYTES: u64 = 20 << 20;
/// Maximum number of pixels of an image: 50 million take 200 MB when decoded.
const MOST_PIXELS: u64 = 50_000_000;
/// Maximum memory for decoding.
const MOST_MEMORY: u64 = 512 << 20;
/// The default quality of a JPEG.
const QUALITY: u8 = 85;

/// An image that is ready to be sent.
#[derive(Debug)]
pub(super) struct Picture {
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

/// The processing of an image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processing {
    max_width: Option<u32>,
    max_height: Option<u32>,
    format: Option<ImageFormat>,
    quality: Option<u8>,
    /// Whether only pictures that are too large for some provider are processed.
    is_fitting: bool,
}

/// The limits that all providers accept: 5 MB in Base64, and a number of pixels per side.
const FITTING_BYTES: usize = 3_750_000;
const FITTING_SIDE: u32 = 8_000;
/// The side length to which a larger picture is reduced.
const REDUCED_SIDE: u32 = 2_048;

impl Processing {
    /// Returns the processing that reduces pictures that are too large for some provider, and leaves others unchanged.
    pub(super) fn fitting() -> Processing {
        Processing {
            max_width: Some(REDUCED_SIDE),
            max_height: Some(REDUCED_SIDE),
            is_fitting: true,
            ..Processing::default()
        }
    }

    pub(super) fn read(map: &Value) -> Result<Processing, StepError> {
        let fields = Fields::nested(":processing", map)?;
        fields.only(&["format", "max-height", "max-width", "quality"])?;
        let side = |key: &str| {
            let found = fields.int(key, 1, 16_384)?;
            Ok::<_, StepError>(found.and_then(|it| u32::try_from(it).ok()))
        };
        let format = match fields.name("format")?.as_deref() {
            None => None,
            Some("jpeg" | "jpg") => Some(ImageFormat::Jpeg),
            Some("png") => Some(ImageFormat::Png),
            Some("webp") => Some(ImageFormat::WebP),
            Some(other) => {
                return Err(StepError::config(
                    "E0822",
                    format!("`:processing` has no `:format :{other}`"),
                )
                .hint("there are `:jpeg`, `:png` and `:webp`"));
            }
        };
        let quality = fields.int("quality", 1, 100)?;
        if quality.is_some() && format.is_some_and(|it| it != ImageFormat::Jpeg) {
            return Err(StepError::config(
                "E0822",
                "`:quality` of `:processing` is only for `:format :jpeg`: the others are lossless",
            ));
        }
        Ok(Processing {
            max_width: side("max-width")?,
            max_height: side("max-height")?,
            format,
            quality: quality.and_then(|it| u8::try_from(it).ok()),
            is_fitting: false,
        })
    }

    pub(super) fn is_any(self) -> bool {
        self.max_width.is_some()
            || self.max_height.is_some()
            || self.format.is_some()
            || self.quality.is_some()
    }

    /// Returns the new size of a picture: within the bounds, with the same aspect ratio, never larger.
    fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        let ratio = |most: Option<u32>, has: u32| {
            most.map_or(1.0, |most| f64::from(most) / f64::from(has.max(1)))
        };
        let scale = ratio(self.max_width, width).min(ratio(self.max_height, height));
        if scale >= 1.0 {
            return (width, height);
        }
        let side = |side: u32| ((f64::from(side) * scale).round() as u32).max(1);
        (side(width), side(height))
    }
}

/// The reason why an image cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum PictureError {
    #[error("{name} cannot be read as an image: {why}")]
    Unreadable { name: String, why: String },
    #[error("the image {name} has {size} bytes, but the limit is {MOST_BYTES}")]
    TooManyBytes { name: String, size: u64 },
    #[error("the image {name} is {width} by {height} pixels, but the limit is {MOST_PIXELS}")]
    TooManyPixels {
        name: String,
        width: u32,
        height: u32,
    },
}

impl From<PictureError> for StepError {
    fn from(error: PictureError) -> StepError {
        let message = error.to_string();
        match error {
            PictureError::Unreadable { .. } => StepError::new("E0822", "bad-image", message)
                .hint("there are JPEG, PNG, WebP and GIF"),
            PictureError::TooManyBytes { .. } | PictureError::TooManyPixels { .. } => {
                StepError::new("E0823", "too-large", message).hint("store a smaller one")
            }
        }
    }
}

pub(super) fn unreadable(name: &str, why: &str) -> PictureError {
    PictureError::Unreadable {
        name: name.to_string(),
        why: why.to_string(),
    }
}

/// Checks an image, and processes it.
///
/// # Errors
/// Fails if the bytes are not an image, do not match their content type, or are too large.
pub(super) fn process(
    bytes: Vec<u8>,
    content_type: &str,
    processing: Processing,
    name: &str,
) -> Result<Picture, PictureError> {
    let size = bytes.len() as u64;
    if size > MOST_BYTES {
        return Err(PictureError::TooManyBytes {
            name: name.to_string(),
            size,
        });
    }
    let format = format_of(&bytes, content_type, name)?;
    let (width, height) = dimensions(&bytes, format, name)?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MOST_PIXELS {
        return Err(PictureError::TooManyPixels {
            name: name.to_string(),
            width,
            height,
        });
    }
    let fits = bytes.len() <= FITTING_BYTES && width.max(height) <= FITTING_SIDE;
    if !processing.is_any() || processing.is_fitting && fits {
        return Ok(Picture {
            content_type: format.to_mime_type(),
            bytes,
        });
    }
    if format == ImageFormat::Gif {
        return Err(unreadable(name, "a GIF cannot be processed"));
    }
    let decoded = decoded(&bytes, format, name)?;
    let target = processing.format.unwrap_or(match processing.quality {
        Some(_) => ImageFormat::Jpeg,
        None => format,
    });
    let (width, height) = processing.size((decoded.width(), decoded.height()));
    let resized = match (width, height) == (decoded.width(), decoded.height()) {
        true => decoded,
        false => decoded.resize_exact(width, height, image::imageops::FilterType::CatmullRom),
    };
    let encode = |target| {
        encoded(&resized, target, processing.quality.unwrap_or(QUALITY))
            .map_err(|error| unreadable(name, &error.to_string()))
    };
    let mut picture = Picture {
        content_type: target.to_mime_type(),
        bytes: encode(target)?,
    };
    if processing.is_fitting && picture.bytes.len() > FITTING_BYTES {
        picture = Picture {
            content_type: ImageFormat::Jpeg.to_mime_type(),
            bytes: encode(ImageFormat::Jpeg)?,
        };
    }
    Ok(picture)
}

/// Returns the format according to the first bytes, which must match the content type.
fn format_of(bytes: &[u8], content_type: &str, name: &str) -> Result<ImageFormat, PictureError> {
    let found = match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(ImageFormat::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageFormat::Jpeg),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some(ImageFormat::WebP),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageFormat::Gif),
        _ => None,
    };
    let declared = content_type.split(';').next().unwrap_or_default().trim();
    let declared = declared.to_ascii_lowercase();
    let is_unsaid = declared.is_empty() || declared == "application/octet-stream";
    let Some(format) = found else {
        let why = match is_unsaid {
            true => "its first bytes are those of no image".to_string(),
            false => {
                format!(
                    "its content type is `{declared}`, but its first bytes are not those of an image"
                )
            }
        };
        return Err(unreadable(name, &why));
    };
    let is_same =
        declared == format.to_mime_type() || declared == "image/jpg" && format == ImageFormat::Jpeg;
    if !is_unsaid && !is_same {
        let why = format!(
            "its content type is `{declared}`, but its first bytes are those of `{}`",
            format.to_mime_type()
        );
        return Err(unreadable(name, &why));
    }
    Ok(format)
}

/// Reads the dimensions of a picture from its header.
fn dimensions(bytes: &[u8], format: ImageFormat, name: &str) -> Result<(u32, u32), PictureError> {
    if format == ImageFormat::Gif {
        let side = |at: usize| {
            let pair = bytes.get(at..at + 2)?;
            Some(u32::from(u16::from_le_bytes([pair[0], pair[1]])))
        };
        return match (side(6), side(8)) {
            (Some(width), Some(height)) => Ok((width, height)),
            _ => Err(unreadable(name, "it breaks off")),
        };
    }
    ImageReader::with_format(Cursor::new(bytes), format)
        .into_dimensions()
        .map_err(|error| unreadable(name, &error.to_string()))
}

/// Decodes a picture, and rotates it upright.
fn decoded(bytes: &[u8], format: ImageFormat, name: &str) -> Result<DynamicImage, PictureError> {
    let wrong = |error: image::ImageError| unreadable(name, &error.to_string());
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(wrong)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(wrong)?;
    decoded.apply_orientation(orientation);
    Ok(decoded)
}

fn encoded(
    picture: &DynamicImage,
    format: ImageFormat,
    quality: u8,
) -> Result<Vec<u8>, image::ImageError> {
    let mut out = Vec::new();
    match format {
        ImageFormat::Jpeg => {
            let flat = on_white(picture);
            flat.write_with_encoder(JpegEncoder::new_with_quality(&mut out, quality))?;
        }
        ImageFormat::WebP => {
            // The encoder only accepts these two formats.
            let plain = match picture.color().has_alpha() {
                true => DynamicImage::ImageRgba8(picture.to_rgba8()),
                false => DynamicImage::ImageRgb8(picture.to_rgb8()),
            };
            plain.write_with_encoder(WebPEncoder::new_lossless(&mut out))?;
        }
        _ => picture.write_with_encoder(PngEncoder::new(&mut out))?,
    }
    Ok(out)
}

/// Draws a transparent picture over white: a JPEG has no transparency, and would show black.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let source = picture.to_rgba8();
    RgbImage::from_fn(source.width(), source.height(), |x, y| {
        let [red, green, blue, alpha] = source.get_pixel(x, y).0;
        let over = |part: u8| {
            let (part, alpha) = (u32::from(part), u32::from(alpha));
            ((part * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        Rgb([over(red), over(green), over(blue)])
    })
}
