//! A join of two tables, or of rows, whose result is a table.

use super::{Filter, Row, TableTarget, WriteMode};

/// Joins two sides and writes what comes out to a table.
#[derive(Debug, Clone, PartialEq)]
pub struct MaterializeJoin {
    pub left: JoinSide,
    pub right: JoinSide,
    /// Pairs of a left and a right field that are equal.
    pub on: Vec<(String, String)>,
    /// Whether left rows without a right one are kept.
    pub keep_unmatched: bool,
    /// The fields of the left side that are kept; `None`: all.
    pub keep_left: Option<Vec<String>>,
    pub right_fields: RightFields,
    pub into: TableTarget,
    pub mode: WriteMode,
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
    /// Names this join: once it is done, asking again gives the first answer.
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

/// Where the rows of a side come from.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinSource {
    Table(TableTarget),
    Rows(Vec<Row>),
}

/// What is kept of the right side.
#[derive(Debug, Clone, PartialEq)]
pub enum RightFields {
    /// All but those that are equal to a left one by the join.
    All,
    These(Vec<Projected>),
}

/// A field and its name in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projected {
    pub field: String,
    pub name: String,
}
