//! Expansion of macro calls, for the compiler and for programs.

use std::rc::Rc;

use super::analyze::{Analyzer, items_of, proper, resolve_var, usage};
use super::{error, expansion, special};
use crate::value::{Class, Exception, List, Phase, Result, Signal, Span, Symbol, Value, Var};
use crate::vm::Vm;

/// The cost of an expansion beside the macro's own instructions: its result is read and compiled.
const EXPANSION: u32 = 100;

/// Expands a form once if it is a macro call.
pub(crate) fn expand_once(vm: &mut Vm, form: &Value) -> Result<Value> {
    let mut cx = Analyzer::at_top(vm, form);
    Ok(cx.expand(form)?.unwrap_or_else(|| form.clone()))
}

/// Expands a form once on behalf of a program, including macros of Clojure that are compiled directly here.
pub(crate) fn macroexpand_1(vm: &mut Vm, form: &Value) -> Result<Value> {
    let form = proper(vm, form.clone())?;
    if let Value::List(list) = &form
        && let Some(symbol) = list.first.as_symbol()
        && let Some(var) = resolve_var(vm, symbol)?
        && special::of_macro(&var).is_some()
        && !matches!(var.root(), None | Some(Value::Nil))
    {
        let mut cx = Analyzer::at_top(vm, &form);
        return Ok(cx.expand_macro(&form, symbol, &var)?.unwrap_or(form));
    }
    if let Value::List(list) = &form
        && let Some(call) = member_call(list)
    {
        return Ok(call);
    }
    expand_once(vm, &form)
}

/// Rewrites `(.name x ...)` to `(. x name ...)`, which code that walks forms expects.
fn member_call(list: &List) -> Option<Value> {
    let name = list
        .first
        .as_symbol()
        .filter(|name| name.namespace().is_none())?;
    let member = name.name();
    let member = member.strip_prefix('.')?;
    if member.is_empty() || member == "." {
        return None;
    }
    let args: Vec<Value> = list.iter().skip(1).cloned().collect();
    let (target, args) = args.split_first()?;
    let head = [Value::symbol("."), target.clone(), Value::symbol(member)];
    Some(List::of(
        head.into_iter()
            .chain(args.iter().cloned())
            .collect::<Vec<_>>(),
    ))
}

impl Analyzer<'_> {
    /// Expands a form once; `None` if it is not a macro call.
    pub(super) fn expand(&mut self, form: &Value) -> Result<Option<Value>> {
        let Value::List(list) = form else {
            return Ok(None);
        };
        let Some(symbol) = list.first.as_symbol() else {
            return Ok(None);
        };
        if self.is_shadowed(symbol) || self.special(symbol).is_some() {
            return Ok(None);
        }
        if let Some(expanded) = sugar(symbol, form, list) {
            return Ok(Some(expanded));
        }
        if self.vm.world().is_method(symbol)
            || self.is_unknown_method(symbol)?
            || self.is_library_method(symbol)?
        {
            let name = Value::list([Value::symbol("quote"), Value::Symbol(symbol)]);
            let call = List::cons(
                Value::symbol("clojure.core/invoke-method"),
                List::cons(name, list.rest.clone()),
            );
            return Ok(Some(keep_place(call, form)));
        }
        let Some(var) = self.var(symbol)? else {
            return Ok(None);
        };
        if !var.is_macro.get() {
            return Ok(None);
        }
        if special::of_macro(&var).is_some() {
            // Compiled directly, whatever name the namespace uses for it.
            let direct = List::cons(Value::Symbol(var.qualified()), list.rest.clone());
            return Ok(Some(match &direct {
                Value::List(direct) => Value::List(Rc::new(direct.with_extra(list.extra.clone()))),
                _ => direct,
            }));
        }
        self.expand_macro(form, symbol, &var)
    }

    /// Tells whether a symbol in head position refers to a local. Special forms cannot be shadowed, macros can.
    pub(super) fn is_shadowed(&self, symbol: Symbol) -> bool {
        const FIXED: &[&str] = &[
            "def", "do", "fn*", "if", "let*", "loop*", "new", "quote", "recur", "set!", "throw",
            "try", "var",
        ];
        self.scopes.is_local(symbol) && !FIXED.iter().any(|fixed| symbol.is(fixed))
    }

    /// Tells whether a symbol is a method that no type defines so far, in a program that reports this only when the
    /// method is called.
    fn is_unknown_method(&mut self, symbol: Symbol) -> Result<bool> {
        let is_method = symbol.namespace().is_none()
            && symbol.name().starts_with('.')
            && symbol.name().len() > 1
            && !symbol.is("..");
        Ok(is_method && self.vm.world().defers_host_names() && self.var(symbol)?.is_none())
    }

    /// Tells whether a symbol is a method implemented by a function of core. It is dispatched on the object, which may
    /// be nil or have its own method.
    fn is_library_method(&mut self, symbol: Symbol) -> Result<bool> {
        let name = symbol.name();
        let is_method = symbol.namespace().is_none() && name.len() > 1 && name.starts_with('.');
        Ok(is_method
            && !symbol.is("..")
            && self.var(symbol)?.is_some_and(|var| !var.is_macro.get()))
    }

    /// Calls a macro with a form.
    fn expand_macro(
        &mut self,
        form: &Value,
        symbol: Symbol,
        var: &Rc<Var>,
    ) -> Result<Option<Value>> {
        let Some(function) = var.root() else {
            return Ok(None);
        };
        self.vm.charge(EXPANSION)?;
        let locals = self
            .scopes
            .names()
            .into_iter()
            .map(|name| (Value::Symbol(name), Value::Bool(true)));
        let env = Value::map(locals);
        let mut args = vec![self.placed(form), env];
        args.extend(items_of(self.vm, form)?.into_iter().skip(1));
        let place = form.span().or(self.place);
        let takes = match &function {
            Value::Native(native) => native.arity.takes(args.len()),
            Value::Fn(closure) => closure.proto.body(args.len()).is_some(),
            _ => true,
        };
        if !takes {
            return Err(refused_call(var, &function, args.len() - 2, place).into());
        }
        let is_library = matches!(function, Value::Native(_)) || is_of_library(var);
        let outer = self.vm.set_expands_library(is_library);
        let expanded = self.vm.invoke(&function, &mut args);
        self.vm.set_expands_library(outer);
        match expanded {
            Ok(expanded) => {
                if is_library {
                    return Ok(Some(keep_place(expanded, form)));
                }
                expansion::mark(self.vm, &expanded, place, symbol).map(Some)
            }
            Err(Signal::Throw(exception)) => Err(at_macro(exception, symbol, place)),
            Err(stop) => Err(stop),
        }
    }

    /// Gives a form made by a macro the place of its surroundings: `&form` tells where the user wrote it.
    fn placed(&self, form: &Value) -> Value {
        match form {
            Value::List(list) if form.span() == Span::NONE && self.place.is_some() => {
                with_place(list, self.place)
            }
            form => form.clone(),
        }
    }
}

/// Gives an expanded list without a place the place of the call.
fn keep_place(expanded: Value, form: &Value) -> Value {
    match (&expanded, form.place()) {
        (Value::List(list), Some(place)) if expanded.span() == Span::NONE && !list.is_empty() => {
            with_place(list, place.span)
        }
        _ => expanded,
    }
}

fn with_place(list: &crate::value::List, span: Span) -> Value {
    let meta = list
        .extra
        .as_ref()
        .map_or(Value::Nil, |extra| extra.meta.clone());
    let place = crate::value::Place {
        span,
        items: Box::default(),
    };
    let extra = Some(Rc::new(crate::value::Extras {
        meta,
        place: Some(place),
    }));
    Value::List(Rc::new(list.with_extra(extra)))
}

/// Returns an exception thrown by a macro, with the place of its call if it had none in the user's text.
fn at_macro(exception: Rc<Exception>, symbol: Symbol, place: Span) -> Signal {
    let is_refusal = exception.class == Class::COMPILER_EXCEPTION;
    {
        let mut origin = exception.origin.borrow_mut();
        origin.phase.get_or_insert(Phase::MacroSyntax);
        if is_refusal || !place.is_some() {
            if place.is_some() {
                origin.span.get_or_insert(place);
            }
            return Signal::Throw(exception.clone());
        }
        origin.expanding.push((symbol.to_string().into(), place));
    }
    Signal::Throw(exception)
}

/// Returns the error for a macro call with a wrong number of forms.
fn refused_call(var: &Var, function: &Value, count: usize, place: Span) -> Exception {
    let forms = if count == 1 { "form" } else { "forms" };
    let mut refused = error(
        "E0206",
        place,
        format!("the macro `{}` does not take {count} {forms}", var.name),
    );
    let native = match function {
        Value::Native(native) => Some(native.usage),
        _ => None,
    };
    let usage = native
        .filter(|usage| !usage.is_empty())
        .map(|usage| {
            format!(
                "it is called as {}",
                usage.lines().collect::<Vec<_>>().join(" or ")
            )
        })
        .or_else(|| usage(var));
    refused.hints.extend(usage);
    refused.origin.get_mut().phase = Some(Phase::MacroSyntax);
    refused
}

/// Expands `(.name x ...)` and `(Class. ...)`, which are calls of functions of those names.
fn sugar(symbol: Symbol, form: &Value, list: &List) -> Option<Value> {
    let name = symbol.name();
    if let Some(field) = name.strip_prefix(".-")
        && !field.is_empty()
        && let Some(target) = list.iter().nth(1)
    {
        let call = List::of([
            Value::symbol("clojure.core/field-of"),
            target.clone(),
            Value::keyword(field),
        ]);
        return Some(keep_place(call, form));
    }
    if let Some(class) = name.strip_suffix('.')
        && !class.is_empty()
        && class != "."
    {
        let class = Symbol::with_namespace(symbol.namespace().as_deref(), class);
        let call = List::cons(
            Value::symbol("new"),
            List::cons(Value::Symbol(class), list.rest.clone()),
        );
        return Some(keep_place(call, form));
    }
    None
}

/// Tells whether a var is defined by the library.
fn is_of_library(var: &Var) -> bool {
    crate::library::defines(&var.namespace.to_string(), &var.name.to_string())
}
