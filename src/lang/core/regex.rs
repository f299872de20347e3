//! Regexes: finding, matching, and support for the string functions.

mod matcher;

use std::rc::Rc;

pub(super) use self::matcher::{METHODS, no_group, nth};
use self::matcher::{RE_GROUPS, RE_MATCHER};
use crate::value::{
    Arity, Class, Exception, Facts, Groups, Lazy, List, Mode, Native, Object, Regex, Result,
    STEP_LIMIT, Search, Subject, Text, TooManySteps, Value, compile_regex,
};
use crate::vm::{Args, Vm};

pub(super) const FNS: &[Native] = &[
    IS_REGEX, RE_FIND, RE_GROUPS, RE_MATCHER, RE_MATCHES, RE_PATTERN, RE_SEQ,
];

const RE_PATTERN: Native = Native {
    name: "re-pattern",
    usage: "(re-pattern s)",
    doc: "Returns the regex with that source. A literal #\"...\" is compiled once, when it is read.",
    examples: &[(r#"(re-find (re-pattern "b+") "abbc")"#, r#""bb""#)],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        if as_regex(args.get(0)).is_some() {
            return Ok(args.take(0));
        }
        let source = args.text(0)?;
        let regex = compile_regex(source).map_err(|error| {
            let place = match error.at {
                Some(at) => {
                    let rest: String = source[at..].chars().take(20).collect();
                    format!(", at `{rest}`")
                }
                None => String::new(),
            };
            let message = format!(
                "the regex `{}` is wrong: {}{place}",
                source.as_str(),
                error.message
            );
            let hint = error.hint.unwrap_or_else(|| {
                "put `\\\\` before a special character to match it literally".to_owned()
            });
            Exception::new(Class::PATTERN_SYNTAX, "E0384", message)
                .argument(0)
                .hint(hint)
        })?;
        let source = Rc::from(source.as_str());
        Ok(Object::Regex { source, regex }.into())
    },
};

const IS_REGEX: Native = Native {
    name: "regex?",
    usage: "(regex? x)",
    doc: "Tells whether x is a regex.",
    examples: &[(r#"(regex? #"a")"#, "true"), (r#"(regex? "a")"#, "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(as_regex(args.get(0)).is_some())),
};

const RE_FIND: Native = Native {
    name: "re-find",
    usage: "(re-find re s)\n(re-find m)",
    doc: "Returns the first match of re in s, or the next match of a matcher: the string, or a vector of it and its groups if re has groups. nil without a match.",
    examples: &[
        (r#"(re-find #"\d+" "a12b3")"#, r#""12""#),
        (r#"(re-find #"(\d)(x)?" "a1")"#, r#"["1" "1" nil]"#),
        (r#"(re-find #"z" "abc")"#, "nil"),
    ],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        if args.len() == 1 {
            return matcher::next(vm, &args);
        }
        args.read_characters(vm, 1)?;
        let regex = regex(&args, 0)?;
        let text = args.text(1)?;
        let found = find(vm, &regex, regex.subject(text), (0, 0))?;
        Ok(found.map_or(Value::Nil, |groups| shown(text, &groups)))
    },
};

const RE_MATCHES: Native = Native {
    name: "re-matches",
    usage: "(re-matches re s)",
    doc: "Returns the match of re with all of s, as re-find does, or nil.",
    examples: &[
        (
            r#"(re-matches #"(\d+)-(\d+)" "1-22")"#,
            r#"["1-22" "1" "22"]"#,
        ),
        (r#"(re-matches #"\d+" "1a")"#, "nil"),
    ],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        args.read_characters(vm, 1)?;
        let regex = regex(&args, 0)?;
        let text = args.text(1)?;
        let found = search(vm, &regex, regex.subject(text), Mode::Whole, (0, 0))?;
        Ok(found.map_or(Value::Nil, |groups| shown(text, &groups)))
    },
};

const RE_SEQ: Native = Native {
    name: "re-seq",
    usage: "(re-seq re s)",
    doc: "Returns a lazy sequence of the matches of re in s, each in the form that re-find returns, or nil without a match.",
    examples: &[(r#"(re-seq #"\w+" "one two")"#, r#"("one" "two")"#)],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        args.read_characters(vm, 1)?;
        let regex = regex(&args, 0)?;
        let text = args.text(1)?.clone();
        let facts = regex.subject(&text).facts;
        matches_from(vm, regex, (text, facts), (0, 0))
    },
};

/// Returns the matches from a byte on: nil, or a list whose rest is lazy. `at` is that byte and the end of the previous
/// match.
fn matches_from(
    vm: &mut Vm,
    regex: Shared,
    (text, facts): (Rc<Text>, Facts),
    at: (usize, usize),
) -> Result<Value> {
    let subject = Subject { text: &text, facts };
    let Some(groups) = find(vm, &regex, subject, at)? else {
        return Ok(Value::Nil);
    };
    let first = shown(&text, &groups);
    let at = after(&text, &groups);
    let rest = Lazy::native(move |vm| matches_from(vm, regex, (text, facts), at));
    Ok(List::cons(first, rest))
}

/// A regex value, kept alive by its object.
#[derive(Clone)]
pub(super) struct Shared(Rc<Object>);

impl std::ops::Deref for Shared {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        match &*self.0 {
            Object::Regex { regex, .. } => regex,
            _ => unreachable!("made of regexes only"),
        }
    }
}

impl Shared {
    /// Returns the text that the regex was compiled from.
    fn source(&self) -> &str {
        match &*self.0 {
            Object::Regex { source, .. } => source,
            _ => unreachable!("made of regexes only"),
        }
    }

    /// Returns the regex as a value.
    fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

/// Returns the regex, if the value is one.
pub(super) fn as_regex(value: &Value) -> Option<Shared> {
    match value {
        Value::Object(object) if matches!(&**object, Object::Regex { .. }) => {
            Some(Shared(object.clone()))
        }
        _ => None,
    }
}

/// Returns a regex argument.
pub(super) fn regex(args: &Args<'_>, idx: usize) -> Result<Shared> {
    as_regex(args.get(idx)).ok_or_else(|| {
        let error = crate::vm::wrong_type(args.get(idx), "a regex", idx);
        match args.get(idx) {
            Value::Text(_) => error.hint("a regex is written `#\"...\"`, or made by `re-pattern`"),
            _ => error,
        }
        .into()
    })
}

/// Returns the first match from byte `from` on; the previous match ended at `last`.
pub(super) fn find(
    vm: &mut Vm,
    regex: &Regex,
    subject: Subject<'_>,
    (from, last): (usize, usize),
) -> Result<Option<Groups>> {
    search(vm, regex, subject, Mode::Find, (from, last))
}

/// Searches a text, and pays for the part that was searched.
fn search(
    vm: &mut Vm,
    regex: &Regex,
    subject: Subject<'_>,
    mode: Mode,
    (from, last): (usize, usize),
) -> Result<Option<Groups>> {
    let search = Search { mode, from, last };
    let found = regex.search(subject, search);
    let found = found.map_err(|error| stuck(&error))?;
    let end = match found.as_ref().and_then(|groups| *groups.first()?) {
        Some((_, end)) => end,
        None => subject.text.len(),
    };
    let length = end.saturating_sub(from);
    vm.charge(1 + u32::try_from(length / 64).unwrap_or(u32::MAX))?;
    Ok(found)
}

fn stuck(_: &TooManySteps) -> Exception {
    Exception::new(
        Class::ILLEGAL_STATE,
        "E0383",
        format!("the regex took more than {STEP_LIMIT} steps"),
    )
    .hint("nested repetitions such as `(a+)+` are slow: make the inner one possessive, `(a++)+`, or simplify it")
}

/// Returns the byte at which to search for the next match, and the end of this one: after an empty match the search
/// advances by one character.
pub(super) fn after(text: &str, groups: &Groups) -> (usize, usize) {
    match groups.first() {
        Some(Some((start, end))) if start == end => {
            let step = text[*end..].chars().next().map_or(1, char::len_utf8);
            (*end + step, *end)
        }
        Some(Some((_, end))) => (*end, *end),
        _ => (text.len() + 1, text.len()),
    }
}

/// Returns a match as programs see it: the string, or a vector of it and its groups.
pub(super) fn shown(text: &str, groups: &Groups) -> Value {
    let part = |group: &Option<(usize, usize)>| match group {
        Some((start, end)) => Value::from(&text[*start..*end]),
        None => Value::Nil,
    };
    match groups.as_slice() {
        [whole] => part(whole),
        groups => Value::vector(groups.iter().map(part)),
    }
}
