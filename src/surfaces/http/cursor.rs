//! Places in lists. A cursor is opaque to callers, and good for the same filters only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flowstone_engine::codec::digest_bytes;

use super::problem::Problem;

/// How much of the digest of the filters is kept.
const DIGEST: usize = 12;

/// Returns the cursor of the place after an item, in a list with these filters.
pub(super) fn write(after: &str, filters: &str) -> String {
    let digest = digest_bytes(filters.as_bytes());
    URL_SAFE_NO_PAD.encode(format!("{}|{after}", &digest[..DIGEST]))
}

/// Returns the item after which a list continues.
///
/// # Errors
/// When the cursor is malformed, or of a list with other filters.
pub(super) fn read(cursor: &str, filters: &str) -> Result<String, Problem> {
    let malformed = || Problem::malformed("`cursor` is not one that this list returned");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    let (digest, after) = text.split_once('|').ok_or_else(malformed)?;
    match digest == &digest_bytes(filters.as_bytes())[..DIGEST] {
        true => Ok(after.to_owned()),
        false => Err(
            Problem::malformed("`cursor` is of a list with other filters")
                .hint("repeat the filters of the first page, or leave the cursor out"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_filters() {
        let cursor = write("r7", "flow=a");
        assert_eq!(read(&cursor, "flow=a").expect("its place"), "r7");
        assert!(read(&cursor, "flow=b").is_err());
        for text in ["", "x", "!!", "eHg"] {
            assert!(read(text, "flow=a").is_err(), "{text}");
        }
    }
}
