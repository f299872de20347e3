//! Values from and to any type that serde supports.
//!
//! | Rust | value |
//! |---|---|
//! | a struct | a map with keywords for keys |
//! | a map | a map; string keys stay strings |
//! | a sequence, a tuple | a vector |
//! | a variant without contents | a keyword |
//! | a variant with contents | a map of one entry, the variant's keyword |
//! | `None`, `()` | nil |
//! | bytes | a byte array |
//!
//! The way back also takes lists, sets, records and computed sequences where Rust has a sequence or a struct,
//! strings for keywords and keywords for strings, and the text of instants, uuids and decimals for strings.

mod de;
mod ser;

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeOwned, Expected, Unexpected};

use flowstone_lang::value::{Force, Unforced, Value};

/// Maximum nesting of values here.
const MAX_DEPTH: usize = 256;

/// Converts any serialisable type to a value.
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Order {
///     id: u32,
///     tags: Vec<String>,
/// }
/// let order = Order { id: 7, tags: vec!["new".to_owned()] };
/// let value = flowstone_embed::to_value(&order).expect("plain data");
/// assert_eq!(value.to_string(), r#"{:id 7, :tags ["new"]}"#);
/// ```
///
/// # Errors
/// An error of the type's own serialisation, and too deep nesting.
pub fn to_value<T: Serialize + ?Sized>(data: &T) -> Result<Value, DataError> {
    data.serialize(ser::Writer { depth: 0 })
}

/// Converts a value to any deserialisable type. The value must be computed: values that may hold lazy sequences
/// go through [`from_value_with`].
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Order {
///     id: u32,
///     tags: Vec<String>,
/// }
/// let text = r#"{:id 7 :tags ["new" :urgent]}"#;
/// let value = flowstone_embed::reader::read_data(text).expect("data");
/// let order: Order = flowstone_embed::from_value(&value).expect("an order");
/// assert_eq!((order.id, order.tags.len()), (7, 2));
///
/// let value = flowstone_embed::reader::read_data("{:id 7 :tags [1]}").expect("data");
/// let error = flowstone_embed::from_value::<Order>(&value).map(|_| ()).expect_err("1 is not a string");
/// assert_eq!(error.to_string(), "at [:tags 0]: invalid type: integer `1`, expected a string");
/// ```
///
/// # Errors
/// The part that does not fit, and its path.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, DataError> {
    from_value_with(&mut Unforced, value)
}

/// Converts a value to any deserialisable type, computing lazy sequences with a machine.
///
/// # Errors
/// The part that does not fit, and its path; also any exception thrown while a part is computed.
pub fn from_value_with<T: DeserializeOwned>(
    force: &mut dyn Force,
    value: &Value,
) -> Result<T, DataError> {
    T::deserialize(de::Reader {
        value,
        force,
        depth: 0,
    })
}

/// The reason why data and a type do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataError {
    /// Keys and indexes on the path to the place, outermost first.
    path: Vec<String>,
    message: String,
}

impl DataError {
    fn new(message: impl Into<String>) -> DataError {
        DataError {
            path: Vec::new(),
            message: message.into(),
        }
    }

    fn at(mut self, step: impl Into<String>) -> DataError {
        self.path.insert(0, step.into());
        self
    }

    /// Returns the keys and indexes on the path to the place, outermost first.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns a description of the problem.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(out, "at [{}]: ", self.path.join(" "))?;
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for DataError {}

impl serde::ser::Error for DataError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        DataError::new(message.to_string())
    }
}

impl serde::de::Error for DataError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        DataError::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let unexpected = match unexpected {
            Unexpected::Unit | Unexpected::Option => Unexpected::Other("nil"),
            unexpected => unexpected,
        };
        DataError::new(format!("invalid type: {unexpected}, expected {expected}"))
    }
}
