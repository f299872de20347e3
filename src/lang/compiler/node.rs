//! The tree between analysis and emission: names are resolved and macros expanded.

use std::cell::Cell;
use std::rc::Rc;

use super::inline::Inline;
use crate::value::{Keyword, Native, Span, Value, Var};

/// A local of one function, numbered in order of definition.
pub(super) type LocalId = u32;

/// The location of a name's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ref {
    Local(LocalId),
    /// A captured value of the running closure, by position.
    Captured(u16),
    /// The running closure.
    Myself,
}

/// One expression.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub span: Span,
}

/// A use of a name; `is_last` is set by `liveness`.
#[derive(Debug)]
pub(super) struct Use {
    pub place: Ref,
    pub is_last: Cell<bool>,
}

impl Use {
    pub(super) fn new(place: Ref) -> Use {
        Use {
            place,
            is_last: Cell::new(false),
        }
    }
}

/// The kind of an expression.
#[derive(Debug)]
pub(super) enum Kind {
    Const(Value),
    Ref(Use),
    Global(Rc<Var>),
    If {
        test: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Do(Vec<Node>),
    Let {
        bindings: Vec<(LocalId, Node)>,
        body: Box<Node>,
    },
    Loop {
        bindings: Vec<(LocalId, Node)>,
        body: Box<Node>,
    },
    Recur {
        targets: Rc<[LocalId]>,
        args: Vec<Node>,
    },
    Fn(Box<FnNode>),
    LetFn {
        functions: Vec<(LocalId, FnNode)>,
        body: Box<Node>,
    },
    Call {
        function: Box<Node>,
        args: Vec<Node>,
    },
    Native {
        native: &'static Native,
        args: Vec<Node>,
    },
    Inline {
        operation: Inline,
        args: Vec<Node>,
    },
    Keyword {
        key: Keyword,
        coll: Box<Node>,
    },
    Define {
        var: Rc<Var>,
        value: Option<Box<Node>>,
        meta: Option<Box<Node>>,
    },
    Vector(Vec<Node>),
    /// Keys and values, alternating.
    Map(Vec<Node>),
    Set(Vec<Node>),
    Throw(Box<Node>),
    Try(Box<TryNode>),
    Case {
        value: Box<Node>,
        table: Value,
        branches: Vec<Node>,
        default: Box<Node>,
    },
    WithMeta {
        value: Box<Node>,
        meta: Box<Node>,
    },
}

/// A function with its arities.
#[derive(Debug)]
pub(super) struct FnNode {
    pub name: Rc<str>,
    pub arities: Vec<Arm>,
    /// The values that it captures from the enclosing function, in order.
    pub captures: Vec<Use>,
    /// An expression for its metadata.
    pub meta: Option<Node>,
}

/// One arity.
#[derive(Debug)]
pub(super) struct Arm {
    pub params: Vec<LocalId>,
    pub rest: Option<LocalId>,
    pub locals: u32,
    pub body: Node,
}

/// A `try`.
#[derive(Debug)]
pub(super) struct TryNode {
    pub body: Node,
    /// Class (`None`: any exception), the local that receives the exception, and the body.
    pub catches: Vec<(Option<Value>, LocalId, Node)>,
    pub finally: Option<Node>,
}

impl Node {
    pub(super) fn new(kind: Kind, span: Span) -> Node {
        Node { kind, span }
    }

    pub(super) fn constant(value: Value, span: Span) -> Node {
        Node::new(Kind::Const(value), span)
    }

    /// Calls `visit` with each direct part, in order of evaluation, excluding bodies of functions.
    pub(super) fn for_each_part<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        match &self.kind {
            Kind::Const(_) | Kind::Ref(_) | Kind::Global(_) => {}
            Kind::If {
                test,
                then,
                otherwise,
            } => [test, then, otherwise]
                .into_iter()
                .for_each(|part| visit(part)),
            Kind::And(parts) | Kind::Or(parts) | Kind::Do(parts) | Kind::Vector(parts) => {
                parts.iter().for_each(visit);
            }
            Kind::Map(parts) | Kind::Set(parts) => parts.iter().for_each(visit),
            Kind::Let { bindings, body } | Kind::Loop { bindings, body } => {
                bindings.iter().for_each(|binding| visit(&binding.1));
                visit(body);
            }
            Kind::Recur { args, .. } | Kind::Native { args, .. } | Kind::Inline { args, .. } => {
                args.iter().for_each(visit);
            }
            Kind::Fn(function) => function.meta.iter().for_each(visit),
            Kind::LetFn { body, .. } => visit(body),
            Kind::Call { function, args } => {
                visit(function);
                args.iter().for_each(visit);
            }
            Kind::Keyword { coll, .. } => visit(coll),
            Kind::Define { value, meta, .. } => {
                value.iter().chain(meta).for_each(|part| visit(part))
            }
            Kind::Throw(value) => visit(value),
            Kind::Try(parts) => {
                visit(&parts.body);
                parts.catches.iter().for_each(|catch| visit(&catch.2));
                parts.finally.iter().for_each(visit);
            }
            Kind::Case {
                value,
                branches,
                default,
                ..
            } => {
                visit(value);
                branches.iter().for_each(&mut *visit);
                visit(default);
            }
            Kind::WithMeta { value, meta } => {
                visit(value);
                visit(meta);
            }
        }
    }

    /// Calls `visit` with each use of a local in this expression, including captures of functions.
    pub(super) fn for_each_use(&self, visit: &mut dyn FnMut(LocalId)) {
        let mut captures = |function: &FnNode| {
            for capture in &function.captures {
                if let Ref::Local(id) = capture.place {
                    visit(id);
                }
            }
        };
        match &self.kind {
            Kind::Ref(Use {
                place: Ref::Local(id),
                ..
            }) => visit(*id),
            Kind::Fn(function) => captures(function),
            Kind::LetFn { functions, .. } => {
                functions.iter().for_each(|function| captures(&function.1))
            }
            _ => {}
        }
        self.for_each_part(&mut |part| part.for_each_use(visit));
    }
}
