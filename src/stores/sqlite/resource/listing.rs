//! Lists of resources: rows of the registry and of other tables, in one order.

use std::cmp::Ordering;

use flowstone_model::ports::{ResourcePage, ResourceQuery, ResourceRow, ResourceSort, StoreError};
use flowstone_model::resource::{self, PREFIX, ResourceKind, ResourceName};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::registry::{COLUMNS, read};

/// The rows of a kind of resource outside of the registry. All fields are SQL.
struct Source {
    /// The URI after the prefix.
    uri: &'static str,
    /// Size, name, content type, creation time, expiry time.
    facts: [&'static str; 5],
    /// The run that made the resource, and the path of the step.
    made_by: &'static str,
    from: &'static str,
}

const NOBODY: &str = "NULL AS run, NULL AS path";
const EDN: &str = "'application/edn'";

const KEYS: Source = Source {
    uri: "'result/kv/' || key",
    facts: [
        "octet_length(value)",
        "key",
        EDN,
        "updated_ms",
        "expires_ms",
    ],
    made_by: NOBODY,
    from: "kv",
};

const TABLES: Source = Source {
    uri: "'result/table/' || id",
    facts: ["NULL", "name", "NULL", "created_ms", "NULL"],
    made_by: NOBODY,
    from: "table_registry",
};

const FLOW_OUTPUTS: Source = Source {
    uri: "'result/run/' || id || '/flow-output'",
    facts: [
        "octet_length(result)",
        "flow",
        EDN,
        "coalesce(ended_ms, updated_ms)",
        "NULL",
    ],
    made_by: "id AS run, NULL AS path",
    from: "run WHERE result IS NOT NULL",
};

const STEP_OUTPUTS: Source = Source {
    uri: "'result/run/' || run.id || '/step/' || flowstone_escaped(path) || '/output'",
    facts: ["octet_length(payload)", "path", EDN, "at_ms", "NULL"],
    made_by: "run.id AS run, path",
    from: "run JOIN journal ON journal.id BETWEEN run.num << 32 AND (run.num << 32) + 4294967295
         WHERE journal.kind = 'result' AND run.id = ?1",
};

const CHANGESETS: Source = Source {
    uri: "'bundle/changeset/files/' || id",
    facts: ["NULL", "NULL", "NULL", "updated_ms", "NULL"],
    made_by: NOBODY,
    from: "changeset",
};

/// Returns the query for the rows of a kind outside of the registry, with the columns of the registry.
fn source(kind: ResourceKind) -> Option<String> {
    let Source {
        uri,
        facts: [size, name, content_type, created, expires],
        made_by,
        from,
    } = match kind {
        ResourceKind::Kv => KEYS,
        ResourceKind::Table => TABLES,
        ResourceKind::FlowOutput => FLOW_OUTPUTS,
        ResourceKind::StepOutput => STEP_OUTPUTS,
        ResourceKind::Changeset => CHANGESETS,
        ResourceKind::Blob | ResourceKind::File | ResourceKind::Tree => return None,
    };
    Some(format!(
        "SELECT '{PREFIX}' || {uri} AS uri, '{}' AS kind, NULL AS hash, {size} AS size, {name} AS filename,
                {content_type} AS content_type, 'retained' AS tier, {created} AS created_ms,
                {expires} AS expires_ms, {made_by}, NULL AS bucket, NULL AS folder, NULL AS search, NULL AS gone,
                NULL AS gone_ms
         FROM {from}",
        kind.name()
    ))
}

/// Prepares a connection for lists.
///
/// # Errors
/// When SQLite does not accept the function.
pub fn prepare(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("flowstone_escaped", 1, flags, |args| {
        Ok(resource::escaped(&args.get::<String>(0)?))
    })
}

/// Returns a page of resources.
///
/// # Errors
/// When the database cannot be read, or the cursor is malformed.
pub fn list(db: &Connection, query: &ResourceQuery) -> Result<ResourcePage, StoreError> {
    let limit = query.limit.max(1);
    let mut values: Vec<Sql> = vec![query.run.clone().map_or(Sql::Null, Sql::Text)];
    let mut sql = format!(
        "SELECT {COLUMNS} FROM ({}) WHERE 1",
        sources(query).join("\nUNION ALL\n")
    );
    let mut condition = |text: &str, value: Option<Sql>| {
        sql.push_str(" AND ");
        match value {
            Some(value) => {
                values.push(value);
                sql.push_str(&text.replace('?', &format!("?{}", values.len())));
            }
            None => sql.push_str(text),
        }
    };
    if !query.with_gone {
        let now = Some(Sql::Integer(query.now_ms));
        condition(
            "gone IS NULL AND (expires_ms IS NULL OR expires_ms > ?)",
            now,
        );
    }
    // The first value always exists.
    condition("(?1 IS NULL OR run = ?1)", None);
    let text = |text: &String| Some(Sql::Text(text.clone()));
    if let Some(step) = &query.step {
        let step_id = "(path = ? OR substr(path, 1, instr(path || '#', '#') - 1) = ?
                        OR substr(path, -length(?) - 1) = '/' || ?)";
        condition(step_id, text(step));
    }
    if let Some(prefix) = &query.prefix {
        let whole = match prefix.starts_with("res://") {
            true => resource::canonical(prefix),
            false => format!("{PREFIX}{}", prefix.trim_start_matches('/')),
        };
        condition("substr(uri, 1, length(?)) = ?", Some(Sql::Text(whole)));
    }
    if let Some(tier) = query.tier {
        condition("tier = ?", Some(Sql::Text(tier.name().to_owned())));
    }
    if let Some(part) = &query.text {
        let is_like = "(instr(lower(coalesce(filename, '')), lower(?)) > 0 OR instr(lower(uri), lower(?)) > 0)";
        condition(is_like, text(part));
    }
    let order = match query.sort {
        ResourceSort::Created => "created_ms DESC, uri DESC",
        ResourceSort::Name => "lower(coalesce(filename, uri)), uri",
    };
    if let Some(after) = &query.after {
        let (key, uri) = cursor(query.sort, after)?;
        values.extend([key, uri]);
        let (key, uri) = (values.len() - 1, values.len());
        sql.push_str(&match query.sort {
            ResourceSort::Created => format!(" AND (created_ms, uri) < (?{key}, ?{uri})"),
            ResourceSort::Name => {
                format!(" AND (lower(coalesce(filename, uri)), uri) > (?{key}, ?{uri})")
            }
        });
    }
    sql.push_str(&format!(" ORDER BY {order} LIMIT {}", limit + 1));
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), |row| read(row, query.now_ms))
        .map_err(failed)?;
    let rows: Vec<ResourceRow> = rows.collect::<rusqlite::Result<_>>().map_err(failed)?;
    Ok(ResourcePage::cut(rows, limit, |last| {
        position(query.sort, last)
    }))
}

/// Returns the selects that a list is composed of.
fn sources(query: &ResourceQuery) -> Vec<String> {
    let is_wanted = |kind: ResourceKind| match query.kinds.is_empty() {
        true => match kind {
            ResourceKind::FlowOutput | ResourceKind::StepOutput => query.run.is_some(),
            _ => true,
        },
        false => query.kinds.contains(&kind),
    };
    let mut sources = Vec::new();
    let mut own = Vec::new();
    for (kind, name) in ResourceKind::NAMES
        .iter()
        .filter(|(kind, _)| is_wanted(*kind))
    {
        match source(*kind) {
            // A stored result of a step has the name of its output: it is listed once.
            Some(select) if *kind == ResourceKind::StepOutput => sources.push(format!(
                "SELECT * FROM ({select}) AS output WHERE NOT EXISTS (
                   SELECT 1 FROM resource WHERE resource.run = ?1 AND resource.uri = output.uri)"
            )),
            Some(select) => sources.push(format!("SELECT * FROM ({select})")),
            None => own.push(format!("'{name}'")),
        }
    }
    if !own.is_empty() {
        sources.push(format!(
            "SELECT {COLUMNS} FROM resource WHERE kind IN ({})",
            own.join(", ")
        ));
    }
    sources
}

/// Returns the cursor after a row.
pub(crate) fn position(sort: ResourceSort, row: &ResourceRow) -> String {
    let key = match sort {
        ResourceSort::Created => row.created_ms.to_string(),
        ResourceSort::Name => row.name.as_ref().unwrap_or(&row.uri).to_ascii_lowercase(),
    };
    format!("{key}|{}", row.uri)
}

/// The place of a row in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The creation time, in lists by time.
    pub created_ms: i64,
    /// The name in lower case, in lists by name.
    pub name: String,
    pub uri: String,
}

/// Returns the order of two rows in a list.
pub(crate) fn order(sort: ResourceSort, one: &Place, other: &Place) -> Ordering {
    let places =
        (one.created_ms, &one.name, &one.uri).cmp(&(other.created_ms, &other.name, &other.uri));
    match sort {
        ResourceSort::Created => places.reverse(),
        ResourceSort::Name => places,
    }
}

impl Place {
    pub(crate) fn of(sort: ResourceSort, row: &ResourceRow) -> Place {
        let (created_ms, name) = match sort {
            ResourceSort::Created => (row.created_ms, String::new()),
            ResourceSort::Name => {
                let name = row.name.as_ref().unwrap_or(&row.uri);
                (0, name.to_ascii_lowercase())
            }
        };
        Place {
            created_ms,
            name,
            uri: row.uri.clone(),
        }
    }
}

/// Reads a cursor.
pub(crate) fn place(sort: ResourceSort, text: &str) -> Result<Place, StoreError> {
    let parts = text.split_once("|res://");
    let read = parts.and_then(|(key, rest)| {
        let (created_ms, name) = match sort {
            ResourceSort::Created => (key.parse().ok()?, String::new()),
            ResourceSort::Name => (0, key.to_owned()),
        };
        Some(Place {
            created_ms,
            name,
            uri: format!("res://{rest}"),
        })
    });
    read.ok_or_else(|| {
        let message = format!("`{text}` is not a valid cursor");
        let error = rejected("E0618", "bad-config", message);
        with_hint(
            error,
            "use the cursor of the previous page, with the same order",
        )
    })
}

fn cursor(sort: ResourceSort, text: &str) -> Result<(Sql, Sql), StoreError> {
    let Place {
        created_ms,
        name,
        uri,
    } = place(sort, text)?;
    let key = match sort {
        ResourceSort::Created => Sql::Integer(created_ms),
        ResourceSort::Name => Sql::Text(name),
    };
    Ok((key, Sql::Text(uri)))
}

/// Finds a resource that is not in the registry.
pub(super) fn elsewhere(
    db: &Connection,
    name: &ResourceName,
    now_ms: i64,
) -> Result<Option<ResourceRow>, StoreError> {
    let (kind, run, condition, value) = match name {
        ResourceName::Kv(key) => (
            ResourceKind::Kv,
            None,
            "filename = ?2 AND (expires_ms IS NULL OR expires_ms > ?3)",
            key.clone(),
        ),
        ResourceName::Table(table) => {
            let number = table.strip_prefix("tbl_").unwrap_or(table);
            let uri = format!("{PREFIX}result/table/{number}");
            match one(db, ResourceKind::Table, (None, "uri = ?2", &uri), now_ms)? {
                Some(row) => return Ok(Some(row)),
                None => (ResourceKind::Table, None, "filename = ?2", table.clone()),
            }
        }
        ResourceName::FlowOutput(run) => (ResourceKind::FlowOutput, None, "run = ?2", run.clone()),
        ResourceName::StepOutput(run, path) => (
            ResourceKind::StepOutput,
            Some(run.split('.').next().unwrap_or(run)),
            "path = ?2",
            path.clone(),
        ),
        ResourceName::Changeset(id) => {
            let uri = format!("{PREFIX}bundle/changeset/files/{id}");
            return one(
                db,
                ResourceKind::Changeset,
                (None, "uri = ?2", &uri),
                now_ms,
            );
        }
        ResourceName::File(_) | ResourceName::Tree(_) | ResourceName::Other => return Ok(None),
    };
    one(db, kind, (run, condition, &value), now_ms)
}

fn one(
    db: &Connection,
    kind: ResourceKind,
    (run, condition, value): (Option<&str>, &str, &str),
    now_ms: i64,
) -> Result<Option<ResourceRow>, StoreError> {
    let Some(source) = source(kind) else {
        return Ok(None);
    };
    db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM ({source}) WHERE {condition} AND coalesce(?1, ?3, 1) IS NOT NULL
         ORDER BY created_ms DESC LIMIT 1"
    ))
    .and_then(|mut sql| {
        sql.query_row(params![run, value, now_ms], |row| read(row, now_ms))
            .optional()
    })
    .map_err(failed)
}
