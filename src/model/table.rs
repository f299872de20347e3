//! Operations on tables, as data: what to change, what to ask.
//!
//! Nothing here is SQL and nothing here is a [`Value`]: cells are plain data that crosses threads. What a
//! table accepts is decided by the store, in the transaction.
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

/// The most rows that one page may have.
pub const MAX_PAGE: usize = 1000;
/// The rows of a page that does not say how many.
pub const DEFAULT_PAGE: usize = 25;
/// What rows are asked for by, beside their columns: a number the store gives each.
pub const ROW_ID: &str = "row-id";
/// What the partition of a row is asked for by, in a table that has partitions and no such column.
pub const PARTITION: &str = "partition-key";

/// A change of a table. Executed by the store in the transaction of the step's journal row; its result, as
/// EDN text by [`crate::codec`], becomes the step's value.
#[derive(Debug, Clone, PartialEq)]
pub enum TableOp {
    Create(CreateTable),
    Write(WriteRows),
    Delete {
        table: TableTarget,
        rows: RowChoice,
    },
    /// Changes one cell.
    UpdateCell(UpdateCell),
    /// Changes how one cell is shown; what it holds stays.
    FormatCell(FormatCell),
    /// Adds a column, or changes its definition.
    SetColumn(SetColumn),
    /// Computes the computed columns of rows again.
    Recompute(Recompute),
    Join(MaterializeJoin),
    /// Adds the rows of a CSV file.
    Import(Box<csv::ImportCsv>),
}

/// Makes a table. An existing one with the same name is an error unless it has these columns already.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub name: String,
    /// Those that the table starts with; with one at least, it is a table of partitions.
    pub partitions: Vec<String>,
    pub columns: Vec<NewColumn>,
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
}

/// A column as it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct NewColumn {
    pub name: String,
    /// Its type and the rest of its definition.
    pub definition: ColumnDefinition,
}

/// Adds rows; makes the table and columns where they are missing.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteRows {
    pub table: TableTarget,
    pub rows: Vec<Row>,
    pub mode: WriteMode,
    /// What makes a row the same row. Empty: what the table has.
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
}

/// The cells of a row by column; what is not there is nil.
pub type Row = Vec<(String, Cell)>;

/// What to do with a row whose key is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Refuse it.
    Insert,
    /// Replace the cells it has.
    Upsert,
    /// Remove all rows of the table, or of the partition, before.
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

/// Says how one cell is shown; `None` as its column is.
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
    /// `None`: all.
    pub limit: Option<usize>,
    pub offset: usize,
}

/// How a table is named: by its name, or by the id in its `res://` name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableName {
    Name(String),
    Id(i64),
}

/// A table and, where it has partitions, those that are meant.
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

/// Which partitions of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitions {
    /// None is named: fine only for a table that has none.
    Unnamed,
    /// These; one to write.
    Keys(Vec<String>),
    /// All partitions, chosen explicitly. Also valid for a table without partitions.
    All,
}

/// Which rows.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChoice {
    All,
    Id(i64),
    Key(Row),
    Where(Filter),
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Nil,
    Bool(bool),
    Long(i64),
    Double(f64),
    /// A decimal's digits.
    Decimal(String),
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// Milliseconds since 1970.
    Instant(i64),
    /// Anything else, as EDN text.
    Data(String),
}

/// What a column holds.
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
    /// All types with the names that flows use.
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

/// A question to a table; answered on a read connection as EDN text.
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

/// A page of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsQuery {
    pub table: TableTarget,
    /// Empty: all columns.
    pub select: Vec<String>,
    pub filter: Filter,
    pub sort: Vec<Sort>,
    pub page: Page,
}

/// Which rows of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub limit: usize,
    pub from: PageStart,
    /// Whether to count all rows that fit, too.
    pub total: bool,
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq)]
pub enum PageStart {
    Offset(usize),
    /// After the last row of the page before; `None` for the first page.
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
    /// All of these hold; with none, always.
    And(Vec<Filter>),
    /// One of these holds at least; with none, never.
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
    /// All tests with the names that flows use.
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

/// Groups of rows and what is computed of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub table: TableTarget,
    pub filter: Filter,
    pub group_by: Vec<GroupBy>,
    pub metrics: Vec<Metric>,
    /// On the names of groups and metrics.
    pub having: Filter,
    /// By the names of groups and metrics.
    pub order_by: Vec<Sort>,
    pub limit: Option<usize>,
}

/// What rows of a group have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupBy {
    pub column: String,
    pub bucket: Option<Bucket>,
    /// The name it has in the result.
    pub name: String,
}

/// What is taken for equal.
#[derive(Debug, Clone, PartialEq)]
pub enum Bucket {
    /// Numbers from one multiple of `size` to the next; the value is where it starts.
    NumericBin { size: f64 },
    /// Dates and instants of the same unit, in UTC; the value is where it starts.
    DateTrunc { unit: DateUnit },
}

/// A unit of the calendar.
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
    /// All units with the names that flows use.
    pub const NAMES: &'static [(DateUnit, &'static str)] = &[
        (DateUnit::Hour, "hour"),
        (DateUnit::Day, "day"),
        (DateUnit::Week, "week"),
        (DateUnit::Month, "month"),
        (DateUnit::Quarter, "quarter"),
        (DateUnit::Year, "year"),
    ];
}

/// A figure of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub kind: MetricKind,
    /// Only `count` needs none.
    pub column: Option<String>,
    /// The name it has in the result.
    pub name: String,
}

/// What a metric computes. nil cells do not count.
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
    /// A fraction from 0 to 1; between two values in proportion.
    Percentile(f64),
    Sum,
}
