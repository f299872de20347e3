//! Forms that repeat their parts: loops, comprehensions, `flow/poll`, and the functions of `flow` that run branches.

use std::time::Duration;

use flowstone_lang::value::{Symbol, Value};
use flowstone_model::names::name_of;

use super::{Amounts, Analysis, Most, Names, Quantity, hidden, is_function};
use crate::forms::{children, items, quoted};

impl Analysis<'_> {
    /// A `for` or `doseq`.
    pub(super) fn comprehension(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let pairs = args.first().and_then(items).unwrap_or_default();
        let mut inner = names.clone();
        let mut sum = Amounts::NOTHING;
        // How often what follows is evaluated; `None` if that is not known.
        let mut times: Option<u64> = Some(1);
        let why = ("the number of items is not known here", form.span());
        for pair in pairs.chunks(2) {
            let [pattern, value] = pair else {
                continue;
            };
            match pattern {
                Value::Keyword(modifier) if &*modifier.name() == "let" => {
                    let (once, bound) = self.pairs(Some(value), &inner);
                    sum = sum.plus(self.repeated(once, times, why));
                    inner = bound;
                }
                Value::Keyword(_) => {
                    let once = self.form(value, &inner);
                    sum = sum.plus(self.repeated(once, times, why));
                }
                pattern => {
                    let once = self.form(value, &inner);
                    sum = sum.plus(self.repeated(once, times, why));
                    let count = self.count(value, &inner);
                    times = times
                        .zip(count)
                        .and_then(|(times, count)| times.checked_mul(count));
                    inner = hidden(&inner, pattern);
                }
            }
        }
        let once = self.all(args.get(1..).unwrap_or_default(), &inner);
        sum.plus(self.repeated(once, times, why))
    }

    pub(super) fn dotimes(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let pair = args.first().and_then(items).unwrap_or_default();
        let [name, count] = &pair[..] else {
            return Amounts::NOTHING;
        };
        let times = self
            .number(count, names)
            .and_then(|it| u64::try_from(it.max(0)).ok());
        let inner = hidden(names, name);
        let once = self.all(&args[1..], &inner);
        let why = ("the number of repetitions is not known", form.span());
        self.form(count, names)
            .plus(self.repeated(once, times, why))
    }

    /// A `loop`, whose number of passes is known if a counter decides about it.
    pub(super) fn loop_(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let (sum, inner) = self.pairs(args.first(), names);
        let pairs = args.first().and_then(items).unwrap_or_default();
        let body = args.get(1..).unwrap_or_default();
        // The names of a loop change in it, so what they were bound to first means nothing.
        let patterns: Vec<Value> = pairs.iter().step_by(2).cloned().collect();
        let changing = hidden(&inner, &Value::vector(patterns));
        let once = self.all(body, &changing);
        let recurs = recurs(body);
        if recurs.is_empty() {
            return sum.plus(once);
        }
        let passes = self.passes((&pairs, &inner), (body, &changing), &recurs);
        let passes = passes.and_then(|passes| passes.checked_add(1));
        let why = ("no counter bounds this loop", form.span());
        sum.plus(self.repeated(once, passes, why))
    }

    /// Returns how often the test of a loop can hold.
    fn passes(
        &self,
        (pairs, first): (&[Value], &Names),
        (body, changing): (&[Value], &Names),
        recurs: &[Vec<Value>],
    ) -> Option<u64> {
        let [only] = body else {
            return None;
        };
        let parts = items(only)?;
        let head = parts.first()?.as_symbol()?;
        let test = parts.get(1)?;
        let (is_continued, continuing, ending) = match &*head.name() {
            "when" => (true, &parts[2..], &parts[..0]),
            "when-not" => (false, &parts[2..], &parts[..0]),
            "if" => (true, parts.get(2..3)?, parts.get(3..).unwrap_or_default()),
            // The branch for a test that does not hold is the one that continues.
            "if-not" => (false, parts.get(2..3)?, parts.get(3..).unwrap_or_default()),
            _ => return None,
        };
        let has_recur = |forms: &[Value]| !self::recurs(forms).is_empty();
        let (is_continued, branch) = match (has_recur(continuing), has_recur(ending)) {
            (true, false) => (is_continued, continuing),
            (false, true) => (!is_continued, ending),
            _ => return None,
        };
        for (idx, pair) in pairs.chunks(2).enumerate() {
            let [pattern, start] = pair else {
                return None;
            };
            let Some(name) = pattern.as_symbol().filter(|name| !rebinds(branch, *name)) else {
                continue;
            };
            let next: Option<Vec<&Value>> = recurs.iter().map(|recur| recur.get(idx)).collect();
            let counted =
                self.counted((name, start, first), (test, is_continued), &next?, changing);
            if counted.is_some() {
                return counted;
            }
        }
        None
    }

    /// Returns how often a test of one name holds, if each pass moves the name towards the end.
    fn counted(
        &self,
        (name, start, first): (Symbol, &Value, &Names),
        (test, is_continued): (&Value, bool),
        next: &[&Value],
        changing: &Names,
    ) -> Option<u64> {
        if let Some(items) = self.count(start, first)
            && next
                .iter()
                .all(|next| is_call(next, &["rest", "next"], name))
        {
            let goes_on = match is_continued {
                true => {
                    is_call(test, &["seq", "first", "not-empty"], name)
                        || test.as_symbol() == Some(name)
                }
                false => is_call(test, &["empty?"], name),
            };
            return goes_on.then_some(items);
        }
        let start = self.number(start, first)?;
        let steps: Option<Vec<i64>> = next.iter().map(|next| change(next, name)).collect();
        let steps = steps?;
        let up = steps.iter().all(|step| *step > 0);
        let down = steps.iter().all(|step| *step < 0);
        let slowest = steps.iter().map(|step| step.unsigned_abs()).min()?;
        let (operator, limit) = comparison(test, name)?;
        let limit = match limit {
            Some(limit) => self.number(&limit, changing)?,
            None => 0,
        };
        let holds = match (operator, is_continued) {
            ("<", true) | (">=", false) if up => i128::from(limit) - i128::from(start),
            ("<=", true) | (">", false) if up => i128::from(limit) - i128::from(start) + 1,
            (">", true) | ("<=", false) if down => i128::from(start) - i128::from(limit),
            (">=", true) | ("<", false) if down => i128::from(start) - i128::from(limit) + 1,
            ("=", false) if up && steps.iter().all(|it| *it == 1) && start <= limit => {
                i128::from(limit) - i128::from(start)
            }
            ("=", false) if down && steps.iter().all(|it| *it == -1) && start >= limit => {
                i128::from(start) - i128::from(limit)
            }
            _ => return None,
        };
        let slowest = i128::from(slowest);
        u64::try_from((holds.max(0) + slowest - 1) / slowest).ok()
    }

    /// Calls of functions of the namespace `flow`.
    pub(super) fn flow_call(
        &mut self,
        name: &str,
        form: &Value,
        args: &[Value],
        names: &Names,
    ) -> Amounts {
        match name {
            "step" => self.step(form, args, names),
            "call-flow" => {
                let one = Amounts::of(Quantity::Steps, Most::Number(1));
                let slug = args
                    .first()
                    .filter(|it| matches!(it, Value::Keyword(_) | Value::Text(_)));
                let slug = slug.and_then(name_of);
                self.all(args, names)
                    .plus(one)
                    .plus(self.child(slug.as_deref(), form))
            }
            "poll" => self.poll(form, args, names),
            "let" => self.binding(args, names),
            "compensate" => {
                let Some((step, undo)) = args.split_first() else {
                    return Amounts::NOTHING;
                };
                let undo = undo
                    .iter()
                    .fold(Amounts::NOTHING, |sum, it| sum.plus(self.called(it, names)));
                self.form(step, names).plus(undo)
            }
            "on-cancel" => args
                .iter()
                .fold(Amounts::NOTHING, |sum, it| sum.plus(self.called(it, names))),
            "continue-as-new" => {
                self.restarts = true;
                self.all(args, names)
            }
            "all" | "race" => self.branches_of(form, args, names),
            "pmap" => {
                let at = args.len().saturating_sub(2);
                let [function, coll] = &args[at..] else {
                    return self.all(args, names);
                };
                let once = self.called(function, names);
                let why = ("the number of items is not known here", form.span());
                let count = self.count(coll, names);
                let others = self.form(coll, names).plus(self.all(&args[..at], names));
                self.repeated(once, count, why).plus(others)
            }
            _ => self.all(args, names),
        }
    }

    /// The branches of `flow/all` and `flow/race`, each a function without arguments.
    fn branches_of(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let Some((branches, options)) = args.split_last() else {
            return Amounts::NOTHING;
        };
        let each = match branches {
            Value::Vector(_) => children(branches),
            Value::Map(map) => map.iter().map(|(_, branch)| branch.clone()).collect(),
            // The functions are made by this form, and called once each.
            computed => {
                let message = "the branches are computed";
                return match self.may_perform(computed, names) {
                    true => self.unknown(message, form.span()),
                    false => self.all(args, names),
                };
            }
        };
        let sum = each
            .iter()
            .fold(Amounts::NOTHING, |sum, it| sum.plus(self.called(it, names)));
        sum.plus(self.all(options, names))
    }

    /// A `flow/poll`: its attempts, each followed by a pause.
    fn poll(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let [options, step] = args else {
            return self.all(args, names);
        };
        let attempts = match options.get("max-attempts") {
            Some(given) => self
                .number(given, names)
                .and_then(|it| u64::try_from(it).ok()),
            None => attempts_within(options),
        };
        let pause = Amounts::of(Quantity::Steps, Most::Number(1));
        let hooks: Vec<Value> = match options {
            Value::Map(map) => map.iter().map(|(_, value)| value.clone()).collect(),
            other => vec![other.clone()],
        };
        let hooks = hooks
            .iter()
            .fold(Amounts::NOTHING, |sum, hook| match is_function(hook) {
                true => sum.plus(self.function(hook, names)),
                false => sum.plus(self.form(hook, names)),
            });
        let once = self.form(step, names).plus(pause).plus(hooks);
        let why = ("the number of attempts is not known", form.span());
        self.repeated(once, attempts, why)
    }
}

/// Returns the number of attempts within the timeout of a poll, if both times are written out.
fn attempts_within(options: &Value) -> Option<u64> {
    let time = |key: &str| options.get(key).and_then(crate::duration::of_millis_value);
    let (timeout, interval) = (time("timeout")?, time("interval")?);
    // A backoff may begin with a shorter pause than the interval, and never with none.
    if options.get("backoff").is_some_and(|it| !it.is_nil()) || interval == Duration::ZERO {
        return None;
    }
    u64::try_from(timeout.as_millis() / interval.as_millis().max(1) + 2).ok()
}

/// Returns the arguments of each `recur` of a loop.
fn recurs(body: &[Value]) -> Vec<Vec<Value>> {
    let mut found = Vec::new();
    let mut open = body.to_vec();
    while let Some(form) = open.pop() {
        let parts = children(&form);
        let head = match &form {
            Value::List(_) => parts.first().and_then(Value::as_symbol),
            _ => None,
        };
        if let Some(head) = head {
            // A `recur` inside belongs to the inner loop or function.
            let is_other = ["fn", "fn*", "loop", "loop*", "comment"]
                .iter()
                .any(|it| head.is(it));
            if is_other || quoted(&form).is_some() {
                continue;
            }
            if head.is("recur") {
                found.push(parts[1..].to_vec());
            }
        }
        open.extend(parts);
    }
    found
}

/// Tells whether forms bind a name again.
fn rebinds(forms: &[Value], name: Symbol) -> bool {
    let mut open = forms.to_vec();
    while let Some(form) = open.pop() {
        if let Value::Vector(vector) = &form
            && vector.iter().any(|item| item.as_symbol() == Some(name))
        {
            return true;
        }
        open.extend(children(&form));
    }
    false
}

fn is_call(form: &Value, functions: &[&str], name: Symbol) -> bool {
    let parts = match form {
        Value::List(_) => items(form).unwrap_or_default(),
        _ => return false,
    };
    match &parts[..] {
        [head, arg] => {
            let head = head.as_symbol();
            head.is_some_and(|head| functions.iter().any(|it| head.is(it)))
                && arg.as_symbol() == Some(name)
        }
        _ => false,
    }
}

/// Returns by how much a form differs from a name: 1 for `(inc n)`, -2 for `(- n 2)`.
fn change(form: &Value, name: Symbol) -> Option<i64> {
    let parts = match form {
        Value::List(_) => items(form)?,
        _ => return None,
    };
    let head = parts.first()?.as_symbol()?;
    let is_name = |form: &Value| form.as_symbol() == Some(name);
    match (&*head.name(), &parts[1..]) {
        ("inc", [one]) if is_name(one) => Some(1),
        ("dec", [one]) if is_name(one) => Some(-1),
        ("+", [one, Value::Int(by)]) | ("+", [Value::Int(by), one]) if is_name(one) => Some(*by),
        ("-", [one, Value::Int(by)]) if is_name(one) => by.checked_neg(),
        _ => None,
    }
}

/// Returns the comparison of a name that a test makes, and the other side; `None` there stands for 0.
fn comparison(test: &Value, name: Symbol) -> Option<(&'static str, Option<Value>)> {
    let parts = match test {
        Value::List(_) => items(test)?,
        _ => return None,
    };
    let head = parts.first()?.as_symbol()?;
    let is_name = |form: &Value| form.as_symbol() == Some(name);
    let operator = match &*head.name() {
        "<" => "<",
        "<=" => "<=",
        ">" => ">",
        ">=" => ">=",
        "=" | "==" => "=",
        "pos?" => return is_name(parts.get(1)?).then_some((">", None)),
        "zero?" => return is_name(parts.get(1)?).then_some(("=", None)),
        _ => return None,
    };
    match &parts[1..] {
        [one, other] if is_name(one) => Some((operator, Some(other.clone()))),
        [other, one] if is_name(one) => {
            let turned = match operator {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                same => same,
            };
            Some((turned, Some(other.clone())))
        }
        _ => None,
    }
}
