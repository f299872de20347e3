//! Checks of cells before they are stored: enum values are replaced by their ids, and validations are applied. Most
//! tables have none.

use flowstone_lang::value::Value;
use flowstone_model::codec::decode;
use flowstone_model::ports::StoreError;
use flowstone_model::schema::{self, Schema};
use flowstone_model::table::{Cell, CheckRule, ColumnType, Validation};
use rusqlite::Connection;
use rusqlite::types::Value as Sql;

use super::super::failure::{rejected, with_hint};
use super::cell::{data_text, holds, to_edn, to_plain, to_sql};
use super::filter::{Operand, value};
use super::metric::compare;
use super::options::Options;
use super::registry::{Column, Table, listed};

/// The checks of a table's columns, in their order.
pub(super) struct Intake {
    gates: Vec<Option<Gate>>,
}

struct Gate {
    column: String,
    idx: i64,
    type_: ColumnType,
    options: Option<(Options, bool)>,
    checks: Vec<Check>,
}

/// The reason why a cell is refused.
pub(super) struct Refusal {
    pub code: &'static str,
    /// The problem, such as `should be at most 5, is 7`.
    pub message: String,
    pub hint: Option<String>,
}

impl Refusal {
    /// Returns the refusal of a missing cell that is required.
    pub(super) fn missing() -> Refusal {
        Refusal {
            code: "E0632",
            message: "is required".to_owned(),
            hint: None,
        }
    }

    /// Returns the error for the refused cell of a row.
    pub(super) fn error(self, row: &str, column: &str) -> StoreError {
        let message = format!("{row}: `{column}` {}", self.message);
        let error = rejected(self.code, "invalid", message);
        match self.hint {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    }
}

/// A validation rule in prepared form.
pub(super) enum Check {
    Schema(Schema),
    Required,
    Min(Sql, String),
    Max(Sql, String),
    MinLength(usize),
    MaxLength(usize),
    OneOf(Vec<Sql>, String),
}

impl Intake {
    /// Returns the checks of a table's columns; `None` if no column has checks.
    pub(super) fn of(table: &Table) -> Result<Option<Intake>, StoreError> {
        let asks = |column: &Column| column.options.is_some() || column.meta.validation.is_some();
        if !table.columns.iter().any(asks) {
            return Ok(None);
        }
        let gates = table.columns.iter().map(|column| match asks(column) {
            true => Gate::of(column).map(Some),
            false => Ok(None),
        });
        Ok(Some(Intake {
            gates: gates.collect::<Result<_, _>>()?,
        }))
    }

    /// Returns the stored form of a cell for the column at an index, or the reason for a refusal.
    pub(super) fn take(
        &mut self,
        at: usize,
        kept: Sql,
    ) -> Result<Result<Sql, Refusal>, StoreError> {
        match self.gates.get_mut(at) {
            Some(Some(gate)) => gate.take(kept),
            _ => Ok(Ok(kept)),
        }
    }

    /// Tells whether a column has checks.
    pub(super) fn asks(&self, at: usize) -> bool {
        matches!(self.gates.get(at), Some(Some(_)))
    }

    /// Returns the index of the first required column that is not among the given ones.
    pub(super) fn missing(&self, given: &[usize]) -> Option<usize> {
        let needs = |gate: &Gate| gate.checks.iter().any(|check| check.refuses_nil());
        (0..self.gates.len())
            .find(|at| !given.contains(at) && self.gates[*at].as_ref().is_some_and(needs))
    }

    /// Writes the options that were added.
    pub(super) fn finish(&mut self, db: &Connection, table: &Table) -> Result<(), StoreError> {
        for gate in self.gates.iter_mut().flatten() {
            if let Some((options, _)) = &mut gate.options {
                options.save(db, table.id, gate.idx)?;
            }
        }
        Ok(())
    }
}

impl Gate {
    fn of(column: &Column) -> Result<Gate, StoreError> {
        let type_ = column.type_.unwrap_or(ColumnType::Json);
        let closed = column.meta.options.is_some_and(|closed| closed.0);
        Ok(Gate {
            column: column.name.clone(),
            idx: column.idx,
            type_,
            options: column
                .options
                .as_deref()
                .map(|options| (options.clone(), closed)),
            checks: match &column.meta.validation {
                Some(validation) => checks(&column.name, type_, validation)?,
                None => Vec::new(),
            },
        })
    }

    fn take(&mut self, kept: Sql) -> Result<Result<Sql, Refusal>, StoreError> {
        let kept = match (&mut self.options, kept) {
            (Some((options, closed)), Sql::Text(text)) => {
                let found = options.find(&text).map(str::to_owned);
                match found {
                    Some(id) => Sql::Text(id),
                    None if *closed => {
                        return Ok(Err(Refusal {
                            code: "E0633",
                            message: format!(
                                "should be one of the options, is {}",
                                to_edn(self.type_, &Sql::Text(text))
                            ),
                            hint: Some(format!("the options are {}", listed(options.names()))),
                        }));
                    }
                    None => {
                        options.grow(&text, &self.column)?;
                        Sql::Text(text)
                    }
                }
            }
            (_, kept) => kept,
        };
        for check in &self.checks {
            if let Some(message) = check.problem(self.type_, &kept) {
                return Ok(Err(Refusal {
                    code: "E0632",
                    message,
                    hint: None,
                }));
            }
        }
        Ok(Ok(kept))
    }
}

/// Prepares the rules of a column, or reports the one that does not suit its type.
pub(super) fn checks(
    column: &str,
    type_: ColumnType,
    validation: &Validation,
) -> Result<Vec<Check>, StoreError> {
    let senseless = |what: &str| {
        let message = format!(
            "`:validation` of `{column}`: {what}, and the column holds {}",
            holds(type_)
        );
        rejected("E0631", "bad-config", message)
    };
    let rules = match validation {
        Validation::Schema(text) => return Ok(vec![Check::Schema(malli(column, text)?)]),
        Validation::Rules(rules) => rules,
    };
    let bound = |word: &str, cell: &Cell| {
        let ordered = matches!(
            type_,
            ColumnType::Long
                | ColumnType::Double
                | ColumnType::Decimal
                | ColumnType::Date
                | ColumnType::Timestamp
        );
        let kept = Some(cell)
            .filter(|cell| ordered && **cell != Cell::Nil)
            .and_then(|cell| kept_as(column, type_, cell));
        kept.map(|kept| (kept, data_text(cell).unwrap_or_default()))
            .ok_or_else(|| {
                let text = data_text(cell).unwrap_or_default();
                senseless(&format!("`:{word} {text}` compares what it holds"))
            })
    };
    let is_text = matches!(
        type_,
        ColumnType::String | ColumnType::Enum | ColumnType::Date
    );
    let text_only = |word: &str| match is_text {
        true => Ok(()),
        false => Err(senseless(&format!("`:{word}` is for text"))),
    };
    let checks = rules.iter().map(|rule| {
        Ok(match rule {
            CheckRule::Required => Check::Required,
            CheckRule::Min(cell) => {
                bound("min", cell).map(|(kept, text)| Check::Min(kept, text))?
            }
            CheckRule::Max(cell) => {
                bound("max", cell).map(|(kept, text)| Check::Max(kept, text))?
            }
            CheckRule::MinLength(length) => {
                text_only("min-length")?;
                Check::MinLength(*length)
            }
            CheckRule::MaxLength(length) => {
                text_only("max-length")?;
                Check::MaxLength(*length)
            }
            CheckRule::Pattern(pattern) => {
                text_only("pattern")?;
                let form = Value::vector([Value::keyword("re"), Value::from(pattern.as_str())]);
                let form = Value::vector([Value::keyword("maybe"), form]);
                let schema = schema::parse(&form).map_err(|error| {
                    let message = format!("`:pattern` of `{column}`: {error}");
                    rejected("E0631", "bad-config", message)
                })?;
                Check::Schema(schema)
            }
            CheckRule::OneOf(cells) => {
                let kept = cells.iter().map(|cell| {
                    kept_as(column, type_, cell).ok_or_else(|| {
                        let text = data_text(cell).unwrap_or_default();
                        senseless(&format!("`:in` has {text}"))
                    })
                });
                let texts: Vec<String> = cells.iter().filter_map(data_text).collect();
                Check::OneOf(kept.collect::<Result<_, _>>()?, texts.join(", "))
            }
        })
    });
    checks.collect()
}

fn kept_as(column: &str, type_: ColumnType, cell: &Cell) -> Option<Sql> {
    let operand = Operand::plain_column(column, type_);
    value(&operand, flowstone_model::table::Test::Equal, cell)
        .ok()
        .or_else(|| to_sql(type_, cell))
}

fn malli(column: &str, text: &str) -> Result<Schema, StoreError> {
    let wrong = |why: String| {
        let message = format!("`:validation` of `{column}` is not a valid schema: {why}");
        let error = rejected("E0631", "bad-config", message);
        with_hint(
            error,
            "as in `[:int {:min 0}]`, or `{:required true :max 100}`",
        )
    };
    let form = decode(text).map_err(|error| wrong(error.to_string()))?;
    schema::parse(&form).map_err(|error| wrong(error.to_string()))
}

impl Check {
    fn refuses_nil(&self) -> bool {
        match self {
            Check::Required => true,
            Check::Schema(schema) => !schema::validate(schema, &Value::Nil).is_empty(),
            _ => false,
        }
    }

    /// Describes how a cell violates the rule; `None` if it does not.
    fn problem(&self, type_: ColumnType, kept: &Sql) -> Option<String> {
        let is_nil = matches!(kept, Sql::Null);
        let shown = || {
            let text = to_edn(type_, kept);
            match text.char_indices().nth(60) {
                Some((at, _)) => format!("{} ...", &text[..at]),
                None => text,
            }
        };
        let length = || to_plain(type_, kept).chars().count();
        match self {
            Check::Required => is_nil.then(|| "is required".to_owned()),
            Check::Schema(schema) => {
                let value = match (type_, kept) {
                    (ColumnType::String, Sql::Text(text)) => Value::from(text.as_str()),
                    _ => decode(&to_edn(type_, kept)).unwrap_or(Value::Nil),
                };
                let problems = schema::validate(schema, &value);
                (!problems.is_empty()).then(|| schema::explain(&problems))
            }
            _ if is_nil => None,
            Check::Min(bound, text) => compare(type_, kept, bound)
                .is_lt()
                .then(|| format!("should be at least {text}, is {}", shown())),
            Check::Max(bound, text) => compare(type_, kept, bound)
                .is_gt()
                .then(|| format!("should be at most {text}, is {}", shown())),
            Check::MinLength(least) => (length() < *least)
                .then(|| format!("should have at least {least} characters, has {}", length())),
            Check::MaxLength(most) => (length() > *most)
                .then(|| format!("should have at most {most} characters, has {}", length())),
            Check::OneOf(all, texts) => all
                .iter()
                .all(|one| compare(type_, kept, one).is_ne())
                .then(|| format!("should be one of {texts}, is {}", shown())),
        }
    }
}
