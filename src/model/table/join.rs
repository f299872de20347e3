//! A join of two tables, or of rows, that is stored as a table.

use super::{Filter, Row, TableTarget, WriteMode};

/// Joins two sides and writes the result to a table.
#[derive(Debug, Clone, PartialEq)]
pub struct MaterializeJoin {
    pub left: JoinSide,
    pub right: JoinSide,
    /// Pairs of a left and a right field that are equal.
    pub on: Vec<(String, String)>,
    /// Tells whether left rows without a matching right one are kept.
    pub keep_unmatched: bool,
    /// The fields of the left side in the result; `None`: all.
    pub keep_left: Option<Vec<String>>,
    pub right_fields: RightFields,
    pub into: TableTarget,
    pub mode: WriteMode,
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
    /// The id of this join: if a join with this id was done, its first answer is returned.
    pub op_id: Option<String>,
}

/// One side of a join.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinSide {
    pub source: JoinSource,
    /// Empty: all columns.
    pub select: Vec<String>,
    pub filter: Filter,
}

/// The source of the rows of a side.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinSource {
    Table(TableTarget),
    Rows(Vec<Row>),
}

/// The fields of the right side in the result.
#[derive(Debug, Clone, PartialEq)]
pub enum RightFields {
    /// All fields except those that the join makes equal to a left one.
    All,
    These(Vec<Projected>),
}

/// A field and its name in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projected {
    pub field: String,
    pub name: String,
}
