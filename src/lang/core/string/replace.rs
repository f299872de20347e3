//! Replacing parts of strings.

use crate::value::{
    Arity, Class, Exception, Groups, Native, Regex, Result, Signal, Value, describe,
};
use crate::vm::{Args, Vm, wrong_type};

use super::super::regex::{after, as_regex, find, no_group, shown};
use super::super::text::text_of;

pub(crate) const FNS: &[Native] = &[RE_QUOTE_REPLACEMENT, REPLACE, REPLACE_FIRST];

const REPLACE: Native = Native {
    name: "replace",
    usage: "(replace s match replacement)",
    doc: "Returns s with every match replaced. match is a string with a string, a character with a character, or a regex with a string, in which $1 refers to a group, or with a function of the match in the form that re-find returns.",
    examples: &[
        (r#"(clojure.string/replace "a-b-c" "-" "+")"#, r#""a+b+c""#),
        (r#"(clojure.string/replace "ab" \a \x)"#, r#""xb""#),
        (
            r#"(clojure.string/replace "x1y2" #"(\w)(\d)" "$2$1")"#,
            r#""1x2y""#,
        ),
        (
            r#"(clojure.string/replace "a1" #"\d" #(str "<" % ">"))"#,
            r#""a<1>""#,
        ),
    ],
    arity: Arity::exactly(3),
    run: |vm, args| replace(vm, &args, usize::MAX),
};

const REPLACE_FIRST: Native = Native {
    name: "replace-first",
    usage: "(replace-first s match replacement)",
    doc: "Returns s with the first match replaced. See replace.",
    examples: &[(
        r#"(clojure.string/replace-first "a-b-c" "-" "+")"#,
        r#""a+b-c""#,
    )],
    arity: Arity::exactly(3),
    run: |vm, args| replace(vm, &args, 1),
};

const RE_QUOTE_REPLACEMENT: Native = Native {
    name: "re-quote-replacement",
    usage: "(re-quote-replacement s)",
    doc: "Returns s so that replace uses it literally as a replacement of a regex: with `\\` before each `$` and `\\`.",
    examples: &[(
        r#"(clojure.string/replace "a" #"a" (clojure.string/re-quote-replacement "$1"))"#,
        r#""$1""#,
    )],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = text_of(vm, args.get(0))?;
        let mut out = String::with_capacity(text.len() + 4);
        for char in text.chars() {
            if matches!(char, '$' | '\\') {
                out.push('\\');
            }
            out.push(char);
        }
        Ok(Value::from(out))
    },
};

/// Replaces at most `count` matches.
fn replace(vm: &mut Vm, args: &Args<'_>, count: usize) -> Result<Value> {
    let text = &*super::subject(vm, args)?;
    match (args.get(1), args.get(2)) {
        (Value::Char(from), Value::Char(to)) => {
            let found = text.match_indices(*from).take(count);
            let (from, to) = (from.len_utf8(), to.to_string());
            replace_plain(vm, text, found.map(|(at, _)| (at, from)), &to)
        }
        (Value::Text(from), Value::Text(to)) => {
            let found = text.match_indices(from.as_str()).take(count);
            replace_plain(vm, text, found.map(|(at, part)| (at, part.len())), to)
        }
        (pattern, replacement) => match as_regex(pattern) {
            Some(regex) => replace_matches(vm, text, &regex, (replacement, count)).map(Value::from),
            None => Err(mixed(args)),
        },
    }
}

/// Replaces parts of a text; each part is given by its start and its length.
fn replace_plain(
    vm: &mut Vm,
    text: &str,
    parts: impl Iterator<Item = (usize, usize)> + Clone,
    replacement: &str,
) -> Result<Value> {
    vm.charge_much((text.len() / SCANNED_FOR_A_UNIT) as u64)?;
    let added = parts.clone().count().saturating_mul(replacement.len());
    vm.room_for(text.len().saturating_add(added))?;
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut checked) = (0, 0);
    for (at, length) in parts {
        vm.charge(1)?;
        out.push_str(&text[copied..at]);
        out.push_str(replacement);
        copied = at + length;
        if out.len() - checked >= LARGE {
            checked = out.len();
            vm.charge_much((LARGE / 256) as u64)?;
        }
    }
    out.push_str(&text[copied..]);
    Ok(Value::from(out))
}

/// Returns the exception for a replacement that does not fit the match.
fn mixed(args: &Args<'_>) -> Signal {
    match args.get(1) {
        Value::Text(_) => args.expected(2, "a string, because the match is a string"),
        Value::Char(_) => args.expected(2, "a character, because the match is a character"),
        other => wrong_type(other, "a string, character or regex", 1)
            .of_class(Class::ILLEGAL_ARGUMENT)
            .into(),
    }
}

/// Bytes of text that are searched for one unit of fuel.
const SCANNED_FOR_A_UNIT: usize = 256;
/// Bytes of result after which its size is checked again.
const LARGE: usize = 1 << 20;

fn replace_matches(
    vm: &mut Vm,
    text: &str,
    regex: &Regex,
    (replacement, count): (&Value, usize),
) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = (0, 0);
    let subject = regex.subject(text);
    let mut checked = 0;
    for _ in 0..count {
        let Some(groups) = find(vm, regex, subject, at)? else {
            break;
        };
        at = after(text, &groups);
        let Some(Some((start, end))) = groups.first().copied() else {
            break;
        };
        out.push_str(&text[copied..start]);
        copied = end;
        match replacement {
            Value::Text(template) => fill(&mut out, template, text, regex, &groups)?,
            function => {
                let value = vm.call(function, &[shown(text, &groups)])?;
                let Value::Text(value) = &value else {
                    return Err(no_string(&value));
                };
                out.push_str(value);
            }
        }
        if out.len() - checked >= LARGE {
            checked = out.len();
            vm.charge_much((LARGE / 256) as u64)?;
            // The same amount is allocated again when the text grows.
            vm.room_for(checked)?;
        }
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

fn no_string(value: &Value) -> Signal {
    Exception::new(
        Class::CLASS_CAST,
        "E0301",
        format!(
            "the replacing function must return a string, got {}",
            describe(value)
        ),
    )
    .argument(2)
    .hint("make it a string with `str`")
    .into()
}

/// Writes a replacement in which `$1` and `${name}` refer to groups, and `\` escapes the next character.
fn fill(
    out: &mut String,
    template: &str,
    text: &str,
    regex: &Regex,
    groups: &Groups,
) -> Result<()> {
    let mut rest = template;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        let mark = &rest[at..];
        if let Some(after) = mark.strip_prefix('\\') {
            let Some(char) = after.chars().next() else {
                return Err(bad_template(template, "it ends in a `\\`"));
            };
            out.push(char);
            rest = &after[char.len_utf8()..];
            continue;
        }
        let (group, length) = group_reference(&mark[1..], regex)
            .ok_or_else(|| bad_template(template, "it names no group of the regex after `$`"))?;
        if group > regex.group_count() {
            return Err(no_group(group, regex.group_count()).argument(2).into());
        }
        if let Some(Some((start, end))) = groups.get(group) {
            out.push_str(&text[*start..*end]);
        }
        rest = &mark[1 + length..];
    }
    out.push_str(rest);
    Ok(())
}

/// Parses the text after a `$`: the group's index, and the length of its name.
fn group_reference(text: &str, regex: &Regex) -> Option<(usize, usize)> {
    if let Some(named) = text.strip_prefix('{') {
        let end = named.find('}')?;
        return Some((regex.group(&named[..end])?, end + 2));
    }
    // The first digit names a group; further digits belong to it as long as such a group exists.
    let mut digits = text.bytes().map_while(|byte| char::from(byte).to_digit(10));
    let mut group = digits.next()? as usize;
    let mut length = 1;
    for digit in digits {
        let longer = group.saturating_mul(10).saturating_add(digit as usize);
        if longer > regex.group_count() {
            break;
        }
        group = longer;
        length += 1;
    }
    Some((group, length))
}

fn bad_template(template: &str, why: &str) -> Signal {
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0386",
        format!("the replacement `{template}` is wrong: {why}"),
    )
    .argument(2)
    .hint("write `\\\\$` for a dollar sign, or use `re-quote-replacement`")
    .into()
}
