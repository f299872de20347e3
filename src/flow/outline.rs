//! The outline of a flow: its steps in the order of its text, with branches, repetitions and what runs concurrently.
//!
//! It is read from the forms, without running anything: a function that the flow defines is shown where it is called, and code
//! without steps is left out. What is called by a computed name does not appear.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use crate::definition::Flow;
use crate::flow::name_of;
use crate::forms::quoted;

/// Maximum depth of forms, and of functions that call each other.
const DEPTH: usize = 200;
/// Maximum number of parts, because a function may be called in many places.
const MOST: usize = 2_000;
/// Maximum number of characters of a condition.
const LABEL: usize = 48;

/// A part of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Step(OutlinedStep),
    /// One of the arms is evaluated.
    Branch {
        /// What decides.
        test: String,
        arms: Vec<Arm>,
    },
    /// The parts are evaluated any number of times.
    Repeat {
        what: String,
        parts: Vec<Part>,
    },
    /// All arms are evaluated, concurrently.
    Together {
        what: String,
        arms: Vec<Arm>,
    },
}

/// One of several ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// When it is taken, such as `yes`; may be empty.
    pub label: String,
    pub parts: Vec<Part>,
}

/// A step of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlinedStep {
    /// The id, or the text of the form that computes it.
    pub id: String,
    /// The type, such as `http`.
    pub kind: String,
    /// The tools of an agent, by name.
    pub tools: Vec<String>,
    /// The flow that it calls.
    pub calls: Option<String>,
}

/// Returns the outline of a flow.
pub fn outline(flow: &Flow) -> Vec<Part> {
    let mut reader = Reader {
        flow,
        functions: HashMap::new(),
        calls: Vec::new(),
        count: 0,
    };
    reader.form(&flow.body, 0)
}

struct Reader<'a> {
    flow: &'a Flow,
    /// The local functions: the parts of their bodies.
    functions: HashMap<String, Vec<Part>>,
    /// The names of the functions that are being read.
    calls: Vec<String>,
    count: usize,
}

impl Reader<'_> {
    fn all<'v>(&mut self, forms: impl IntoIterator<Item = &'v Value>, depth: usize) -> Vec<Part> {
        let forms = forms.into_iter();
        forms.flat_map(|form| self.form(form, depth)).collect()
    }

    fn form(&mut self, form: &Value, depth: usize) -> Vec<Part> {
        if depth > DEPTH || self.count > MOST {
            return Vec::new();
        }
        let depth = depth + 1;
        match form {
            Value::Vector(items) => self.all(items.iter(), depth),
            Value::Set(items) => self.all(items.iter(), depth),
            Value::Map(map) => map
                .iter()
                .flat_map(|(key, value)| self.all([key, value], depth))
                .collect(),
            Value::List(list) => {
                if quoted(form).is_some() {
                    return Vec::new();
                }
                let items: Vec<Value> = list.iter().cloned().collect();
                self.call(&items, depth)
            }
            Value::Symbol(_) | Value::Name(_) => {
                // A local function that is passed to another one.
                let name = form.to_string();
                self.functions.get(&name).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, items: &[Value], depth: usize) -> Vec<Part> {
        let Some(head) = items.first() else {
            return Vec::new();
        };
        let Some(name) = head.as_symbol().map(|_| head.to_string()) else {
            return self.all(items, depth);
        };
        let args = &items[1..];
        match name.as_str() {
            "comment" => Vec::new(),
            "flow/step" => self.step(args, depth),
            "flow/call-flow" => self.call_flow(args, depth),
            "let" | "let*" | "when-let" | "when-some" | "if-let" | "if-some" | "loop" | "loop*"
            | "doseq" | "for" | "dotimes" | "binding" | "with-open" => {
                self.binding(&name, args, depth)
            }
            "if" | "if-not" => self.choice(args, ["yes", "no"], depth),
            "when" | "when-not" => {
                let (test, body) = args.split_at(args.len().min(1));
                let label = if name == "when" { "yes" } else { "no" };
                self.arms(test, vec![(label.to_owned(), body)], depth)
            }
            "cond" => self.cond(args, depth),
            "case" | "condp" => self.case(&name, args, depth),
            "while" => repeated("while", self.all(args, depth)),
            "try" => self.guarded(args, depth),
            "fn" | "fn*" => self.function(args, depth),
            "letfn" => self.letfn(args, depth),
            "flow/all" | "flow/race" => self.together(&name, args, depth),
            "flow/pmap" | "map" | "mapv" | "run!" | "keep" | "filter" | "filterv" | "remove"
            | "reduce" | "mapcat" | "pmap" | "iterate" | "repeatedly" | "some" | "every?" => {
                repeated(&name, self.all(args, depth))
            }
            _ => {
                let mut parts = self.all(args, depth);
                parts.extend(self.functions.get(&name).cloned().unwrap_or_default());
                parts
            }
        }
    }

    /// `(flow/step type id config)`, or a packaged step `(flow/step :slug/id config)`.
    fn step(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        self.count += 1;
        let text = |form: Option<&Value>| form.map_or_else(String::new, shown_name);
        let first = text(args.first());
        let packaged = self.flow.packaged_step(&first).cloned();
        let mut parts = self.all(args.iter().skip(1), depth);
        let config = args.iter().skip(1).find(|form| form.as_map().is_some());
        let base = packaged.as_ref().map(|step| step.kind.to_string());
        let has_id = args.get(1).is_some_and(|form| form.as_map().is_none());
        let (kind, id) = match (&base, has_id) {
            (Some(kind), true) => (kind.clone(), text(args.get(1))),
            (Some(kind), false) => (kind.clone(), first.clone()),
            (None, _) => (first.clone(), text(args.get(1))),
        };
        let calls = match kind.as_str() {
            "call-flow" => config.and_then(|it| it.get("flow")).map(shown_name),
            _ => None,
        };
        parts.push(Part::Step(OutlinedStep {
            id,
            kind,
            tools: self.tools(config),
            calls,
        }));
        parts
    }

    fn tools(&self, config: Option<&Value>) -> Vec<String> {
        let tools = config.and_then(|config| config.get("tools"));
        match tools {
            Some(Value::Vector(tools)) => tools.iter().map(tool_name).collect(),
            Some(Value::Map(tools)) => tools.iter().map(|(name, _)| shown_name(name)).collect(),
            _ => Vec::new(),
        }
    }

    fn call_flow(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        self.count += 1;
        let mut parts = self.all(args.iter().skip(1), depth);
        let called = args.first().map_or_else(String::new, shown_name);
        let id = args.get(1).filter(|form| form.as_keyword().is_some());
        parts.push(Part::Step(OutlinedStep {
            id: id.map_or_else(|| called.clone(), shown_name),
            kind: "call-flow".to_owned(),
            tools: Vec::new(),
            calls: Some(called),
        }));
        parts
    }

    /// Forms with a vector of bindings.
    fn binding(&mut self, name: &str, args: &[Value], depth: usize) -> Vec<Part> {
        let Some(Value::Vector(bindings)) = args.first() else {
            return self.all(args, depth);
        };
        let bindings: Vec<Value> = bindings.iter().cloned().collect();
        let mut shadowed = Vec::new();
        let mut parts = Vec::new();
        for pair in bindings.chunks(2) {
            let Some(value) = pair.get(1) else {
                continue;
            };
            let bound = pair[0].as_symbol().map(|_| pair[0].to_string());
            let found = match (&bound, is_function(value)) {
                (Some(bound), true) => {
                    let body = self.form(value, depth);
                    shadowed.push((bound.clone(), self.functions.insert(bound.clone(), body)));
                    continue;
                }
                _ => self.form(value, depth),
            };
            parts.extend(found);
        }
        let rest = &args[1..];
        match name {
            "if-let" | "if-some" => {
                let arms = [("yes", rest.get(..1)), ("no", rest.get(1..))];
                let arms = arms.map(|(label, body)| (label.to_owned(), body.unwrap_or_default()));
                parts.extend(
                    self.arms(&bindings, arms.into(), depth)
                        .into_iter()
                        .filter(is_branch),
                );
            }
            "when-let" | "when-some" => {
                let arms = vec![("yes".to_owned(), rest)];
                parts.extend(
                    self.arms(&bindings, arms, depth)
                        .into_iter()
                        .filter(is_branch),
                );
            }
            "loop" | "loop*" | "doseq" | "for" | "dotimes" => {
                parts.extend(repeated(name, self.all(rest, depth)));
            }
            _ => parts.extend(self.all(rest, depth)),
        }
        for (bound, before) in shadowed {
            match before {
                Some(before) => self.functions.insert(bound, before),
                None => self.functions.remove(&bound),
            };
        }
        parts
    }

    fn choice(&mut self, args: &[Value], labels: [&str; 2], depth: usize) -> Vec<Part> {
        let (test, rest) = args.split_at(args.len().min(1));
        let arms = [rest.get(..1), rest.get(1..)].map(Option::unwrap_or_default);
        let arms = labels.into_iter().map(str::to_owned).zip(arms).collect();
        self.arms(test, arms, depth)
    }

    /// Returns the parts of a test, and a branch if an arm has parts.
    fn arms(&mut self, test: &[Value], arms: Vec<(String, &[Value])>, depth: usize) -> Vec<Part> {
        let mut parts = self.all(test, depth);
        let label = test.last().map_or_else(String::new, shown);
        let mut arms: Vec<Arm> = arms
            .into_iter()
            .map(|(label, body)| Arm {
                label,
                parts: self.all(body, depth),
            })
            .collect();
        if arms.iter().all(|arm| arm.parts.is_empty()) {
            return parts;
        }
        if let [arm] = &arms[..] {
            let other = if arm.label == "no" { "yes" } else { "no" };
            arms.push(Arm {
                label: other.to_owned(),
                parts: Vec::new(),
            });
        }
        parts.push(Part::Branch { test: label, arms });
        parts
    }

    fn cond(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        let tests: Vec<Value> = args.iter().step_by(2).cloned().collect();
        let arms = args.chunks(2).map(|pair| {
            let label = match pair[0].as_keyword() {
                Some(_) => "else".to_owned(),
                None => shown(&pair[0]),
            };
            (label, pair.get(1..).unwrap_or_default())
        });
        let mut parts = self.arms(&tests, with_else(arms.collect()), depth);
        name_branch(&mut parts, "cond");
        parts
    }

    fn case(&mut self, name: &str, args: &[Value], depth: usize) -> Vec<Part> {
        let skipped = if name == "condp" { 2 } else { 1 };
        let (test, rest) = args.split_at(args.len().min(skipped));
        let arms = rest.chunks(2).map(|pair| match pair {
            [value, body @ ..] if !body.is_empty() => (shown(value), body),
            other => ("else".to_owned(), other),
        });
        self.arms(test, with_else(arms.collect()), depth)
    }

    fn guarded(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        let head = |form: &Value| match form {
            Value::List(list) => list.iter().next().map(ToString::to_string),
            _ => None,
        };
        let is = |name: &str, form: &Value| head(form).as_deref() == Some(name);
        let body: Vec<&Value> = args
            .iter()
            .filter(|form| !is("catch", form) && !is("finally", form))
            .collect();
        let mut parts = self.all(body, depth);
        for handler in args.iter().filter(|form| is("catch", form)) {
            let items: Vec<Value> = match handler {
                Value::List(list) => list.iter().skip(3).cloned().collect(),
                _ => Vec::new(),
            };
            let caught = self.all(&items, depth);
            if !caught.is_empty() {
                let none = Arm {
                    label: "no".to_owned(),
                    parts: Vec::new(),
                };
                let caught = Arm {
                    label: "failed".to_owned(),
                    parts: caught,
                };
                parts.push(Part::Branch {
                    test: "catch".to_owned(),
                    arms: vec![caught, none],
                });
            }
        }
        for last in args.iter().filter(|form| is("finally", form)) {
            parts.extend(self.form(last, depth));
        }
        parts
    }

    /// Returns the parts of the bodies of a function literal.
    fn function(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        let own = args.first().filter(|form| form.as_symbol().is_some());
        let name = own.map(ToString::to_string);
        if let Some(name) = &name {
            if self.calls.contains(name) {
                return Vec::new();
            }
            self.calls.push(name.clone());
        }
        let mut parts = Vec::new();
        for form in args.iter().skip(usize::from(name.is_some())) {
            match form {
                // The parameters.
                Value::Vector(_) => {}
                Value::List(list)
                    if list
                        .iter()
                        .next()
                        .is_some_and(|it| it.as_vector().is_some()) =>
                {
                    let body: Vec<Value> = list.iter().skip(1).cloned().collect();
                    parts.extend(self.all(&body, depth));
                }
                form => parts.extend(self.form(form, depth)),
            }
        }
        if name.is_some() {
            self.calls.pop();
        }
        parts
    }

    fn letfn(&mut self, args: &[Value], depth: usize) -> Vec<Part> {
        let Some(Value::Vector(functions)) = args.first() else {
            return self.all(args, depth);
        };
        for function in functions.iter() {
            if let Value::List(list) = function {
                let items: Vec<Value> = list.iter().cloned().collect();
                if let Some(name) = items.first() {
                    let parts = self.function(&items, depth);
                    self.functions.insert(name.to_string(), parts);
                }
            }
        }
        self.all(&args[1..], depth)
    }

    /// `(flow/all {:a (fn [] ...)})` or `(flow/all [(fn [] ...)])`.
    fn together(&mut self, name: &str, args: &[Value], depth: usize) -> Vec<Part> {
        let arms: Vec<(String, Value)> = match args.first() {
            Some(Value::Map(map)) => map
                .iter()
                .map(|(key, value)| (shown_name(key), value.clone()))
                .collect(),
            Some(Value::Vector(items)) => {
                items.iter().map(|it| (String::new(), it.clone())).collect()
            }
            _ => return repeated(name, self.all(args, depth)),
        };
        let arms: Vec<Arm> = arms
            .into_iter()
            .map(|(label, form)| Arm {
                label,
                parts: self.form(&form, depth),
            })
            .collect();
        match arms.iter().all(|arm| arm.parts.is_empty()) {
            true => Vec::new(),
            false => vec![Part::Together {
                what: name.to_owned(),
                arms,
            }],
        }
    }
}

fn is_branch(part: &Part) -> bool {
    matches!(part, Part::Branch { .. })
}

fn name_branch(parts: &mut [Part], name: &str) {
    if let Some(Part::Branch { test, .. }) = parts.last_mut() {
        name.clone_into(test);
    }
}

/// Adds an arm for everything else, unless the last one is that.
fn with_else(mut arms: Vec<(String, &[Value])>) -> Vec<(String, &[Value])> {
    if arms.last().is_none_or(|(label, _)| label != "else") {
        arms.push(("else".to_owned(), &[]));
    }
    arms
}

fn repeated(what: &str, parts: Vec<Part>) -> Vec<Part> {
    match parts.is_empty() {
        true => parts,
        false => vec![Part::Repeat {
            what: what.to_owned(),
            parts,
        }],
    }
}

fn is_function(form: &Value) -> bool {
    let Value::List(list) = form else {
        return false;
    };
    let head = list.iter().next().and_then(Value::as_symbol);
    head.is_some_and(|head| head.is("fn") || head.is("fn*"))
}

/// Returns the name of a keyword, symbol or string, or the text of another form.
fn shown_name(form: &Value) -> String {
    match form.as_symbol() {
        Some(_) => shown(form),
        None => name_of(form).map_or_else(|| shown(form), |name| name.to_string()),
    }
}

fn tool_name(tool: &Value) -> String {
    let named = ["name", "id", "flow", "type"];
    let part = named.iter().find_map(|key| tool.get(key));
    part.map_or_else(|| shown_name(tool), shown_name)
}

/// Returns the text of a form, cut if it is long.
fn shown(form: &Value) -> String {
    let text = form.to_string();
    match text.char_indices().nth(LABEL) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
