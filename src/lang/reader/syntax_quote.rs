//! Syntax-quote: a template becomes the code that builds it.
//!
//! The shape is Clojure's: `(seq (concat (list (quote a)) b ...))`, with `apply vector`, `hash-map` and
//! `hash-set` around it for the other collections. The walk keeps its own stack.

use crate::value::{List, Span, Symbol, Value};

use super::ReadContext;
use super::build::{placed_list, placed_name};

/// Returns the code that builds `form`.
///
/// # Errors
/// The place of a `~@` whose items cannot be spliced.
pub(super) fn syntax_quote(
    form: Value,
    span: Span,
    cx: &mut dyn ReadContext,
) -> Result<Value, Span> {
    let mut template = Template {
        core: Core::new(),
        span,
        gensyms: Vec::new(),
        tasks: vec![Task::Quote(form)],
        results: Vec::new(),
        cx,
    };
    while let Some(task) = template.tasks.pop() {
        template.step(task)?;
    }
    Ok(template.results.pop().unwrap_or(Value::Nil))
}

struct Template<'a> {
    core: Core,
    /// The place of the innermost form that has one.
    span: Span,
    /// The generated symbols of `name#` in this template.
    gensyms: Vec<(Symbol, Symbol)>,
    tasks: Vec<Task>,
    results: Vec<Value>,
    cx: &'a mut dyn ReadContext,
}

enum Task {
    /// Build the code of a form.
    Quote(Value),
    /// Build the code of a sequence that contributes the items of a collection.
    Item(Value),
    /// Wrap the last result in a list of one item.
    ListOf,
    /// Join the last `count` results into a collection.
    Join {
        kind: Collection,
        count: usize,
        span: Span,
    },
    /// Attach the last result as metadata to the one before it.
    WithMeta,
}

#[derive(Clone, Copy)]
enum Collection {
    List,
    Vector,
    Map,
    Set,
}

/// The names that the code refers to.
struct Core {
    quote: Symbol,
    unquote: Symbol,
    splice: Symbol,
    seq: Symbol,
    concat: Symbol,
    list: Symbol,
    apply: Symbol,
    vector: Symbol,
    hash_map: Symbol,
    hash_set: Symbol,
    with_meta: Symbol,
}

impl Core {
    fn new() -> Core {
        Core {
            quote: Symbol::new("quote"),
            unquote: Symbol::new("clojure.core/unquote"),
            splice: Symbol::new("clojure.core/unquote-splicing"),
            seq: Symbol::new("clojure.core/seq"),
            concat: Symbol::new("clojure.core/concat"),
            list: Symbol::new("clojure.core/list"),
            apply: Symbol::new("clojure.core/apply"),
            vector: Symbol::new("clojure.core/vector"),
            hash_map: Symbol::new("clojure.core/hash-map"),
            hash_set: Symbol::new("clojure.core/hash-set"),
            with_meta: Symbol::new("clojure.core/with-meta"),
        }
    }
}

impl Template<'_> {
    fn step(&mut self, task: Task) -> Result<(), Span> {
        match task {
            Task::Quote(form) => self.quote(form)?,
            Task::Item(form) => {
                if let Some(inner) = argument(&form, self.core.splice) {
                    self.results.push(inner);
                } else {
                    self.tasks.push(Task::ListOf);
                    self.tasks.push(Task::Quote(form));
                }
            }
            Task::ListOf => {
                let item = self.results.pop().unwrap_or(Value::Nil);
                self.results
                    .push(Value::list([self.core.list.into(), item]));
            }
            Task::Join { kind, count, span } => self.join(kind, count, span),
            Task::WithMeta => {
                let meta = self.results.pop().unwrap_or(Value::Nil);
                let form = self.results.pop().unwrap_or(Value::Nil);
                self.results
                    .push(Value::list([self.core.with_meta.into(), form, meta]));
            }
        }
        Ok(())
    }

    fn quote(&mut self, form: Value) -> Result<(), Span> {
        let span = form.span().or(self.span);
        if let Some(inner) = argument(&form, self.core.unquote) {
            self.results.push(inner);
            return Ok(());
        }
        if argument(&form, self.core.splice).is_some() {
            return Err(span);
        }
        if let Value::Map(meta) = form.meta()
            && !meta.is_empty()
        {
            self.tasks.push(Task::WithMeta);
            self.tasks.push(Task::Quote(Value::Map(meta)));
        }
        match &form {
            Value::Symbol(_) | Value::Name(_) => {
                let symbol = form.as_symbol().map(|symbol| self.symbol(symbol));
                let name = symbol.map_or(Value::Nil, |symbol| placed_name(symbol, span));
                self.push_quoted(name, span);
            }
            Value::List(list) if list.is_empty() => {
                let empty = placed_list([self.core.list.into()], span, [span]);
                self.results.push(empty);
            }
            Value::List(list) => self.collect(Collection::List, list.iter().cloned(), span),
            Value::Vector(vector) => {
                self.collect(Collection::Vector, vector.iter().cloned(), span);
            }
            Value::Map(map) => {
                let items = map
                    .iter()
                    .flat_map(|(key, value)| [key.clone(), value.clone()]);
                self.collect(Collection::Map, items, span);
            }
            Value::Set(set) => self.collect(Collection::Set, set.iter().cloned(), span),
            Value::Keyword(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::BigInt(_)
            | Value::Ratio(_)
            | Value::Decimal(_)
            | Value::Char(_)
            | Value::Text(_) => self.results.push(form),
            _ => self.push_quoted(form, span),
        }
        Ok(())
    }

    fn push_quoted(&mut self, form: Value, span: Span) {
        let quote = placed_name(self.core.quote, span);
        self.results
            .push(placed_list([quote, form], span, [span, span]));
    }

    /// Schedules the joining of a collection after its items.
    fn collect(&mut self, kind: Collection, items: impl Iterator<Item = Value>, span: Span) {
        let at = self.tasks.len();
        self.tasks.extend(items.map(Task::Item));
        let count = self.tasks.len() - at;
        self.tasks.push(Task::Join { kind, count, span });
        self.tasks[at..].reverse();
    }

    fn join(&mut self, kind: Collection, count: usize, span: Span) {
        let items = self.results.split_off(self.results.len() - count);
        let concat = List::of(
            [Value::from(self.core.concat)]
                .into_iter()
                .chain(items)
                .collect::<Vec<_>>(),
        );
        let seq = placed_list([self.core.seq.into(), concat], span, [span, span]);
        let make = match kind {
            Collection::List => {
                self.results.push(seq);
                return;
            }
            Collection::Vector => self.core.vector,
            Collection::Map => self.core.hash_map,
            Collection::Set => self.core.hash_set,
        };
        let items = [self.core.apply.into(), make.into(), seq];
        self.results.push(placed_list(items, span, [span; 3]));
    }

    fn symbol(&mut self, symbol: Symbol) -> Symbol {
        let name = symbol.name();
        if symbol.namespace().is_none() {
            if name.len() > 1
                && let Some(prefix) = name.strip_suffix('#')
            {
                return self.gensym(symbol, prefix);
            }
            if name.starts_with('.') || name.ends_with('.') {
                return symbol;
            }
        }
        self.cx.resolve_symbol(symbol)
    }

    fn gensym(&mut self, symbol: Symbol, prefix: &str) -> Symbol {
        if let Some((_, known)) = self.gensyms.iter().find(|(name, _)| *name == symbol) {
            return *known;
        }
        let made = self.cx.gensym(&format!("{prefix}__"));
        let made = Symbol::new(&format!("{made}__auto__"));
        self.gensyms.push((symbol, made));
        made
    }
}

/// Returns the `x` of `(head x)`.
fn argument(form: &Value, head: Symbol) -> Option<Value> {
    let Value::List(list) = form else {
        return None;
    };
    if list.first.as_symbol() != Some(head) {
        return None;
    }
    list.iter().nth(1).cloned()
}
