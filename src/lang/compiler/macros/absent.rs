//! Macros of Clojure that create classes of its host: each is an error that suggests a replacement.

use std::rc::Rc;

use super::{Expansion, form, symbol};
use crate::compiler::error;
use crate::value::{Arity, Native, Value};

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[GEN_INTERFACE, PROXY_SUPER];

macro_rules! absent {
    ($($constant:ident $name:literal $usage:literal $instead:literal;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: $usage,
            doc: concat!("Is an error: there are no host classes here. ", $instead),
            examples: &[],
            arity: Arity::at_least(2),
            run: |vm, args| -> Expansion {
                let message = concat!("`", $name, "` makes a Java class, and Flowstone does not run on the JVM");
                let refused = error("E0226", args.get(0).span(), message).hint($instead);
                if vm.world().defers_host_names() {
                    let refused = Value::Exception(Rc::new(refused));
                    return Ok(form([symbol("clojure.core/-refuse"), refused]));
                }
                Err(refused.into())
            },
        };)*
    };
}

absent! {
    GEN_INTERFACE "gen-interface" "(gen-interface & options)" "Use defprotocol.";
    PROXY_SUPER "proxy-super" "(proxy-super method & args)" "Use a function that both methods call.";
}
