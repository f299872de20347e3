//! A second evaluator, for tests only: it walks the tree from analysis as simply as possible. It does not use
//! registers, last uses, instructions or caches, so differences from the machine reveal errors in those.

use std::cell::RefCell;
use std::rc::Rc;

use super::analyze::analyze_top;
use super::inline::Inline;
use super::node::{Arm, FnNode, Kind, LocalId, Node, Ref, TryNode, Use};
use crate::value::{Arity, Class, Exception, NativeClosure, Object, Result, Signal, Symbol, Value};
use crate::vm::{Args, Vm};

/// Evaluates a form of the current namespace.
pub(crate) fn eval(vm: &mut Vm, form: &Value) -> Result<Value> {
    // Functions that it creates refer to the tree for as long as they live; a test can afford the leak.
    let top = Box::leak(Box::new(analyze_top(vm, form)?));
    let mut walk = Walk {
        vm,
        locals: vec![Value::Nil; top.locals as usize],
        closure: None,
    };
    walk.value(&top.body)
}

/// A call under evaluation.
struct Walk<'a> {
    vm: &'a mut Vm,
    locals: Vec<Value>,
    closure: Option<&'a NativeClosure>,
}

/// The result of an expression.
enum Step {
    Value(Value),
    /// The innermost loop or function restarts; its locals are set.
    Again,
}

/// The tree of a function, stored as the first captured value of its closure.
struct Code(&'static FnNode);

/// A captured function of a `letfn`, which may not exist yet.
type Later = Rc<RefCell<Value>>;

impl Walk<'_> {
    fn value(&mut self, node: &'static Node) -> Result<Value> {
        match self.step(node)? {
            Step::Value(value) => Ok(value),
            Step::Again => unreachable!("analysis lets recur stand in tail position only"),
        }
    }

    fn values(&mut self, nodes: &'static [Node]) -> Result<Vec<Value>> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    fn step(&mut self, node: &'static Node) -> Result<Step> {
        self.vm.check_native_stack()?;
        match &node.kind {
            Kind::If {
                test,
                then,
                otherwise,
            } => {
                let branch = if self.value(test)?.is_truthy() {
                    then
                } else {
                    otherwise
                };
                self.step(branch)
            }
            Kind::And(parts) => self.until(parts, false),
            Kind::Or(parts) => self.until(parts, true),
            Kind::Do(parts) => {
                let (last, before) = parts.split_last().expect("a body has a form");
                self.values(before)?;
                self.step(last)
            }
            Kind::Let { bindings, body } => {
                self.bind(bindings)?;
                self.step(body)
            }
            Kind::Loop { bindings, body } => {
                self.bind(bindings)?;
                self.repeat(body).map(Step::Value)
            }
            Kind::Recur { targets, args } => {
                let values = self.values(args)?;
                for (target, value) in targets.iter().zip(values) {
                    self.locals[*target as usize] = value;
                }
                self.vm.charge(1)?;
                Ok(Step::Again)
            }
            Kind::Case {
                value,
                table,
                branches,
                default,
            } => {
                let value = self.value(value)?;
                let found = self.vm.lookup(table, &value)?;
                match found.and_then(|found| found.as_int()) {
                    Some(idx) if idx > 0 => self.step(&branches[idx as usize - 1]),
                    _ => self.step(default),
                }
            }
            _ => self.plain(node).map(Step::Value),
        }
    }

    /// Evaluates an expression that cannot end in a `recur`.
    fn plain(&mut self, node: &'static Node) -> Result<Value> {
        match &node.kind {
            Kind::Const(value) => Ok(value.clone()),
            Kind::Ref(place) => Ok(self.place(place)),
            Kind::Global(var) => self.vm.var_value(var),
            Kind::Fn(function) => {
                let meta = function.meta.as_ref().map(|meta| self.value(meta));
                let closure = self.closure(function);
                match meta.transpose()? {
                    Some(meta) => Ok(closure.with_meta(meta).unwrap_or(closure)),
                    None => Ok(closure),
                }
            }
            Kind::LetFn { functions, body } => {
                let nothing = || Rc::new(RefCell::new(Value::Nil));
                let cells: Vec<Later> = functions.iter().map(|_| nothing()).collect();
                for ((id, _), cell) in functions.iter().zip(&cells) {
                    let later = Object::State(Box::new(cell.clone()));
                    self.locals[*id as usize] = Value::from(later);
                }
                for ((_, function), cell) in functions.iter().zip(&cells) {
                    cell.replace(self.closure(function));
                }
                self.value(body)
            }
            Kind::Call { function, args } => {
                let function = self.value(function)?;
                let mut args = self.values(args)?;
                self.vm.invoke(&function, &mut args)
            }
            Kind::Native { native, args } => {
                let mut args = self.values(args)?;
                self.vm.invoke(&Value::Native(native), &mut args)
            }
            Kind::Inline { operation, args } => self.inline(*operation, args),
            Kind::Keyword { key, coll } => {
                let coll = self.value(coll)?;
                self.vm.invoke(&Value::Keyword(*key), &mut [coll])
            }
            Kind::Define { var, value, meta } => {
                if let Some(value) = value {
                    let value = self.value(value)?;
                    var.set_root(value);
                }
                if let Some(meta) = meta {
                    let meta = self.value(meta)?;
                    var.set_meta(meta);
                }
                Ok(Value::Var(var.clone()))
            }
            Kind::Vector(items) => Ok(Value::vector(self.values(items)?)),
            Kind::Map(items) => self.collect("hash-map", items),
            Kind::Set(items) => self.collect("hash-set", items),
            Kind::Throw(value) => {
                let value = self.value(value)?;
                Err(Vm::thrown(value))
            }
            Kind::Try(parts) => self.guarded(parts),
            Kind::WithMeta { value, meta } => {
                let value = self.value(value)?;
                let meta = self.value(meta)?;
                Ok(value.with_meta(meta).unwrap_or(value))
            }
            Kind::If { .. }
            | Kind::And(_)
            | Kind::Or(_)
            | Kind::Do(_)
            | Kind::Let { .. }
            | Kind::Loop { .. }
            | Kind::Recur { .. }
            | Kind::Case { .. } => unreachable!("`step` does these"),
        }
    }

    /// Evaluates parts until one is truthy, or is not.
    fn until(&mut self, parts: &'static [Node], truthy: bool) -> Result<Step> {
        let (last, before) = parts.split_last().expect("there are alternatives");
        for part in before {
            let value = self.value(part)?;
            if value.is_truthy() == truthy {
                return Ok(Step::Value(value));
            }
        }
        self.step(last)
    }

    fn bind(&mut self, bindings: &'static [(LocalId, Node)]) -> Result<()> {
        for (id, node) in bindings {
            self.locals[*id as usize] = self.value(node)?;
        }
        Ok(())
    }

    fn repeat(&mut self, body: &'static Node) -> Result<Value> {
        loop {
            if let Step::Value(value) = self.step(body)? {
                return Ok(value);
            }
        }
    }

    fn place(&self, place: &Use) -> Value {
        let value = match place.place {
            Ref::Local(id) => self.locals[id as usize].clone(),
            Ref::Captured(idx) => self.running().captured[usize::from(idx) + 1].clone(),
            Ref::Myself => copy(self.running()),
        };
        match &value {
            Value::Object(object) => match &**object {
                Object::State(state) => match state.downcast_ref::<Later>() {
                    Some(later) => later.borrow().clone(),
                    None => value,
                },
                _ => value,
            },
            _ => value,
        }
    }

    fn running(&self) -> &NativeClosure {
        self.closure.expect("only functions capture")
    }

    fn closure(&mut self, function: &'static FnNode) -> Value {
        let code = Value::from(Object::State(Box::new(Code(function))));
        // Not through `place`: a function that does not exist yet is captured as its future cell.
        let captures = function.captures.iter().map(|capture| match capture.place {
            Ref::Local(id) => self.locals[id as usize].clone(),
            Ref::Captured(idx) => self.running().captured[usize::from(idx) + 1].clone(),
            Ref::Myself => copy(self.running()),
        });
        let captured = std::iter::once(code).chain(captures).collect();
        Value::from(Object::Function(NativeClosure {
            name: function.name.to_string().into(),
            arity: Arity::at_least(0),
            captured,
            run,
            meta: Value::Nil,
        }))
    }

    /// Calls a core function for which the machine has an instruction like any other function.
    fn inline(&mut self, operation: Inline, args: &'static [Node]) -> Result<Value> {
        let mut args = self.values(args)?;
        let var = self.vm.world().core.lookup(Symbol::new(operation.name()));
        let function = var.and_then(|var| var.root()).unwrap_or(Value::Nil);
        self.vm.invoke(&function, &mut args)
    }

    fn collect(&mut self, function: &str, items: &'static [Node]) -> Result<Value> {
        let mut items = self.values(items)?;
        let name = if function == "hash-map" && items.len() <= 16 {
            "array-map"
        } else {
            function
        };
        let var = self.vm.world().core.lookup(Symbol::new(name));
        let function = var.and_then(|var| var.root()).unwrap_or(Value::Nil);
        self.vm.invoke(&function, &mut items)
    }

    fn guarded(&mut self, parts: &'static TryNode) -> Result<Value> {
        let result = self.value(&parts.body);
        let result = match result {
            Err(Signal::Throw(exception)) => self.caught(parts, Value::Exception(exception)),
            other => other,
        };
        if let Some(finally) = &parts.finally {
            self.value(finally)?;
        }
        result
    }

    fn caught(&mut self, parts: &'static TryNode, exception: Value) -> Result<Value> {
        for (class, local, body) in &parts.catches {
            let holds = class
                .as_ref()
                .is_none_or(|class| Vm::is_class(&exception, class));
            if holds {
                self.locals[*local as usize] = exception;
                return self.value(body);
            }
        }
        Err(Vm::thrown(exception))
    }
}

/// Runs a closure of this evaluator.
fn run(vm: &mut Vm, closure: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let function = match &closure.captured[0] {
        Value::Object(object) => match &**object {
            Object::State(state) => state.downcast_ref::<Code>(),
            _ => None,
        },
        _ => None,
    };
    let Code(function) = function.expect("its code comes first");
    let count = args.len();
    let fits = |arm: &&Arm| arm.rest.is_none() && arm.params.len() == count;
    let variadic = |arm: &&Arm| arm.rest.is_some() && arm.params.len() <= count;
    let arms = &function.arities;
    let Some(arm) = arms.iter().find(fits).or(arms.iter().find(variadic)) else {
        let message = format!("wrong number of arguments ({count})");
        return Err(Exception::new(Class::ARITY, "E0305", message).into());
    };
    let mut locals = vec![Value::Nil; arm.locals as usize];
    for (idx, param) in arm.params.iter().enumerate() {
        locals[*param as usize] = args.take(idx);
    }
    if let Some(rest) = arm.rest {
        let more: Vec<Value> = (arm.params.len()..count)
            .map(|idx| args.take(idx))
            .collect();
        if !more.is_empty() {
            locals[rest as usize] = Value::list(more);
        }
    }
    let mut walk = Walk {
        vm,
        locals,
        closure: Some(closure),
    };
    walk.repeat(&arm.body)
}

fn copy(closure: &NativeClosure) -> Value {
    Value::from(Object::Function(NativeClosure {
        name: closure.name.clone(),
        arity: closure.arity,
        captured: closure.captured.clone(),
        run: closure.run,
        meta: closure.meta.clone(),
    }))
}
