//! Forms to nodes: resolves each name and expands each macro.

use std::rc::Rc;

use super::inline;
use super::node::{Arm, FnNode, Kind, Node, Use};
use super::scope::{Loop, Scopes};
use super::special;
use super::{error, liveness, undefined};
use crate::value::{Class, Exception, List, Object, Result, Signal, Span, Symbol, Value, Var};
use crate::vm::Vm;

/// The analysis of a top-level expression.
pub(super) struct Top {
    pub body: Node,
    pub locals: u32,
}

/// Analyses a form of the current namespace.
pub(super) fn analyze_top(vm: &mut Vm, form: &Value) -> Result<Top> {
    let mut cx = Analyzer::at_top(vm, form);
    let body = cx.node(form)?;
    let locals = cx.scopes.local_count();
    cx.scopes.leave_function();
    liveness::mark_top(&body);
    Ok(Top { body, locals })
}

/// The analysis of one top-level form.
pub(super) struct Analyzer<'a> {
    pub vm: &'a mut Vm,
    pub scopes: Scopes,
    /// The nearest enclosing place, because forms made by macros have none.
    pub place: Span,
    /// Number of enclosing `try` forms with a `catch`: inside them, a wrong number of arguments is left to be caught.
    pub guards: u32,
    /// Whether `*unchecked-math*` is true for this form.
    unchecked: bool,
    /// The names of the enclosing functions as traces show them, innermost last.
    pub within: Vec<Rc<str>>,
}

/// The meaning of a symbol.
pub(super) enum Meaning {
    Local(super::node::Ref),
    Var(Rc<Var>),
    Class(Class),
}

impl Analyzer<'_> {
    /// Begins the analysis of a top-level form.
    pub(super) fn at_top<'a>(vm: &'a mut Vm, form: &Value) -> Analyzer<'a> {
        let mut scopes = Scopes::default();
        scopes.enter_function(None);
        Analyzer {
            unchecked: is_unchecked(vm),
            vm,
            scopes,
            place: form.span(),
            guards: 0,
            within: Vec::new(),
        }
    }

    /// Analyses a form.
    pub(super) fn node(&mut self, form: &Value) -> Result<Node> {
        self.vm.check_native_stack().map_err(|_| self.too_deep())?;
        let outer = self.place;
        self.place = self.place_of(form.span());
        let node = self.node_here(form);
        self.place = outer;
        node
    }

    /// Analyses the item of a collection form at `idx`, which may be a literal without a place of its own.
    pub(super) fn item(&mut self, form: &Value, parent: &Value, idx: usize) -> Result<Node> {
        let outer = self.place;
        let known = parent
            .place()
            .and_then(|place| place.items.get(idx))
            .copied()
            .unwrap_or(Span::NONE);
        self.place = self.place_of(form.span().or(known));
        let node = self.node(form);
        self.place = outer;
        node
    }

    /// Returns a place in the user's text: the given one, or the nearest enclosing one if that is missing or inside a
    /// macro of the library.
    fn place_of(&self, span: Span) -> Span {
        if !span.is_some() || span.source == self.place.source {
            return span.or(self.place);
        }
        let world = self.vm.world();
        let sources = world.sources.borrow();
        let is_foreign = self.place.is_some()
            && sources.is_library(span.source)
            && !sources.is_library(self.place.source);
        if is_foreign { self.place } else { span }
    }

    fn too_deep(&self) -> Signal {
        error(
            "E0211",
            self.place,
            "this form is nested too deep to be compiled",
        )
        .into()
    }

    fn node_here(&mut self, form: &Value) -> Result<Node> {
        let span = self.place;
        match form {
            Value::Symbol(_) | Value::Name(_) => {
                let symbol = form.as_symbol().expect("both kinds are symbols");
                self.symbol(symbol, span)
            }
            Value::List(list) if !list.is_empty() => self.call(form),
            Value::Seq(_) | Value::Lazy(_) => match proper(self.vm, form.clone())? {
                Value::List(list) if list.is_empty() => Ok(Node::constant(Value::List(list), span)),
                list => self.node(&list),
            },
            Value::Vector(vector) => {
                let items = self.items(form, vector.iter().cloned().collect())?;
                let node = literal(items, Kind::Vector, Value::vector, span);
                self.with_meta(form, node)
            }
            Value::Map(map) => {
                let items = map
                    .iter()
                    .flat_map(|(key, value)| [key.clone(), value.clone()])
                    .collect();
                let items = self.items(form, items)?;
                let pairs = |items: Vec<Value>| {
                    let mut items = items.into_iter();
                    let mut entries = Vec::new();
                    while let (Some(key), Some(value)) = (items.next(), items.next()) {
                        entries.push((key, value));
                    }
                    Value::map(entries)
                };
                let node = literal(items, Kind::Map, pairs, span);
                self.with_meta(form, node)
            }
            Value::Set(set) => {
                let items = self.items(form, set.iter().cloned().collect())?;
                let node = literal(items, Kind::Set, Value::set, span);
                self.with_meta(form, node)
            }
            other => Ok(Node::constant(other.clone(), span)),
        }
    }

    fn items(&mut self, parent: &Value, items: Vec<Value>) -> Result<Vec<Node>> {
        // A hash map or set does not keep the reading order of its places.
        let ordered = items.len() <= 16 || matches!(parent, Value::Vector(_));
        let nodes = items.iter().enumerate();
        nodes
            .map(|(idx, item)| self.item(item, parent, if ordered { idx } else { usize::MAX }))
            .collect()
    }

    fn with_meta(&mut self, form: &Value, node: Node) -> Result<Node> {
        let meta = form.meta();
        if meta.is_nil() {
            return Ok(node);
        }
        let span = node.span;
        let meta = self.node(&meta)?;
        if let (Kind::Const(value), Kind::Const(meta)) = (&node.kind, &meta.kind)
            && let Some(value) = value.with_meta(meta.clone())
        {
            return Ok(Node::constant(value, span));
        }
        Ok(Node::new(
            Kind::WithMeta {
                value: Box::new(node),
                meta: Box::new(meta),
            },
            span,
        ))
    }

    /// Analyses the body of a `do`, `let` or similar form: the forms from `from` on.
    pub(super) fn body(&mut self, form: &Value, items: &[Value], from: usize) -> Result<Node> {
        let span = self.place;
        match items.get(from..).unwrap_or(&[]) {
            [] => Ok(Node::constant(Value::Nil, span)),
            [only] => self.item(only, form, from),
            _ => {
                let mut nodes = Vec::with_capacity(items.len() - from);
                for (idx, item) in items.iter().enumerate().skip(from) {
                    let is_last = idx + 1 == items.len();
                    let node = if is_last {
                        self.item(item, form, idx)
                    } else {
                        self.not_tail(|cx| cx.item(item, form, idx))
                    };
                    nodes.push(node?);
                }
                Ok(Node::new(Kind::Do(nodes), span))
            }
        }
    }

    /// Analyses an expression that is not in tail position for `recur`.
    pub(super) fn not_tail<T>(
        &mut self,
        analyze: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.barrier("recur is only allowed where it is the last thing that is done: it is not in tail position", analyze)
    }

    /// Analyses an expression that `recur` cannot leave; `why` is the message.
    pub(super) fn barrier<T>(
        &mut self,
        why: &'static str,
        analyze: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.scopes.push_loop(Loop::Barrier(why));
        let result = analyze(self);
        self.scopes.pop_loop();
        result
    }

    fn call(&mut self, form: &Value) -> Result<Node> {
        let span = self.place;
        let Value::List(list) = form else {
            return Ok(Node::constant(form.clone(), span));
        };
        let head = list
            .first
            .as_symbol()
            .filter(|symbol| !self.is_shadowed(*symbol));
        let special = head.and_then(|symbol| self.special(symbol));
        if special.is_none()
            && head.is_some()
            && let Some(expanded) = self.expand(form)?
        {
            return self.node(&expanded);
        }
        let items = items_of(self.vm, form)?;
        if let Some(special) = special {
            return special(self, form, &items);
        }
        let args = self.not_tail(|cx| {
            let args = items.iter().enumerate().skip(1);
            args.map(|(idx, arg)| cx.item(arg, form, idx))
                .collect::<Result<Vec<Node>>>()
        })?;
        if args.len() > 200 {
            return self.call_with_many(&items);
        }
        match &items[0] {
            Value::Keyword(key) if args.len() == 1 => {
                let coll = args.into_iter().next().expect("there is one");
                Ok(Node::new(
                    Kind::Keyword {
                        key: *key,
                        coll: Box::new(coll),
                    },
                    span,
                ))
            }
            head => {
                let is_host = head.as_symbol().is_some_and(undefined::is_host_name);
                let head = self.not_tail(|cx| cx.item(head, form, 0))?;
                if args.is_empty() && is_host_constant(&head) {
                    return Ok(head);
                }
                // The host resolves a method by its arguments when the call is reached.
                let guards = self.guards;
                self.guards += u32::from(is_host && self.vm.world().defers_host_names());
                let applied = self.applied(head, args, span);
                self.guards = guards;
                applied
            }
        }
    }

    /// Compiles a call with more arguments than an instruction can hold, through `apply`.
    fn call_with_many(&mut self, items: &[Value]) -> Result<Node> {
        let args = Value::vector(items[1..].iter().cloned());
        let call = Value::list([Value::symbol("clojure.core/apply"), items[0].clone(), args]);
        self.node(&call)
    }

    /// Returns a call of an analysed function.
    fn applied(&mut self, head: Node, mut args: Vec<Node>, span: Span) -> Result<Node> {
        if let Kind::Const(Value::Native(native)) = &head.kind {
            let mut native = *native;
            if self.unchecked && is_of_core(self.vm, native) {
                while args.len() > 2 && matches!(native.name, "+" | "-" | "*") {
                    let rest = args.split_off(2);
                    let first = self.applied(head_of(native, span), args, span)?;
                    args = std::iter::once(first).chain(rest).collect();
                }
                let unchecked = inline::unchecked(native.name, args.len());
                native = unchecked
                    .and_then(|name| core_native(self.vm, name))
                    .unwrap_or(native);
            }
            if let Some(operation) = inline::operation_of(native, args.len())
                && is_of_core(self.vm, native)
            {
                while operation.folds() && args.len() > 2 {
                    let rest = args.split_off(2);
                    let first = Node::new(Kind::Inline { operation, args }, span);
                    args = std::iter::once(first).chain(rest).collect();
                }
                return Ok(Node::new(Kind::Inline { operation, args }, span));
            }
            if !native.arity.takes(args.len()) {
                if self.guards > 0 || self.is_in_library() {
                    return Ok(call(head, args, span));
                }
                let usage = native.usage.lines().collect::<Vec<_>>().join(" or ");
                return Err(error(
                    "E0206",
                    span,
                    format!(
                        "wrong number of arguments ({}) for `{}`, which takes {}",
                        args.len(),
                        native.name,
                        native.arity
                    ),
                )
                .hint(format!("it is called as {usage}"))
                .into());
            }
            return Ok(Node::new(Kind::Native { native, args }, span));
        }
        if let Kind::Global(var) = &head.kind {
            self.check_arity(var, args.len(), span)?;
        }
        Ok(call(head, args, span))
    }

    /// Tells whether the code belongs to a file that `require` loads in a program that may use only parts of libraries:
    /// a wrong call in it fails when it is reached.
    fn is_in_library(&self) -> bool {
        let world = self.vm.world();
        world.defers_host_names() && !world.loading().is_empty()
    }

    /// Rejects a call of a known function with a number of arguments that it does not accept.
    fn check_arity(&self, var: &Rc<Var>, count: usize, span: Span) -> Result<()> {
        if var.is_dynamic() || self.guards > 0 || self.is_in_library() {
            return Ok(());
        }
        let Some(Value::Fn(closure)) = var.root() else {
            return Ok(());
        };
        if closure.proto.body(count).is_some() {
            return Ok(());
        }
        let mut refused = error(
            "E0206",
            span,
            format!(
                "wrong number of arguments ({count}) for `{}`, which takes {}",
                var.name,
                closure.proto.arity_text()
            ),
        );
        refused.hints.extend(usage(var));
        Err(refused.into())
    }

    fn symbol(&mut self, symbol: Symbol, span: Span) -> Result<Node> {
        if symbol == Symbol::new("*ns*") || symbol == Symbol::new("clojure.core/*ns*") {
            // `in-ns` changes the current namespace, not a var.
            let native = core_native(self.vm, "-current-ns").expect("the core has it");
            return Ok(Node::new(
                Kind::Native {
                    native,
                    args: Vec::new(),
                },
                span,
            ));
        }
        if let Some(method) = self.method_value(symbol)? {
            return self.node(&method);
        }
        if let Some(this) = self.scopes.field_owner(symbol) {
            return self.node(&special::fields::read(symbol, this));
        }
        let meaning = match self.meaning(symbol, span) {
            Err(Signal::Throw(refused)) if undefined::is_host_name(symbol) => {
                let world = self.vm.world();
                if world.defers_host_names() && undefined::is_foreign_class(symbol) {
                    let class = world.foreign_class(symbol).root();
                    return Ok(Node::constant(class.unwrap_or(Value::Nil), span));
                }
                return self.deferred(refused.again());
            }
            meaning => meaning?,
        };
        Ok(match meaning {
            Meaning::Local(place) => Node::new(Kind::Ref(Use::new(place)), span),
            Meaning::Class(class) => Node::constant(Value::from(Object::Class(class)), span),
            Meaning::Var(var) => {
                if var.is_macro.get() {
                    return Err(error(
                        "E0207",
                        span,
                        format!("`{symbol}` is a macro: it has no value"),
                    )
                    .clojure(format!(
                        "Can't take value of a macro: #'{}",
                        var.qualified()
                    ))
                    .hint(format!(
                        "call it as ({symbol} ...), or wrap it: (fn [x] ({symbol} x))"
                    ))
                    .into());
                }
                match var.root() {
                    // Calls of natives are linked directly, as the JVM does for its core.
                    Some(Value::Native(native)) if !var.is_dynamic() => {
                        Node::constant(Value::Native(native), span)
                    }
                    _ => Node::new(Kind::Global(var), span),
                }
            }
        })
    }

    /// Returns the function of `Class/.method`; `None` if the symbol does not have this form.
    fn method_value(&mut self, symbol: Symbol) -> Result<Option<Value>> {
        let (Some(class), name) = (symbol.namespace(), symbol.name()) else {
            return Ok(None);
        };
        if name.len() < 2 || !name.starts_with('.') || &*name == ".." {
            return Ok(None);
        }
        let class = class.as_ref();
        let short = class.rsplit('.').next().unwrap_or(class);
        let is_class = short.starts_with(char::is_uppercase)
            && (Class::named(class).is_some()
                || self.vm.world().find_namespace(Symbol::new(short)).is_some()
                || self.var(Symbol::new(class))?.is_some());
        let method = Symbol::new(&name);
        if !is_class {
            return Ok(None);
        }
        let quoted = || Value::list([Value::symbol("quote"), Value::Symbol(method)]);
        if self.vm.world().is_method(method) {
            let call = [
                Value::symbol("clojure.core/partial"),
                Value::symbol("clojure.core/invoke-method"),
                quoted(),
            ];
            return Ok(Some(Value::list(call)));
        }
        let is_known = self.var(method)?.is_some();
        Ok(is_known.then_some(Value::Symbol(method)))
    }

    /// Reports a host name that does not exist: now, or when the place is reached in programs that use parts of
    /// libraries.
    pub(super) fn deferred(&self, refused: Exception) -> Result<Node> {
        if !self.vm.world().defers_host_names() {
            return Err(refused.into());
        }
        let native = core_native(self.vm, "-refuse").expect("the core has it");
        let place = self.place;
        let refused = Node::constant(Value::Exception(Rc::new(refused)), place);
        let args = vec![refused];
        Ok(Node::new(Kind::Native { native, args }, place))
    }

    /// Resolves a symbol.
    pub(super) fn meaning(&mut self, symbol: Symbol, span: Span) -> Result<Meaning> {
        if symbol.namespace().is_none()
            && let Some(place) = self.scopes.find(symbol)
        {
            return Ok(Meaning::Local(place));
        }
        if let Some(var) = self.var(symbol)? {
            let foreign = var.namespace != self.vm.world().current.borrow().name;
            // Code expanded from the library's macros may use its private functions.
            if var.is_private.get() && foreign && !crate::library::has(&var.namespace.to_string()) {
                return Err(error(
                    "E0205",
                    span,
                    format!("`{symbol}` is private to {}", var.namespace),
                )
                .clojure(format!("var: #'{} is not public", var.qualified()))
                .hint("use a public name there, or remove the `-` of its defn- or its ^:private")
                .into());
            }
            return Ok(Meaning::Var(var));
        }
        let text = symbol.to_string();
        if let Some(class) = Class::named(&text) {
            return Ok(Meaning::Class(class));
        }
        if let Some(var) = self.vm.world().class_var(&text) {
            return Ok(Meaning::Var(var));
        }
        if let Some(var) = library_class(self.vm, &text)? {
            return Ok(Meaning::Var(var));
        }
        Err(undefined::describe(self.vm, &self.scopes, symbol, span).into())
    }

    /// Finds the var of a symbol, loading it from the library if necessary.
    pub(super) fn var(&mut self, symbol: Symbol) -> Result<Option<Rc<Var>>> {
        resolve_var(self.vm, symbol)
    }

    /// Returns the special form named by a symbol. A namespace may replace those that are macros.
    pub(super) fn special(&self, symbol: Symbol) -> Option<special::Special> {
        let found = special::find(symbol)?;
        if symbol.namespace().is_none() && special::MACROS.contains(&&*symbol.name()) {
            let own = self.vm.world().current.borrow().lookup(symbol);
            if own.is_some_and(|var| special::of_macro(&var).is_none()) {
                return None;
            }
        }
        Some(found)
    }

    /// Analyses a function's arity whose names and body are ready.
    pub(super) fn arm(
        &mut self,
        params: &[Symbol],
        rest: Option<Symbol>,
        body: impl FnOnce(&mut Self) -> Result<Node>,
    ) -> Result<Arm> {
        self.scopes.enter_arity();
        let params: Vec<_> = params
            .iter()
            .map(|name| self.scopes.define(*name))
            .collect();
        let rest = rest.map(|name| self.scopes.define(name));
        self.scopes
            .push_loop(Loop::Target(params.iter().copied().chain(rest).collect()));
        let body = body(self);
        self.scopes.pop_loop();
        let arm = Arm {
            params,
            rest,
            locals: self.scopes.local_count(),
            body: body?,
        };
        liveness::mark(&arm);
        Ok(arm)
    }
}

/// Returns the usage of a function or macro, from the argument lists in its var's metadata.
pub(super) fn usage(var: &Var) -> Option<String> {
    let meta = var.meta();
    let Value::List(lists) = meta.get("arglists")? else {
        return None;
    };
    let calls: Vec<String> = lists
        .iter()
        .map(|list| {
            let params = crate::value::brief(list);
            let params = params.trim_start_matches('[').trim_end_matches(']');
            let space = if params.is_empty() { "" } else { " " };
            format!("({}{space}{params})", var.name)
        })
        .collect();
    (!calls.is_empty()).then(|| format!("it is called as {}", calls.join(" or ")))
}

/// Returns a call of a function that is known only at run time.
fn call(function: Node, args: Vec<Node>, span: Span) -> Node {
    let function = Box::new(function);
    Node::new(Kind::Call { function, args }, span)
}

/// Returns the items of a form, with each sequence among them as a list, because macros may return any kind.
pub(super) fn items_of(vm: &mut Vm, form: &Value) -> Result<Vec<Value>> {
    let items = vm.items(form.clone())?;
    items.into_iter().map(|item| proper(vm, item)).collect()
}

/// Returns a sequence as a list whose cells are all lists; any other value unchanged.
pub(super) fn proper(vm: &mut Vm, form: Value) -> Result<Value> {
    let extra = match &form {
        Value::List(list) if list.count.is_some() => return Ok(form),
        Value::List(list) => list.extra.clone(),
        Value::Seq(_) | Value::Lazy(_) => None,
        _ => return Ok(form),
    };
    let list = List::of(vm.items(form)?);
    Ok(match (&list, extra) {
        (Value::List(list), extra @ Some(_)) => Value::List(Rc::new(list.with_extra(extra))),
        _ => list,
    })
}

/// Returns the throwable class of a short or full name.
pub(super) fn class_named(name: &str) -> Option<Class> {
    Class::THROWABLES
        .iter()
        .copied()
        .find(|class| class.0.name == name || class.0.full_name == name)
}

/// Finds the var of a symbol in the current namespace, loading it from the library if necessary.
pub(crate) fn resolve_var(vm: &mut Vm, symbol: Symbol) -> Result<Option<Rc<Var>>> {
    let world = vm.world().clone();
    // A library namespace may define a name that core has as well, and may not have compiled it yet.
    let home = world.current.borrow().clone();
    let is_own = symbol.namespace().is_none()
        && home.name != world.core.name
        && home.lookup(symbol).is_none()
        && crate::library::defines(&home.name.to_string(), &symbol.name());
    if !is_own && let Some(var) = world.resolve(symbol) {
        return Ok(Some(var));
    }
    let name = Symbol::new(&symbol.name());
    let current = world.current.borrow().clone();
    let targets = match symbol.namespace() {
        None => {
            let core = current.sees_core(symbol).then_some(world.core.name);
            [Some(current.name), core]
        }
        Some(prefix) => {
            let host = host_class(&prefix).map(Symbol::new);
            let prefix = Symbol::new(&prefix);
            [Some(current.alias(prefix).unwrap_or(prefix)), host]
        }
    };
    for target in targets.into_iter().flatten() {
        if symbol.namespace().is_some()
            && let Some(var) = world
                .find_namespace(target)
                .and_then(|home| home.lookup(name))
        {
            return Ok(Some(var));
        }
        if world.loader().load_definition(vm, target, name)? {
            return Ok(world
                .find_namespace(target)
                .and_then(|namespace| namespace.lookup(name)));
        }
    }
    match symbol.namespace().as_deref().and_then(class_of_package) {
        Some(class) => resolve_var(vm, Symbol::with_namespace(Some(class), &symbol.name())),
        None => Ok(world.type_of_class_name(symbol)),
    }
}

/// Finds the var of a host class that the library defines, by the full name of the class.
pub(crate) fn library_class(vm: &mut Vm, full_name: &str) -> Result<Option<Rc<Var>>> {
    let class = match host_class(full_name) {
        Some(_) => crate::library::class(full_name),
        None => undefined::is_known_everywhere(full_name)
            .then_some(full_name)
            .filter(|name| crate::library::defines(name, name)),
    };
    match class {
        Some(class) => resolve_var(vm, Symbol::with_namespace(Some(class), class)),
        None => Ok(None),
    }
}

/// Returns the short name of a host class written with its package.
fn class_of_package(name: &str) -> Option<&str> {
    let is_host = ["java.", "clojure.lang."]
        .iter()
        .any(|package| name.starts_with(package));
    is_host.then(|| name.rsplit_once('.'))?.map(|parts| parts.1)
}

/// Returns the short name of a host class written with its package, which is the namespace of its functions.
fn host_class(name: &str) -> Option<&str> {
    const PACKAGES: &[&str] = &[
        "clojure.lang",
        "java.io",
        "java.lang",
        "java.lang.ref",
        "java.math",
        "java.net",
        "java.nio.charset",
        "java.security",
        "java.text",
        "java.time",
        "java.time.format",
        "java.time.temporal",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "java.util.concurrent.locks",
        "java.util.regex",
    ];
    let (package, class) = name.rsplit_once('.')?;
    PACKAGES.contains(&package).then_some(class)
}

/// Tells whether the code being compiled does not check results; library code is not affected by the setting.
fn is_unchecked(vm: &mut Vm) -> bool {
    let home = vm.world().current.borrow().name;
    let setting = vm.world().core.lookup(Symbol::new("*unchecked-math*"));
    let is_set = setting.is_some_and(|var| vm.var_value(&var).is_ok_and(|value| value.is_truthy()));
    is_set && !crate::library::has(&home.to_string())
}

/// Tells whether a native is the value of its name in `clojure.core`.
fn is_of_core(vm: &Vm, native: &'static crate::value::Native) -> bool {
    std::ptr::eq(native, core_native(vm, native.name).unwrap_or(native))
}

/// Returns a native as the head of a call.
fn head_of(native: &'static crate::value::Native, span: Span) -> Node {
    Node::constant(Value::Native(native), span)
}

/// Returns the native of a name in `clojure.core`.
fn core_native(vm: &Vm, name: &str) -> Option<&'static crate::value::Native> {
    match vm.world().core.lookup(Symbol::new(name))?.root()? {
        Value::Native(native) => Some(native),
        _ => None,
    }
}

/// Tells whether this is a constant of a host class, such as `Math/PI`, which `(Math/PI)` returns as well.
fn is_host_constant(head: &Node) -> bool {
    let Kind::Global(var) = &head.kind else {
        return false;
    };
    let is_class = var.namespace.name().starts_with(char::is_uppercase);
    is_class
        && !var.is_dynamic()
        && !matches!(var.root(), None | Some(Value::Native(_) | Value::Fn(_)))
}

/// Returns a collection node; a collection of constants is a constant.
fn literal(
    items: Vec<Node>,
    kind: impl FnOnce(Vec<Node>) -> Kind,
    build: impl FnOnce(Vec<Value>) -> Value,
    span: Span,
) -> Node {
    let constants: Option<Vec<Value>> = items
        .iter()
        .map(|item| match &item.kind {
            Kind::Const(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    match constants {
        Some(constants) => Node::constant(build(constants), span),
        None => Node::new(kind(items), span),
    }
}

/// Returns a function node without metadata.
pub(super) fn function(name: Rc<str>, arities: Vec<Arm>, captures: Vec<Use>) -> FnNode {
    FnNode {
        name,
        arities,
        captures,
        meta: None,
    }
}
