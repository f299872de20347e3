//! Operations on the key-value store, as data. (Contents: the `data` part of the work.)

/// A change of the key-value store. Executed by the store in the transaction of the step's journal row;
/// its result, as EDN text by [`crate::codec`], becomes the step's value.
#[derive(Debug, Clone, PartialEq)]
pub enum KvOp {
    Set {
        key: String,
        /// EDN text.
        value: String,
        ttl_seconds: Option<i64>,
        if_not_exists: bool,
    },
    Delete {
        key: String,
    },
}
