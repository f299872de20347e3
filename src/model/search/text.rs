//! Decides which bytes are text, and how much of a text is indexed or shown.

/// Maximum number of bytes of a resource that are indexed.
pub const TEXT_MAX: usize = 128 << 10;

/// Tells whether contents of this type are text, or may be.
pub fn may_be_text(content_type: Option<&str>) -> bool {
    let kind = content_type.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_binary = ["image/", "audio/", "video/", "font/"]
        .iter()
        .any(|start| kind.starts_with(start))
        && kind != "image/svg+xml";
    !is_binary
        && !matches!(
            &*kind,
            "application/pdf" | "application/zip" | "application/gzip"
        )
}

/// Returns the beginning of some bytes as text, at most `most` bytes, and whether more follows; `None` if they are not
/// text.
pub fn start_of(bytes: &[u8], most: usize) -> Option<(String, bool)> {
    let part = &bytes[..bytes.len().min(most)];
    let text = match std::str::from_utf8(part) {
        Ok(text) => text,
        // A character that is cut at the end is left out; other invalid bytes are not text.
        Err(error) if error.error_len().is_none() && part.len() < bytes.len() => {
            std::str::from_utf8(&part[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if text.contains('\0') {
        return None;
    }
    Some((text.to_owned(), part.len() < bytes.len()))
}

/// Truncates a text to at most `most` bytes, at a character boundary.
pub fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::{may_be_text, start_of};

    #[test]
    fn text_is_distinguished_from_other_bytes() {
        for (bytes, most, expected) in [
            (b"abc".as_slice(), 10, Some(("abc", false))),
            (b"abc", 2, Some(("ab", true))),
            ("aé".as_bytes(), 2, Some(("a", true))),
            (b"a\xff", 10, None),
            (b"a\0b", 10, None),
            (b"a\xc3", 10, None),
        ] {
            let found = start_of(bytes, most);
            let found = found.as_ref().map(|(text, more)| (&**text, *more));
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn images_are_not_text() {
        for (kind, expected) in [
            (None, true),
            (Some("text/plain; charset=utf-8"), true),
            (Some("application/edn"), true),
            (Some("image/svg+xml"), true),
            (Some("Image/PNG"), false),
            (Some("application/pdf"), false),
        ] {
            assert_eq!(may_be_text(kind), expected, "{kind:?}");
        }
    }
}
