//! The statement of a step: from `:sql` and `:params`, or from a template and its data.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::backend::Backend;
use super::cell::Cell;
use super::error::DbError;
use super::sql::{self, Dialect, Piece};
use crate::fields::Fields;
use crate::json::items;
use crate::rendered::template;

/// A statement with the values of its placeholders.
#[derive(Debug)]
pub(super) struct Statement {
    pub sql: String,
    pub params: Vec<Cell>,
    /// Why it cannot run where only reading is allowed, if this can be seen in its text.
    pub writes: Option<String>,
}

/// The type of templates that the step takes.
pub(super) const TEMPLATE: &str = "db-query";

pub(super) fn read(
    cx: &StepContext,
    fields: Fields<'_>,
    backend: Backend,
) -> Result<Statement, StepError> {
    let dialect = backend.dialect();
    let (sql, params) = match (fields.text("sql")?, fields.name("template")?) {
        (Some(sql), None) => {
            if sql.trim().is_empty() {
                return Err(wrong("the statement is empty"));
            }
            if fields.has("data") {
                return Err(wrong("`:data` needs a `:template`")
                    .hint("the values for the `?` of `:sql` are `:params`"));
            }
            if has_tags(sql, dialect)? {
                return Err(wrong("`:sql` has a `{{...}}`, which belongs in a template")
                    .hint("write `?`, and the value in `:params`"));
            }
            (sql.to_owned(), params(fields)?)
        }
        (None, Some(id)) => {
            if fields.has("params") {
                return Err(wrong("a `:template` takes `:data`, not `:params`"));
            }
            let found = template(cx, &id, TEMPLATE)?;
            let sql = text_of(&found.body)
                .ok_or_else(|| wrong(format!("the template `:{id}` has no `:sql`")))?;
            let nothing = Value::map([]);
            let data = fields.map("data")?.unwrap_or(&nothing);
            filled(sql, dialect, data, &id)?
        }
        (Some(_), Some(_)) => {
            return Err(wrong("a statement is `:sql` or a `:template`, not both"));
        }
        (None, None) => {
            return Err(wrong("the step has no statement")
                .hint("as in `:sql \"select * from orders where id = ?\" :params [7]`"));
        }
    };
    let pieces = pieces(&sql, dialect)?;
    if sql::has_several(&pieces) {
        return Err(
            wrong("a step executes one statement, and this is more").hint(
                "write a step for each; what belongs together goes into a function of the database",
            ),
        );
    }
    let writes = sql::writes(&pieces, dialect);
    Ok(Statement {
        sql,
        params,
        writes,
    })
}

fn params(fields: Fields<'_>) -> Result<Vec<Cell>, StepError> {
    let given = fields.get("params").and_then(items).unwrap_or_default();
    let cells = given.iter().map(Cell::of_value);
    let cells: Result<Vec<Cell>, String> = cells.collect();
    cells.map_err(|message| DbError::Parameter(message).into())
}

/// Returns the statement of a template's body.
pub(super) fn text_of(body: &Value) -> Option<&str> {
    body.get("sql")
        .or_else(|| body.get("query"))
        .and_then(Value::as_str)
}

fn pieces(sql: &str, dialect: Dialect) -> Result<Vec<Piece<'_>>, StepError> {
    sql::pieces(sql, dialect)
        .map_err(|error| wrong(format!("the statement cannot be read: {error}")))
}

fn has_tags(sql: &str, dialect: Dialect) -> Result<bool, StepError> {
    let pieces = pieces(sql, dialect)?;
    Ok(pieces.iter().any(|piece| matches!(piece, Piece::Tag(_))))
}

/// Returns the names that a template uses.
///
/// # Errors
/// E1463 for a tag that cannot become a parameter.
pub(super) fn tags(sql: &str, dialect: Dialect, id: &str) -> Result<Vec<String>, StepError> {
    let mut names = Vec::new();
    for piece in pieces(sql, dialect)? {
        match piece {
            Piece::Tag(tag) => names.push(name(tag, id)?.to_owned()),
            Piece::Quoted(text) if text.contains("{{") => {
                return Err(
                    unfit(id, &format!("{text} has a variable inside of quotes")).hint(
                        "leave out the quotes: the value becomes a parameter, which needs none",
                    ),
                );
            }
            Piece::Mark => {
                return Err(unfit(id, "it has a `?` of its own")
                    .hint("write a variable, `{{name}}`, for each value"));
            }
            Piece::Code(_) | Piece::Quoted(_) | Piece::Comment(_) | Piece::Escaped => {}
        }
    }
    Ok(names)
}

/// Puts a placeholder in the place of each variable, and collects their values.
fn filled(
    sql: &str,
    dialect: Dialect,
    data: &Value,
    id: &str,
) -> Result<(String, Vec<Cell>), StepError> {
    let names = tags(sql, dialect, id)?;
    let mut params = Vec::with_capacity(names.len());
    for name in &names {
        let value =
            found(data, name).ok_or_else(|| unfit(id, &format!("`:data` lacks `{name}`")))?;
        params.push(Cell::of_value(&value).map_err(DbError::Parameter)?);
    }
    let pieces = pieces(sql, dialect)?;
    let text = pieces.into_iter().map(|piece| match piece {
        Piece::Code(text) | Piece::Quoted(text) | Piece::Comment(text) => text,
        Piece::Tag(_) | Piece::Mark => "?",
        Piece::Escaped => "??",
    });
    Ok((text.collect(), params))
}

/// Reads a tag: a name, or names with dots between.
fn name<'a>(tag: &'a str, id: &str) -> Result<&'a str, StepError> {
    let name = tag.trim();
    let is_plain = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.' | '?' | '!');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name),
        false => Err(unfit(id, &format!("`{{{{{tag}}}}}` is not a variable")).hint(
            "a template of SQL has variables only, each of which becomes a parameter; conditions belong in the statement: `(? is null or a = ?)`",
        )),
    }
}

/// Finds the value of a name with dots in the data.
fn found(data: &Value, name: &str) -> Option<Value> {
    let mut at = data.clone();
    for part in name.split('.') {
        let next = at.get(part).cloned();
        at = next.or_else(|| at.as_map()?.get(&Value::from(part)).cloned())?;
    }
    Some(at)
}

fn unfit(id: &str, why: &str) -> StepError {
    StepError::config(
        "E1463",
        format!("the template `:{id}` of SQL cannot be used: {why}"),
    )
}

pub(super) fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1461", message)
}
