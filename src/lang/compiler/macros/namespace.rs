//! `ns`.

use std::rc::Rc;

use super::{Expansion, form, symbol, with_rest};
use crate::compiler::error;
use crate::value::{Arity, Map, Native, PMap, Value};

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[NS];

/// Returns the metadata of a namespace: from its name, its docstring and its map.
fn description(name: &Value, clauses: &[Value]) -> PMap {
    let mut meta = match name.meta() {
        Value::Map(map) => map.entries().clone(),
        _ => PMap::new(),
    };
    for clause in clauses.iter().take(2) {
        match clause {
            Value::Text(_) => meta.insert(Value::keyword("doc"), clause.clone()),
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    meta.insert(key.clone(), value.clone());
                }
            }
            _ => break,
        }
    }
    meta
}

const NS: Native = Native {
    name: "ns",
    usage: "(ns name doc? attributes? (:require [namespace :as alias]) ...)",
    doc: "Makes a namespace current, creating it if necessary, and loads and refers to the names in its clauses.",
    examples: &[],
    arity: Arity::at_least(3),
    run: |vm, args| -> Expansion {
        let name = args.get(2);
        if name.as_symbol().is_none() {
            return Err(error("E0212", name.span(), "`ns` needs the name of a namespace").into());
        }
        let quoted = |value: &Value| form([symbol("quote"), value.clone()]);
        let mut forms = vec![form([symbol("clojure.core/in-ns"), quoted(name)])];
        let described = description(name, args.from(3));
        if !described.is_empty() {
            let meta = Value::Map(Rc::new(Map::new(described)));
            forms.push(form([
                symbol("clojure.core/reset-meta!"),
                symbol("clojure.core/*ns*"),
                quoted(&meta),
            ]));
        }
        let is_refer_clojure = |clause: &Value| {
            let Value::List(list) = clause else {
                return false;
            };
            list.first == Value::keyword("refer-clojure")
        };
        if !args.from(3).iter().any(is_refer_clojure) {
            forms.push(form([symbol("clojure.core/refer-clojure")]));
        }
        for clause in args.from(3) {
            let parts = match clause {
                Value::Text(_) | Value::Map(_) => continue,
                clause => vm.items(clause.clone())?,
            };
            let function = match parts
                .first()
                .and_then(Value::as_keyword)
                .map(|keyword| keyword.name())
            {
                Some(name) if &*name == "require" => "clojure.core/require",
                Some(name) if &*name == "use" => "clojure.core/use",
                Some(name) if &*name == "refer" => "clojure.core/refer",
                Some(name) if &*name == "refer-clojure" => "clojure.core/refer-clojure",
                Some(name) if &*name == "import" => "clojure.core/import",
                Some(name) if &*name == "load" => "clojure.core/load",
                Some(name) if &*name == "gen-class" => continue,
                _ => {
                    return Err(
                        error("E0224", clause.span(), "`ns` does not know this clause")
                            .hint("the clauses are :require, :use, :refer and :refer-clojure")
                            .into(),
                    );
                }
            };
            let quoted: Vec<Value> = parts[1..].iter().map(quoted).collect();
            forms.push(with_rest([symbol(function)], &quoted));
        }
        Ok(with_rest([symbol("do")], &forms))
    },
};
