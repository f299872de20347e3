//! Operations of the API: a route, and what the API's document says about it. Both are declared in one place.

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{MethodFilter, on};
use flowstone_engine::token::Scope;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::server::Shared;
use crate::json::Values;

/// A parameter of an address, or a member of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param {
    pub name: &'static str,
    pub kind: Kind,
    /// A request without it is refused.
    pub is_needed: bool,
    /// A sentence about it.
    pub doc: &'static str,
}

/// What a parameter or a member can be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Any,
    /// Text such as `30s`.
    Duration,
    Flag,
    List,
    /// Text, or a whole number that stands for its digits.
    Name,
    Number,
    Object,
    /// An object with these members.
    Inner(&'static [Param]),
    /// A list of objects with these members.
    Entries(&'static [Param]),
    OneOf(&'static [&'static str]),
    Text,
    Texts,
}

impl Param {
    pub(super) const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Param {
        Param {
            name,
            kind,
            is_needed: false,
            doc,
        }
    }

    pub(super) const fn text(name: &'static str, doc: &'static str) -> Param {
        Param::new(name, Kind::Text, doc)
    }

    pub(super) const fn flag(name: &'static str, doc: &'static str) -> Param {
        Param::new(name, Kind::Flag, doc)
    }

    pub(super) const fn number(name: &'static str, doc: &'static str) -> Param {
        Param::new(name, Kind::Number, doc)
    }

    pub(super) const fn needed(self) -> Param {
        Param {
            is_needed: true,
            ..self
        }
    }
}

/// The parameters of a list that has pages.
pub(super) const LIMIT: Param = Param::number("limit", "Maximum number of items, from 1 to 500.");
pub(super) const VALUES: Param = Param::new(
    "values",
    Kind::OneOf(Values::NAMES),
    "How values of flows are written: `json`, or `edn` for strings of EDN; `json` if it is left out.",
);
pub(super) const GIVEN: Param = Param::new(
    "values",
    Kind::OneOf(Values::NAMES),
    "How values of flows are written in this body: `json`, or `edn` for strings of EDN, which lose nothing; `json` if it is left out.",
);
pub(super) const CURSOR: Param = Param::text("cursor", "`next` of the page before.");

/// Returns the names of parameters: a request may have no others.
pub(super) fn names(params: &[Param]) -> Vec<&'static str> {
    params.iter().map(|param| param.name).collect()
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload {
    Nothing,
    /// A JSON object.
    Members(&'static [Param]),
    /// Any bytes, or a form with the part `file`.
    File,
}

/// A type whose schema is part of the document.
#[derive(Clone, Copy)]
pub(super) struct Type {
    pub name: fn() -> std::borrow::Cow<'static, str>,
    pub schema: fn() -> RefOr<Schema>,
    /// Adds the types that it consists of.
    pub parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

/// The shape of an answer.
#[derive(Clone)]
pub(super) enum Shape {
    /// Nothing is known of it.
    Any,
    Text,
    Flag,
    Number,
    Of(Type),
    /// An object with the members of all these types, under a name of its own.
    All(&'static str, Vec<Type>),
    ListOf(Box<Shape>),
    /// Null, or this.
    Maybe(Box<Shape>),
    Members(Vec<(&'static str, Shape)>),
    /// An object with some of these members.
    Some(Vec<(&'static str, Shape)>),
    /// An object with these members, and others.
    Open(Vec<(&'static str, Shape)>),
    /// An object whose members have names of the user.
    Map(Box<Shape>),
    OneOf(Vec<Shape>),
}

/// Returns a type of the API.
pub(super) fn type_of<T: ToSchema>() -> Type {
    Type {
        name: T::name,
        schema: T::schema,
        parts: T::schemas,
    }
}

/// The shape of a type of the API.
pub(super) fn of<T: ToSchema>() -> Shape {
    Shape::Of(type_of::<T>())
}

/// The shape of an object with a list under a name.
pub(super) fn list<T: ToSchema>(name: &'static str) -> Shape {
    Shape::Members(vec![(name, Shape::ListOf(Box::new(of::<T>())))])
}

/// The shape of a page: a list under a name, and the cursor of the next page.
pub(super) fn page_of(name: &'static str, item: Shape) -> Shape {
    Shape::Members(vec![
        (name, Shape::ListOf(Box::new(item))),
        ("next", Shape::Maybe(Box::new(Shape::Text))),
    ])
}

/// As [`page_of`], for a type of the API.
pub(super) fn page<T: ToSchema>(name: &'static str) -> Shape {
    page_of(name, of::<T>())
}

/// What an answer consists of.
#[derive(Clone)]
pub(super) enum Content {
    Nothing,
    Json(Shape),
    /// Bytes of some media type.
    Bytes(&'static str),
}

/// An answer without an error.
#[derive(Clone)]
pub(super) struct Reply {
    pub status: StatusCode,
    pub doc: &'static str,
    pub content: Content,
}

/// The method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Delete,
    Get,
    Post,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verb::Delete => "delete",
            Verb::Get => "get",
            Verb::Post => "post",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Verb::Delete => MethodFilter::DELETE,
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
        }
    }
}

/// What the document says about a route.
#[derive(Clone)]
pub(super) struct Operation {
    pub verb: Verb,
    pub path: &'static str,
    /// A name for generated clients.
    pub id: &'static str,
    /// A sentence about what it does.
    pub doc: &'static str,
    /// The right that a token needs; nothing if any token will do.
    pub scope: Option<Scope>,
    pub query: &'static [Param],
    pub headers: &'static [Param],
    pub payload: Payload,
    pub replies: Vec<Reply>,
    /// Statuses of errors beside those of all operations.
    pub refusals: &'static [u16],
}

impl Operation {
    fn new(verb: Verb, path: &'static str, id: &'static str, doc: &'static str) -> Operation {
        Operation {
            verb,
            path,
            id,
            doc,
            scope: None,
            query: &[],
            headers: &[],
            payload: Payload::Nothing,
            replies: Vec::new(),
            refusals: &[],
        }
    }

    pub(super) fn get(path: &'static str, id: &'static str, doc: &'static str) -> Operation {
        Operation::new(Verb::Get, path, id, doc)
    }

    pub(super) fn post(path: &'static str, id: &'static str, doc: &'static str) -> Operation {
        Operation::new(Verb::Post, path, id, doc).members(&[])
    }

    pub(super) fn delete(path: &'static str, id: &'static str, doc: &'static str) -> Operation {
        Operation::new(Verb::Delete, path, id, doc)
    }

    pub(super) fn scope(self, scope: Scope) -> Operation {
        Operation {
            scope: Some(scope),
            ..self
        }
    }

    pub(super) fn query(self, query: &'static [Param]) -> Operation {
        Operation { query, ..self }
    }

    pub(super) fn headers(self, headers: &'static [Param]) -> Operation {
        Operation { headers, ..self }
    }

    /// Takes a JSON object with these members.
    pub(super) fn members(self, members: &'static [Param]) -> Operation {
        Operation {
            payload: Payload::Members(members),
            ..self
        }
    }

    pub(super) fn file(self) -> Operation {
        Operation {
            payload: Payload::File,
            ..self
        }
    }

    /// Answers with JSON and status 200.
    pub(super) fn ok(self, shape: Shape) -> Operation {
        self.json(StatusCode::OK, "The answer.", shape)
    }

    pub(super) fn json(self, status: StatusCode, doc: &'static str, shape: Shape) -> Operation {
        self.reply(status, doc, Content::Json(shape))
    }

    pub(super) fn reply(
        mut self,
        status: StatusCode,
        doc: &'static str,
        content: Content,
    ) -> Operation {
        self.replies.push(Reply {
            status,
            doc,
            content,
        });
        self
    }

    /// Refuses with these statuses, too.
    pub(super) fn refuses(self, refusals: &'static [u16]) -> Operation {
        Operation { refusals, ..self }
    }
}

/// The operations of a noun.
#[derive(Default)]
pub(super) struct Operations {
    pub router: Router<Shared>,
    pub all: Vec<Operation>,
}

impl Operations {
    /// Adds an operation with what performs it.
    pub(super) fn with<H, T>(mut self, operation: Operation, handler: H) -> Operations
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        let route = on(operation.verb.filter(), handler);
        self.router = self.router.route(operation.path, route);
        self.all.push(operation);
        self
    }

    /// Adds the operations of another noun.
    pub(super) fn and(mut self, other: Operations) -> Operations {
        self.router = self.router.merge(other.router);
        self.all.extend(other.all);
        self
    }
}
