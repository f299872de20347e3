//! Codes of the reader's errors that other code depends on: their classes, and Clojure's messages for them.

/// A character literal is invalid.
pub(super) const BAD_CHARACTER: &str = "E0106";
/// A string contains an unknown escape.
pub(super) const BAD_ESCAPE: &str = "E0105";
/// A `#()` is invalid.
pub(super) const BAD_FUNCTION: &str = "E0122";
/// A symbol or keyword is invalid.
pub(super) const BAD_NAME: &str = "E0108";
/// A number is invalid.
pub(super) const BAD_NUMBER: &str = "E0107";
/// A regex is invalid.
pub(super) const BAD_REGEX: &str = "E0114";
/// A tagged form cannot be read.
pub(super) const BAD_TAG: &str = "E0119";
/// An item occurs twice in a set.
pub(super) const DUPLICATE_ITEM: &str = "E0111";
/// A key occurs twice in a map.
pub(super) const DUPLICATE_KEY: &str = "E0110";
/// A map with a namespace is invalid.
pub(super) const NAMESPACE_MAP: &str = "E0121";
/// A prefix has no form after it.
pub(super) const NO_FORM: &str = "E0116";
/// A map has a key without a value.
pub(super) const ODD_MAP: &str = "E0109";
/// A string or regex is never closed.
pub(super) const OPEN_TEXT: &str = "E0104";
/// An alias is unknown.
pub(super) const UNKNOWN_ALIAS: &str = "E0120";
/// A form is never closed.
pub(super) const UNCLOSED: &str = "E0101";
/// A closing delimiter has no opening one.
pub(super) const UNOPENED: &str = "E0102";
/// A form is closed by the wrong delimiter.
pub(super) const WRONG_CLOSER: &str = "E0103";
