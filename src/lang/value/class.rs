//! Host class names as tokens: for `instance?`, `catch`, `extend-type` and dispatch on `class`.
//!
//! A class is a name with a membership test: there are no methods and no reflection.

use super::{Class, ClassInfo, Element, Object, Promise, SeqView, TextReader, TextWriter, Value};

/// The name of a class token, its membership test and its superclasses.
struct Row {
    class: Class,
    /// The short names of the superclasses, nearest first.
    above: &'static [&'static str],
    holds: fn(&Value) -> bool,
}

macro_rules! rows {
    ($($package:literal $name:literal $above:expr, $holds:expr;)*) => {
        &[$(Row {
            class: Class({
                static INFO: ClassInfo = ClassInfo {
                    name: $name,
                    full_name: concat!($package, ".", $name),
                    parent: None,
                };
                &INFO
            }),
            above: &$above,
            holds: $holds,
        }),*]
    };
}

fn object(value: &Value, test: fn(&Object) -> bool) -> bool {
    matches!(value, Value::Object(object) if test(object))
}

fn is_function(value: &Value) -> bool {
    matches!(value, Value::Fn(_) | Value::Native(_))
        || object(value, |object| matches!(object, Object::Function(_)))
}

fn is_number(value: &Value) -> bool {
    matches!(
        value,
        Value::Int(_) | Value::Float(_) | Value::BigInt(_) | Value::Ratio(_) | Value::Decimal(_)
    )
}

fn is_seq(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Seq(_) | Value::Lazy(_))
}

fn is_transient(value: &Value) -> bool {
    object(value, |object| matches!(object, Object::Transient(_)))
}

fn is_queue(value: &Value) -> bool {
    object(value, |object| matches!(object, Object::Queue { .. }))
}

/// Tells whether a value is a promise or a future.
fn is_promise(value: &Value) -> bool {
    Promise::of(value).is_some()
}

fn is_map(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Record(_))
}

fn is_sorted(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.entries().sorted().is_some(),
        Value::Set(set) => set.items().sorted().is_some(),
        _ => false,
    }
}

fn is_coll(value: &Value) -> bool {
    is_map(value)
        || is_seq(value)
        || matches!(value, Value::Vector(_) | Value::Set(_))
        || is_queue(value)
}

/// Tells whether `name` is the short name of a superclass of the value's class.
fn is_kind_below(value: &Value, name: &str) -> bool {
    let kind = KINDS.iter().find(|row| (row.holds)(value));
    kind.is_some_and(|row| row.above.contains(&name))
        || (matches!(value, Value::Record(_)) && matches!(name, "IHashEq" | "Serializable"))
}

/// The classes of values: the class of a value is the first one whose test accepts it.
const KINDS: &[Row] = rows! {
    "java.lang" "String" ["CharSequence", "Comparable", "Serializable", "Object"], |x| matches!(x, Value::Text(_));
    "java.lang" "Long" ["Number", "Comparable", "Serializable", "Object"], |x| matches!(x, Value::Int(_));
    "java.lang" "Double" ["Number", "Comparable", "Serializable", "Object"], |x| matches!(x, Value::Float(_));
    "java.lang" "Boolean" ["Comparable", "Serializable", "Object"], |x| matches!(x, Value::Bool(_));
    "java.lang" "Character" ["Comparable", "Serializable", "Object"], |x| matches!(x, Value::Char(_));
    "clojure.lang" "BigInt" ["Number", "IHashEq", "Serializable", "Object"], |x| matches!(x, Value::BigInt(_));
    "clojure.lang" "Ratio" ["Number", "Comparable", "Serializable", "Object"], |x| matches!(x, Value::Ratio(_));
    "java.math" "BigDecimal" ["Number", "Comparable", "Serializable", "Object"], |x| matches!(x, Value::Decimal(_));
    "clojure.lang" "Keyword" ["Named", "IFn", "Comparable", "Callable", "IHashEq", "Runnable", "Serializable", "Object"], |x| matches!(x, Value::Keyword(_));
    "clojure.lang" "Symbol" ["AFn", "Named", "IObj", "IMeta", "IFn", "Comparable", "Callable", "IHashEq", "Runnable", "Serializable", "Object"],
        |x| x.as_symbol().is_some();
    "clojure.lang" "MapEntry" ["AMapEntry", "APersistentVector", "AFn", "IPersistentVector", "IMapEntry", "Associative", "Indexed", "Sequential", "IPersistentCollection", "Seqable", "Counted", "IFn", "Callable", "Collection", "Comparable", "IHashEq", "ILookup", "IPersistentStack", "Iterable", "List", "Map$Entry", "RandomAccess", "Reversible", "Runnable", "Serializable", "Object"],
        |x| matches!(x, Value::Vector(vector) if vector.is_entry);
    "clojure.lang" "PersistentVector" ["APersistentVector", "AFn", "IPersistentVector", "Associative", "Indexed", "Sequential", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "List", "Collection", "Iterable", "Callable", "Comparable", "IEditableCollection", "IHashEq", "IKVReduce", "ILookup", "IPersistentStack", "IReduce", "IReduceInit", "RandomAccess", "Reversible", "Runnable", "Serializable", "Object"],
        |x| matches!(x, Value::Vector(_));
    "clojure.lang" "PersistentTreeMap" ["APersistentMap", "AFn", "IPersistentMap", "Associative", "Sorted", "Reversible", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "Map", "Iterable", "Callable", "IHashEq", "IKVReduce", "ILookup", "MapEquivalence", "Runnable", "Serializable", "Object"],
        |x| is_sorted(x) && matches!(x, Value::Map(_));
    "clojure.lang" "PersistentTreeSet" ["APersistentSet", "AFn", "IPersistentSet", "Sorted", "Reversible", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "Set", "Collection", "Iterable", "Callable", "IHashEq", "Runnable", "Serializable", "Object"],
        is_sorted;
    "clojure.lang" "PersistentArrayMap" ["APersistentMap", "AFn", "IPersistentMap", "Associative", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "Map", "Iterable", "Callable", "IEditableCollection", "IHashEq", "IKVReduce", "ILookup", "IMapIterable", "MapEquivalence", "Runnable", "Serializable", "Object"],
        |x| matches!(x, Value::Map(map) if map.entries().is_in_order());
    "clojure.lang" "PersistentHashMap" ["APersistentMap", "AFn", "IPersistentMap", "Associative", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "Map", "Iterable", "Callable", "IEditableCollection", "IHashEq", "IKVReduce", "ILookup", "IMapIterable", "MapEquivalence", "Runnable", "Serializable", "Object"],
        |x| matches!(x, Value::Map(_));
    "clojure.lang" "PersistentHashSet" ["APersistentSet", "AFn", "IPersistentSet", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "IFn", "Set", "Collection", "Iterable", "Callable", "IEditableCollection", "IHashEq", "Runnable", "Serializable", "Object"],
        |x| matches!(x, Value::Set(_));
    "clojure.lang" "PersistentList" ["ASeq", "Obj", "IPersistentList", "ISeq", "IPersistentStack", "Sequential", "IPersistentCollection", "Seqable", "Counted", "IObj", "IMeta", "List", "Collection", "Iterable", "IHashEq", "IReduce", "IReduceInit", "Serializable", "Object"],
        |x| matches!(x, Value::List(list) if list.count.is_some());
    "clojure.lang" "Cons" ["ASeq", "Obj", "ISeq", "Sequential", "IPersistentCollection", "Seqable", "IObj", "IMeta", "List", "Collection", "Iterable", "IHashEq", "Serializable", "Object"],
        |x| matches!(x, Value::List(_) | Value::Seq(_));
    "clojure.lang" "LazySeq" ["Obj", "ISeq", "Sequential", "IPersistentCollection", "Seqable", "IObj", "IMeta", "List", "Collection", "Iterable", "IHashEq", "IPending", "Serializable", "Object"],
        |x| matches!(x, Value::Lazy(_));
    "clojure.lang" "PersistentQueue" ["Obj", "IPersistentList", "IPersistentStack", "Sequential", "IPersistentCollection", "Seqable", "Counted", "Collection", "IHashEq", "IMeta", "IObj", "Iterable", "Serializable", "Object"], is_queue;
    "clojure.lang" "AFunction" ["AFn", "Fn", "IFn", "IObj", "IMeta", "Callable", "Comparator", "Runnable", "Serializable", "Object"], is_function;
    "clojure.lang" "Var" ["ARef", "AReference", "IDeref", "IRef", "IFn", "IMeta", "Callable", "IReference", "Runnable", "Serializable", "Settable", "Object"], |x| matches!(x, Value::Var(_));
    "clojure.lang" "Atom" ["ARef", "AReference", "IAtom", "IDeref", "IRef", "IMeta", "IAtom2", "IReference", "Object"], |x| matches!(x, Value::Atom(_));
    "clojure.lang" "Volatile" ["IDeref", "Object"], |x| object(x, |object| matches!(object, Object::Volatile(_)));
    "clojure.lang" "Delay" ["IDeref", "IPending", "Object"], |x| object(x, |object| matches!(object, Object::Delay(_)));
    "clojure.lang" "Reduced" ["IDeref", "Object"], |x| object(x, |object| matches!(object, Object::Reduced(_)));
    "clojure.lang" "Namespace" ["AReference", "IMeta", "IReference", "Serializable", "Object"], |x| object(x, |object| matches!(object, Object::Namespace(_)));
    "clojure.lang" "TaggedLiteral" ["ILookup", "Object"], |x| object(x, |object| matches!(object, Object::Tagged { .. }));
    "clojure.lang" "ReaderConditional" ["ILookup", "Object"], |x| object(x, |object| matches!(object, Object::Conditional { .. }));
    "java.io" "StringWriter" ["Writer", "Object"], |x| TextWriter::of(x).is_some();
    "java.io" "PushbackReader" ["Reader", "Object"], |x| TextReader::of(x).is_some();
    "java.util.regex" "Pattern" ["Serializable", "Object"], |x| object(x, |object| matches!(object, Object::Regex { .. }));
    "java.util.regex" "Matcher" ["Object"], |x| x.is_host("java.util.regex.Matcher");
    "java.lang" "StringBuffer" ["CharSequence", "Object"], |x| x.is_host("java.lang.StringBuffer");
    "java.lang" "StringBuilder" ["CharSequence", "Object"], |x| x.is_host("java.lang.StringBuilder");
    "java.time" "Instant" ["Comparable", "Object"], |x| x.is_host("java.time.Instant");
    "java.time" "LocalDate" ["Comparable", "Object"], |x| x.is_host("java.time.LocalDate");
    "java.time" "LocalTime" ["Comparable", "Object"], |x| x.is_host("java.time.LocalTime");
    "java.time" "LocalDateTime" ["Comparable", "Object"], |x| x.is_host("java.time.LocalDateTime");
    "java.time" "ZonedDateTime" ["Comparable", "Object"], |x| x.is_host("java.time.ZonedDateTime");
    "java.time" "Duration" ["Comparable", "Object"], |x| x.is_host("java.time.Duration");
    "java.time" "Period" ["Object"], |x| x.is_host("java.time.Period");
    "java.time" "ZoneId" ["Object"], |x| x.is_host("java.time.ZoneId");
    "java.time" "ZoneOffset" ["Comparable", "Object"], |x| x.is_host("java.time.ZoneOffset");
    "java.time" "DayOfWeek" ["Comparable", "Object"], |x| x.is_host("java.time.DayOfWeek");
    "java.time" "Month" ["Comparable", "Object"], |x| x.is_host("java.time.Month");
    "java.time.temporal" "ChronoUnit" ["Comparable", "Object"], |x| x.is_host("java.time.temporal.ChronoUnit");
    "java.time.temporal" "TemporalAdjuster" ["Object"], |x| x.is_host("java.time.temporal.TemporalAdjuster");
    "java.time.format" "DateTimeFormatter" ["Object"], |x| x.is_host("java.time.format.DateTimeFormatter");
    "java.math" "RoundingMode" ["Comparable", "Object"], |x| x.is_host("java.math.RoundingMode");
    "java.util" "UUID" ["Comparable", "Serializable", "Object"], |x| object(x, |object| matches!(object, Object::Uuid(_)));
    "java.util" "Date" ["Comparable", "Cloneable", "Serializable", "Object"], |x| object(x, |object| matches!(object, Object::Inst(_)));
    "java.lang" "Class" ["Object"], |x| object(x, |object| matches!(object, Object::Class(_) | Object::RecordType(_)));
};

/// Classes that cover several kinds of values.
const INTERFACES: &[Row] = rows! {
    "java.lang" "Object" [], |x| !x.is_nil();
    "java.lang" "Number" ["Object", "Serializable"], is_number;
    "java.lang" "Integer" ["Number", "Comparable", "Serializable", "Object"], |_| false;
    "java.lang" "Short" ["Number", "Comparable", "Serializable", "Object"], |_| false;
    "java.lang" "Byte" ["Number", "Comparable", "Serializable", "Object"], |_| false;
    "java.lang" "Float" ["Number", "Comparable", "Serializable", "Object"], |_| false;
    "java.math" "BigInteger" ["Number", "Comparable", "Serializable", "Object"], |_| false;
    "java.lang" "CharSequence" [], |x| matches!(x, Value::Text(_)) || is_kind_below(x, "CharSequence");
    "java.lang" "Comparable" [], |x| is_number(x)
        || x.as_symbol().is_some()
        || matches!(x, Value::Text(_) | Value::Keyword(_) | Value::Bool(_) | Value::Char(_) | Value::Vector(_));
    "java.lang" "Iterable" [], is_coll;
    "java.lang" "Runnable" [], is_function;
    "java.util.concurrent" "Callable" [], is_function;
    "java.util.concurrent" "Future" [], |x| Promise::of(x).is_some_and(|promise| promise.is_future);
    "java.io" "Writer" ["Closeable", "AutoCloseable", "Object"], |x| TextWriter::of(x).is_some();
    "java.io" "Reader" ["Closeable", "AutoCloseable", "Object"], |x| TextReader::of(x).is_some();
    "java.util" "Collection" ["Iterable"], |x| is_coll(x) && !is_map(x);
    "java.util" "Deque" ["Queue", "Collection", "Iterable"], |_| false;
    "java.util" "Enumeration" [], |_| false;
    "java.util" "Iterator" [], |_| false;
    "java.util" "Queue" ["Collection", "Iterable"], is_queue;
    "java.io" "Closeable" ["AutoCloseable"], |x| TextWriter::of(x).is_some() || TextReader::of(x).is_some();
    "java.lang" "AutoCloseable" [], |x| TextWriter::of(x).is_some() || TextReader::of(x).is_some();
    "java.io" "InputStream" ["Closeable", "AutoCloseable", "Object"], |_| false;
    "java.io" "OutputStream" ["Closeable", "AutoCloseable", "Object"], |_| false;
    "java.util" "List" ["Collection", "Iterable"], |x| is_seq(x) || matches!(x, Value::Vector(_));
    "java.util" "Map" [], is_map;
    "java.util" "Set" ["Collection", "Iterable"], |x| matches!(x, Value::Set(_));
    "clojure.lang" "APersistentMap" ["IPersistentMap", "AFn", "Associative", "Callable", "Counted", "IFn", "IHashEq", "ILookup", "IPersistentCollection", "Iterable", "Map", "MapEquivalence", "Runnable", "Seqable", "Serializable", "Object"], |x| matches!(x, Value::Map(_));
    "clojure.lang" "APersistentSet" ["IPersistentSet", "AFn", "Callable", "Collection", "Counted", "IFn", "IHashEq", "IPersistentCollection", "Iterable", "Runnable", "Seqable", "Serializable", "Set", "Object"], |x| matches!(x, Value::Set(_));
    "clojure.lang" "APersistentVector" ["IPersistentVector", "AFn", "Associative", "Callable", "Collection", "Comparable", "Counted", "IFn", "IHashEq", "ILookup", "IPersistentCollection", "IPersistentStack", "Indexed", "Iterable", "List", "RandomAccess", "Reversible", "Runnable", "Seqable", "Sequential", "Serializable", "Object"], |x| matches!(x, Value::Vector(_));
    "clojure.lang" "ASeq" ["ISeq", "Collection", "IHashEq", "IMeta", "IObj", "IPersistentCollection", "Iterable", "List", "Obj", "Seqable", "Sequential", "Serializable", "Object"], |x| matches!(x, Value::List(_) | Value::Seq(_));
    "clojure.lang" "AFn" ["IFn", "Callable", "Runnable", "Object"], is_function;
    "clojure.lang" "Associative" ["ILookup", "IPersistentCollection", "Seqable"], |x| is_map(x) || matches!(x, Value::Vector(_));
    "clojure.lang" "Counted" [], |x| matches!(x, Value::Vector(_) | Value::Set(_))
        || matches!(x, Value::Seq(view) if matches!(**view, SeqView::Range { end, .. } if end != i64::MAX))
        || is_map(x) || matches!(x, Value::List(list) if list.count.is_some());
    "clojure.lang" "Fn" [], is_function;
    "clojure.lang" "IAtom" [], |x| matches!(x, Value::Atom(_));
    "clojure.lang" "IBlockingDeref" [], is_promise;
    "clojure.lang" "IDeref" [], |x| matches!(x, Value::Atom(_) | Value::Var(_))
        || object(x, |object| matches!(object, Object::Volatile(_) | Object::Delay(_) | Object::Reduced(_)))
        || is_promise(x);
    "clojure.lang" "IEditableCollection" [], |x| match x {
        Value::Map(map) => map.entries().sorted().is_none(),
        Value::Set(set) => set.items().sorted().is_none(),
        x => matches!(x, Value::Vector(_)),
    };
    "clojure.lang" "IExceptionInfo" [], |x| matches!(x, Value::Exception(exception) if exception.class == Class::EXCEPTION_INFO);
    "clojure.lang" "IFn" ["Callable", "Runnable"], |x| is_function(x)
        || matches!(x, Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) | Value::Map(_) | Value::Set(_) | Value::Vector(_) | Value::Var(_));
    "clojure.lang" "ILookup" [], |x| is_map(x) || matches!(x, Value::Vector(_));
    "clojure.lang" "IMapEntry" ["Map$Entry"], |x| matches!(x, Value::Vector(vector) if vector.is_entry);
    "clojure.lang" "IMeta" [], |x| is_coll(x) || is_function(x) || x.as_symbol().is_some()
        || matches!(x, Value::Var(_) | Value::Atom(_));
    "clojure.lang" "IObj" ["IMeta"], |x| is_coll(x) || is_function(x) || x.as_symbol().is_some();
    "clojure.lang" "IPending" [], |x| matches!(x, Value::Lazy(_))
        || object(x, |object| matches!(object, Object::Delay(_)))
        || is_promise(x);
    "clojure.lang" "IPersistentCollection" ["Seqable"], is_coll;
    "clojure.lang" "IPersistentList" ["IPersistentCollection", "IPersistentStack", "Seqable", "Sequential"], |x| matches!(x, Value::List(list) if list.count.is_some());
    "clojure.lang" "IPersistentMap" ["Associative", "Counted", "ILookup", "IPersistentCollection", "Iterable", "Seqable"], is_map;
    "clojure.lang" "IPersistentSet" ["Counted", "IPersistentCollection", "Seqable"], |x| matches!(x, Value::Set(_));
    "clojure.lang" "IPersistentStack" ["IPersistentCollection", "Seqable"], |x| matches!(x, Value::Vector(_) | Value::List(_)) || is_queue(x);
    "clojure.lang" "IPersistentVector" ["Associative", "Counted", "ILookup", "IPersistentCollection", "IPersistentStack", "Indexed", "Reversible", "Seqable", "Sequential"], |x| matches!(x, Value::Vector(_));
    "clojure.lang" "IRecord" [], |x| matches!(x, Value::Record(_));
    "clojure.lang" "IRef" ["IDeref"], |x| matches!(x, Value::Atom(_) | Value::Var(_));
    "clojure.lang" "ISeq" ["IPersistentCollection", "Seqable"], is_seq;
    "clojure.lang" "ITransientAssociative" ["ITransientCollection", "ILookup"], is_transient;
    "clojure.lang" "ITransientCollection" [], is_transient;
    "clojure.lang" "ITransientMap" ["ITransientAssociative", "ITransientCollection", "ILookup", "Counted"], is_transient;
    "clojure.lang" "ITransientSet" ["ITransientCollection", "Counted"], is_transient;
    "clojure.lang" "ITransientVector" ["ITransientAssociative", "ITransientCollection", "ILookup", "Indexed", "Counted"], is_transient;
    "clojure.lang" "IType" [], |x| object(x, |object| matches!(object, Object::Instance(_)));
    "clojure.lang" "Indexed" ["Counted"], |x| matches!(x, Value::Vector(_));
    "clojure.lang" "Named" [], |x| matches!(x, Value::Keyword(_)) || x.as_symbol().is_some();
    "clojure.lang" "Reversible" [], |x| is_sorted(x) || matches!(x, Value::Vector(_));
    "clojure.lang" "Seqable" [], is_coll;
    "clojure.lang" "Sorted" [], is_sorted;
    "clojure.lang" "Sequential" [], |x| is_seq(x) || matches!(x, Value::Vector(_)) || is_queue(x);
    "clojure.lang" "AMapEntry" ["APersistentVector", "IMapEntry", "AFn", "Associative", "Callable", "Collection", "Comparable", "Counted", "IFn", "IHashEq", "ILookup", "IPersistentCollection", "IPersistentStack", "IPersistentVector", "Indexed", "Iterable", "List", "Map$Entry", "RandomAccess", "Reversible", "Runnable", "Seqable", "Sequential", "Serializable", "Object"], |x| is_kind_below(x, "AMapEntry");
    "clojure.lang" "ARef" ["AReference", "IRef", "IDeref", "IMeta", "IReference", "Object"], |x| is_kind_below(x, "ARef");
    "clojure.lang" "AReference" ["IReference", "IMeta", "Object"], |x| is_kind_below(x, "AReference");
    "java.lang" "Cloneable" [], |x| is_kind_below(x, "Cloneable");
    "java.util" "Comparator" [], |x| is_kind_below(x, "Comparator");
    "clojure.lang" "IAtom2" ["IAtom"], |x| is_kind_below(x, "IAtom2");
    "clojure.lang" "IHashEq" [], |x| is_kind_below(x, "IHashEq");
    "clojure.lang" "IKVReduce" [], |x| is_kind_below(x, "IKVReduce");
    "clojure.lang" "IMapIterable" [], |x| is_kind_below(x, "IMapIterable");
    "clojure.lang" "IReduce" ["IReduceInit"], |x| is_kind_below(x, "IReduce");
    "clojure.lang" "IReduceInit" [], |x| is_kind_below(x, "IReduceInit");
    "clojure.lang" "IReference" ["IMeta"], |x| is_kind_below(x, "IReference");
    "java.util" "Map$Entry" [], |x| is_kind_below(x, "Map$Entry");
    "clojure.lang" "MapEquivalence" [], |x| is_kind_below(x, "MapEquivalence");
    "clojure.lang" "Obj" ["IObj", "IMeta", "Serializable", "Object"], |x| is_kind_below(x, "Obj");
    "java.util" "RandomAccess" [], |x| is_kind_below(x, "RandomAccess");
    "java.io" "Serializable" [], |x| is_kind_below(x, "Serializable");
    "clojure.lang" "Settable" [], |x| is_kind_below(x, "Settable");
};

macro_rules! arrays {
    ($($element:ident;)*) => {
        &[$(Row {
            class: Class({
                static INFO: ClassInfo = ClassInfo {
                    name: Element::$element.array_class(),
                    full_name: Element::$element.array_class(),
                    parent: None,
                };
                &INFO
            }),
            above: &["Object"],
            holds: |x| x.as_array().is_some_and(|array| array.element == Element::$element),
        }),*]
    };
}

/// The classes of arrays.
const ARRAYS: &[Row] = arrays! {
    Boolean;
    Byte;
    Char;
    Short;
    Int;
    Long;
    Float;
    Double;
    Text;
    Any;
};

macro_rules! primitives {
    ($($constant:ident $name:literal $element:ident;)*) => {
        impl Class {
            $(#[doc = concat!("The class of `", $name, "`, which no value has.")]
            pub const $constant: Class = {
                static INFO: ClassInfo = ClassInfo {
                    name: $name,
                    full_name: $name,
                    parent: None,
                };
                Class(&INFO)
            };)*

            /// Returns the element type of an array of this primitive class; `None` for any other class.
            pub fn primitive(self) -> Option<Element> {
                $(if self == Class::$constant {
                    return Some(Element::$element);
                })*
                None
            }
        }
    };
}

primitives! {
    PRIMITIVE_BOOLEAN "boolean" Boolean;
    PRIMITIVE_BYTE "byte" Byte;
    PRIMITIVE_CHAR "char" Char;
    PRIMITIVE_DOUBLE "double" Double;
    PRIMITIVE_FLOAT "float" Float;
    PRIMITIVE_INT "int" Int;
    PRIMITIVE_LONG "long" Long;
    PRIMITIVE_SHORT "short" Short;
}

fn rows() -> impl Iterator<Item = &'static Row> {
    KINDS.iter().chain(INTERFACES).chain(ARRAYS)
}

fn row(class: Class) -> Option<&'static Row> {
    rows().find(|row| row.class == class)
}

impl Class {
    /// Returns the class with a short or full name.
    pub fn named(name: &str) -> Option<Class> {
        let is = |class: &Class| class.0.name == name || class.0.full_name == name;
        Class::THROWABLES
            .iter()
            .copied()
            .find(is)
            .or_else(|| rows().map(|row| row.class).find(is))
    }

    /// Returns the short names of all classes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let rows = KINDS.iter().chain(INTERFACES).map(|row| row.class);
        Class::THROWABLES
            .iter()
            .copied()
            .chain(rows)
            .map(|class| class.0.name)
    }

    /// Returns the full names of all classes.
    pub fn full_names() -> impl Iterator<Item = &'static str> {
        let rows = KINDS.iter().chain(INTERFACES).map(|row| row.class);
        let all = Class::THROWABLES.iter().copied().chain(rows);
        all.map(|class| class.0.full_name)
    }

    /// Returns the result of `class`: a class, the type of a record, or nil for nil.
    pub fn of(value: &Value) -> Value {
        match value {
            Value::Nil => Value::Nil,
            Value::Exception(exception) => Value::from(Object::Class(exception.class)),
            Value::Record(record) => Value::from(Object::RecordType(record.record_type.clone())),
            Value::Object(object) if let Object::Instance(instance) = &**object => {
                Value::from(Object::RecordType(instance.instance_type.clone()))
            }
            value => {
                let mut kinds = KINDS.iter().chain(ARRAYS);
                let kind = kinds.find(|row| (row.holds)(value));
                Class::named("Object")
                    .filter(|_| kind.is_none())
                    .or(kind.map(|row| row.class))
                    .map_or(Value::Nil, |class| Value::from(Object::Class(class)))
            }
        }
    }

    /// Tells whether a value is an instance of this class.
    pub fn holds(self, value: &Value) -> bool {
        if let Value::Exception(exception) = value
            && exception.class.is_a(self)
        {
            return true;
        }
        row(self).is_some_and(|row| (row.holds)(value))
    }

    /// Returns the superclasses of this class, nearest first.
    pub fn supers(self) -> Vec<Class> {
        if let Some(row) = row(self) {
            return row
                .above
                .iter()
                .filter_map(|name| Class::named(name))
                .collect();
        }
        let mut above = Vec::new();
        let mut at = self.0.parent;
        while let Some(info) = at {
            above.push(Class(info));
            at = info.parent;
        }
        above.extend(Class::named("Object"));
        above
    }

    /// Tells whether this is `other` or one of its subclasses, by name.
    pub fn is_below(self, other: Class) -> bool {
        self == other || self.supers().contains(&other)
    }
}
