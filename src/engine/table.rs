//! Operations on tables, as data. (Contents: the `data` part of the work.)

/// A change of a table. Executed by the store in the transaction of the step's journal row; its result, as
/// EDN text by [`crate::codec`], becomes the step's value.
#[derive(Debug, Clone, PartialEq)]
pub enum TableOp {
    Insert {
        table: String,
        /// Each row as EDN text.
        rows: Vec<String>,
    },
}

/// A question to a table; answered on a read connection as EDN text.
#[derive(Debug, Clone, PartialEq)]
pub enum TableQuery {
    Schema { table: String },
}
