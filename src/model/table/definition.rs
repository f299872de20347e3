//! The definition of a column beside its name and type, and how a cell is displayed.

use super::{Cell, ColumnType};

/// What `:set-column` says. What it leaves out stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnDefinition {
    /// What a person reads at its head.
    pub display_name: Patch<String>,
    pub type_: Option<ColumnType>,
    /// What its cells mean, such as `email`: free text.
    pub semantic_type: Patch<String>,
    pub options: Patch<EnumDefinition>,
    pub computed: Patch<Computed>,
    pub reference: Patch<Reference>,
    pub format: Patch<CellFormat>,
    pub validation: Patch<Validation>,
}

/// A change of something that may be absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Patch<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It goes.
    Clear,
    Set(T),
}

/// The values of an enum column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnumDefinition {
    pub options: Vec<EnumOption>,
    /// Whether a value that is not among the options is an error instead of a new option.
    pub closed: bool,
}

/// A value of an enum column.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumOption {
    /// What cells hold: a keyword or a string.
    pub id: Cell,
    /// What a person reads; also taken for the id on input.
    pub name: Option<String>,
    /// What else is taken for the id on input.
    pub aliases: Vec<String>,
}

/// How the cells of a column come about.
#[derive(Debug, Clone, PartialEq)]
pub enum Computed {
    /// `field` of the row that `reference_column`, a column with a reference, names.
    Lookup {
        reference_column: String,
        field: String,
    },
}

/// Whose rows the cells of a column name.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub table: super::TableName,
    pub column: String,
}

/// What the cells of a column must satisfy when they are written.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    /// A Malli schema, as EDN text.
    Schema(String),
    /// All of these.
    Rules(Vec<CheckRule>),
}

/// A rule for cells; all but `Required` let nil pass.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckRule {
    Required,
    /// At least this number, date or instant.
    Min(Cell),
    /// At most this number, date or instant.
    Max(Cell),
    /// As many characters at least.
    MinLength(usize),
    /// As many characters at most.
    MaxLength(usize),
    /// A regular expression that is found in the text.
    Pattern(String),
    /// One of these.
    OneOf(Vec<Cell>),
}

/// How a cell is shown; what it holds is not touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFormat {
    pub display: Display,
    /// The code of a currency, such as `USD`; only with [`Display::Currency`].
    pub currency: Option<String>,
}

/// What a cell looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    Currency,
    Date,
    DateTime,
    RelativeTime,
    Timestamp,
}

impl Display {
    /// All with the names that flows use.
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
