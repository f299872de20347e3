//! The less common kinds of values, and mutable cells.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use super::cycles::let_go;
use super::drops::discard_value;
use super::{Array, Class, Keyword, Namespace, NativeClosure, PMap, Symbol, Thunk, Value};

/// A mutable cell with watches and a validator. It must not be borrowed while user code runs.
#[derive(Debug)]
pub struct Atom {
    /// The current value.
    pub value: RefCell<Value>,
    /// A map, or nil.
    pub meta: RefCell<Value>,
    /// A function, or nil.
    pub validator: RefCell<Value>,
    /// The watches: each key maps to a function of key, atom, old and new value.
    pub watches: RefCell<PMap>,
    /// Whether the library created it: all evaluations of the session share it.
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
    /// The state of the computation.
    pub state: RefCell<DelayState>,
}

/// The state of a [`Delay`].
pub enum DelayState {
    /// Not begun.
    Pending(Thunk),
    /// Under way.
    Running,
    /// The computation returned this value.
    Done(Value),
    /// The computation threw this exception.
    Failed(Rc<super::Exception>),
}

/// A promise or a future, stored in [`Object::State`].
pub struct Promise {
    /// Whether it is a future.
    pub is_future: bool,
    /// The delivered outcome; `None` before the delivery.
    pub outcome: RefCell<Option<super::Result<Value, Rc<super::Exception>>>>,
}

impl Promise {
    /// Returns the promise or future, if the value is one.
    pub(crate) fn of(value: &Value) -> Option<&Promise> {
        match value {
            Value::Object(object) => match &**object {
                Object::State(state) => state.downcast_ref::<Promise>(),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn visit_values(&self, see: &mut dyn FnMut(&Value)) {
        if let Ok(Some(Ok(value))) = self.outcome.try_borrow().as_deref() {
            see(value);
        }
    }

    /// Takes the value out of the delay.
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
    /// The name of the type with its namespace: `my.ns/Point`.
    pub name: Symbol,
    /// The declared fields in order.
    pub fields: Box<[Keyword]>,
    /// The fields that its methods may set.
    pub mutable: Box<[Keyword]>,
    /// Its methods by name, including those of protocols.
    pub methods: std::cell::RefCell<PMap>,
    /// The classes and protocols that it declares to implement.
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

    /// Returns the kind of collection that an instance is printed as, from the classes that the type implements.
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

/// The kinds of collections that objects of a program's types are printed as.
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
    /// The type of the record.
    pub record_type: Rc<RecordType>,
    /// The declared fields, followed by any others.
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

/// An object with fields and methods that is not a map.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The type of the instance.
    pub instance_type: Rc<RecordType>,
    /// The fields' values, by keyword.
    pub fields: PMap,
    /// Its own methods, by the qualified symbol of the protocol's function.
    pub methods: PMap,
    /// The names of the protocols that it implements inline.
    pub protocols: super::PSet,
    /// A map, or nil.
    pub meta: Value,
}

/// The less common values. Regexes are equal only to themselves: see `equality`.
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
    /// A form with an unknown tag.
    Tagged { tag: Symbol, form: Value },
    /// A reader conditional that was read with `:preserve`: `#?(...)`, or `#?@(...)`.
    Conditional { form: Value, splicing: bool },
    /// The result of `volatile!`.
    Volatile(RefCell<Value>),
    /// The result of `delay`.
    Delay(Delay),
    /// A namespace.
    Namespace(Rc<Namespace>),
    /// The result of `reduced`.
    Reduced(Value),
    /// A collection under construction; `None` once it is persistent again.
    Transient(RefCell<Option<Value>>),
    /// Immutable bytes, which steps take and return.
    Bytes(Box<[u8]>),
    /// A value of a host class.
    HostObject(Box<dyn super::HostObject>),
    /// A mutable array.
    Array(Array),
    /// The name of a class.
    Class(Class),
    /// A type defined by `defrecord` or `deftype`.
    RecordType(Rc<RecordType>),
    /// A stop while a `finally` runs; programs cannot see it.
    Stop(super::Stop),
    /// An object stored by a crate above; its name describes it.
    Host {
        kind: &'static str,
        id: u64,
        data: Value,
    },
    /// A first-in first-out queue: items to take next, and items added later.
    Queue {
        items: super::PVec,
        taken: usize,
        meta: Value,
    },
    /// A function created by a native.
    Function(NativeClosure),
    /// State that a native closure keeps between calls. It must not be borrowed while user code runs.
    State(Box<dyn std::any::Any>),
    /// The result of `deftype` constructors and of `reify`.
    Instance(Instance),
    /// The marker of an unbound var, with the var's name if it is known.
    Unbound(Cell<Option<Symbol>>),
}

impl Object {
    /// Returns the kind of this object with its article.
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
