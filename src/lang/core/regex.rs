//! Regexes: finding, matching, and what the string functions need of them.

use std::cell::Cell;
use std::rc::Rc;

use crate::value::{
    Arity, Class, Exception, Groups, Lazy, List, Native, Object, Regex, Result, STEP_LIMIT, Text,
    TooManySteps, Value, compile_regex,
};
use crate::vm::{Args, Vm};

pub(super) const FNS: &[Native] = &[
    IS_REGEX, RE_FIND, RE_GROUPS, RE_MATCHER, RE_MATCHES, RE_PATTERN, RE_SEQ,
];

const RE_PATTERN: Native = Native {
    name: "re-pattern",
    usage: "(re-pattern s)",
    doc: "Returns the regex of that source. A literal #\"...\" is compiled once, when it is read.",
    examples: &[(r#"(re-find (re-pattern "b+") "abbc")"#, r#""bb""#)],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        if as_regex(args.get(0)).is_some() {
            return Ok(args.take(0));
        }
        let source = args.text(0)?;
        let regex = compile_regex(source).map_err(|error| {
            Exception::new(
                Class::PATTERN_SYNTAX,
                "E0384",
                format!(
                    "the regex `{}` is wrong: {}",
                    source.as_str(),
                    error.message
                ),
            )
            .argument(0)
            .hint("put `\\\\` before a special character that is meant as itself")
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
    doc: "Returns the first match of re in s, or the next match of a matcher: the string, or a vector of it and its groups where re has groups. nil without a match.",
    examples: &[
        (r#"(re-find #"\d+" "a12b3")"#, r#""12""#),
        (r#"(re-find #"(\d)(x)?" "a1")"#, r#"["1" "1" nil]"#),
        (r#"(re-find #"z" "abc")"#, "nil"),
    ],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        if args.len() == 1 {
            return next_match(vm, &args);
        }
        let regex = regex(&args, 0)?;
        let text = args.text(1)?;
        let found = find(vm, &regex, text, 0)?;
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
    run: |vm, args| {
        let regex = regex(&args, 0)?;
        let text = args.text(1)?;
        charge(vm, text)?;
        let found = regex.match_whole(text).map_err(|error| stuck(&error))?;
        Ok(found.map_or(Value::Nil, |groups| shown(text, &groups)))
    },
};

const RE_SEQ: Native = Native {
    name: "re-seq",
    usage: "(re-seq re s)",
    doc: "Returns a lazy sequence of the matches of re in s, each as re-find gives it, or nil without any.",
    examples: &[(r#"(re-seq #"\w+" "one two")"#, r#"("one" "two")"#)],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let regex = regex(&args, 0)?;
        let text = args.text(1)?.clone();
        matches_from(vm, regex, text, 0)
    },
};

/// Returns the matches from byte `from` on: nil, or a list whose rest is lazy.
fn matches_from(vm: &mut Vm, regex: Shared, text: Rc<Text>, from: usize) -> Result<Value> {
    let Some(groups) = find(vm, &regex, &text, from)? else {
        return Ok(Value::Nil);
    };
    let first = shown(&text, &groups);
    let from = after(&text, &groups);
    let rest = Lazy::native(move |vm| matches_from(vm, regex, text, from));
    Ok(List::cons(first, rest))
}

const RE_MATCHER: Native = Native {
    name: "re-matcher",
    usage: "(re-matcher re s)",
    doc: "Returns a matcher, which re-find moves from match to match.",
    examples: &[(
        r#"(let [m (re-matcher #"\d" "12")] [(re-find m) (re-find m) (re-find m)])"#,
        r#"["1" "2" nil]"#,
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let matcher = Matcher {
            regex: regex(&args, 0)?,
            text: args.text(1)?.clone(),
            at: Cell::new(0),
            last: Cell::new(None),
        };
        Ok(Object::State(Box::new(matcher)).into())
    },
};

const RE_GROUPS: Native = Native {
    name: "re-groups",
    usage: "(re-groups m)",
    doc: "Returns the last match of a matcher, as re-find gave it.",
    examples: &[(
        r#"(let [m (re-matcher #"(a)(b)" "ab")] (re-find m) (re-groups m))"#,
        r#"["ab" "a" "b"]"#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let matcher = matcher(&args)?;
        let last = matcher.last.take();
        let shown = last.as_ref().map(|groups| shown(&matcher.text, groups));
        matcher.last.set(last);
        shown.ok_or_else(|| {
            Exception::new(Class::ILLEGAL_STATE, "E0380", "the matcher has no match")
                .hint("call `re-find` with the matcher first, and look at what it returns")
                .into()
        })
    },
};

/// A walk over the matches in a text.
struct Matcher {
    regex: Shared,
    text: Rc<Text>,
    at: Cell<usize>,
    last: Cell<Option<Groups>>,
}

fn matcher<'a>(args: &'a Args<'_>) -> Result<&'a Matcher> {
    let found = match args.get(0) {
        Value::Object(object) => match &**object {
            Object::State(state) => state.downcast_ref::<Matcher>(),
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| args.expected(0, "a matcher"))
}

fn next_match(vm: &mut Vm, args: &Args<'_>) -> Result<Value> {
    let matcher = matcher(args)?;
    let found = find(vm, &matcher.regex, &matcher.text, matcher.at.get())?;
    let value = match &found {
        Some(groups) => {
            matcher.at.set(after(&matcher.text, groups));
            shown(&matcher.text, groups)
        }
        None => {
            matcher.at.set(matcher.text.len() + 1);
            Value::Nil
        }
    };
    matcher.last.set(found);
    Ok(value)
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

/// Returns the regex that a value is.
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

/// Returns the first match from byte `from` on.
pub(super) fn find(vm: &mut Vm, regex: &Regex, text: &str, from: usize) -> Result<Option<Groups>> {
    charge(vm, text.get(from..).unwrap_or(""))?;
    regex
        .find_from(text, from)
        .map_err(|error| stuck(&error).into())
}

/// Pays for a look at a text.
fn charge(vm: &mut Vm, text: &str) -> Result<()> {
    vm.charge(1 + u32::try_from(text.len() / 64).unwrap_or(u32::MAX))
}

fn stuck(_: &TooManySteps) -> Exception {
    Exception::new(
        Class::ILLEGAL_STATE,
        "E0383",
        format!("the regex took more than {STEP_LIMIT} steps"),
    )
    .hint("nested repetitions such as `(a+)+` are slow: make the inner one possessive, `(a++)+`, or simplify it")
}

/// Returns the byte from which the next match is looked for: an empty match moves on by a character.
pub(super) fn after(text: &str, groups: &Groups) -> usize {
    match groups.first() {
        Some(Some((start, end))) if start == end => {
            *end + text[*end..].chars().next().map_or(1, char::len_utf8)
        }
        Some(Some((_, end))) => *end,
        _ => text.len() + 1,
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
