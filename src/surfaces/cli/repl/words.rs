//! What can be typed at a place of a form: names, locals, step types, their keys and operations, slugs, ids of runs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::Engine;
use flowstone_flow::spec::{COMMON, Field, StepSpec};
use flowstone_lang::session::{DescribedKind, SPECIAL_FORMS, Session};
use flowstone_lang::value::{Namespace, Symbol};

use super::open_forms::{Spot, spot};

/// The functions of a prompt whose first argument is a flow, and those whose argument is a run.
const OF_FLOWS: &[&str] = &[
    "flow/run",
    "flow/debug",
    "flow/watch",
    "flow/next",
    "flow/call-flow",
];
const OF_RUNS: &[&str] = &[
    "flow/cancel",
    "flow/diff",
    "flow/events",
    "flow/export",
    "flow/fork",
    "flow/next",
    "flow/replay",
    "flow/resume",
    "flow/show",
];
/// How many candidates are returned.
const MOST: usize = 500;

/// Something that can be typed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub text: String,
    /// As cider-nrepl calls it: `function`, `macro`, `var`, `special-form`, `namespace`, `keyword`, `local`.
    pub kind: &'static str,
    pub namespace: Option<String>,
}

/// What a prompt knows of names.
pub struct Words {
    session: Rc<Session>,
    specs: Vec<&'static StepSpec>,
    root: PathBuf,
    /// The ids of the last runs.
    runs: RefCell<Vec<String>>,
    /// Keywords that were typed.
    keywords: RefCell<BTreeSet<String>>,
}

impl Words {
    pub fn new(session: Rc<Session>, engine: &Engine) -> Words {
        let specs = engine.steps().iter().map(|step| step.spec()).collect();
        Words::of(session, specs, engine.project_root().to_owned())
    }

    fn of(session: Rc<Session>, specs: Vec<&'static StepSpec>, root: PathBuf) -> Words {
        Words {
            session,
            specs,
            root,
            runs: RefCell::default(),
            keywords: RefCell::default(),
        }
    }

    /// Sets the ids of the last runs.
    pub fn set_runs(&self, runs: Vec<String>) {
        self.runs.replace(runs);
    }

    /// Remembers the keywords of a text.
    pub fn note(&self, text: &str) {
        let words = text.split(|c: char| c.is_whitespace() || "()[]{}\"',;@^`~".contains(c));
        let keywords = words.filter(|word| word.len() > 1 && word.starts_with(':'));
        self.keywords
            .borrow_mut()
            .extend(keywords.map(str::to_owned));
    }

    /// Returns where the word at the end of a text begins, and what it can become.
    pub fn complete(&self, namespace: &Namespace, text: &str) -> (usize, Vec<Candidate>) {
        let spot = spot(text);
        let mut found = match (spot.in_text, spot.word.is_empty()) {
            (true, _) => self.in_text(&spot),
            (false, true) => Vec::new(),
            (false, false) => self.of_spot(namespace, &spot),
        };
        found.retain(|it| it.text.starts_with(&spot.word) && it.text != spot.word);
        found.sort();
        found.dedup_by(|a, b| a.text == b.text);
        found.truncate(MOST);
        (spot.start, found)
    }

    /// As [`Words::complete`], in the current namespace.
    pub fn complete_here(&self, text: &str) -> (usize, Vec<Candidate>) {
        let namespace = self.session.world().current.borrow().clone();
        self.complete(&namespace, text)
    }

    /// Returns what a word can become without anything around it.
    pub fn complete_word(&self, namespace: &Namespace, word: &str) -> Vec<Candidate> {
        self.complete(namespace, word).1
    }

    /// Returns the rest of the call that a text ends in: its further arguments.
    pub fn hint(&self, text: &str) -> Option<String> {
        let spot = spot(text);
        if spot.in_text || !spot.word.is_empty() || !text.ends_with(' ') {
            return None;
        }
        let (head, count) = spot.call()?;
        let found = self.session.describe_alone(Symbol::new(head))?;
        if found.kind == DescribedKind::Namespace {
            return None;
        }
        let lists = found.arglists.iter().map(|list| {
            let inside = list.trim_start_matches('[').trim_end_matches(']');
            inside
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
        let mut fitting =
            lists.filter(|list| list.len() > count || list.iter().any(|arg| arg == "&"));
        let list = fitting.next()?;
        let rest: Vec<String> = list.iter().skip(count).cloned().collect();
        let rest = if rest.is_empty() {
            list.last().cloned().into_iter().collect()
        } else {
            rest
        };
        (!rest.is_empty()).then(|| rest.join(" "))
    }

    /// Ids of runs, in a string.
    fn in_text(&self, spot: &Spot) -> Vec<Candidate> {
        match spot.call() {
            Some((head, 0 | 1)) if is_one_of(head, OF_RUNS) => {
                let runs = self.runs.borrow();
                runs.iter().map(|id| candidate(id, "run")).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_spot(&self, namespace: &Namespace, spot: &Spot) -> Vec<Candidate> {
        if spot.word.starts_with(':') {
            return self.keywords(spot);
        }
        let mut found = self.names(namespace, &spot.word);
        found.extend(spot.locals().iter().map(|name| candidate(name, "local")));
        found
    }

    fn keywords(&self, spot: &Spot) -> Vec<Candidate> {
        if let Some(found) = self.keys_of_step(spot) {
            return found;
        }
        if let Some((head, idx)) = spot.call() {
            let is_step = matches!(head, "flow/step" | "step") && idx == 0;
            if is_step || (head == "doc" && idx == 0) {
                return self.specs.iter().map(|spec| keyword(spec.kind)).collect();
            }
            if idx == 0 && is_one_of(head, OF_FLOWS) {
                return self.slugs().iter().map(|slug| keyword(slug)).collect();
            }
            let options = super::operations::options(head);
            if idx > 0 && !options.is_empty() {
                return options.iter().map(|option| keyword(option)).collect();
            }
        }
        let seen = self.keywords.borrow();
        seen.iter().map(|text| candidate(text, "keyword")).collect()
    }

    /// The keys of a step's config, its operations, and the values of keys that have few.
    fn keys_of_step(&self, spot: &Spot) -> Option<Vec<Candidate>> {
        let (call, idx, items) = spot.map_of_call()?;
        if !matches!(call.items[0].as_str(), "flow/step" | "step") || idx != 2 {
            return None;
        }
        let kind = call.items.get(1)?.trim_start_matches(':');
        let spec = self.specs.iter().find(|spec| spec.is_named(kind))?;
        if items.len() % 2 == 0 {
            let fields = spec.fields.iter().chain(COMMON);
            return Some(fields.map(|field| keyword(field.name)).collect());
        }
        let key = items.last()?.trim_start_matches(':');
        match &spec.operations {
            Some(operations) if operations.key == key => {
                Some(operations.all.iter().map(|it| keyword(it.name)).collect())
            }
            _ => Some(values(spec.field(key)?)),
        }
    }

    fn slugs(&self) -> Vec<String> {
        let files = flowstone_project::flow_files::files(&self.root).into_iter();
        files
            .filter_map(|file| Some(file.loaded?.flow.slug.to_string()))
            .collect()
    }

    fn names(&self, current: &Namespace, word: &str) -> Vec<Candidate> {
        let world = self.session.world();
        if let Some((prefix, _)) = word
            .split_once('/')
            .filter(|(prefix, _)| !prefix.is_empty())
        {
            let symbol = Symbol::new(prefix);
            let target = current.alias(symbol).unwrap_or(symbol);
            return self.public(target, &format!("{prefix}/"));
        }
        let mut found = self.public(world.core.name, "");
        for (name, var) in current.mappings() {
            found.push(Candidate {
                text: name.to_string(),
                kind: if var.is_macro.get() { "macro" } else { "var" },
                namespace: Some(var.namespace.to_string()),
            });
        }
        found.extend(
            SPECIAL_FORMS
                .iter()
                .map(|name| candidate(name, "special-form")),
        );
        let aliases = current.aliases();
        found.extend(
            aliases
                .iter()
                .map(|(alias, _)| candidate(&format!("{alias}/"), "namespace")),
        );
        for name in self.session.namespace_names() {
            found.push(candidate(&format!("{name}/"), "namespace"));
            found.push(candidate(&name.to_string(), "namespace"));
        }
        found
    }

    fn public(&self, namespace: Symbol, prefix: &str) -> Vec<Candidate> {
        let names = self.session.public_names(namespace).into_iter();
        let found = names.map(|name| Candidate {
            text: format!("{prefix}{name}"),
            kind: "function",
            namespace: Some(namespace.to_string()),
        });
        found.collect()
    }
}

/// The values that a field can have, where they are few.
fn values(field: &Field) -> Vec<Candidate> {
    use flowstone_flow::spec::FieldType;
    match &field.type_ {
        FieldType::OneOf(names) => names.iter().map(|name| keyword(name)).collect(),
        _ => Vec::new(),
    }
}

fn is_one_of(head: &str, names: &[&str]) -> bool {
    names.contains(&head)
}

fn keyword(name: &str) -> Candidate {
    candidate(&format!(":{name}"), "keyword")
}

fn candidate(text: &str, kind: &'static str) -> Candidate {
    Candidate {
        text: text.to_owned(),
        kind,
        namespace: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::Value;

    fn words() -> Words {
        let session = Rc::new(Session::new());
        super::super::operations::install(&session);
        let world = session.world();
        let current = world.current.borrow().clone();
        for name in ["alpha", "alphabet", "beta"] {
            world
                .namespace(Symbol::new("some.lib"))
                .intern(Symbol::new(name))
                .set_root(Value::Nil);
            current.intern(Symbol::new(name)).set_root(Value::Nil);
        }
        current.add_alias(Symbol::new("mylib"), Symbol::new("some.lib"));
        let steps = flowstone_project::all_steps();
        let specs = steps.iter().map(|step| step.spec()).collect();
        let words = Words::of(session, specs, PathBuf::from("/nowhere"));
        words.note("{:alpha [:beta/x \"x :d\"] : ::e}");
        words.set_runs(vec!["w06h1".to_owned()]);
        words
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let (_, found) = words().complete_here(text);
        let found: Vec<&str> = found.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_of_the_namespace_its_aliases_and_locals_are_completed() {
        check("(alp", &["alpha", "alphabet"]);
        check("(mylib/b", &["mylib/beta"]);
        check("(some.lib/b", &["some.lib/beta"]);
        check("(myl", &["mylib/"]);
        check("(let [alphorn 1] (alpho", &["alphorn"]);
        check("é(bet", &["beta"]);
        check("(", &[]);
    }

    #[test]
    fn keywords_are_completed_by_their_place() {
        check("{:al", &[":alpha"]);
        check("(flow/step :slee", &[":sleep"]);
        check("(flow/step :http :page {:metho", &[":method"]);
        check("(doc :slee", &[":sleep"]);
        check("(flow/run :x {} :wa", &[":watch"]);
        check("(flow/step :kv :a {:operation :ge", &[":get"]);
    }

    #[test]
    fn ids_of_runs_are_completed_in_strings() {
        check("(flow/show \"w0", &["w06h1"]);
        check("(str \"w0", &[]);
    }

    #[test]
    fn the_arguments_that_are_missing_are_hinted() {
        let words = words();
        assert_eq!(words.hint("(interpose ").as_deref(), Some("separator"));
        assert_eq!(words.hint("(subs s ").as_deref(), Some("start"));
        assert_eq!(words.hint("(subs s 1 ").as_deref(), Some("end"));
        assert_eq!(words.hint("(subs"), None);
        assert_eq!(words.hint("(unknown "), None);
    }
}
