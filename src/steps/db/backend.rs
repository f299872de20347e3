//! The databases by their names, and what to use for those that are not reached.

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::step::StepError;

use super::sql::Dialect;

/// A database that the step reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Postgres,
    MySql,
    Sqlite,
}

/// The names, with those of databases that speak the same protocol.
const NAMES: &[(&str, Backend)] = &[
    ("postgres", Backend::Postgres),
    ("mysql", Backend::MySql),
    ("sqlite", Backend::Sqlite),
    ("cockroachdb", Backend::Postgres),
    ("mariadb", Backend::MySql),
    ("postgresql", Backend::Postgres),
    ("redshift", Backend::Postgres),
];

/// Databases that are reached in another way.
const OTHERS: &[(&str, &str)] = &[
    (
        "bigquery",
        "use `:http` with `:method :post`, `:url \"https://bigquery.googleapis.com/bigquery/v2/projects/PROJECT/queries\"`, `:json {:query \"...\" :parameterMode \"NAMED\" :queryParameters [...] :useLegacySql false}` and `:auth {:type :google-service-account ...}`; `:dryRun true` in the body is its dry run",
    ),
    (
        "clickhouse",
        "use `:http` with its HTTP interface: `:method :post :query {:query \"select ... {id:UInt64} format JSON\" :param_id 7}`",
    ),
    (
        "firestore",
        "use `:http` with `:method :post`, `:url \"https://firestore.googleapis.com/v1/projects/PROJECT/databases/(default)/documents:runQuery\"`, `:json {:structuredQuery {...}}` and `:auth {:type :google-service-account ...}`; or keep the documents in a `:table`",
    ),
    (
        "snowflake",
        "use `:http` with its SQL API: `:method :post :path \"/api/v2/statements\" :json {:statement \"...\" :bindings {...}}` and `:auth {:type :bearer ...}`",
    ),
    ("mssql", "put an HTTP service before it and use `:http`"),
    ("oracle", "put its REST service before it and use `:http`"),
    ("mongodb", "put an HTTP service before it and use `:http`"),
    (
        "duckdb",
        "attach its data to SQLite or PostgreSQL, or import it as CSV into a `:table`",
    ),
];

impl Backend {
    /// Finds a database by its name.
    ///
    /// # Errors
    /// E1460 if the step does not reach it; the hint says what to use.
    pub(crate) fn named(name: &str) -> Result<Backend, StepError> {
        if let Some((_, backend)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*backend);
        }
        if let Some((_, hint)) = OTHERS.iter().find(|(known, _)| *known == name) {
            let message = format!("`:db` does not reach `:{name}`");
            return Err(StepError::config("E1460", message).hint(*hint));
        }
        let error = StepError::config("E1460", format!("there is no database `:{name}`"));
        Err(match nearest(name, NAMES.iter().map(|(known, _)| *known)) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint("there are `:postgres`, `:mysql` and `:sqlite`"),
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Backend::Postgres => "postgres",
            Backend::MySql => "mysql",
            Backend::Sqlite => "sqlite",
        }
    }

    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Backend::Postgres => Dialect::Postgres,
            Backend::MySql => Dialect::MySql,
            Backend::Sqlite => Dialect::Sqlite,
        }
    }

    /// Returns the port of servers whose address has none.
    pub(crate) fn port(self) -> u16 {
        match self {
            Backend::Postgres => 5432,
            Backend::MySql => 3306,
            Backend::Sqlite => 0,
        }
    }

    /// Tells whether an address with this scheme leads to the database.
    pub(crate) fn has_scheme(self, scheme: &str) -> bool {
        match self {
            Backend::Postgres => matches!(scheme, "postgres" | "postgresql"),
            Backend::MySql => matches!(scheme, "mysql" | "mariadb"),
            Backend::Sqlite => scheme == "sqlite",
        }
    }
}
