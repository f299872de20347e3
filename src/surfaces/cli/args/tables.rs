//! `flowstone resources table` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::Home;

/// Queries and changes tables
///
/// A table is given by its name, as in flows, or by its `res://` name. Conditions, keys and similar options are EDN or
/// JSON, `@file`, or `-`.
#[derive(Debug, Args)]
pub struct ResourcesTable {
    #[command(subcommand)]
    pub command: TableCommand,
}

#[derive(Debug, Subcommand)]
pub enum TableCommand {
    Aggregate(TableAggregate),
    Export(TableExport),
    GetRow(TableGetRow),
    Import(TableImport),
    MaterializeJoin(TableJoin),
    Query(TableQuery),
    Recompute(TableRecompute),
    Schema(TableSchema),
    SetColumn(TableSetColumn),
    UpdateCell(TableUpdateCell),
    UpdateCellFormat(TableUpdateCellFormat),
}

/// A table, and its partitions.
#[derive(Debug, Args)]
pub struct TableTarget {
    /// The table: its name, or its `res://` name
    pub table: String,

    /// A partition of the table; may be repeated
    #[arg(
        long = "partition-key",
        visible_alias = "partition-keys",
        value_name = "KEY",
        value_delimiter = ','
    )]
    pub partition_keys: Vec<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which rows and columns to select.
#[derive(Debug, Args)]
pub struct TableRows {
    /// Only rows that match, as '[["status" "=" "open"]]'
    #[arg(
        long = "where",
        value_name = "EDN|JSON|@FILE|-",
        allow_hyphen_values = true
    )]
    pub filter: Option<String>,

    /// Only these columns
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub select: Vec<String>,

    /// The order: a column, or '[["amount" "desc"] "id"]'
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub sort: Option<String>,
}

/// Which row to select.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TableRow {
    /// The row with this number
    #[arg(long, value_name = "N")]
    pub row_id: Option<i64>,

    /// The row with these cells, as '{"order-id" "ord-1"}'
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub key: Option<String>,
}

/// Computes aggregates of groups of rows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources table aggregate orders --group-by status --metrics '[{:op :count :as :n} {:op :sum :field :amount :as :total}]'
  flowstone resources table aggregate orders --group-by '[{:field :day :bucket {:op :date-trunc :unit :month} :as :month}]' \\
    --metrics '[{:op :count :as :n}]' --having '[[:n :> 10]]' --order-by '[[:n :desc]]'")]
pub struct TableAggregate {
    #[command(flatten)]
    pub target: TableTarget,

    /// Only rows that match
    #[arg(long = "where", value_name = "EDN|JSON|@FILE|-")]
    pub filter: Option<String>,

    /// The grouping: a column, or '["status" {:field "amount" :bucket {:op "numeric-bin" :size 100} :as "bin"}]'
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub group_by: Option<String>,

    /// The aggregates, as '[{:op "count" :as "count"}]'
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub metrics: Option<String>,

    /// Only groups that match
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub having: Option<String>,

    /// The order, as '[["count" "desc"]]'
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub order_by: Option<String>,

    /// Maximum number of groups
    #[arg(long, value_name = "N")]
    pub limit: Option<i64>,
}

/// Writes rows as CSV, to standard output or a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources table export orders > orders.csv
  flowstone resources table export orders --where '[[:status := \"open\"]]' --select id,amount --out open.csv")]
pub struct TableExport {
    #[command(flatten)]
    pub target: TableTarget,

    #[command(flatten)]
    pub rows: TableRows,

    /// The file to write
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Put an apostrophe before text that a spreadsheet would evaluate as a formula
    #[arg(long)]
    pub escape_formulas: bool,
}

/// Shows one row
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources table get-row orders --key '{\"id\" 17}'
  flowstone resources table get-row orders --row-id 1 --json")]
pub struct TableGetRow {
    #[command(flatten)]
    pub target: TableTarget,

    #[command(flatten)]
    pub row: TableRow,

    /// Only these columns
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub select: Vec<String>,
}

/// Adds the rows of a CSV file, all or none
///
/// Creates the table and its columns if they do not exist. The type of a new column is inferred from all its cells; an
/// existing column keeps its type.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources table import orders orders.csv
  flowstone resources table import orders orders.csv --write-mode upsert --key-fields id --index-fields status,customer
  flowstone resources table import orders export.csv --delimiter ';' --encoding windows-1252 --on-bad-row collect")]
pub struct TableImport {
    #[command(flatten)]
    pub target: TableTarget,

    /// The file, the `res://` name of a file, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,

    /// What to do with existing rows
    #[arg(long, value_enum, default_value_t = TableWriteMode::Append)]
    pub write_mode: TableWriteMode,

    /// The key columns of a row; a new table needs them for `upsert`
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub key_fields: Vec<String>,

    /// Columns to index
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub index_fields: Vec<String>,

    /// The types of some columns, as '{:zip :string}'
    #[arg(long, value_name = "EDN|JSON|@FILE")]
    pub columns: Option<String>,

    /// The field separator [default: a comma]; `tab` for tabs
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<String>,

    /// The file's encoding, such as latin1 [default: UTF-8, or that of the byte order mark]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,

    /// The first line is a row, not the names of the columns
    #[arg(long)]
    pub no_header: bool,

    /// What to do with a row that does not match the columns
    #[arg(long, value_enum, default_value_t = TableBadRow::Fail)]
    pub on_bad_row: TableBadRow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableWriteMode {
    /// Keep them
    Append,
    /// Remove them
    Replace,
    /// Replace rows with the same key
    Upsert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableBadRow {
    /// Skip it, and report its line and the reason
    Collect,
    /// Import nothing
    Fail,
    /// Skip it
    Skip,
}

/// Joins two tables into a third
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table materialize-join --left orders --right customers \\
    --on '[{:left-field :customer :right-field :id}]' \\
    --project '{:keep-left :all :right-fields [{:field :name :as :customer-name}]}' \\
    --into '{:table \"order-list\" :write-mode :upsert :key-fields [:id]}'")]
pub struct TableJoin {
    /// A table, or '{:table {:ref ...} :select [...]}', or '{:rows [...]}'
    #[arg(long, value_name = "TABLE|EDN|JSON|@FILE")]
    pub left: String,

    /// The right table, in the same form as --left
    #[arg(long, value_name = "TABLE|EDN|JSON|@FILE")]
    pub right: String,

    /// Which fields match, as '[{:left-field :customer :right-field :id}]'
    #[arg(long, value_name = "EDN|JSON|@FILE")]
    pub on: String,

    /// The table to write to, or '{:table "name" :write-mode :upsert :key-fields [...]}'
    #[arg(long, value_name = "TABLE|EDN|JSON|@FILE")]
    pub into: String,

    /// The fields of the joined rows, as '{:keep-left :all :right-fields [{:field :name :as :customer}]}'
    #[arg(long, value_name = "EDN|JSON|@FILE")]
    pub project: Option<String>,

    /// `left` keeps rows without a match on the right, `inner` drops them
    #[arg(long, value_name = "left|inner")]
    pub join_type: Option<String>,

    /// A name for this join; a second join with the same name does nothing
    #[arg(long, value_name = "ID")]
    pub op_id: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows a page of rows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources table query orders --where '[[\"status\" \"=\" \"open\"]]' --sort '[[\"amount\" \"desc\"]]' --limit 10
  flowstone resources table query orders --select id,amount --sort id --page-mode cursor --json")]
pub struct TableQuery {
    #[command(flatten)]
    pub target: TableTarget,

    #[command(flatten)]
    pub rows: TableRows,

    /// Maximum number of rows, up to 1000 [default: 25]
    #[arg(long, value_name = "N")]
    pub limit: Option<i64>,

    /// Skip this many rows
    #[arg(long, value_name = "N", conflicts_with = "cursor")]
    pub offset: Option<i64>,

    /// Continue after an earlier page, with the cursor that it printed
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,

    /// How to page: by offset, or after the last row
    #[arg(long, value_enum)]
    pub page_mode: Option<TablePageMode>,

    /// Also count all rows that match
    #[arg(long, visible_alias = "include-total-count")]
    pub total: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TablePageMode {
    /// Pages continue after the last row; new rows do not shift them
    Cursor,
    /// Pages continue at a row number
    Offset,
}

/// Recomputes computed columns
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table recompute orders --where '[[:status := \"open\"]]'")]
pub struct TableRecompute {
    #[command(flatten)]
    pub target: TableTarget,

    /// Only in rows that match
    #[arg(long = "where", value_name = "EDN|JSON|@FILE|-")]
    pub filter: Option<String>,

    /// Maximum number of rows
    #[arg(long, value_name = "N")]
    pub limit: Option<i64>,

    /// Skip this many rows
    #[arg(long, value_name = "N")]
    pub offset: Option<i64>,
}

/// Shows the columns of a table
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table schema orders")]
pub struct TableSchema {
    #[command(flatten)]
    pub target: TableTarget,
}

/// Adds a column, or changes its definition
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table set-column orders --column amount \\
    --definition '{:display-name \"Amount\" :type-hint :double :format {:display :currency :currency \"EUR\"}}'")]
pub struct TableSetColumn {
    #[command(flatten)]
    pub target: TableTarget,

    /// The column
    #[arg(long, value_name = "COLUMN")]
    pub column: String,

    /// The definition of the column
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub definition: String,
}

/// Changes one cell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table update-cell orders --key '{\"id\" 17}' --column status --value closed")]
pub struct TableUpdateCell {
    #[command(flatten)]
    pub target: TableTarget,

    #[command(flatten)]
    pub row: TableRow,

    /// The column
    #[arg(long, value_name = "COLUMN")]
    pub column: String,

    /// The new value: EDN or JSON; a single word is a string, `nil` empties the cell
    #[arg(long, value_name = "EDN|JSON|@FILE|-", allow_hyphen_values = true)]
    pub value: String,
}

/// Changes how one cell is displayed, without changing its value
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources table update-cell-format orders --row-id 1 --column amount --format '{:display :currency :currency \"USD\"}'")]
pub struct TableUpdateCellFormat {
    #[command(flatten)]
    pub target: TableTarget,

    #[command(flatten)]
    pub row: TableRow,

    /// The column
    #[arg(long, value_name = "COLUMN")]
    pub column: String,

    /// The format; `nil` for the column's format
    #[arg(long, value_name = "EDN|JSON|@FILE|-")]
    pub format: String,
}
