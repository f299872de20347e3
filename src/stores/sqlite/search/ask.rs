//! Finds documents by words.

use flowstone_model::ports::{SearchHit, SearchTarget, StoreError, WordQuery};
use flowstone_model::search::Term;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params, params_from_iter};
use serde_json::json;

use super::super::failure::failed;
use super::super::snapshot::Snapshot;
use super::docs;

/// Number of words in a snippet.
const SNIPPET_WORDS: u32 = 24;

pub(crate) fn by_words(db: &Connection, query: &WordQuery) -> Result<Vec<SearchHit>, StoreError> {
    let Some(expression) = expression(&query.terms, query.all) else {
        return Ok(Vec::new());
    };
    // A document that is indexed again meanwhile has another number.
    let _snapshot = Snapshot::begin(db)?;
    let name = query.target.name();
    let mut values = vec![Sql::Text(expression.clone())];
    let mut sql = format!("SELECT search_{name}.rowid, search_{name}.rank FROM search_{name}");
    let mut conditions = format!("search_{name} MATCH ?");
    let prefix = query.filter.prefix.as_ref();
    let prefix = prefix.filter(|_| query.target == SearchTarget::Resources);
    if prefix.is_some() || query.filter.ids.is_some() {
        sql += &format!(" JOIN search_doc AS doc ON doc.num = search_{name}.rowid");
    }
    if let Some(ids) = &query.filter.ids {
        conditions += " AND doc.id IN (SELECT value FROM json_each(?))";
        values.push(Sql::Text(json!(ids).to_string()));
    }
    if let Some(prefix) = prefix {
        conditions += " AND substr(doc.id, 1, length(?)) = ?";
        values.extend([prefix, prefix].map(|text| Sql::Text(text.clone())));
    }
    if let Some(run) = &query.filter.except
        && query.target == SearchTarget::Runs
    {
        conditions += &format!(
            " AND search_{name}.rowid <> coalesce((SELECT num FROM search_doc WHERE target = 'runs' AND id = ?), 0)"
        );
        values.push(Sql::Text(run.to_string()));
    }
    values.push(Sql::Integer(query.limit as i64));
    let sql = format!("{sql} WHERE {conditions} ORDER BY search_{name}.rank LIMIT ?");
    let mut sql = db.prepare_cached(&sql).map_err(failed)?;
    let rows = sql
        .query_map(params_from_iter(values), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?))
        })
        .map_err(failed)?;
    let found: Vec<(i64, f64)> = rows.collect::<rusqlite::Result<_>>().map_err(failed)?;
    found
        .into_iter()
        .map(|(num, rank)| hit(db, query.target, (num, -rank), &expression))
        .collect()
}

/// Returns a hit with its snippet. Called only for hits that are returned, because it reads the text.
fn hit(
    db: &Connection,
    target: SearchTarget,
    (num, score): (i64, f64),
    expression: &str,
) -> Result<SearchHit, StoreError> {
    let name = target.name();
    db.prepare_cached(&format!(
        "SELECT doc.id, doc.title, doc.facts, snippet(search_{name}, -1, '', '', '…', {SNIPPET_WORDS})
         FROM search_{name} JOIN search_doc AS doc ON doc.num = search_{name}.rowid
         WHERE search_{name} MATCH ?1 AND search_{name}.rowid = ?2"
    ))
    .and_then(|mut sql| {
        sql.query_row(params![expression, num], |row| {
            Ok(SearchHit {
                target,
                id: row.get(0)?,
                title: row.get(1)?,
                facts: docs::facts(&row.get::<_, String>(2)?),
                score,
                snippet: one_line(&row.get::<_, String>(3)?),
            })
        })
    })
    .map_err(failed)
}

/// Returns a text with each run of whitespace replaced by one blank.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns terms as an FTS5 query. Each term is quoted, so that nothing in it is an operator.
fn expression(terms: &[Term], all: bool) -> Option<String> {
    let quoted = |term: &Term| {
        let star = if term.is_prefix { " *" } else { "" };
        format!("\"{}\"{star}", term.text.replace('"', "\"\""))
    };
    let of = |is_excluded: bool| -> Vec<String> {
        let those = terms.iter().filter(|term| term.is_excluded == is_excluded);
        those.map(quoted).collect()
    };
    let (wanted, unwanted) = (of(false), of(true));
    if wanted.is_empty() {
        return None;
    }
    let wanted = wanted.join(if all { " AND " } else { " OR " });
    match unwanted.is_empty() {
        true => Some(wanted),
        false => Some(format!("({wanted}) NOT ({})", unwanted.join(" OR "))),
    }
}
