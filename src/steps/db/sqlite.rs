//! SQLite: a file of the project, opened for one statement.
//!
//! The file and the statement may be hostile. What a statement may do is decided by SQLite itself, which asks before
//! each action; its time and the size of its values are limited there, too. Blocking; called on a thread that may wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use super::cell::{Answer, Cell, NO_LIST};
use super::error::DbError;
use super::query::{Meter, Query};
use super::sql::{self, Dialect};

/// A database in a file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// With its links resolved.
    pub path: PathBuf,
    /// The path as the connection has it.
    pub place: String,
}

/// Maximum time to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Executes a statement. `cancelled` stops it.
pub(super) fn execute(
    file: &File,
    query: &Query,
    cancelled: &Arc<AtomicBool>,
) -> Result<Answer, DbError> {
    let deadline = Instant::now() + query.limits.time;
    let mut connection = open(file, query)?;
    let failed = |error: &Error| failure(file, query, error);
    let flag = Arc::clone(cancelled);
    let is_over = move || flag.load(Ordering::Relaxed) || Instant::now() >= deadline;
    connection
        .progress_handler(1000, Some(is_over))
        .map_err(|error| failed(&error))?;
    if query.is_read_only {
        connection
            .authorizer(Some(may_read))
            .map_err(|error| failed(&error))?;
        return statement(&connection, file, query);
    }
    connection
        .execute_batch("BEGIN IMMEDIATE")
        .map_err(|error| failed(&error))?;
    connection
        .authorizer(Some(may_write))
        .map_err(|error| failed(&error))?;
    // The transaction ends with the connection if the statement fails.
    let answer = statement(&connection, file, query)?;
    connection
        .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
        .map_err(|error| failed(&error))?;
    connection
        .execute_batch("COMMIT")
        .map_err(|error| failed(&error))?;
    Ok(answer)
}

fn open(file: &File, query: &Query) -> Result<Connection, DbError> {
    let missing = |cause: &str| DbError::NoFile {
        place: file.place.clone(),
        cause: cause.to_owned(),
    };
    match std::fs::metadata(&file.path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(missing("it is not a file")),
        Err(error) if query.is_read_only => return Err(missing(&error.to_string())),
        // It is made by the first statement that writes.
        Err(_) => {}
    }
    let access = match query.is_read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let failed = |error: &Error| failure(file, query, error);
    let connection =
        Connection::open_with_flags(&file.path, flags).map_err(|error| failed(&error))?;
    let largest = i32::try_from(query.limits.bytes.clamp(1_000_000, 1_000_000_000));
    connection
        .busy_timeout(query.limits.time.min(PATIENCE))
        .and_then(|()| {
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, largest.unwrap_or(1_000_000))
        })
        .and_then(|_| connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0))
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true))
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false))
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true))
        .map_err(|error| failed(&error))?;
    Ok(connection)
}

/// Pragmas that only describe something. Those of the first list take a name.
const ABOUT: &[&str] = &[
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];
const FACTS: &[&str] = &[
    "application_id",
    "collation_list",
    "encoding",
    "freelist_count",
    "page_count",
    "page_size",
    "schema_version",
    "user_version",
];

/// Functions that reach files or memory of the process, in builds of SQLite that have them.
const FORBIDDEN: &[&str] = &[
    "edit",
    "fts3_tokenizer",
    "load_extension",
    "readfile",
    "writefile",
];

fn is_about(name: &str, value: Option<&str>) -> bool {
    let is = |list: &[&str]| list.iter().any(|it| it.eq_ignore_ascii_case(name));
    is(ABOUT) || (value.is_none() && is(FACTS))
}

fn is_allowed(is_fine: bool) -> Authorization {
    match is_fine {
        true => Authorization::Allow,
        false => Authorization::Deny,
    }
}

/// Decides about the actions of a statement that only reads.
fn may_read(context: AuthContext<'_>) -> Authorization {
    is_allowed(match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !is_forbidden(function_name),
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => is_about(pragma_name, pragma_value),
        _ => false,
    })
}

fn is_forbidden(function: &str) -> bool {
    FORBIDDEN.iter().any(|it| it.eq_ignore_ascii_case(function))
}

/// Decides about the actions of a statement that may write: within its own file.
fn may_write(context: AuthContext<'_>) -> Authorization {
    is_allowed(match context.action {
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Unknown { .. } => false,
        AuthAction::Function { function_name } => !is_forbidden(function_name),
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => is_about(pragma_name, pragma_value),
        _ => true,
    })
}

fn statement(connection: &Connection, file: &File, query: &Query) -> Result<Answer, DbError> {
    let failed = |error: &Error| failure(file, query, error);
    let marks = sql::marks(&query.sql, Dialect::Sqlite).map_err(DbError::Parameter)?;
    let mut prepared = connection
        .prepare(&query.sql)
        .map_err(|error| failed(&error))?;
    // Placeholders with names or numbers are not counted by their marks.
    let placeholders = prepared.parameter_count();
    if marks != placeholders {
        return Err(DbError::Parameter(
            "placeholders are written `?` for SQLite, without a name or number".to_owned(),
        ));
    }
    query.check_count(placeholders)?;
    if query.is_read_only && !prepared.readonly() {
        return Err(DbError::ReadOnly("this statement writes".to_owned()));
    }
    for (idx, cell) in query.params.iter().enumerate() {
        let value = parameter(cell).map_err(DbError::Parameter)?;
        prepared
            .raw_bind_parameter(idx + 1, value)
            .map_err(|error| failed(&error))?;
    }
    let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut meter = Meter::new(query.limits);
    let mut answer = Answer::default();
    let before = connection.total_changes();
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let mut cells = Vec::with_capacity(columns.len());
        for (idx, name) in columns.iter().enumerate() {
            let value = row.get_ref(idx).map_err(|error| failed(&error))?;
            let cell = field(value)
                .map_err(|cause| DbError::Unfit(format!("column `{name}`: {cause}")))?;
            cells.push(cell);
        }
        meter.row(&cells)?;
        answer.rows.push(cells);
    }
    drop(rows);
    if !query.is_read_only && connection.total_changes() > before {
        answer.affected = connection.changes();
        answer.last_id = Some(connection.last_insert_rowid()).filter(|id| *id != 0);
    }
    answer.columns = columns;
    Ok(answer)
}

fn parameter(cell: &Cell) -> Result<Sql, String> {
    Ok(match cell {
        Cell::Null => Sql::Null,
        Cell::Bool(it) => Sql::Integer(i64::from(*it)),
        Cell::Int(it) => Sql::Integer(*it),
        Cell::Float(it) => Sql::Real(*it),
        // Columns of numbers turn the text into a number where that loses nothing.
        Cell::Big(text) | Cell::Decimal(text) => Sql::Text(text.clone()),
        Cell::Text(text) | Cell::Uuid(text) | Cell::Json(text) => Sql::Text(text.clone()),
        Cell::Instant(_) => Sql::Text(cell.instant_text('T', "Z").unwrap_or_default()),
        Cell::Bytes(bytes) => Sql::Blob(bytes.clone()),
        Cell::List(_) => return Err(NO_LIST.to_owned()),
    })
}

fn field(value: ValueRef<'_>) -> Result<Cell, String> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(it) => Cell::Int(it),
        ValueRef::Real(it) => Cell::Float(it),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => {
                return Err("its text is not UTF-8; `cast(... as blob)` gives its bytes".to_owned());
            }
        },
    })
}

fn failure(file: &File, query: &Query, error: &Error) -> DbError {
    let place = file.place.clone();
    let statement = |message: String, state: &str| DbError::Statement {
        place: place.clone(),
        message,
        state: state.to_owned(),
        number: None,
        detail: Vec::new(),
    };
    match (error, error.sqlite_error_code()) {
        (Error::MultipleStatement, _) => {
            DbError::Parameter("a step executes one statement, and this is more".to_owned())
        }
        (_, Some(ErrorCode::OperationInterrupted)) => DbError::TimedOut {
            place,
            limit: query.limits.time,
        },
        (_, Some(ErrorCode::TooBig)) => DbError::TooLarge {
            limit: query.limits.bytes,
        },
        (_, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => {
            statement("another process writes to it".to_owned(), "SQLITE_BUSY")
        }
        (
            _,
            Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::PermissionDenied),
        ) => DbError::NoFile {
            place,
            cause: error.to_string(),
        },
        (_, Some(ErrorCode::ReadOnly)) => {
            DbError::ReadOnly(format!("the database refuses it: {error}"))
        }
        (_, Some(ErrorCode::AuthorizationForStatementDenied)) if query.is_read_only => {
            DbError::ReadOnly("this statement does more".to_owned())
        }
        (_, Some(ErrorCode::AuthorizationForStatementDenied)) => statement(
            "a step may not attach files, set pragmas, or begin and end transactions".to_owned(),
            "42501",
        ),
        (_, Some(ErrorCode::ConstraintViolation)) => statement(error.to_string(), "23000"),
        _ => statement(error.to_string(), ""),
    }
}
