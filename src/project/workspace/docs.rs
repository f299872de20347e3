//! The project's own reference, which is in the program: pages of the guide and of the reference, and one for each error.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::nearest;

use super::args::Args;
use super::{facts, text};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The texts of the pages one after the other, compressed: they are a fifth of that in the program.
const TEXTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.deflate"));

/// The pages with their texts, by name.
pub(super) static PAGES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    static ALL: LazyLock<String> = LazyLock::new(|| {
        let mut all = String::new();
        let read = DeflateDecoder::new(TEXTS).read_to_string(&mut all);
        read.expect("the build script has compressed the pages");
        all
    });
    let mut rest = ALL.as_str();
    let pages = INDEX.iter().map(|(name, length)| {
        let (text, after) = rest.split_at(*length);
        rest = after;
        (*name, text)
    });
    pages.collect()
});

const LIMIT: (usize, usize) = (1, 50);
const DEFAULT: usize = 8;

/// How much of a section is shown with a hit.
const SNIPPET: usize = 240;

/// Where the pages of error codes are.
const ERRORS: &str = "errors/";
/// How long a page may be that is shown as a whole; of longer ones the sections are named.
const WHOLE: usize = 40_000;

/// A part of a page, from one heading to the next.
struct Section {
    page: &'static str,
    title: &'static str,
    /// Empty for what stands before the first heading below the title.
    heading: &'static str,
    body: &'static str,
}

/// Returns the page of an error code, as Markdown.
#[must_use]
pub fn error_page(code: &str) -> Option<&'static str> {
    let mut pages = PAGES.iter();
    let page = pages.find(|(page, _)| page.strip_prefix(ERRORS) == Some(code));
    page.map(|(_, text)| *text)
}

pub(super) fn find(args: &Args) -> Result<Value, StepError> {
    let query = args.needed("query")?;
    let limit = args.count("limit", LIMIT)?.unwrap_or(DEFAULT);
    let asked: BTreeSet<String> = words(&query).collect();
    let mut hits: Vec<(u32, Section)> = PAGES
        .iter()
        .flat_map(|(page, text)| sections(page, text))
        .map(|section| (score(&section, &asked, &query), section))
        .filter(|(score, _)| *score > 0)
        .collect();
    hits.sort_by(|(one, a), (other, b)| other.cmp(one).then(a.page.cmp(b.page)));
    let results = hits.iter().take(limit).map(|(score, section)| {
        facts([
            ("page", Value::from(section.page)),
            ("title", Value::from(section.title)),
            (
                "section",
                text(Some(section.heading).filter(|heading| !heading.is_empty())),
            ),
            ("snippet", Value::from(snippet(section.body, &asked))),
            ("score", Value::Int(i64::from(*score))),
        ])
    });
    Ok(facts([("results", Value::vector(results))]))
}

pub(super) fn show(args: &Args) -> Result<Value, StepError> {
    let name = args.needed("page")?;
    let wanted = name.trim_end_matches(".md").trim_start_matches("docs/");
    let Some((page, text)) = PAGES
        .iter()
        .find(|(page, _)| *page == wanted || page.rsplit('/').next() == Some(wanted))
    else {
        let error = StepError::new("E0839", "not-found", format!("there is no page `{name}`"));
        return Err(match nearest(wanted, PAGES.iter().map(|(page, _)| *page)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`docs/find` finds pages by words"),
        });
    };
    let sections: Vec<Section> = sections(page, text).collect();
    let headings = || {
        let named = sections
            .iter()
            .filter(|section| !section.heading.is_empty());
        Value::vector(named.map(|section| Value::from(section.heading)))
    };
    let title = sections.first().map_or("", |section| section.title);
    if let Some(heading) = args.name("section")? {
        let found = sections
            .iter()
            .find(|section| section.heading.eq_ignore_ascii_case(&heading));
        let Some(found) = found else {
            let error = StepError::new(
                "E0839",
                "not-found",
                format!("the page `{page}` has no section `{heading}`"),
            );
            return Err(
                match nearest(&heading, sections.iter().map(|section| section.heading)) {
                    Some(near) if !near.is_empty() => error.hint(format!("did you mean `{near}`?")),
                    _ => error,
                },
            );
        };
        return Ok(facts([
            ("page", Value::from(*page)),
            ("title", Value::from(title)),
            ("section", Value::from(found.heading)),
            ("content", Value::from(found.body)),
        ]));
    }
    let is_long = text.len() > WHOLE;
    let end = text
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at <= WHOLE)
        .last()
        .unwrap_or(0);
    Ok(facts([
        ("page", Value::from(*page)),
        ("title", Value::from(title)),
        (
            "content",
            Value::from(match is_long {
                true => &text[..end],
                false => text,
            }),
        ),
        ("sections", headings()),
        (
            "note",
            match is_long {
                true => Value::from("this is the beginning: ask for one of the sections"),
                false => Value::Nil,
            },
        ),
    ]))
}

/// Splits a page at its headings, ignoring `#` inside code.
fn sections(page: &'static str, text: &'static str) -> impl Iterator<Item = Section> {
    let title = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches('#')
        .trim();
    let mut starts = vec![(0, "")];
    let mut at = 0;
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let heading = line
            .trim_end()
            .strip_prefix("## ")
            .or(line.trim_end().strip_prefix("### "));
        if let Some(heading) = heading.filter(|_| !is_code) {
            starts.push((at, without_ticks(heading.trim())));
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .map(|(at, _)| *at)
        .chain([text.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .map(move |((start, heading), end)| Section {
            page,
            title,
            heading,
            body: text[start..end].trim(),
        })
}

/// Returns the text of a heading that is code as a whole.
fn without_ticks(heading: &str) -> &str {
    let inner = heading
        .strip_prefix('`')
        .and_then(|it| it.strip_suffix('`'));
    inner
        .filter(|inner| !inner.contains('`'))
        .unwrap_or(heading)
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|char: char| !char.is_alphanumeric() && char != '-')
        .map(|word| word.trim_matches('-').to_lowercase())
        .filter(|word| word.len() > 1)
}

/// How well a section answers: words in its headings count more, and all words together most.
fn score(section: &Section, asked: &BTreeSet<String>, query: &str) -> u32 {
    let mut found = BTreeSet::new();
    let mut score = 0;
    let mut add = |text: &str, worth: u32, most: u32| {
        let mut counted = 0;
        for word in words(text) {
            let hit = asked
                .iter()
                .find(|asked| **asked == word || word.strip_suffix('s') == Some(asked.as_str()));
            if let Some(hit) = hit {
                found.insert(hit.clone());
                counted = (counted + worth).min(most);
            }
        }
        score += counted;
    };
    add(section.page, 6, 12);
    add(section.title, 6, 18);
    add(section.heading, 8, 24);
    add(section.body, 1, 10);
    if found.is_empty() {
        return 0;
    }
    let share = u32::try_from(found.len() * 20 / asked.len().max(1)).unwrap_or(0);
    let is_whole = section.body.to_lowercase().contains(&query.to_lowercase());
    let score = score + share + if is_whole { 15 } else { 0 };
    // Pages of errors repeat the words of guides; who looks for one of them has its code.
    match section.page.starts_with(ERRORS) && !query.to_uppercase().contains("E0") {
        true => score / 2,
        false => score,
    }
}

fn snippet(body: &str, asked: &BTreeSet<String>) -> String {
    let line = body
        .lines()
        .find(|line| !line.starts_with('#') && words(line).any(|word| asked.contains(&word)));
    let line = line.or(body
        .lines()
        .find(|line| !line.starts_with('#') && !line.trim().is_empty()));
    let line = line.unwrap_or(body);
    match line.char_indices().nth(SNIPPET) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    }
}
