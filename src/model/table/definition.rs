//! The definition of a column beside its name and type, and the display of its cells.

use super::{Cell, ColumnType};

/// The changes of `:set-column`. An omitted part stays unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnDefinition {
    /// The heading of the column for people.
    pub display_name: Patch<String>,
    pub type_: Option<ColumnType>,
    /// The meaning of the cells, such as `email`, as free text.
    pub semantic_type: Patch<String>,
    pub options: Patch<EnumDefinition>,
    pub computed: Patch<Computed>,
    pub reference: Patch<Reference>,
    pub format: Patch<CellFormat>,
    pub validation: Patch<Validation>,
}

/// A change of an optional part.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Patch<T> {
    /// The part stays unchanged.
    #[default]
    Keep,
    /// The part is removed.
    Clear,
    Set(T),
}

/// The values of an enum column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnumDefinition {
    pub options: Vec<EnumOption>,
    /// Tells whether a value that is not among the options is an error instead of a new option.
    pub closed: bool,
}

/// A value of an enum column.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumOption {
    /// The value in cells: a keyword or a string.
    pub id: Cell,
    /// The text for people; on input it is also accepted for the id.
    pub name: Option<String>,
    /// Further texts that are accepted for the id on input.
    pub aliases: Vec<String>,
}

/// The source of a computed column's cells.
#[derive(Debug, Clone, PartialEq)]
pub enum Computed {
    /// The `field` of the row that `reference_column`, a column with a reference, names.
    Lookup {
        reference_column: String,
        field: String,
    },
}

/// The table and the column that the cells of a column refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub table: super::TableName,
    pub column: String,
}

/// The validation of cells when they are written.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    /// A Malli schema, as EDN text.
    Schema(String),
    /// All of these rules apply.
    Rules(Vec<CheckRule>),
}

/// A rule for cells; all rules except `Required` accept nil.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckRule {
    Required,
    /// At least this number, date or instant.
    Min(Cell),
    /// At most this number, date or instant.
    Max(Cell),
    /// Minimum number of characters.
    MinLength(usize),
    /// Maximum number of characters.
    MaxLength(usize),
    /// A regular expression that must match a part of the text.
    Pattern(String),
    /// One of these values.
    OneOf(Vec<Cell>),
}

/// The display of a cell; its content stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFormat {
    pub display: Display,
    /// The code of a currency, such as `USD`; only with [`Display::Currency`].
    pub currency: Option<String>,
}

/// A display style of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    Currency,
    Date,
    DateTime,
    RelativeTime,
    Timestamp,
}

impl Display {
    /// All styles with their names in flows.
    pub const NAMES: &'static [(Display, &'static str)] = &[
        (Display::Currency, "currency"),
        (Display::Date, "date"),
        (Display::DateTime, "date-time"),
        (Display::RelativeTime, "relative-time"),
        (Display::Timestamp, "timestamp"),
    ];

    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(display, _)| *display == self);
        found.map_or("date", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Display> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(display, _)| *display)
    }
}
