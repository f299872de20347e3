//! Predicates on the kind of a value.

use super::functions::is_fn;
use super::sequences::generate::is_sequential;
use crate::value::{Arity, Element, Native, Object, PSet, Symbol, Value};
use crate::vm::objects::implements_named;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ANY,
    ASSOCIATIVE,
    BOOLEAN,
    BYTES,
    CHAR,
    CLASS,
    COLL,
    COUNTED,
    DELAY,
    DISTINCT,
    FALSE,
    FN,
    IDENT,
    IFN,
    INDEXED,
    INST,
    IS_BOOLEAN,
    KEYWORD,
    LIST,
    MAP,
    MAP_ENTRY,
    NIL,
    NOT,
    QUALIFIED_IDENT,
    QUALIFIED_KEYWORD,
    QUALIFIED_SYMBOL,
    RECORD,
    REVERSIBLE,
    SEQ,
    SEQABLE,
    SEQUENTIAL,
    SET,
    SIMPLE_IDENT,
    SIMPLE_KEYWORD,
    SIMPLE_SYMBOL,
    SOME,
    SPECIAL_SYMBOL,
    STRING,
    SYMBOL,
    TRUE,
    URI,
    UUID,
    VAR,
    VECTOR,
    VOLATILE,
];

/// The row of a predicate that only reads its argument.
macro_rules! predicates {
    ($($constant:ident $name:literal $doc:literal [$($example:expr),*] $test:expr;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: concat!("(", $name, " x)"),
            doc: $doc,
            examples: &[$($example),*],
            arity: Arity::exactly(1),
            run: |_, args| {
                let test: fn(&Value) -> bool = $test;
                Ok(Value::Bool(test(args.get(0))))
            },
        };)*
    };
}

predicates! {
    ANY "any?" "Returns true for any argument." [("(any? nil)", "true")] |_| true;
    ASSOCIATIVE "associative?" "Tells whether assoc works on x: a map, record or vector."
        [("(associative? [])", "true"), ("(associative? #{})", "false")]
        |x| matches!(x, Value::Vector(_) | Value::Map(_) | Value::Record(_))
            || implements_named(x, "Associative");
    BOOLEAN "boolean" "Returns false for nil and false, and true for anything else."
        [("(boolean nil)", "false"), ("(boolean 0)", "true")] Value::is_truthy;
    IS_BOOLEAN "boolean?" "Tells whether x is true or false." [("(boolean? false)", "true")]
        |x| matches!(x, Value::Bool(_));
    BYTES "bytes?" "Tells whether x is a byte array." [(r#"(bytes? "a")"#, "false")]
        |x| object(x, |object| match object {
            Object::Bytes(_) => true,
            Object::Array(array) => array.element == Element::Byte,
            _ => false,
        });
    CHAR "char?" "Tells whether x is a character." [(r"(char? \a)", "true")]
        |x| matches!(x, Value::Char(_));
    CLASS "class?" "Tells whether x is a class." [("(class? Exception)", "true"), ("(class? 1)", "false")]
        |x| object(x, |object| matches!(object, Object::Class(_) | Object::RecordType(_)));
    COLL "coll?" "Tells whether x is a collection." [("(coll? {})", "true"), (r#"(coll? "a")"#, "false")]
        is_coll;
    COUNTED "counted?" "Tells whether x can be counted without walking it."
        [("(counted? [])", "true"), ("(counted? (map inc []))", "false")] is_counted;
    DELAY "delay?" "Tells whether x was made by delay." [("(delay? (delay 1))", "true")]
        |x| object(x, |object| matches!(object, Object::Delay(_)));
    FALSE "false?" "Tells whether x is false." [("(false? false)", "true"), ("(false? nil)", "false")]
        |x| matches!(x, Value::Bool(false));
    FN "fn?" "Tells whether x is a function, not merely something callable."
        [("(fn? inc)", "true"), ("(fn? :a)", "false")] is_fn;
    IDENT "ident?" "Tells whether x is a symbol or keyword." [("(ident? :a)", "true")]
        |x| namespace_of(x).is_some();
    IFN "ifn?" "Tells whether x can be called." [("(ifn? :a)", "true"), ("(ifn? 1)", "false")] is_callable;
    INDEXED "indexed?" "Tells whether nth on x needs no walk." [("(indexed? [])", "true")]
        |x| matches!(x, Value::Vector(_));
    INST "inst?" "Tells whether x is an instant." [(r#"(inst? #inst "2024-01-01")"#, "true")]
        |x| x.is_host("java.time.Instant") || object(x, |object| matches!(object, Object::Inst(_)));
    KEYWORD "keyword?" "Tells whether x is a keyword." [("(keyword? :a)", "true")]
        |x| matches!(x, Value::Keyword(_));
    LIST "list?" "Tells whether x is a list, not merely a sequence."
        [("(list? '(1))", "true"), ("(list? (map inc [1]))", "false")]
        |x| matches!(x, Value::List(list) if list.count.is_some());
    MAP_ENTRY "map-entry?" "Tells whether x is an entry of a map."
        [("(map-entry? (first {:a 1}))", "true"), ("(map-entry? [:a 1])", "false")]
        |x| matches!(x, Value::Vector(vector) if vector.is_entry);
    MAP "map?" "Tells whether x is a map or record." [("(map? {})", "true")]
        |x| matches!(x, Value::Map(_) | Value::Record(_)) || implements_named(x, "IPersistentMap");
    NIL "nil?" "Tells whether x is nil." [("(nil? nil)", "true"), ("(nil? false)", "false")] Value::is_nil;
    NOT "not" "Returns true for nil and false, and false for anything else."
        [("(not nil)", "true"), ("(not 0)", "false")] |x| !x.is_truthy();
    QUALIFIED_IDENT "qualified-ident?" "Tells whether x is a symbol or keyword with a namespace."
        [("(qualified-ident? :a/b)", "true")] |x| namespace_of(x) == Some(true);
    QUALIFIED_KEYWORD "qualified-keyword?" "Tells whether x is a keyword with a namespace."
        [("(qualified-keyword? :a/b)", "true")]
        |x| matches!(x, Value::Keyword(_)) && namespace_of(x) == Some(true);
    QUALIFIED_SYMBOL "qualified-symbol?" "Tells whether x is a symbol with a namespace."
        [("(qualified-symbol? 'a/b)", "true")]
        |x| x.as_symbol().is_some() && namespace_of(x) == Some(true);
    RECORD "record?" "Tells whether x is a record." [("(record? {})", "false")]
        |x| matches!(x, Value::Record(_));
    REVERSIBLE "reversible?" "Tells whether rseq works on x." [("(reversible? [])", "true")]
        |x| match x {
            Value::Map(map) => map.entries().sorted().is_some(),
            Value::Set(set) => set.items().sorted().is_some(),
            _ => matches!(x, Value::Vector(_)),
        };
    SEQ "seq?" "Tells whether x is a sequence." [("(seq? '(1))", "true"), ("(seq? [1])", "false")]
        |x| matches!(x, Value::List(_) | Value::Seq(_) | Value::Lazy(_));
    SEQABLE "seqable?" "Tells whether seq works on x." [("(seqable? nil)", "true"), ("(seqable? 1)", "false")]
        |x| is_coll(x) || matches!(x, Value::Nil | Value::Text(_)) || implements_named(x, "Seqable")
            || object(x, |object| matches!(object, Object::Bytes(_) | Object::Array(_)));
    SEQUENTIAL "sequential?" "Tells whether x is an ordered collection."
        [("(sequential? [1])", "true"), ("(sequential? #{1})", "false")] is_sequential;
    SET "set?" "Tells whether x is a set." [("(set? #{})", "true")] |x| matches!(x, Value::Set(_));
    SIMPLE_IDENT "simple-ident?" "Tells whether x is a symbol or keyword without a namespace."
        [("(simple-ident? :a)", "true")] |x| namespace_of(x) == Some(false);
    SIMPLE_KEYWORD "simple-keyword?" "Tells whether x is a keyword without a namespace."
        [("(simple-keyword? :a)", "true")]
        |x| matches!(x, Value::Keyword(_)) && namespace_of(x) == Some(false);
    SIMPLE_SYMBOL "simple-symbol?" "Tells whether x is a symbol without a namespace."
        [("(simple-symbol? 'a)", "true")]
        |x| x.as_symbol().is_some() && namespace_of(x) == Some(false);
    SOME "some?" "Tells whether x is not nil." [("(some? false)", "true"), ("(some? nil)", "false")]
        |x| !x.is_nil();
    SPECIAL_SYMBOL "special-symbol?" "Tells whether x names a special form." [("(special-symbol? 'if)", "true")]
        |x| x.as_symbol().is_some_and(is_special);
    STRING "string?" "Tells whether x is a string." [(r#"(string? "a")"#, "true")]
        |x| matches!(x, Value::Text(_));
    SYMBOL "symbol?" "Tells whether x is a symbol." [("(symbol? 'a)", "true")]
        |x| x.as_symbol().is_some();
    TRUE "true?" "Tells whether x is true." [("(true? true)", "true"), ("(true? 1)", "false")]
        |x| matches!(x, Value::Bool(true));
    URI "uri?" "Tells whether x is a java.net.URI." [(r#"(uri? (java.net.URI. "http://a"))"#, "true")]
        |x| crate::vm::objects::type_of(x).is_some_and(|own| own.name == Symbol::new("java.net/URI"));
    UUID "uuid?" "Tells whether x is a UUID." [(r#"(uuid? "a")"#, "false")]
        |x| object(x, |object| matches!(object, Object::Uuid(_)));
    VAR "var?" "Tells whether x is a var." [("(var? #'inc)", "true")] |x| matches!(x, Value::Var(_));
    VECTOR "vector?" "Tells whether x is a vector." [("(vector? [])", "true")]
        |x| matches!(x, Value::Vector(_));
    VOLATILE "volatile?" "Tells whether x was made by volatile!." [("(volatile? (volatile! 1))", "true")]
        |x| object(x, |object| matches!(object, Object::Volatile(_)));
}

const DISTINCT: Native = Native {
    name: "distinct?",
    usage: "(distinct? x & more)",
    doc: "Tells whether no two of the arguments are equal.",
    examples: &[
        ("(distinct? 1 2 3)", "true"),
        ("(distinct? 1 2 1)", "false"),
    ],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let mut seen = PSet::new();
        for item in args.as_slice() {
            vm.charge(1)?;
            vm.realise_key(item)?;
            if seen.contains(item) {
                return Ok(Value::Bool(false));
            }
            seen.insert(item.clone());
        }
        Ok(Value::Bool(true))
    },
};

fn object(value: &Value, test: fn(&Object) -> bool) -> bool {
    matches!(value, Value::Object(object) if test(object))
}

fn is_coll(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Set(_) | Value::Record(_))
        || is_sequential(value)
        || implements_named(value, "IPersistentCollection")
}

fn is_counted(value: &Value) -> bool {
    match value {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Record(_) => true,
        Value::List(list) => list.count.is_some(),
        Value::Seq(view) => view.count().is_some(),
        Value::Object(object) => {
            matches!(**object, Object::Queue { .. } | Object::Transient(_))
                || implements_named(value, "Counted")
        }
        _ => false,
    }
}

/// Tells whether a value can be called.
pub(crate) fn is_callable(value: &Value) -> bool {
    is_fn(value)
        || matches!(
            value,
            Value::Keyword(_)
                | Value::Symbol(_)
                | Value::Name(_)
                | Value::Map(_)
                | Value::Set(_)
                | Value::Vector(_)
                | Value::Var(_)
        )
        || implements_named(value, "IFn")
}

/// Tells whether a symbol or keyword has a namespace; `None` for any other value.
fn namespace_of(value: &Value) -> Option<bool> {
    match value {
        Value::Keyword(keyword) => Some(keyword.namespace().is_some()),
        other => other.as_symbol().map(|symbol| symbol.namespace().is_some()),
    }
}

fn is_special(symbol: Symbol) -> bool {
    const SPECIAL: &[&str] = &[
        "&", ".", "case*", "catch", "def", "deftype*", "do", "finally", "fn*", "if", "let*",
        "letfn*", "loop*", "new", "quote", "recur", "set!", "throw", "try", "var",
    ];
    SPECIAL.iter().any(|name| symbol.is(name))
}
