//! `flowstone docs` and `flowstone explain`: the manual that is in the program.

mod man;

use flowstone_engine::json::to_json;
use flowstone_engine::text::nearest;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use flowstone_project::workspace::{documentation, error_page, pages};
use serde_json::{Value as Json, json};

use super::args::{Docs, DocsCommand, DocsFind, DocsList, DocsShow, Explain};
use super::exit::Exit;
use super::output;
use super::paint::{BOLD, DIM};
use super::report::Report;
use super::table::{Column, table};
use crate::json::ok;

/// The code of a page or an error code that does not exist.
const MISSING: &str = "E0956";
/// The folder of the pages of error codes.
const ERRORS: &str = "errors/";

/// Performs `flowstone docs`.
pub fn run(args: &Docs) -> Exit {
    let (done, as_json) = match &args.command {
        DocsCommand::Find(args) => (find(args), args.json),
        DocsCommand::List(args) => (Ok(list(args)), args.json),
        DocsCommand::Man(args) => (man::print(args), false),
        DocsCommand::Show(args) => (show(args), args.json),
    };
    ended(done, as_json)
}

/// Performs `flowstone explain`.
pub fn explain(args: &Explain) -> Exit {
    ended(page_of_code(args), args.json)
}

fn ended(done: Result<Exit, Report>, as_json: bool) -> Exit {
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn find(args: &DocsFind) -> Result<Exit, Report> {
    let limit = Value::Int(i64::try_from(args.limit).unwrap_or(i64::MAX));
    let found = asked(
        "docs/find",
        [
            ("query", Value::from(args.words.join(" "))),
            ("limit", limit),
        ],
    )?;
    if args.json {
        output::json(&ok(found));
        return Ok(Exit::Completed);
    }
    let text = |hit: &Json, name: &str| hit[name].as_str().unwrap_or_default().to_owned();
    let hits = found["results"].as_array().cloned().unwrap_or_default();
    for hit in &hits {
        let place = match text(hit, "section") {
            section if section.is_empty() => text(hit, "title"),
            section => format!("{}: {section}", text(hit, "title")),
        };
        output::data(&format!(
            "{BOLD}{}{BOLD:#}  {place}\n  {DIM}{}{DIM:#}",
            text(hit, "page"),
            text(hit, "snippet")
        ));
    }
    match hits.is_empty() {
        true => output::note("nothing found"),
        false => output::note("`flowstone docs show PAGE` shows a page"),
    }
    Ok(Exit::Completed)
}

fn list(args: &DocsList) -> Exit {
    let listed = pages().iter().filter(|(page, _)| !page.starts_with(ERRORS));
    let title = |text: &str| {
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches('#').trim().to_owned()
    };
    if args.json {
        let pages: Vec<Json> = listed
            .map(|(page, text)| json!({"page": page, "title": title(text)}))
            .collect();
        output::json(&ok(json!({"pages": pages})));
        return Exit::Completed;
    }
    let rows = listed.map(|(page, text)| vec![(*page).to_owned(), title(text)]);
    output::data(&table(&[Column::Whole("page"), Column::Cut("title")], rows));
    Exit::Completed
}

fn show(args: &DocsShow) -> Result<Exit, Report> {
    // A page is shown whole here; `docs/show` shortens long ones for models.
    let name = name_of(&args.page)?;
    if args.section.is_none() && !args.json {
        let page = pages().iter().find(|(page, _)| *page == name);
        output::data(page.map_or("", |(_, text)| text).trim_end());
        return Ok(Exit::Completed);
    }
    let mut members = vec![("page", Value::from(name))];
    if let Some(section) = &args.section {
        members.push(("section", Value::from(section.as_str())));
    }
    let mut shown = asked("docs/show", members)?;
    if args.section.is_none()
        && let Some((_, text)) = pages().iter().find(|(page, _)| *page == name)
    {
        shown["content"] = json!(text);
        shown["note"] = Json::Null;
    }
    match args.json {
        true => output::json(&ok(shown)),
        false => output::data(shown["content"].as_str().unwrap_or_default()),
    }
    Ok(Exit::Completed)
}

/// Finds the whole name of a page from what was typed.
fn name_of(typed: &str) -> Result<&'static str, Report> {
    let wanted = typed.trim_end_matches(".md").trim_start_matches("docs/");
    let last = |page: &'static str| page.rsplit('/').next().unwrap_or(page);
    let mut names = pages().iter().map(|(page, _)| *page);
    let is_meant = |page: &&str| *page == wanted;
    if let Some(page) = names.clone().find(is_meant) {
        return Ok(page);
    }
    if let Some(page) = names.find(|page| last(page).eq_ignore_ascii_case(wanted)) {
        return Ok(page);
    }
    let report = Report::error(MISSING, format!("there is no page `{typed}`"));
    let names = pages().iter().map(|(page, _)| *page);
    let near = nearest(wanted, names.clone().chain(names.map(last)));
    Err(match near {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        None => report
            .hint("`flowstone docs list` lists the pages, `flowstone docs find WORDS` finds them"),
    })
}

fn page_of_code(args: &Explain) -> Result<Exit, Report> {
    let typed = args.code.trim().to_uppercase();
    let typed = typed.trim_start_matches("ERROR[").trim_end_matches(']');
    let digits = typed.strip_prefix('E').unwrap_or(typed);
    let code = format!("E{digits:0>4}");
    let Some(page) = error_page(&code) else {
        let report = Report::error(MISSING, format!("there is no error code `{}`", args.code));
        return Err(
            report.hint("codes look like E0501; `flowstone docs show errors/README` lists them")
        );
    };
    if args.json {
        let title = page.lines().next().unwrap_or_default();
        let title = title.trim_start_matches('#').trim();
        let title = title.split_once(": ").map_or(title, |(_, title)| title);
        output::json(&ok(json!({"code": code, "title": title, "content": page})));
    } else {
        output::data(page.trim_end());
    }
    Ok(Exit::Completed)
}

/// Performs an operation of the documentation.
fn asked<'a>(
    op: &str,
    members: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<Json, Report> {
    let members = members.into_iter();
    let args = Value::map(members.map(|(name, value)| (Value::keyword(name), value)));
    let found = documentation(op, &args).map_err(|error| refused(&error))?;
    Ok(to_json(&found).unwrap_or(Json::Null))
}

fn refused(error: &StepError) -> Report {
    let report = Report::error(MISSING, error.message.clone());
    error
        .hints
        .iter()
        .fold(report, |report, hint| report.hint(hint.clone()))
}
