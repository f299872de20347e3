//! Answers about names: completion, documentation, argument lists.

use std::rc::Rc;

use flowstone_lang::session::{DescribedKind, Description, Session};
use flowstone_lang::value::{Namespace, Symbol};

use super::bencode::{Bencode, Dict};
use super::evaluator::text;
use super::reply::status_of;
use super::sessions::Request;
use crate::cli::{Candidate, Words};

/// Answers a request about a name, as its namespace sees it.
pub fn answer(
    session: &Session,
    words: &Words,
    namespace: &Rc<Namespace>,
    request: &Request,
) -> Dict {
    let world = session.world();
    let before = world.current.replace(namespace.clone());
    let answer = match &*request.op {
        "completions" | "complete" => completions(words, namespace, request),
        "eldoc" => eldoc(session, request),
        "info" => info(session, request),
        _ => lookup(session, request),
    };
    world.current.replace(before);
    answer
}

fn completions(words: &Words, namespace: &Namespace, request: &Request) -> Dict {
    let prefix = text(request, "prefix").or_else(|| text(request, "symbol"));
    let prefix = prefix.unwrap_or_default();
    // cider-nrepl passes the form around the word, with `__prefix__` in its place.
    let context = text(request, "context").and_then(|context| {
        let (before, _) = context.split_once("__prefix__")?;
        Some(format!("{before}{prefix}"))
    });
    let found = match context {
        Some(context) => {
            let (start, found) = words.complete(namespace, &context);
            // In a string, and with nothing around it, only the word counts.
            match context[start..] == prefix {
                true => found,
                false => words.complete_word(namespace, &prefix),
            }
        }
        None => words.complete_word(namespace, &prefix),
    };
    let found = found.into_iter().map(completion).collect();
    request
        .address
        .reply([("completions", found), ("status", status_of(&["done"]))])
}

fn completion(candidate: Candidate) -> Bencode {
    let mut members = Dict::from([
        ("candidate".to_owned(), Bencode::from(candidate.text)),
        ("type".to_owned(), Bencode::from(candidate.kind)),
    ]);
    if let Some(namespace) = candidate.namespace {
        members.insert("ns".to_owned(), Bencode::from(namespace));
    }
    Bencode::Dict(members)
}

/// Describes the name in a request.
fn described(session: &Session, request: &Request) -> Option<Description> {
    let name = text(request, "sym").or_else(|| text(request, "symbol"))?;
    session.describe_alone(Symbol::new(&name))
}

fn lookup(session: &Session, request: &Request) -> Dict {
    let info = match described(session, request) {
        Some(found) => {
            let mut facts = facts(&found);
            if !found.arglists.is_empty() {
                let lists = Bencode::from(format!("({})", found.arglists.join(" ")));
                facts.retain(|(name, _)| *name != "arglists-str");
                facts.extend([("arglists", lists.clone()), ("arglists-str", lists)]);
            }
            Bencode::Dict(
                facts
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        }
        None => Bencode::List(Vec::new()),
    };
    request
        .address
        .reply([("info", info), ("status", status_of(&["done"]))])
}

fn info(session: &Session, request: &Request) -> Dict {
    match described(session, request) {
        Some(found) => {
            let members = facts(&found).into_iter();
            request
                .address
                .reply(members.chain([("status", status_of(&["done"]))]))
        }
        None => request.address.status(&["done", "no-info"]),
    }
}

/// Returns what is known of a name, under the names of nREPL.
fn facts(found: &Description) -> Vec<(&'static str, Bencode)> {
    let mut facts = vec![("name", Bencode::from(&*found.name.name()))];
    if let Some(namespace) = found.name.namespace() {
        facts.push(("ns", Bencode::from(&*namespace)));
    }
    if !found.arglists.is_empty() {
        facts.push(("arglists-str", Bencode::from(found.arglists.join("\n"))));
    }
    if !found.doc.is_empty() {
        facts.push(("doc", Bencode::from(found.doc.as_str())));
    }
    match found.kind {
        DescribedKind::Macro => facts.push(("macro", Bencode::from("true"))),
        DescribedKind::SpecialForm => facts.push(("special-form", Bencode::from("true"))),
        DescribedKind::Function | DescribedKind::Namespace | DescribedKind::Value => {}
    }
    if let Some(place) = &found.place {
        facts.push(("file", Bencode::from(place.file.as_str())));
        facts.push(("line", Bencode::Int(i64::from(place.line))));
        facts.push(("column", Bencode::Int(i64::from(place.column))));
    }
    facts
}

fn eldoc(session: &Session, request: &Request) -> Dict {
    let Some(found) = described(session, request).filter(|found| !found.arglists.is_empty()) else {
        return request.address.status(&["done", "no-eldoc"]);
    };
    let lists = found.arglists.iter().map(|list| {
        let inside = list.trim_start_matches('[').trim_end_matches(']');
        inside
            .split_whitespace()
            .map(Bencode::from)
            .collect::<Bencode>()
    });
    request.address.reply([
        ("eldoc", lists.collect()),
        ("name", Bencode::from(&*found.name.name())),
        (
            "ns",
            Bencode::from(found.name.namespace().as_deref().unwrap_or_default()),
        ),
        ("docstring", Bencode::from(found.doc.as_str())),
        ("type", Bencode::from("function")),
        ("status", status_of(&["done"])),
    ])
}
