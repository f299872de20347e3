//! Macros of Clojure that make classes of its host: each is an error that says what to use instead.

use super::Expansion;
use crate::compiler::error;
use crate::value::{Arity, Native};

/// What this file adds to `clojure.core`. Sorted by name.
pub(super) const FNS: &[Native] = &[DEFINTERFACE, GEN_CLASS, GEN_INTERFACE, PROXY, PROXY_SUPER];

macro_rules! absent {
    ($($constant:ident $name:literal $usage:literal $instead:literal;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: $usage,
            doc: concat!("Is an error: there are no host classes here. ", $instead),
            examples: &[],
            arity: Arity::at_least(2),
            run: |_, args| -> Expansion {
                let message = concat!("`", $name, "` makes a host class, and there are none here");
                Err(error("E0226", args.get(0).span(), message).hint($instead).into())
            },
        };)*
    };
}

absent! {
    DEFINTERFACE "definterface" "(definterface name & methods)" "Use defprotocol.";
    GEN_CLASS "gen-class" "(gen-class & options)" "Use defrecord or deftype; (:gen-class) in an ns form does nothing.";
    GEN_INTERFACE "gen-interface" "(gen-interface & options)" "Use defprotocol.";
    PROXY "proxy" "(proxy [Class Interface ...] [args ...] methods ...)" "Use reify with a protocol.";
    PROXY_SUPER "proxy-super" "(proxy-super method & args)" "Use a function that both methods call.";
}
