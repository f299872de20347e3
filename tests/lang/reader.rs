//! The reader: the form of each syntax, and the message of each error.

mod data;
mod errors;
mod forms;
mod places;
mod quoting;
mod random;
mod round_trip;
mod show;

use flowstone_lang::reader::{NoContext, ReadContext, ReadError, ReadOptions, Reader};
use flowstone_lang::value::{SourceId, Symbol, Value};

/// A context with an alias, a few names of core, and a tag.
#[derive(Default)]
struct Fixture(NoContext);

impl ReadContext for Fixture {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        (alias == "str").then(|| "clojure.string".to_owned())
    }

    fn current_namespace(&self) -> String {
        "user".to_owned()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        let name = symbol.to_string();
        match name.as_str() {
            "if" | "do" | "let*" | "fn*" | "&" | "quote" | "var" => symbol,
            _ if name.find('.').is_some_and(|at| at > 0) => symbol,
            "inc" | "map" | "let" | "+" | "-" | "/" => {
                Symbol::with_namespace(Some("clojure.core"), &name)
            }
            _ if symbol.namespace().is_some() => symbol,
            _ => Symbol::with_namespace(Some("user"), &name),
        }
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        self.0.gensym(prefix)
    }

    fn read_tag(&mut self, tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        match tag.to_string().as_str() {
            "twice" => Some(Ok(Value::vector([form.clone(), form]))),
            "never" => Some(Err("it never can".to_owned())),
            _ => None,
        }
    }
}

const SOURCE: SourceId = SourceId(0);

fn read_code(text: &str) -> Result<Vec<Value>, ReadError> {
    read_all(text, ReadOptions::code(SOURCE))
}

fn read_all(text: &str, options: ReadOptions<'_>) -> Result<Vec<Value>, ReadError> {
    let mut reader = Reader::new(text, options);
    let mut cx = Fixture::default();
    let mut forms = Vec::new();
    while let Some(form) = reader.next(&mut cx)? {
        forms.push(form);
    }
    Ok(forms)
}
