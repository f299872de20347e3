//! The options of an enum column: their ids, and the texts that are accepted for them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{ColumnType, EnumDefinition};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::{shown, to_edn, to_sql};
use crate::edn::{self, MapText};

/// Maximum number of options of an enum; a column with more values should be a string.
pub(super) const MAX_OPTIONS: usize = 10_000;

/// The options of a column, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    list: Vec<EnumChoice>,
    /// Indexes by id, name and alias as they are written, without the marks of enum cells.
    exact: HashMap<String, usize>,
    /// Indexes by lower-case name; `None` if two options share that name.
    folded: HashMap<String, Option<usize>>,
    /// Number of options on disk.
    stored: usize,
}

#[derive(Debug, Clone)]
struct EnumChoice {
    /// The id in stored form.
    id: String,
    name: Option<String>,
    aliases: Vec<String>,
}

impl Options {
    /// Creates the options of a definition.
    pub(super) fn of(definition: &EnumDefinition, column: &str) -> Result<Options, StoreError> {
        let mut options = Options::default();
        for option in &definition.options {
            let Some(Sql::Text(id)) = to_sql(ColumnType::Enum, &option.id) else {
                let message = format!(
                    "the id of an option of `{column}` is a keyword or a string, not {}",
                    shown(&option.id)
                );
                return Err(rejected("E0633", "bad-config", message));
            };
            let words = [plain(&id)]
                .into_iter()
                .chain(option.name.as_deref())
                .chain(option.aliases.iter().map(String::as_str));
            let at = options.list.len();
            for word in words {
                if options.exact.get(word).is_some_and(|known| *known != at) {
                    let message = format!("two options of `{column}` are called `{word}`");
                    let hint = "ids, names and aliases of an enum must all be different";
                    return Err(with_hint(rejected("E0633", "bad-config", message), hint));
                }
                options.exact.insert(word.to_owned(), at);
            }
            options.push(EnumChoice {
                id,
                name: option.name.clone(),
                aliases: option.aliases.clone(),
            });
        }
        check_count(options.list.len(), column)?;
        Ok(options)
    }

    /// Reads the options of a column from disk.
    pub(super) fn load(db: &Connection, table: i64, idx: i64) -> rusqlite::Result<Options> {
        let mut sql = db.prepare_cached(
            "SELECT id, name, aliases FROM table_option WHERE table_id = ?1 AND idx = ?2 ORDER BY position",
        )?;
        let rows = sql.query_map([table, idx], |row| {
            Ok(EnumChoice {
                id: row.get(0)?,
                name: row.get(1)?,
                aliases: serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default(),
            })
        })?;
        let mut options = Options::default();
        for row in rows {
            options.push(row?);
        }
        options.stored = options.list.len();
        Ok(options)
    }

    fn push(&mut self, option: EnumChoice) {
        let at = self.list.len();
        let words = [plain(&option.id)]
            .into_iter()
            .chain(option.name.as_deref())
            .chain(option.aliases.iter().map(String::as_str));
        for word in words {
            self.exact.entry(word.to_owned()).or_insert(at);
            match self.folded.entry(word.to_lowercase()) {
                Entry::Vacant(entry) => {
                    entry.insert(Some(at));
                }
                Entry::Occupied(mut entry) if *entry.get() != Some(at) => {
                    entry.insert(None);
                }
                Entry::Occupied(_) => {}
            }
        }
        self.list.push(option);
    }

    /// Returns the id for the text of a cell, by id, name or alias; the case is ignored only if the result is unique.
    pub(super) fn find(&self, kept: &str) -> Option<&str> {
        let word = plain(kept);
        let at = match self.exact.get(word) {
            Some(at) => Some(*at),
            None => self.folded.get(&word.to_lowercase()).copied().flatten(),
        };
        at.and_then(|at| self.list.get(at))
            .map(|option| option.id.as_str())
    }

    /// Adds an option for a new value.
    pub(super) fn grow(&mut self, kept: &str, column: &str) -> Result<(), StoreError> {
        check_count(self.list.len() + 1, column)?;
        self.push(EnumChoice {
            id: kept.to_owned(),
            name: None,
            aliases: Vec::new(),
        });
        Ok(())
    }

    /// Returns the names of the options for error messages.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|option| plain(&option.id))
    }

    /// Writes the options that are not on disk yet.
    pub(super) fn save(&mut self, db: &Connection, table: i64, idx: i64) -> Result<(), StoreError> {
        for (position, option) in self.list.iter().enumerate().skip(self.stored) {
            let aliases =
                serde_json::to_string(&option.aliases).unwrap_or_else(|_| "[]".to_owned());
            db.prepare_cached(
                "INSERT INTO table_option (table_id, idx, position, id, name, aliases) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut sql| {
                let position = i64::try_from(position).unwrap_or(i64::MAX);
                sql.execute(params![table, idx, position, option.id, option.name, aliases])
            })
            .map_err(failed)?;
        }
        self.stored = self.list.len();
        Ok(())
    }

    /// Returns the options as EDN text.
    pub(super) fn edn(&self) -> String {
        edn::vector(self.list.iter().map(|option| {
            let id = to_edn(ColumnType::Enum, &Sql::Text(option.id.clone()));
            let name = option.name.as_deref().unwrap_or(plain(&option.id));
            let aliases = option.aliases.iter().map(|alias| edn::text(alias));
            MapText::new()
                .raw("id", &id)
                .text("name", name)
                .raw("aliases", &edn::vector(aliases))
                .finish()
        }))
    }
}

/// Removes the options of a column.
pub(super) fn clear(db: &Connection, table: i64, idx: i64) -> Result<(), StoreError> {
    db.execute(
        "DELETE FROM table_option WHERE table_id = ?1 AND idx = ?2",
        [table, idx],
    )
    .map(drop)
    .map_err(failed)
}

/// Returns the cell of an enum without its mark.
fn plain(kept: &str) -> &str {
    kept.strip_prefix([':', '\\']).unwrap_or(kept)
}

fn check_count(count: usize, column: &str) -> Result<(), StoreError> {
    if count <= MAX_OPTIONS {
        return Ok(());
    }
    let message = format!("the enum `{column}` would have more than {MAX_OPTIONS} options");
    let hint = "use a string column instead: `:definition {:type-hint :string :enum nil}`";
    Err(with_hint(rejected("E0633", "too-large", message), hint))
}
