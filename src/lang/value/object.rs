//! The rarer kinds of value, and the mutable cells.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use super::cycles::let_go;
use super::drops::discard_value;
use super::{Array, Class, Keyword, Namespace, NativeClosure, PMap, Symbol, Thunk, Value};

/// A mutable cell with watches and a validator. No borrow of it may be alive while user code runs.
#[derive(Debug)]
pub struct Atom {
    /// What it holds now.
    pub value: RefCell<Value>,
    /// A map, or nil.
    pub meta: RefCell<Value>,
    /// A function, or nil.
    pub validator: RefCell<Value>,
    /// Key to function of key, atom, old and new value.
    pub watches: RefCell<PMap>,
    /// Whether the library made it: all evaluations of the session share it.
    pub is_of_library: bool,
}

impl Atom {
    /// Returns an atom without watches.
    pub fn new(value: Value) -> Atom {
        Atom {
            value: RefCell::new(value),
            meta: RefCell::new(Value::Nil),
            validator: RefCell::new(Value::Nil),
            watches: RefCell::default(),
            is_of_library: false,
        }
    }
}

impl Drop for Atom {
    fn drop(&mut self) {
        let_go(self.value.get_mut());
        discard_value(self.value.get_mut());
    }
}

/// A computation that runs at most once.
pub struct Delay {
    /// How far it is.
    pub state: RefCell<DelayState>,
}

/// How far a [`Delay`] is.
pub enum DelayState {
    /// Not begun.
    Pending(Thunk),
    /// Under way.
    Running,
    /// Computed.
    Done(Value),
    /// Threw.
    Failed(Rc<super::Exception>),
}

/// What a promise or a future is: kept in [`Object::State`].
pub struct Promise {
    /// Whether it is a future.
    pub is_future: bool,
    /// The delivered outcome; `None` before the delivery.
    pub outcome: RefCell<Option<super::Result<Value, Rc<super::Exception>>>>,
}

impl Promise {
    /// Returns the promise or future that a value is.
    pub(crate) fn of(value: &Value) -> Option<&Promise> {
        match value {
            Value::Object(object) => match &**object {
                Object::State(state) => state.downcast_ref::<Promise>(),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn look_inside(&self, see: &mut dyn FnMut(&Value)) {
        if let Ok(Some(Ok(value))) = self.outcome.try_borrow().as_deref() {
            see(value);
        }
    }

    /// Takes the value away.
    pub(super) fn empty(&self) -> Value {
        match self.outcome.take() {
            Some(Ok(value)) => value,
            _ => Value::Nil,
        }
    }
}

/// The type of a record.
#[derive(Debug)]
pub struct RecordType {
    /// With its namespace: `my.ns/Point`.
    pub name: Symbol,
    /// The declared fields, in their order.
    pub fields: Box<[Keyword]>,
    /// Those of the fields that its methods may set.
    pub mutable: Box<[Keyword]>,
    /// Its methods by name, those of protocols too.
    pub methods: std::cell::RefCell<PMap>,
    /// The classes and protocols that it says it implements.
    pub above: std::cell::RefCell<Vec<Value>>,
    /// Whether its values are maps.
    pub is_record: bool,
}

impl RecordType {
    /// Returns a type without methods.
    pub fn new(name: Symbol, fields: Box<[Keyword]>, mutable: Box<[Keyword]>) -> RecordType {
        RecordType {
            name,
            fields,
            mutable,
            methods: std::cell::RefCell::default(),
            above: std::cell::RefCell::default(),
            is_record: false,
        }
    }

    /// Returns as what kind of collection an instance is printed, by the classes that the type implements.
    pub fn shape(&self) -> Option<Shape> {
        let above = self.above.borrow();
        if self.is_record || above.is_empty() {
            return None;
        }
        let is_any = |names: &[&str]| {
            above.iter().any(|class| match class {
                Value::Object(object) => match &**object {
                    Object::Class(class) => {
                        names.contains(&class.0.name)
                            || class
                                .supers()
                                .iter()
                                .any(|above| names.contains(&above.0.name))
                    }
                    _ => false,
                },
                _ => false,
            })
        };
        if is_any(&["ISeq"]) {
            Some(Shape::Seq)
        } else if is_any(&["IPersistentMap", "Map"]) {
            Some(Shape::Map)
        } else if is_any(&["IPersistentSet", "Set"]) {
            Some(Shape::Set)
        } else if is_any(&["IPersistentVector", "RandomAccess"]) {
            Some(Shape::Vector)
        } else if is_any(&["Sequential", "Collection"]) {
            Some(Shape::Seq)
        } else {
            None
        }
    }
}

/// The kinds of collections that objects of the program's own types are printed as.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// `{a b}`.
    Map,
    /// `(a b)`.
    Seq,
    /// `#{a b}`.
    Set,
    /// `[a b]`.
    Vector,
}

/// A map of a named type.
#[derive(Debug)]
pub struct Record {
    /// What it is a record of.
    pub record_type: Rc<RecordType>,
    /// The declared fields first, then any others.
    pub fields: PMap,
    /// A map, or nil.
    pub meta: Value,
}

impl Record {
    /// Returns the value of a field.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.fields.get(key)
    }

    pub(crate) fn with_meta(&self, meta: Value) -> Record {
        Record {
            record_type: self.record_type.clone(),
            fields: self.fields.clone(),
            meta,
        }
    }
}

/// An object with fields and methods that is no map.
#[derive(Debug, Clone)]
pub struct Instance {
    /// What it is an instance of.
    pub instance_type: Rc<RecordType>,
    /// By keyword.
    pub fields: PMap,
    /// Its own methods, by the qualified symbol of the protocol's function.
    pub methods: PMap,
    /// The names of the protocols that it implements itself.
    pub protocols: super::PSet,
    /// A map, or nil.
    pub meta: Value,
}

/// Values that are met seldom. Equal by contents for regexes' absence: see `equality`.
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum Object {
    /// A compiled pattern and its source.
    Regex {
        source: Rc<str>,
        regex: super::Regex,
    },
    /// Milliseconds since 1970-01-01T00:00Z.
    Inst(i64),
    /// A UUID, as a number.
    Uuid(u128),
    /// A form with a tag that nothing knows.
    Tagged { tag: Symbol, form: Value },
    /// A reader conditional that was kept: `#?(...)`, or `#?@(...)`.
    Conditional { form: Value, splicing: bool },
    /// What `volatile!` makes.
    Volatile(RefCell<Value>),
    /// What `delay` makes.
    Delay(Delay),
    /// A namespace.
    Namespace(Rc<Namespace>),
    /// What `reduced` makes.
    Reduced(Value),
    /// A collection under construction; `None` once it is persistent again.
    Transient(RefCell<Option<Value>>),
    /// Bytes that nobody changes: what steps give and take.
    Bytes(Box<[u8]>),
    /// A value of a host class.
    HostObject(Box<dyn super::HostObject>),
    /// Items that can be replaced.
    Array(Array),
    /// The name of a class.
    Class(Class),
    /// What `defrecord` and `deftype` define.
    RecordType(Rc<RecordType>),
    /// A stop on its way through a `finally`; no program sees it.
    Stop(super::Stop),
    /// Something that a crate above keeps here; it says what it is.
    Host {
        kind: &'static str,
        id: u64,
        data: Value,
    },
    /// A first-in first-out queue: items to take, items that came later.
    Queue {
        items: super::PVec,
        taken: usize,
        meta: Value,
    },
    /// A function that a native made.
    Function(NativeClosure),
    /// What a native closure keeps between calls. No borrow of it may be alive while user code runs.
    State(Box<dyn std::any::Any>),
    /// What `deftype` and `reify` make.
    Instance(Instance),
    /// Anything with metadata added that cannot carry its own.
    Unbound(Cell<Option<Symbol>>),
}

impl Object {
    /// Returns what it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Regex { .. } => "a regex",
            Object::Inst(_) => "an instant",
            Object::Uuid(_) => "a uuid",
            Object::Tagged { .. } => "a tagged literal",
            Object::Conditional { .. } => "a reader conditional",
            Object::Volatile(_) => "a volatile",
            Object::Delay(_) => "a delay",
            Object::Namespace(_) => "a namespace",
            Object::Reduced(_) => "a reduced value",
            Object::Transient(_) => "a transient",
            Object::Bytes(_) => "a byte array",
            Object::HostObject(object) => object.class_name(),
            Object::Array(array) => array.element.array_kind(),
            Object::Class(_) => "a class",
            Object::RecordType(_) => "a record type",
            Object::Stop(_) => "a stop",
            Object::Host { kind, .. } => kind,
            Object::Queue { .. } => "a queue",
            Object::Function(_) => "a function",
            Object::State(_) => "a state",
            Object::Instance(_) => "an object",
            Object::Unbound(_) => "an unbound var",
        }
    }

    pub(crate) fn meta(&self) -> Value {
        match self {
            Object::Queue { meta, .. } => meta.clone(),
            Object::Namespace(namespace) => namespace.meta(),
            Object::Function(function) => function.meta.clone(),
            Object::Instance(instance) => instance.meta.clone(),
            _ => Value::Nil,
        }
    }

    pub(crate) fn with_meta(&self, meta: Value) -> Option<Object> {
        match self {
            Object::Queue { items, taken, .. } => Some(Object::Queue {
                items: items.clone(),
                taken: *taken,
                meta,
            }),
            Object::Function(function) => Some(Object::Function(function.with_meta(meta))),
            Object::Instance(instance) => Some(Object::Instance(Instance {
                meta,
                ..instance.clone()
            })),
            _ => None,
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        match self {
            Object::Tagged { form: value, .. }
            | Object::Conditional { form: value, .. }
            | Object::Reduced(value)
            | Object::Host { data: value, .. } => discard_value(value),
            Object::Array(array) => array.items.get_mut().iter_mut().for_each(discard_value),
            Object::Volatile(cell) => {
                let_go(cell.get_mut());
                discard_value(cell.get_mut());
            }
            Object::Function(function) => function.captured.iter_mut().for_each(discard_value),
            Object::Transient(cell) => {
                if let Some(value) = cell.get_mut() {
                    discard_value(value);
                }
            }
            Object::Delay(delay) => match delay.state.get_mut() {
                DelayState::Done(value) => discard_value(value),
                DelayState::Pending(Thunk::Call(function)) => discard_value(function),
                DelayState::Pending(_) | DelayState::Running | DelayState::Failed(_) => {}
            },
            Object::Regex { .. }
            | Object::Inst(_)
            | Object::Uuid(_)
            | Object::Namespace(_)
            | Object::Bytes(_)
            | Object::HostObject(_)
            | Object::Class(_)
            | Object::RecordType(_)
            | Object::Stop(_)
            | Object::Queue { .. }
            | Object::Instance(_)
            | Object::State(_)
            | Object::Unbound(_) => {}
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#object[{}]", self.kind())
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(Rc::new(object))
    }
}
