//! Names in scope while a function is analysed.

use std::rc::Rc;

use super::node::{LocalId, Ref, Use};
use crate::value::Symbol;

/// The function under analysis, and the enclosing ones.
#[derive(Default)]
pub(super) struct Scopes {
    functions: Vec<FnScope>,
    /// Locals that represent mutable fields: the function and the local, and the name of the object.
    fields: Vec<(usize, LocalId, Symbol)>,
}

/// The scope of one function.
#[derive(Default)]
struct FnScope {
    /// The function's own name.
    myself: Option<Symbol>,
    /// The locals, innermost last.
    locals: Vec<(Symbol, LocalId)>,
    next: LocalId,
    /// The captured values, as references in the enclosing function.
    captures: Vec<Ref>,
    loops: Vec<Loop>,
}

/// The target of a `recur`.
#[derive(Clone)]
pub(super) enum Loop {
    /// To a loop or function with these locals.
    Target(Rc<[LocalId]>),
    /// No target: a `try` or similar form is in between.
    Barrier(&'static str),
}

impl Scopes {
    /// Begins a function.
    pub(super) fn enter_function(&mut self, myself: Option<Symbol>) {
        self.functions.push(FnScope {
            myself,
            ..FnScope::default()
        });
    }

    /// Begins another arity of the function; captures are kept.
    pub(super) fn enter_arity(&mut self) {
        let scope = self.top();
        scope.locals.clear();
        scope.loops.clear();
        scope.next = 0;
    }

    /// Ends a function; returns its captures as uses in the enclosing function.
    pub(super) fn leave_function(&mut self) -> Vec<Use> {
        let scope = self
            .functions
            .pop()
            .expect("a function that was entered is left");
        scope.captures.into_iter().map(Use::new).collect()
    }

    fn top(&mut self) -> &mut FnScope {
        self.functions
            .last_mut()
            .expect("analysis is always inside a function")
    }

    /// Defines a local.
    pub(super) fn define(&mut self, name: Symbol) -> LocalId {
        let scope = self.top();
        let id = scope.next;
        scope.next += 1;
        scope.locals.push((name, id));
        id
    }

    /// Returns the number of locals that the current arity has defined so far.
    pub(super) fn local_count(&mut self) -> u32 {
        self.top().next
    }

    /// Returns a mark for [`Scopes::forget`].
    pub(super) fn mark(&mut self) -> usize {
        self.top().locals.len()
    }

    /// Ends the scope of the locals defined since `mark`.
    pub(super) fn forget(&mut self, mark: usize) {
        self.top().locals.truncate(mark);
    }

    pub(super) fn push_loop(&mut self, target: Loop) {
        self.top().loops.push(target);
    }

    pub(super) fn pop_loop(&mut self) {
        self.top().loops.pop();
    }

    /// Returns the target of a `recur` at this point.
    pub(super) fn current_loop(&mut self) -> Option<Loop> {
        self.top().loops.last().cloned()
    }

    /// Tells whether a name is a local of this or an enclosing function.
    pub(super) fn is_local(&self, name: Symbol) -> bool {
        self.functions.iter().any(|scope| {
            scope.myself == Some(name) || scope.locals.iter().any(|local| local.0 == name)
        })
    }

    /// Finds a local, capturing it in the functions in between.
    pub(super) fn find(&mut self, name: Symbol) -> Option<Ref> {
        let innermost = self.functions.len().checked_sub(1)?;
        self.find_in(innermost, name)
    }

    fn find_in(&mut self, depth: usize, name: Symbol) -> Option<Ref> {
        let scope = &self.functions[depth];
        if let Some(local) = scope.locals.iter().rev().find(|local| local.0 == name) {
            return Some(Ref::Local(local.1));
        }
        if scope.myself == Some(name) {
            return Some(Ref::Myself);
        }
        let outer = self.find_in(depth.checked_sub(1)?, name)?;
        let scope = &mut self.functions[depth];
        let at = scope
            .captures
            .iter()
            .position(|capture| *capture == outer)
            .unwrap_or_else(|| {
                scope.captures.push(outer);
                scope.captures.len() - 1
            });
        Some(Ref::Captured(u16::try_from(at).unwrap_or(u16::MAX)))
    }

    /// Marks locals as fields of an object; returns a mark for [`Scopes::forget_fields`].
    pub(super) fn mark_fields(&mut self, names: &[Symbol], this: Symbol) -> usize {
        let before = self.fields.len();
        for name in names {
            if let Some((depth, Some(local))) = self.place_of(*name) {
                self.fields.push((depth, local, this));
            }
        }
        before
    }

    /// Ends the scope begun by [`Scopes::mark_fields`].
    pub(super) fn forget_fields(&mut self, before: usize) {
        self.fields.truncate(before);
    }

    /// Returns the name of the object that owns the field of a name.
    pub(super) fn field_owner(&self, name: Symbol) -> Option<Symbol> {
        if self.fields.is_empty() {
            return None;
        }
        let (depth, local) = self.place_of(name)?;
        let local = local?;
        let field = self.fields.iter().rev();
        let mut field = field.filter(|field| field.0 == depth && field.1 == local);
        field.next().map(|field| field.2)
    }

    /// Returns the function that defines a name, with the local's id, or `None` for the function's own name.
    fn place_of(&self, name: Symbol) -> Option<(usize, Option<LocalId>)> {
        self.functions
            .iter()
            .enumerate()
            .rev()
            .find_map(|(depth, scope)| {
                let local = scope.locals.iter().rev().find(|local| local.0 == name);
                match local {
                    Some(local) => Some((depth, Some(local.1))),
                    None => (scope.myself == Some(name)).then_some((depth, None)),
                }
            })
    }

    /// Returns the names in scope, for suggestions and `&env`.
    pub(super) fn names(&self) -> Vec<Symbol> {
        let mut names: Vec<Symbol> = Vec::new();
        for scope in &self.functions {
            names.extend(scope.locals.iter().map(|local| local.0));
            names.extend(scope.myself);
        }
        names
    }
}
