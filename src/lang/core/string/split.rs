//! Splitting strings, with Java's results.

use crate::value::{Arity, Native, Regex, Result, Value};
use crate::vm::Vm;

use super::super::regex::{find, regex};

pub(crate) const FNS: &[Native] = &[SPLIT, SPLIT_LINES];

const SPLIT: Native = Native {
    name: "split",
    usage: "(split s re)\n(split s re limit)",
    doc: "Returns a vector of the parts of s between the matches of re. Without limit, or with limit 0, empty parts at the end are left out; a positive limit is the maximum number of parts; a negative one keeps all.",
    examples: &[
        (
            r#"(clojure.string/split "a,b,,c,," #",")"#,
            r#"["a" "b" "" "c"]"#,
        ),
        (r#"(clojure.string/split "a,b,c" #"," 2)"#, r#"["a" "b,c"]"#),
        (r#"(clojure.string/split "abc" #"")"#, r#"["a" "b" "c"]"#),
    ],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        let text = &*super::characters(&args)?;
        let regex = regex(&args, 1)?;
        let limit = if args.len() == 3 { args.int(2)? } else { 0 };
        let parts = split(vm, text, &regex, limit)?;
        let mut made = Vec::with_capacity(parts.len());
        for part in parts {
            vm.charge(1)?;
            made.push(Value::from(part));
        }
        Ok(Value::vector(made))
    },
};

const SPLIT_LINES: Native = Native {
    name: "split-lines",
    usage: "(split-lines s)",
    doc: "Returns a vector of the lines of s, without line ends. Empty lines at the end are left out.",
    examples: &[(
        r#"(clojure.string/split-lines "a\r\nb\n\nc\n\n")"#,
        r#"["a" "b" "" "c"]"#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let text = &*super::characters(&args)?;
        if text.is_empty() {
            return Ok(Value::vector([Value::from("")]));
        }
        let mut lines: Vec<&str> = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect();
        if !text.ends_with('\n')
            && let Some(last) = lines.last_mut()
        {
            // A `\r` at the very end of the text does not end a line.
            *last = text.rsplit('\n').next().unwrap_or("");
        }
        drop_empty_end(&mut lines);
        Ok(Value::vector(lines.into_iter().map(Value::from)))
    },
};

/// Splits as `java.lang.String.split` does.
fn split<'t>(vm: &mut Vm, text: &'t str, regex: &Regex, limit: i64) -> Result<Vec<&'t str>> {
    let most = usize::try_from(limit).ok().filter(|most| *most > 0);
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = (0, 0);
    let subject = regex.subject(text);
    while most.is_none_or(|most| parts.len() + 1 < most) {
        let Some(groups) = find(vm, regex, subject, at)? else {
            break;
        };
        at = super::super::regex::after(text, &groups);
        let Some(Some((left, right))) = groups.first().copied() else {
            break;
        };
        // An empty match at the start leaves no empty part before it.
        if right == 0 {
            continue;
        }
        parts.push(&text[start..left]);
        start = right;
    }
    if parts.is_empty() {
        return Ok(vec![text]);
    }
    parts.push(&text[start..]);
    if limit == 0 {
        drop_empty_end(&mut parts);
    }
    Ok(parts)
}

fn drop_empty_end(parts: &mut Vec<&str>) {
    while parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
}
