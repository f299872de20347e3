//! Findings about a `:db` step as it is written in a flow.

use flowstone_flow::flow::{Flow, name_of};
use flowstone_lang::value::Value;

use super::backend::Backend;
use super::error::DbError;
use super::{sql, statement};
use crate::literal::{Remarks, finding, has_any, is_known, remark};

pub(super) fn of(flow: &Flow, config: &Value) -> Remarks {
    let mut remarks = Remarks::new();
    let database = config.get("database").filter(|it| is_known(it));
    let backend = database.and_then(name_of).map(|name| Backend::named(&name));
    let backend = match backend {
        Some(Err(error)) => {
            remarks.push(("database", finding(error)));
            return remarks;
        }
        Some(Ok(backend)) => Some(backend),
        None => None,
    };
    if has_any(config, &["sql"]) && has_any(config, &["template"]) {
        let error = statement::wrong("a statement is `:sql` or a `:template`, not both");
        remarks.push(("template", finding(error)));
        return remarks;
    }
    if !has_any(config, &["sql", "template"]) {
        remarks.push(("", finding(statement::wrong("the step has no statement"))));
    }
    if config.get("sql").is_some() {
        of_sql(config, backend, &mut remarks);
    }
    if config.get("template").is_some() {
        of_template(flow, config, backend, &mut remarks);
    }
    remarks
}

fn of_sql(config: &Value, backend: Option<Backend>, remarks: &mut Remarks) {
    let (Some(sql), Some(backend)) = (config.get("sql").and_then(Value::as_str), backend) else {
        return;
    };
    let dialect = backend.dialect();
    let pieces = match sql::pieces(sql, dialect) {
        Ok(pieces) => pieces,
        Err(error) => {
            let message = format!("the statement cannot be read: {error}");
            remarks.push(("sql", finding(statement::wrong(message))));
            return;
        }
    };
    if sql::has_several(&pieces) {
        let error = statement::wrong("a step executes one statement, and this is more");
        remarks.push(("sql", finding(error)));
    }
    let may_write = has_any(config, &["read-only"])
        && !matches!(config.get("read-only"), Some(Value::Bool(true)));
    if let (false, Some(why)) = (may_write, sql::writes(&pieces, dialect)) {
        remarks.push(("sql", finding(DbError::ReadOnly(why).into())));
    }
    let placeholders = match backend {
        Backend::Postgres => sql::numbered(sql).map(|(_, count)| count),
        Backend::MySql | Backend::Sqlite => sql::marks(sql, dialect),
    };
    let given = match config.get("params") {
        None => Some(0),
        Some(Value::Vector(params)) => Some(params.len()),
        Some(_) => None,
    };
    if let (Ok(placeholders), Some(given)) = (placeholders, given)
        && placeholders != given
        // The modes of MySQL change what a string is, so only the server knows.
        && backend != Backend::MySql
    {
        remark(
            remarks,
            if given == 0 { "sql" } else { "params" },
            super::query::check_count(given, placeholders).map_err(Into::into),
        );
    }
}

fn of_template(flow: &Flow, config: &Value, backend: Option<Backend>, remarks: &mut Remarks) {
    let known = config.get("template").filter(|it| is_known(it));
    let id = known.and_then(name_of).unwrap_or_default();
    let found = flow
        .template(&id)
        .filter(|it| &*it.kind == statement::TEMPLATE);
    if let (Some(found), Some(backend)) = (found, backend)
        && let Some(sql) = statement::text_of(&found.body)
        && let Err(error) = statement::tags(sql, backend.dialect(), &id)
    {
        remarks.push(("template", finding(error)));
        return;
    }
    remarks.extend(crate::rendered::remarks(
        flow,
        config,
        statement::TEMPLATE,
        false,
    ));
}
