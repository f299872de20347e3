//! Calls by name: special forms, steps, functions of the flow, and functions of the library that take functions.

use flowstone_lang::value::{Symbol, Value};
use flowstone_model::names::name_of;

use super::{
    Amounts, Analysis, BRANCHES, Called, DEFERRED, EVAL, Meaning, Most, Names, PLAIN, Quantity,
    find, hidden, is_function, named,
};
use crate::bounds::StepBounds;
use crate::definition::PackagedStep;
use crate::forms::items;
use crate::metering::{Metering, Quantity as Units};
use crate::retry::Policy;
use crate::step::Effect;

/// Functions and macros that perform steps.
pub(super) const PERFORMING: &[&str] = &[
    "flow/all",
    "flow/call-flow",
    "flow/compensate",
    "flow/continue-as-new",
    "flow/graph*",
    "flow/let",
    "flow/on-cancel",
    "flow/pmap",
    "flow/poll",
    "flow/poll*",
    "flow/race",
    "flow/step",
    "step",
];

/// Functions that call their first argument at most once for each item of the shortest of the others.
const EACH: &[&str] = &[
    "every?",
    "filter",
    "filterv",
    "group-by",
    "keep",
    "keep-indexed",
    "map",
    "map-indexed",
    "mapcat",
    "mapv",
    "not-any?",
    "not-every?",
    "partition-by",
    "remove",
    "run!",
    "some",
    "take-while",
    "drop-while",
];
/// Functions that call a function at an index of their arguments once.
const ONCE: &[(&str, usize)] = &[
    ("swap!", 1),
    ("update", 2),
    ("update-in", 2),
    ("vary-meta", 1),
];

impl Analysis<'_> {
    /// Returns what evaluating a call uses.
    pub(super) fn headed(&mut self, head: Symbol, form: &Value, names: &Names) -> Amounts {
        let parts = items(form).unwrap_or_default();
        let args = parts.get(1..).unwrap_or_default();
        if let Some(meaning) = find(names, head) {
            return match meaning {
                Meaning::Function(function, around) => {
                    let (function, around) = (function.clone(), around.clone());
                    self.function(&function, &around)
                        .plus(self.all(args, names))
                }
                Meaning::Items(_) | Meaning::Number(_) | Meaning::Other => self.all(args, names),
            };
        }
        if self.macros.contains(&head) {
            return match self.may_perform(form, names) {
                true => self.unknown(
                    &format!("the macro `{head}` may repeat what it is given"),
                    form.span(),
                ),
                false => Amounts::NOTHING,
            };
        }
        if let Some(functions) = self.globals.get(&head).cloned() {
            let called = functions.iter().fold(Amounts::NOTHING, |most, function| {
                most.or(self.function(function, &None))
            });
            return called.plus(self.all(args, names));
        }
        match head.namespace().as_deref() {
            Some("flow") => self.flow_call(&head.name(), form, args, names),
            None | Some("clojure.core") => self.core_call(&head.name(), form, args, names),
            Some(namespace) if PLAIN.contains(&namespace) => self.all(args, names),
            Some(_) if self.may_perform(form, names) => self.unknown(
                &format!("`{head}` may repeat what it is given"),
                form.span(),
            ),
            Some(_) => Amounts::NOTHING,
        }
    }

    fn core_call(&mut self, name: &str, form: &Value, args: &[Value], names: &Names) -> Amounts {
        if let Some((_, first)) = BRANCHES.iter().find(|(known, _)| *known == name) {
            return self.branches(args, first - 1, names);
        }
        match name {
            "let" | "let*" => self.binding(args, names),
            "when-let" | "when-some" => self.binding(args, names),
            "cond" => self.cond(args, names),
            "case" => self.case(args, names),
            "fn" | "fn*" => self.escaping(form, names),
            "defn" | "defn-" | "defmacro" => Amounts::NOTHING,
            "def" | "defonce" if args.last().is_some_and(is_function) => Amounts::NOTHING,
            "letfn" => self.letfn(args, names),
            "loop" | "loop*" => self.loop_(form, args, names),
            "for" | "doseq" => self.comprehension(form, args, names),
            "dotimes" => self.dotimes(form, args, names),
            "->" | "->>" | "some->" | "some->>" | "cond->" | "cond->>" | "doto" | "as->" => {
                self.threaded(name, args, names)
            }
            "try" => self.try_(args, names),
            "step" => self.step(form, args, names),
            "quote" => Amounts::NOTHING,
            _ if EVAL.contains(&name) => {
                self.unknown(&format!("`{name}` may evaluate any code"), form.span())
            }
            _ if DEFERRED.contains(&name) => {
                let once = self.all(args, names);
                self.endless(
                    once,
                    format!("`{name}` runs its parts any number of times"),
                    form.span(),
                )
            }
            _ => self.higher(name, form, args, names),
        }
    }

    /// A function literal that is neither named nor called here.
    fn escaping(&mut self, form: &Value, names: &Names) -> Amounts {
        let once = self.function(form, names);
        self.endless(
            once,
            "this function may be called any number of times".to_owned(),
            form.span(),
        )
    }

    /// Calls of functions that may take functions.
    fn higher(&mut self, name: &str, form: &Value, args: &[Value], names: &Names) -> Amounts {
        if EACH.contains(&name) && args.len() >= 2 {
            let colls = &args[1..];
            let count = colls
                .iter()
                .filter_map(|coll| self.count(coll, names))
                .min();
            let once = self.called(&args[0], names);
            let why =
                format!("`{name}` calls its function for each item, and their number is not known");
            return self
                .repeated(once, count, (why.as_str(), form.span()))
                .plus(self.all(colls, names));
        }
        if name == "reduce" && args.len() >= 2 {
            let count = args.last().and_then(|coll| self.count(coll, names));
            let once = self.called(&args[0], names);
            let why = "`reduce` calls its function for each item, and their number is not known";
            return self
                .repeated(once, count, (why, form.span()))
                .plus(self.all(&args[1..], names));
        }
        if name == "repeatedly" && args.len() == 2 {
            let once = self.called(&args[1], names);
            let count = self
                .number(&args[0], names)
                .and_then(|it| u64::try_from(it).ok());
            let why = "the number of calls is not known";
            return self
                .repeated(once, count, (why, form.span()))
                .plus(self.form(&args[0], names));
        }
        if let Some((_, at)) = ONCE.iter().find(|(known, _)| *known == name)
            && let Some(function) = args.get(*at)
        {
            let others = args.iter().enumerate().filter(|(idx, _)| idx != at);
            let others: Vec<Value> = others.map(|(_, other)| other.clone()).collect();
            return self.called(function, names).plus(self.all(&others, names));
        }
        self.all(args, names)
    }

    /// Returns what calling the value of a form once uses.
    pub(super) fn called(&mut self, function: &Value, names: &Names) -> Amounts {
        if is_function(function) {
            return self.function(function, names);
        }
        let Some(symbol) = function.as_symbol() else {
            return self.form(function, names);
        };
        match find(names, symbol) {
            Some(Meaning::Function(function, around)) => {
                let (function, around) = (function.clone(), around.clone());
                self.function(&function, &around)
            }
            Some(_) => Amounts::NOTHING,
            None => match self.globals.get(&symbol).cloned() {
                Some(functions) => functions.iter().fold(Amounts::NOTHING, |most, function| {
                    most.or(self.function(function, &None))
                }),
                None => self.passed(symbol, function.span(), names),
            },
        }
    }

    fn branches(&mut self, args: &[Value], first: usize, names: &Names) -> Amounts {
        let (tests, branches) = args.split_at(first.min(args.len()));
        // `if-let` binds a name for its first branch.
        let inner = tests
            .first()
            .and_then(items)
            .and_then(|it| it.first().cloned());
        let is_binding = matches!(tests.first(), Some(Value::Vector(_)));
        let inner = inner
            .filter(|_| is_binding)
            .map_or(names.clone(), |it| hidden(names, &it));
        let each = branches.iter().enumerate();
        let most = each.fold(Amounts::NOTHING, |most, (idx, branch)| {
            most.or(self.form(branch, if idx == 0 { &inner } else { names }))
        });
        match (is_binding, tests.first().and_then(items)) {
            (true, Some(pair)) => self
                .all(pair.get(1..).unwrap_or_default(), names)
                .plus(most),
            _ => self.all(tests, names).plus(most),
        }
    }

    fn cond(&mut self, args: &[Value], names: &Names) -> Amounts {
        let tests: Vec<Value> = args.iter().step_by(2).cloned().collect();
        let results = args.iter().skip(1).step_by(2);
        let most = results.fold(Amounts::NOTHING, |most, result| {
            most.or(self.form(result, names))
        });
        self.all(&tests, names).plus(most)
    }

    fn case(&mut self, args: &[Value], names: &Names) -> Amounts {
        let Some((tested, clauses)) = args.split_first() else {
            return Amounts::NOTHING;
        };
        let mut most = Amounts::NOTHING;
        for clause in clauses.chunks(2) {
            if let Some(result) = clause.last() {
                most = most.or(self.form(result, names));
            }
        }
        self.form(tested, names).plus(most)
    }

    fn try_(&mut self, args: &[Value], names: &Names) -> Amounts {
        let mut sum = Amounts::NOTHING;
        let mut caught = Amounts::NOTHING;
        for arg in args {
            let parts = items(arg).unwrap_or_default();
            let head = parts.first().and_then(Value::as_symbol);
            let is_list = matches!(arg, Value::List(_));
            match head.filter(|_| is_list) {
                Some(head) if head.is("catch") => {
                    let inner = parts.get(2).map_or(names.clone(), |it| hidden(names, it));
                    let body = parts.get(3..).unwrap_or_default();
                    caught = caught.or(self.all(body, &inner));
                }
                Some(head) if head.is("finally") => {
                    sum = sum.plus(self.all(parts.get(1..).unwrap_or_default(), names));
                }
                _ => sum = sum.plus(self.form(arg, names)),
            }
        }
        sum.plus(caught)
    }

    /// `let` and similar forms.
    pub(super) fn binding(&mut self, args: &[Value], names: &Names) -> Amounts {
        let (sum, inner) = self.pairs(args.first(), names);
        sum.plus(self.all(args.get(1..).unwrap_or_default(), &inner))
    }

    /// Returns what the values of bindings use, and the names of the body.
    pub(super) fn pairs(&mut self, vector: Option<&Value>, names: &Names) -> (Amounts, Names) {
        let pairs = vector.and_then(items).unwrap_or_default();
        let (mut sum, mut inner) = (Amounts::NOTHING, names.clone());
        for pair in pairs.chunks(2) {
            let [pattern, value] = pair else {
                continue;
            };
            let simple = pattern.as_symbol();
            sum = sum.plus(self.defaults(pattern, &inner));
            inner = match simple {
                Some(name) if is_function(value) => named(
                    &inner,
                    name,
                    Meaning::Function(value.clone(), inner.clone()),
                ),
                Some(name) => {
                    sum = sum.plus(self.form(value, &inner));
                    let meaning = self.meaning(value, &inner);
                    named(&inner, name, meaning)
                }
                None => {
                    sum = sum.plus(self.form(value, &inner));
                    hidden(&inner, pattern)
                }
            };
        }
        (sum, inner)
    }

    /// Returns what the defaults of a destructuring pattern use.
    fn defaults(&mut self, pattern: &Value, names: &Names) -> Amounts {
        let defaults = pattern.get("or").and_then(Value::as_map);
        let values: Vec<Value> = defaults
            .into_iter()
            .flat_map(|map| map.iter())
            .map(|(_, it)| it.clone())
            .collect();
        self.all(&values, names)
    }

    fn meaning(&mut self, value: &Value, names: &Names) -> Meaning {
        if let Some(symbol) = value.as_symbol()
            && let Some(Meaning::Function(function, around)) = find(names, symbol)
        {
            return Meaning::Function(function.clone(), around.clone());
        }
        match (self.number(value, names), self.count(value, names)) {
            (Some(number), _) => Meaning::Number(number),
            (None, Some(count)) => Meaning::Items(count),
            (None, None) => Meaning::Other,
        }
    }

    fn letfn(&mut self, args: &[Value], names: &Names) -> Amounts {
        let functions = args.first().and_then(items).unwrap_or_default();
        let mut inner = names.clone();
        for function in &functions {
            // `(f [x] ...)` is examined like `(fn [x] ...)`; calls of one another have no bound.
            let Some(name) = items(function).and_then(|it| it.first()?.as_symbol()) else {
                continue;
            };
            let around = inner.clone();
            inner = named(&inner, name, Meaning::Function(function.clone(), around));
        }
        let mutual = functions.len() > 1 && functions.iter().any(|it| self.may_perform(it, &inner));
        let body = self.all(args.get(1..).unwrap_or_default(), &inner);
        match mutual {
            true => self.unknown(
                "the functions of a `letfn` may call one another",
                args[0].span(),
            ),
            false => body,
        }
    }

    /// A threading macro: what it expands to, as far as that matters.
    fn threaded(&mut self, name: &str, args: &[Value], names: &Names) -> Amounts {
        let Some((first, rest)) = args.split_first() else {
            return Amounts::NOTHING;
        };
        if name == "as->" {
            let inner = rest.first().map_or(names.clone(), |it| hidden(names, it));
            return self
                .form(first, names)
                .plus(self.all(rest.get(1..).unwrap_or_default(), &inner));
        }
        let steps: Vec<&Value> = match name {
            "cond->" | "cond->>" => rest.iter().skip(1).step_by(2).collect(),
            _ => rest.iter().collect(),
        };
        let tests: Vec<Value> = match name {
            "cond->" | "cond->>" => rest.iter().step_by(2).cloned().collect(),
            _ => Vec::new(),
        };
        let mut sum = self.form(first, names).plus(self.all(&tests, names));
        // The value that is passed on is counted where it is made.
        let mut value = first.clone();
        let mut inner = names.clone();
        for step in steps {
            let parts = match step {
                Value::List(_) => items(step).unwrap_or_default(),
                other => vec![other.clone()],
            };
            let Some((head, given)) = parts.split_first() else {
                continue;
            };
            let passed = Value::symbol("<threaded>");
            let meaning = self.meaning(&value, &inner);
            let at = passed.as_symbol().expect("a symbol was made");
            inner = named(&inner, at, meaning);
            let mut call = vec![head.clone()];
            match name.ends_with(">>") {
                true => call.extend(given.iter().cloned().chain([passed])),
                false => call.extend([passed].into_iter().chain(given.iter().cloned())),
            }
            value = Value::list(call);
            sum = sum.plus(self.form(&value, &inner));
            if name == "doto" {
                value = first.clone();
            }
        }
        sum
    }

    /// A call of `flow/step`.
    pub(super) fn step(&mut self, form: &Value, args: &[Value], names: &Names) -> Amounts {
        let own = self
            .all(args, names)
            .plus(Amounts::of(Quantity::Steps, Most::Number(1)));
        let Some(kind) = args.first() else {
            return own;
        };
        let config = args
            .last()
            .filter(|_| args.len() > 1)
            .cloned()
            .unwrap_or(Value::Nil);
        let Value::Keyword(kind) = kind else {
            let message = "the type of this step is computed".to_owned();
            let agents = [
                Quantity::Turns,
                Quantity::ToolCalls,
                Quantity::Tokens,
                Quantity::Cost,
            ];
            let inner = agents
                .iter()
                .fold(Amounts::NOTHING, |sum, it| sum.with(*it, Most::Number(1)));
            return own.plus(self.endless(inner, message, form.span()));
        };
        let name = kind.to_string();
        let name = name.trim_start_matches(':');
        own.plus(self.performed(name, &config, form))
    }

    /// Returns what a step does inside, by its type or id.
    fn performed(&mut self, name: &str, config: &Value, form: &Value) -> Amounts {
        if let Some(packaged) = self.flow.packaged_step(name).cloned() {
            return self.packaged(&packaged, config, form);
        }
        let kind = self.kind(name);
        match &*kind {
            "fanout" => self.fanout(config, form),
            "call-flow" => {
                let slug = config.get("flow-slug").and_then(name_of);
                self.child(slug.as_deref(), form)
            }
            kind => self.of_step(kind, config, form, &mut Vec::new()),
        }
    }

    fn packaged(&mut self, step: &PackagedStep, config: &Value, form: &Value) -> Amounts {
        let defaults = match (&step.prepare, step.is_agent()) {
            // What `:prepare` returns may override every key.
            (Some(_), _) => Value::symbol("computed"),
            (None, true) => step.defaults.clone(),
            (None, false) => {
                let maps = [step.defaults.as_map(), config.as_map()];
                let entries = maps.into_iter().flatten().flat_map(|map| map.iter());
                Value::map(entries.map(|(key, value)| (key.clone(), value.clone())))
            }
        };
        let kind = self.kind(&step.kind);
        self.of_step(&kind, &defaults, form, &mut vec![step.id.to_string()])
    }

    fn kind(&self, name: &str) -> String {
        let specs = self.around.steps.iter().map(|step| step.spec());
        let found = specs.into_iter().find(|spec| spec.is_named(name));
        found.map_or(name, |spec| spec.kind).to_owned()
    }

    /// Returns what a built-in step uses, with the agents that its model may call. `open` are the agents around it.
    fn of_step(
        &mut self,
        kind: &str,
        config: &Value,
        form: &Value,
        open: &mut Vec<String>,
    ) -> Amounts {
        let steps = self.around.steps;
        let Some(step) = steps.iter().find(|step| step.spec().kind == kind) else {
            return Amounts::NOTHING;
        };
        let StepBounds {
            mut amounts,
            reasons,
            tools,
            flows,
        } = step.bounds(self.flow, self.around.settings, config);
        for (quantity, message) in reasons {
            self.reason(vec![quantity], message, form.span());
        }
        let calls = amounts.get(Quantity::ToolCalls);
        let mut inner = Amounts::NOTHING;
        for slug in flows {
            inner = inner.or(self.child(Some(&slug), form));
        }
        for agent in tools {
            let Some(packaged) = self.flow.packaged_step(&agent).cloned() else {
                continue;
            };
            if open.contains(&agent) {
                let message = format!("the agent `:{agent}` may call itself");
                let used = amounts.with(Quantity::Steps, Most::NOTHING);
                inner = inner.or(self.endless(used, message, form.span()));
                continue;
            }
            open.push(agent.clone());
            let of_agent = match packaged.prepare {
                Some(_) => Value::symbol("computed"),
                None => packaged.defaults.clone(),
            };
            let kind = self.kind(&packaged.kind);
            inner = inner.or(self.of_step(&kind, &of_agent, form, open));
            open.pop();
        }
        amounts = amounts.plus(inner.times(calls));
        self.attempted(amounts, config, form)
            .plus(self.metered(config, form))
    }

    /// Returns the cost that `:metering` of a step adds.
    fn metered(&mut self, config: &Value, form: &Value) -> Amounts {
        let given = match config.get("metering") {
            None | Some(Value::Nil) => return Amounts::NOTHING,
            Some(given) => given,
        };
        let metering = Metering::of(given)
            .ok()
            .flatten()
            .filter(|_| crate::forms::is_known(given));
        let micros = metering.and_then(|metering| match metering.quantity {
            Units::Fixed(quantity) => Some((metering.unit_cost_micros * quantity).ceil()),
            Units::Code(_) => None,
        });
        match micros.filter(|it| (0.0..9.0e15).contains(it)) {
            Some(micros) => Amounts::of(Quantity::Cost, Most::Number(micros as u64)),
            None => {
                let one = Amounts::of(Quantity::Cost, Most::Number(1));
                self.endless(one, "its `:metering` is computed".to_owned(), form.span())
            }
        }
    }

    /// Multiplies what one attempt uses by the number of attempts.
    fn attempted(&mut self, once: Amounts, config: &Value, form: &Value) -> Amounts {
        if once == Amounts::NOTHING {
            return once;
        }
        let policy = config.get("on-error").and_then(name_of);
        if policy.as_deref() == Some("checkpoint") {
            let message = "at a checkpoint, a person may have the step performed again".to_owned();
            return self.endless(once, message, form.span());
        }
        let most = flowstone_model::limits::Limits::of(self.around.settings).attempts;
        let attempts = match config.get("retry") {
            None | Some(Value::Nil) => 1,
            Some(given) if crate::forms::is_known(given) => {
                let policy = Policy::of(config, Effect::Steps);
                policy.map_or(u64::from(most), |policy| u64::from(policy.max_attempts))
            }
            Some(_) => u64::from(most),
        };
        once.times(Most::Number(attempts))
    }

    fn fanout(&mut self, config: &Value, form: &Value) -> Amounts {
        let Some(Value::Vector(items)) = config.get("items") else {
            return self.unknown("the items of this `:fanout` are computed", form.span());
        };
        let mut sum = Amounts::NOTHING;
        for item in items.iter() {
            let kind = item.get("type").and_then(name_of);
            let Some(kind) = kind.filter(|_| matches!(item, Value::Map(_))) else {
                return self.unknown("an item of this `:fanout` is computed", form.span());
            };
            let one = Amounts::of(Quantity::Steps, Most::Number(1));
            sum = sum.plus(one).plus(self.performed(&kind, item, form));
        }
        sum
    }

    /// A called flow. `slug` is `None` if it is computed.
    pub(super) fn child(&mut self, slug: Option<&str>, form: &Value) -> Amounts {
        let Some(slug) = slug else {
            return self.unknown("which flow is called is computed", form.span());
        };
        if *self.flow.slug == *slug {
            return self.unknown("the flow calls itself", form.span());
        }
        match (self.around.called)(slug) {
            Called::Known(amounts, why) => {
                let unbounded = |it: &Quantity| amounts.get(*it) == Most::Unbounded;
                let quantities: Vec<Quantity> =
                    Quantity::ALL.into_iter().filter(unbounded).collect();
                if !quantities.is_empty() {
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    let message = format!("the called flow `{slug}` has no bound{why}");
                    self.reason(quantities, message, form.span());
                }
                amounts
            }
            Called::Recursive => self.unknown(
                &format!("the flow `{slug}` calls this one again"),
                form.span(),
            ),
            Called::Unknown => {
                self.unknown(&format!("the flow `{slug}` cannot be read"), form.span())
            }
        }
    }
}
