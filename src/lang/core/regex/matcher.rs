//! Matchers: an iteration over the matches of a regex in a text, and Java's methods for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Shared, after, as_regex, regex, search, shown, stuck};
use crate::value::{
    Arity, Class, Exception, Facts, Groups, HostObject, Mode, Native, Result, Search, Subject,
    Text, Value,
};
use crate::vm::{Args, Vm};

/// An iteration over the matches in a text.
struct Matcher {
    regex: Shared,
    text: RefCell<Rc<Text>>,
    /// The range of bytes that is searched.
    region: Cell<(usize, usize)>,
    /// The facts about the region that the regex needs.
    facts: Cell<Facts>,
    /// The start of the next search, and the end of the last match.
    at: Cell<(usize, usize)>,
    last: RefCell<Option<Groups>>,
    /// The last search, with offsets relative to the region.
    search: Cell<Option<Search>>,
}

impl Matcher {
    /// Limits a matcher to a part of its text, and resets it.
    fn limit(&self, start: usize, end: usize) {
        self.region.set((start, end));
        let text = self.text.borrow();
        self.facts.set(self.regex.subject(&text[start..end]).facts);
        self.at.set((start, start));
        self.last.replace(None);
        self.search.set(None);
    }

    fn limit_to_all(&self) {
        let length = self.text.borrow().len();
        self.limit(0, length);
    }

    /// Returns the searched part, which the regex treats as the whole text.
    fn subject<'t>(&self, text: &'t str) -> Subject<'t> {
        let (start, end) = self.region.get();
        let facts = self.facts.get();
        Subject {
            text: &text[start..end],
            facts,
        }
    }
}

impl HostObject for Matcher {
    fn class_name(&self) -> &'static str {
        "java.util.regex.Matcher"
    }

    fn text(&self) -> String {
        let (last, text) = (self.last.borrow(), self.text.borrow());
        let whole = last.as_ref().and_then(|groups| *groups.first()?);
        let found = whole.map_or("", |(start, end)| &text[start..end]);
        let (start, end) = self.region.get();
        let [start, end] = [start, end].map(|byte| characters(&text, byte));
        let pattern = self.regex.source();
        format!("java.util.regex.Matcher[pattern={pattern} region={start},{end} lastmatch={found}]")
    }
}

pub(super) const RE_MATCHER: Native = Native {
    name: "re-matcher",
    usage: "(re-matcher re s)",
    doc: "Returns a matcher, which re-find advances from match to match.",
    examples: &[(
        r#"(let [m (re-matcher #"\d" "12")] [(re-find m) (re-find m) (re-find m)])"#,
        r#"["1" "2" nil]"#,
    )],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        args.read_characters(vm, 1)?;
        let (regex, text) = (regex(&args, 0)?, args.text(1)?.clone());
        let facts = regex.subject(&text).facts;
        let region = (0, text.len());
        Ok(Value::host(Matcher {
            regex,
            text: RefCell::new(text),
            region: Cell::new(region),
            facts: Cell::new(facts),
            at: Cell::new((0, 0)),
            last: RefCell::new(None),
            search: Cell::new(None),
        }))
    },
};

pub(super) const RE_GROUPS: Native = Native {
    name: "re-groups",
    usage: "(re-groups m)",
    doc: "Returns the last match of a matcher, in the form that re-find returned.",
    examples: &[(
        r#"(let [m (re-matcher #"(a)(b)" "ab")] (re-find m) (re-groups m))"#,
        r#"["ab" "a" "b"]"#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let matcher = matcher(&args)?;
        let last = matcher.last.borrow();
        let groups = last.as_ref().ok_or_else(no_match)?;
        Ok(shown(&matcher.text.borrow(), groups))
    },
};

pub(in crate::core) const METHODS: &[Native] = &[
    Native {
        name: ".find",
        usage: "(.find matcher)\n(.find matcher start)",
        doc: "Advances a matcher to the next match, or to the first from an index on, and tells whether there is one.",
        examples: &[(
            r#"(let [m (re-matcher #"\d" "a1")] [(.find m) (.group m) (.find m)])"#,
            r#"[true "1" false]"#,
        )],
        arity: Arity::between(1, 2),
        run: |vm, args| {
            let matcher = matcher(&args)?;
            if args.len() == 2 {
                let at = offset(matcher, &args, 1)?;
                matcher.limit_to_all();
                matcher.at.set((at, at));
            }
            step(vm, matcher).map(Value::Bool)
        },
    },
    Native {
        name: ".lookingAt",
        usage: "(.lookingAt matcher)",
        doc: "Tells whether a match begins at the start of a matcher's text, and advances the matcher to it.",
        examples: &[(r#"(.lookingAt (re-matcher #"a" "ab"))"#, "true")],
        arity: Arity::exactly(1),
        run: |vm, args| try_at_start(vm, matcher(&args)?, Mode::Prefix).map(Value::Bool),
    },
    Native {
        name: ".matches",
        usage: "(.matches matcher)\n(.matches s regex)",
        doc: "Tells whether a matcher's regex, or a regex given as a string, matches a whole text.",
        examples: &[
            (r#"(.matches (re-matcher #"a" "ab"))"#, "false"),
            (r#"(.matches "abc" "[a-c]+")"#, "true"),
        ],
        arity: Arity::between(1, 2),
        run: |vm, args| {
            if args.len() == 1 {
                return try_at_start(vm, matcher(&args)?, Mode::Whole).map(Value::Bool);
            }
            let text = args.text(0)?.clone();
            let regex = (super::RE_PATTERN.run)(vm, Args::new(&mut [args.get(1).clone()]))?;
            let Some(regex) = as_regex(&regex) else {
                return Err(args.expected(1, "a regex as a string"));
            };
            let found = search(vm, &regex, regex.subject(&text), Mode::Whole, (0, 0))?;
            Ok(Value::Bool(found.is_some()))
        },
    },
    Native {
        name: ".group",
        usage: "(.group matcher)\n(.group matcher group)",
        doc: "Returns the last match of a matcher, or the text of one of its groups, by number or name; nil for a group that did not participate.",
        examples: &[(
            r#"(let [m (re-matcher #"(a)(?<rest>.*)" "abc")] (.find m) [(.group m) (.group m 1) (.group m "rest")])"#,
            r#"["abc" "a" "bc"]"#,
        )],
        arity: Arity::between(1, 2),
        run: |_, args| {
            let matcher = matcher(&args)?;
            let range = group_of(matcher, &args)?;
            Ok(range.map_or(Value::Nil, |(start, end)| {
                Value::from(&matcher.text.borrow()[start..end])
            }))
        },
    },
    Native {
        name: ".groupCount",
        usage: "(.groupCount matcher)",
        doc: "Returns the number of groups in the regex of a matcher.",
        examples: &[(r#"(.groupCount (re-matcher #"(a)(b)" ""))"#, "2")],
        arity: Arity::exactly(1),
        run: |_, args| Ok(count(matcher(&args)?.regex.group_count())),
    },
    Native {
        name: ".start",
        usage: "(.start matcher)\n(.start matcher group)",
        doc: "Returns the start index of the last match of a matcher, or of one of its groups; -1 for a group that did not participate.",
        examples: &[(
            r#"(let [m (re-matcher #"b" "abc")] (.find m) [(.start m) (.end m)])"#,
            "[1 2]",
        )],
        arity: Arity::between(1, 2),
        run: |_, args| {
            let matcher = matcher(&args)?;
            let range = group_of(matcher, &args)?;
            Ok(index(matcher, range.map(|(start, _)| start)))
        },
    },
    Native {
        name: ".end",
        usage: "(.end matcher)\n(.end matcher group)",
        doc: "Returns the index after the last match of a matcher, or after one of its groups; -1 for a group that did not participate.",
        examples: &[(
            r#"(let [m (re-matcher #"b" "abc")] (.find m) (.end m))"#,
            "2",
        )],
        arity: Arity::between(1, 2),
        run: |_, args| {
            let matcher = matcher(&args)?;
            let range = group_of(matcher, &args)?;
            Ok(index(matcher, range.map(|(_, end)| end)))
        },
    },
    Native {
        name: ".region",
        usage: "(.region matcher start end)",
        doc: "Limits a matcher to a part of its text, which it treats as the whole text, and returns it.",
        examples: &[(
            r#"(let [m (.region (re-matcher #"^b" "abc") 1 3)] [(.find m) (.start m)])"#,
            "[true 1]",
        )],
        arity: Arity::exactly(3),
        run: |_, mut args| {
            let matcher = matcher(&args)?;
            let (start, end) = (offset(matcher, &args, 1)?, offset(matcher, &args, 2)?);
            if start > end {
                let idx = args.int(2)?;
                let count = matcher.text.borrow().count();
                return Err(crate::vm::out_of_bounds(idx, count).argument(2).into());
            }
            matcher.limit(start, end);
            Ok(args.take(0))
        },
    },
    Native {
        name: ".regionStart",
        usage: "(.regionStart matcher)",
        doc: "Returns the start index of the part of the text that a matcher searches.",
        examples: &[(r#"(.regionStart (re-matcher #"a" "abc"))"#, "0")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let matcher = matcher(&args)?;
            Ok(index(matcher, Some(matcher.region.get().0)))
        },
    },
    Native {
        name: ".regionEnd",
        usage: "(.regionEnd matcher)",
        doc: "Returns the index after the part of the text that a matcher searches.",
        examples: &[(r#"(.regionEnd (re-matcher #"a" "abc"))"#, "3")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let matcher = matcher(&args)?;
            Ok(index(matcher, Some(matcher.region.get().1)))
        },
    },
    Native {
        name: ".hitEnd",
        usage: "(.hitEnd matcher)",
        doc: "Tells whether the last search of a matcher read up to the end of the text, so that more text could change its result.",
        examples: &[(
            r#"(let [m (re-matcher #"abc" "ab")] [(.matches m) (.hitEnd m)])"#,
            "[false true]",
        )],
        arity: Arity::exactly(1),
        run: |vm, args| {
            let matcher = matcher(&args)?;
            let Some(search) = matcher.search.get() else {
                return Ok(Value::Bool(false));
            };
            let text = matcher.text.borrow().clone();
            let subject = matcher.subject(&text);
            let hit = matcher.regex.hits_end(subject, search);
            vm.charge(1)?;
            Ok(Value::Bool(hit.map_err(|error| stuck(&error))?))
        },
    },
    Native {
        name: "-matcher-parts",
        usage: "(-matcher-parts matcher)",
        doc: "Returns the text and the regex of a matcher.",
        examples: &[(
            r#"(first (-matcher-parts (re-matcher #"a" "b")))"#,
            r#""b""#,
        )],
        arity: Arity::exactly(1),
        run: |_, args| {
            let matcher = matcher(&args)?;
            let text = Value::Text(matcher.text.borrow().clone());
            Ok(Value::vector([text, matcher.regex.value()]))
        },
    },
    Native {
        name: "-matcher-reset",
        usage: "(-matcher-reset matcher)\n(-matcher-reset matcher s)",
        doc: "Resets a matcher to the start of its text, or of another one, and returns it.",
        examples: &[(
            r#"(let [m (re-matcher #"\d" "12")] (re-find m) (re-find (-matcher-reset m)))"#,
            r#""1""#,
        )],
        arity: Arity::between(1, 2),
        run: |_, mut args| {
            let matcher = matcher(&args)?;
            if args.len() == 2 {
                let text = args.text(1)?.clone();
                matcher.text.replace(text);
            }
            matcher.limit_to_all();
            Ok(args.take(0))
        },
    },
];

fn matcher<'a>(args: &'a Args<'_>) -> Result<&'a Matcher> {
    args.get(0)
        .as_host::<Matcher>()
        .ok_or_else(|| args.expected(0, "a matcher"))
}

fn no_match() -> Exception {
    Exception::new(Class::ILLEGAL_STATE, "E0380", "the matcher has no match")
        .hint("call `re-find` with the matcher first, and check its result")
}

/// Advances a matcher to the next match, as `re-find` does.
pub(super) fn next(vm: &mut Vm, args: &Args<'_>) -> Result<Value> {
    let matcher = matcher(args)?;
    step(vm, matcher)?;
    let last = matcher.last.borrow();
    let groups = last.as_ref();
    Ok(groups.map_or(Value::Nil, |groups| shown(&matcher.text.borrow(), groups)))
}

fn step(vm: &mut Vm, matcher: &Matcher) -> Result<bool> {
    perform(vm, matcher, Mode::Find, matcher.at.get())
}

fn try_at_start(vm: &mut Vm, matcher: &Matcher, mode: Mode) -> Result<bool> {
    let (start, _) = matcher.region.get();
    perform(vm, matcher, mode, (start, start))
}

/// Searches, and stores the result. After a failure the next search starts at the same place.
fn perform(
    vm: &mut Vm,
    matcher: &Matcher,
    mode: Mode,
    (from, last): (usize, usize),
) -> Result<bool> {
    let text = matcher.text.borrow().clone();
    let (start, _) = matcher.region.get();
    let at = (from.saturating_sub(start), last.saturating_sub(start));
    let found = search(vm, &matcher.regex, matcher.subject(&text), mode, at)?;
    let (from, last) = at;
    matcher.search.set(Some(Search { mode, from, last }));
    let moved = |(from, to)| (from + start, to + start);
    let found: Option<Groups> =
        found.map(|groups| groups.into_iter().map(|group| group.map(moved)).collect());
    if let Some(groups) = &found {
        matcher.at.set(after(&text, groups));
    }
    let is_found = found.is_some();
    matcher.last.replace(found);
    Ok(is_found)
}

/// Returns the bytes of the group that an argument names.
fn group_of(matcher: &Matcher, args: &Args<'_>) -> Result<Option<(usize, usize)>> {
    let group = match args.len() {
        1 => 0,
        _ => match args.get(1) {
            Value::Text(name) => matcher.regex.group(name).ok_or_else(|| {
                let message = format!("the regex has no group named `{}`", name.as_str());
                Exception::new(Class::ILLEGAL_ARGUMENT, "E0386", message).argument(1)
            })?,
            _ => usize::try_from(args.int(1)?).unwrap_or(usize::MAX),
        },
    };
    range_of(matcher, group)
}

fn range_of(matcher: &Matcher, group: usize) -> Result<Option<(usize, usize)>> {
    let last = matcher.last.borrow();
    let groups = last.as_ref().ok_or_else(no_match)?;
    match groups.get(group) {
        Some(range) => Ok(*range),
        None => Err(no_group(group, matcher.regex.group_count())
            .argument(1)
            .into()),
    }
}

/// Returns the exception for a group that a regex does not have.
pub(in crate::core) fn no_group(group: usize, count: usize) -> Exception {
    let message = format!("there is no group {group}: the regex has {count}");
    Exception::new(Class::INDEX_OUT_OF_BOUNDS, "E0386", message)
}

/// Returns a group of the last match, for `nth`.
pub(in crate::core) fn nth(
    matcher: &Value,
    idx: i64,
    default: &Option<Value>,
) -> Option<Result<Value>> {
    let matcher = matcher.as_host::<Matcher>()?;
    let group = usize::try_from(idx).unwrap_or(usize::MAX);
    if let Some(default) = default
        && group > matcher.regex.group_count()
    {
        return Some(Ok(default.clone()));
    }
    let text = matcher.text.borrow();
    Some(
        range_of(matcher, group)
            .map(|range| range.map_or(Value::Nil, |(start, end)| Value::from(&text[start..end]))),
    )
}

/// Returns the index of a byte, counted in characters; -1 for `None`.
fn index(matcher: &Matcher, byte: Option<usize>) -> Value {
    match byte {
        None => Value::Int(-1),
        Some(byte) => count(characters(&matcher.text.borrow(), byte)),
    }
}

/// Returns the number of characters before a byte.
fn characters(text: &Text, byte: usize) -> usize {
    if text.is_ascii() {
        byte
    } else {
        text[..byte].chars().count()
    }
}

fn count(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns the byte at the index given by an argument.
fn offset(matcher: &Matcher, args: &Args<'_>, argument: usize) -> Result<usize> {
    let idx = args.int(argument)?;
    let text = matcher.text.borrow();
    let found = usize::try_from(idx).ok().and_then(|idx| text.offset(idx));
    found.ok_or_else(|| {
        crate::vm::out_of_bounds(idx, text.count())
            .argument(argument)
            .into()
    })
}
