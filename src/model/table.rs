//! Operations on tables as data: changes and queries.
//!
//! Nothing here is SQL and nothing here is a [`Value`]: cells are plain data that crosses threads. The store decides,
//! in the transaction, what a table accepts.
//!
//! [`Value`]: flowstone_lang::value::Value

pub mod csv;
mod definition;
mod join;

pub use definition::{
    CellFormat, CheckRule, ColumnDefinition, Computed, Display, EnumDefinition, EnumOption, Patch,
    Reference, Validation,
};
pub use join::{JoinSide, JoinSource, MaterializeJoin, Projected, RightFields};

/// Maximum number of rows in a page.
pub const MAX_PAGE: usize = 1000;
/// Default number of rows in a page.
pub const DEFAULT_PAGE: usize = 25;
/// The name under which rows are selected by the number that the store assigns to each.
pub const ROW_ID: &str = "row-id";
/// The name under which the partition of a row is selected, in a table with partitions and without such a column.
pub const PARTITION: &str = "partition-key";

/// A change of a table. The store executes it in the transaction of the step's journal row; its result, as EDN text by
/// [`crate::codec`], becomes the value of the step.
#[derive(Debug, Clone, PartialEq)]
pub enum TableOp {
    Create(CreateTable),
    Write(WriteRows),
    Delete {
        table: TableTarget,
        rows: RowChoice,
    },
    /// Changes the content of one cell.
    UpdateCell(UpdateCell),
    /// Changes the display of one cell; its content stays.
    FormatCell(FormatCell),
    /// Adds a column, or changes its definition.
    SetColumn(SetColumn),
    /// Computes the computed columns of rows again.
    Recompute(Recompute),
    Join(MaterializeJoin),
    /// Adds the rows of a CSV file.
    Import(Box<csv::ImportCsv>),
}

/// Creates a table. An existing table with the same name is an error unless it has these columns already.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub name: String,
    /// The initial partitions; if there is at least one, it is a table with partitions.
    pub partitions: Vec<String>,
    pub columns: Vec<NewColumn>,
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
}

/// A declared column.
#[derive(Debug, Clone, PartialEq)]
pub struct NewColumn {
    pub name: String,
    /// The type of the column and the rest of its definition.
    pub definition: ColumnDefinition,
}

/// Adds rows; creates the table and missing columns.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteRows {
    pub table: TableTarget,
    pub rows: Vec<Row>,
    pub mode: WriteMode,
    /// The columns whose values identify a row. Empty: those that the table has.
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
}

/// The cells of a row by column; a missing cell is nil.
pub type Row = Vec<(String, Cell)>;

/// The handling of a row whose key exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Refuse the row.
    Insert,
    /// Replace the cells that the new row has.
    Upsert,
    /// Remove all rows of the table, or of the partition, first.
    Replace,
}

/// Changes one cell of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateCell {
    pub table: TableTarget,
    pub row: RowChoice,
    pub column: String,
    pub value: Cell,
}

/// Sets the display of one cell; `None`: that of its column.
#[derive(Debug, Clone, PartialEq)]
pub struct FormatCell {
    pub table: TableTarget,
    pub row: RowChoice,
    pub column: String,
    pub format: Option<CellFormat>,
}

/// Adds a column, or changes its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct SetColumn {
    pub table: TableTarget,
    pub column: String,
    pub definition: ColumnDefinition,
}

/// Computes the computed columns of some rows again, in the order in which the rows were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Recompute {
    pub table: TableTarget,
    pub filter: Filter,
    /// Maximum number of rows; `None`: all rows.
    pub limit: Option<usize>,
    pub offset: usize,
}

/// The name of a table, or the id in its `res://` name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableName {
    Name(String),
    Id(i64),
}

/// A table and, if it has partitions, the selected ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableTarget {
    pub name: TableName,
    pub partitions: Partitions,
}

impl From<TableName> for TableTarget {
    fn from(name: TableName) -> TableTarget {
        TableTarget {
            name,
            partitions: Partitions::Unnamed,
        }
    }
}

/// The selected partitions of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitions {
    /// No partition is named: valid only for a table without partitions.
    Unnamed,
    /// These partitions; exactly one for a write.
    Keys(Vec<String>),
    /// All partitions, chosen explicitly. Also valid for a table without partitions.
    All,
}

/// The selection of rows.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChoice {
    All,
    Id(i64),
    Key(Row),
    Where(Filter),
}

/// The content of one cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Nil,
    Bool(bool),
    Long(i64),
    Double(f64),
    /// The digits of a decimal.
    Decimal(String),
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// Returns milliseconds since 1970.
    Instant(i64),
    /// Anything else, as EDN text.
    Data(String),
}

/// The type of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    Boolean,
    Date,
    Decimal,
    Double,
    Enum,
    Json,
    Long,
    String,
    Timestamp,
}

impl ColumnType {
    /// All types with their names in flows.
    pub const NAMES: &'static [(ColumnType, &'static str)] = &[
        (ColumnType::Boolean, "boolean"),
        (ColumnType::Date, "date"),
        (ColumnType::Decimal, "decimal"),
        (ColumnType::Double, "double"),
        (ColumnType::Enum, "enum"),
        (ColumnType::Json, "json"),
        (ColumnType::Long, "long"),
        (ColumnType::String, "string"),
        (ColumnType::Timestamp, "timestamp"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(type_, _)| *type_ == self)
            .map_or("json", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<ColumnType> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(type_, _)| *type_)
    }
}

/// A query of a table, answered on a read connection as EDN text.
#[derive(Debug, Clone, PartialEq)]
pub enum TableQuery {
    Rows(RowsQuery),
    Row {
        table: TableTarget,
        row: RowChoice,
        select: Vec<String>,
    },
    Aggregate(Aggregate),
    Schema {
        table: TableTarget,
    },
}

/// A query for a page of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsQuery {
    pub table: TableTarget,
    /// Empty: all columns.
    pub select: Vec<String>,
    pub filter: Filter,
    pub sort: Vec<Sort>,
    pub page: Page,
}

/// The page of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub limit: usize,
    pub from: PageStart,
    /// Tells whether to count all matching rows, too.
    pub total: bool,
}

/// The start of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum PageStart {
    Offset(usize),
    /// After the last row of the previous page; `None` for the first page.
    Cursor(Option<String>),
}

/// A column to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    pub column: String,
    pub descending: bool,
}

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of these conditions hold; true for an empty list.
    And(Vec<Filter>),
    /// At least one of these conditions holds; false for an empty list.
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Test {
        column: String,
        test: Test,
        operands: Vec<Cell>,
    },
}

impl Filter {
    /// Holds for every row.
    pub const ALL: Filter = Filter::And(Vec::new());
}

/// A comparison of a cell with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Contains,
    NotContains,
    StartsWith,
    EndsWith,
    Like,
    Between,
    IsNull,
    NotNull,
}

impl Test {
    /// All tests with their names in flows.
    pub const NAMES: &'static [(Test, &'static str)] = &[
        (Test::Equal, "="),
        (Test::NotEqual, "!="),
        (Test::Less, "<"),
        (Test::LessOrEqual, "<="),
        (Test::Greater, ">"),
        (Test::GreaterOrEqual, ">="),
        (Test::In, "in"),
        (Test::NotIn, "not-in"),
        (Test::Contains, "contains"),
        (Test::NotContains, "not-contains"),
        (Test::StartsWith, "starts-with"),
        (Test::EndsWith, "ends-with"),
        (Test::Like, "like"),
        (Test::Between, "between"),
        (Test::IsNull, "is-null"),
        (Test::NotNull, "not-null"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(test, _)| *test == self)
            .map_or("=", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Test> {
        let name = match name {
            "<>" | "not=" => "!=",
            "==" => "=",
            name => name,
        };
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(test, _)| *test)
    }
}

/// An aggregation: groups of rows, and the metrics of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub table: TableTarget,
    pub filter: Filter,
    pub group_by: Vec<GroupBy>,
    pub metrics: Vec<Metric>,
    /// A filter on the names of groups and metrics.
    pub having: Filter,
    /// The order, by the names of groups and metrics.
    pub order_by: Vec<Sort>,
    pub limit: Option<usize>,
}

/// The common value of the rows in a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupBy {
    pub column: String,
    pub bucket: Option<Bucket>,
    /// The name of the group in the result.
    pub name: String,
}

/// The values that form one group.
#[derive(Debug, Clone, PartialEq)]
pub enum Bucket {
    /// Numbers from one multiple of `size` to the next; the value of the group is its lower bound.
    NumericBin { size: f64 },
    /// Dates and instants in the same unit, in UTC; the value of the group is its start.
    DateTrunc { unit: DateUnit },
}

/// A calendar unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateUnit {
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl DateUnit {
    /// All units with their names in flows.
    pub const NAMES: &'static [(DateUnit, &'static str)] = &[
        (DateUnit::Hour, "hour"),
        (DateUnit::Day, "day"),
        (DateUnit::Week, "week"),
        (DateUnit::Month, "month"),
        (DateUnit::Quarter, "quarter"),
        (DateUnit::Year, "year"),
    ];
}

/// A metric of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub kind: MetricKind,
    /// The column of the metric; only `count` needs none.
    pub column: Option<String>,
    /// The name of the metric in the result.
    pub name: String,
}

/// The function of a metric. nil cells are ignored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    Avg,
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    Median,
    Min,
    /// The percentile at a fraction from 0 to 1; interpolated between two values.
    Percentile(f64),
    Sum,
}
