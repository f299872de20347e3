//! `(Object.)`: a value that is equal only to itself.

use crate::value::{Arity, HostObject, Native, Value};

/// A marker that is distinct from every other value.
struct Mark;

impl HostObject for Mark {
    fn class_name(&self) -> &'static str {
        "java.lang.Object"
    }

    fn text(&self) -> String {
        "java.lang.Object".to_owned()
    }
}

/// The functions of this area.
pub(super) const FNS: &[Native] = &[NEW];

const NEW: Native = Native {
    name: "new",
    usage: "(Object.)",
    doc: "Returns an object that is equal only to itself: a unique marker.",
    examples: &[
        ("(= (Object.) (Object.))", "false"),
        ("(let [mark (Object.)] (= mark mark))", "true"),
    ],
    arity: Arity::exactly(0),
    run: |_, _| Ok(Value::host(Mark)),
};
