//! Reading: forms from text.

use crate::reader::{ReadContext, ReadOptions, Reader};
use crate::value::{
    Arity, Class, Conditionals, Exception, Map, Native, Object, Result, Signal, Span, Symbol,
    TextReader, Value, brief, check_names, name_count,
};
use crate::vm::{Args, ReadHow, Vm};

pub(super) const FNS: &[Native] = &[
    CONDITIONAL,
    IS_CONDITIONAL,
    IS_TAGGED,
    READ_STRING,
    TAGGED_LITERAL,
];

pub(super) const EDN_FNS: &[Native] = &[EDN_READ_STRING];

/// Returns the dynamic vars that control reading.
pub(super) fn vars() -> Vec<(&'static str, Value)> {
    vec![
        ("*data-readers*", Value::map([])),
        ("*default-data-reader-fn*", Value::Nil),
        ("*in*", TextReader::input_value()),
        ("*read-eval*", Value::Bool(false)),
        ("*reader-resolver*", Value::Nil),
        ("*suppress-read*", Value::Bool(false)),
    ]
}

const READ_STRING: Native = Native {
    name: "read-string",
    usage: "(read-string s)\n(read-string opts s)",
    doc: "Returns the first form of the text s, read as code. opts may hold :eof, which is returned if there is no form; :read-cond, :allow to choose a branch of reader conditionals or :preserve to keep them; and :features, a set of keywords for them. For data use clojure.edn/read-string.",
    examples: &[
        (r#"(read-string "(+ 1 2) 3")"#, "(+ 1 2)"),
        (
            r##"(read-string {:read-cond :allow :features #{:x}} "#?(:x 1 :default 2)")"##,
            "1",
        ),
    ],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        let text = args.text(args.len() - 1)?.clone();
        let options = options(&args, &["eof", "features", "read-cond"])?;
        let how = match args.len() {
            1 => how(vm, &Value::Nil)?,
            _ => how(vm, args.get(0))?,
        };
        let loader = vm.world().loader();
        let before = name_count();
        let read = loader.read(vm, "<read-string>", &text, &how)?;
        check_names(before)?;
        match read {
            Some((form, _)) => Ok(form),
            None => at_end(&options, None),
        }
    },
};

/// Returns the options of reading code, from the map of options that `read` takes.
pub(super) fn how(vm: &mut Vm, options: &Value) -> Result<ReadHow> {
    let conditionals = match options.get("read-cond") {
        None | Some(Value::Nil) => Conditionals::Refuse,
        Some(Value::Keyword(key)) if key.is("allow") => Conditionals::Choose,
        Some(Value::Keyword(key)) if key.is("preserve") => Conditionals::Keep,
        Some(other) => {
            return Err(bad_option(
                "read-cond",
                other,
                "it is `:allow` or `:preserve`",
            ));
        }
    };
    let features = match options.get("features") {
        Some(features) => vm.items(features.clone())?,
        None => Vec::new(),
    };
    let features = features.iter().filter_map(Value::as_keyword);
    Ok(ReadHow {
        conditionals,
        features: features.map(|feature| feature.name().to_string()).collect(),
    })
}

const EDN_READ_STRING: Native = Native {
    name: "read-string",
    usage: "(read-string s)\n(read-string opts s)",
    doc: "Returns the first form of the text s, read as data. opts may hold :eof, returned if there is no form, which is nil by default; :readers, functions by tag; and :default, a function of tag and form for every other tag.",
    examples: &[
        (r#"(clojure.edn/read-string "{:a 1}")"#, "{:a 1}"),
        (
            r##"(clojure.edn/read-string {:readers {'twice (fn [x] [x x])}} "#twice 1")"##,
            "[1 1]",
        ),
    ],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        let options = edn_options(&args)?;
        if args.get(args.len() - 1).is_nil() {
            return Ok(Value::Nil);
        }
        let text = args.text(args.len() - 1)?.clone();
        match edn_form(vm, &text, &options)? {
            Some((form, _)) => Ok(form),
            // Clojure returns nil only if no options are given.
            None => at_end(&options, options.is_none().then_some(Value::Nil)),
        }
    },
};

/// Returns the options of `clojure.edn`'s functions.
pub(super) fn edn_options(args: &Args<'_>) -> Result<Options> {
    if args.is_empty() {
        return Ok(None);
    }
    options(args, &["eof", "readers", "default"])
}

/// Reads the first form of a text as data, and returns the number of bytes that it took.
pub(super) fn edn_form(
    vm: &mut Vm,
    text: &str,
    options: &Options,
) -> Result<Option<(Value, usize)>> {
    let mut cx = DataReaders {
        vm,
        readers: option(options, "readers").cloned().unwrap_or(Value::Nil),
        default: option(options, "default").cloned().unwrap_or(Value::Nil),
        failed: None,
    };
    let mut reader = Reader::new(text, ReadOptions::data(Span::NONE.source));
    let before = name_count();
    let read = reader.next(&mut cx);
    let failed = cx.failed;
    check_names(before)?;
    match (read, failed) {
        (_, Some(signal)) => Err(signal),
        (Ok(form), None) => Ok(form.map(|form| (form, reader.position() as usize))),
        (Err(error), None) => {
            // A text is kept only if errors have to show it.
            let source = vm.world().sources.borrow_mut().add("<edn>", text);
            Err(error.in_source(source).into_exception().into())
        }
    }
}

/// The map of options, if one was given.
pub(super) type Options = Option<std::rc::Rc<Map>>;

/// Returns the map of options that comes before the text, if there is one.
fn options(args: &Args<'_>, known: &[&str]) -> Result<Options> {
    if args.len() == 1 || args.get(0).is_nil() {
        return Ok(None);
    }
    let options = args.map(0)?;
    for (key, value) in options.iter() {
        let is_known = key
            .as_keyword()
            .is_some_and(|key| known.iter().any(|name| key.is(name)));
        if !is_known {
            let why = format!("the options are :{}", known.join(" :"));
            let name = brief(key);
            return Err(bad_option(name.trim_start_matches(':'), value, &why));
        }
    }
    Ok(Some(options.clone()))
}

fn bad_option(name: &str, value: &Value, why: &str) -> Signal {
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0387",
        format!("`:{name} {}` is not an option here", brief(value)),
    )
    .argument(0)
    .hint(why)
    .into()
}

fn option<'a>(options: &'a Options, name: &str) -> Option<&'a Value> {
    options.as_ref()?.get(&Value::keyword(name))
}

/// Returns the value of `:eof`, or the default, or fails.
pub(super) fn at_end(options: &Options, default: Option<Value>) -> Result<Value> {
    if let Some(value) = option(options, "eof").cloned().or(default) {
        return Ok(value);
    }
    Err(
        Exception::new(Class::RUNTIME_EXCEPTION, "E0126", "the text holds no form")
            .hint("give `{:eof value}` to get a value instead of this error")
            .into(),
    )
}

/// Reads tags with functions of the program.
struct DataReaders<'a> {
    vm: &'a mut Vm,
    /// Functions by tag, or nil.
    readers: Value,
    /// A function of tag and form, or nil.
    default: Value,
    /// The exception that a function threw, which the reader's caller passes on instead of an error of the text.
    failed: Option<Signal>,
}

impl ReadContext for DataReaders<'_> {
    fn resolve_alias(&self, _alias: &str) -> Option<String> {
        None
    }

    fn current_namespace(&self) -> String {
        self.vm.world().current.borrow().name.to_string()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        symbol
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        Symbol::new(&format!("{prefix}{}", self.vm.world().next_id()))
    }

    fn read_tag(&mut self, tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        let reader = self
            .readers
            .as_map()
            .and_then(|readers| readers.get(&Value::Symbol(tag)).cloned());
        let is_builtin = tag.is("inst") || tag.is("uuid");
        let (function, args) = match reader {
            Some(reader) => (reader, vec![form]),
            None if is_builtin => return None,
            None if self.default.is_nil() => {
                return Some(Err(format!(
                    "no function reads `#{tag}`: give one in :readers, or a :default"
                )));
            }
            None => (self.default.clone(), vec![tag.into(), form]),
        };
        Some(self.vm.call(&function, &args).map_err(|signal| {
            self.failed = Some(signal);
            "its reader failed".to_owned()
        }))
    }
}

const CONDITIONAL: Native = Native {
    name: "reader-conditional",
    usage: "(reader-conditional form splicing?)",
    doc: "Returns a reader conditional as a value, as :read-cond :preserve reads it. (:form x) and (:splicing? x) return its parts.",
    examples: &[(
        "(pr-str (reader-conditional '(:a 1) false))",
        r##""#?(:a 1)""##,
    )],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let splicing = args.get(1).is_truthy();
        let form = args.take(0);
        Ok(Object::Conditional { form, splicing }.into())
    },
};

const IS_CONDITIONAL: Native = Native {
    name: "reader-conditional?",
    usage: "(reader-conditional? x)",
    doc: "Tells whether x is a reader conditional that was read with :preserve.",
    examples: &[("(reader-conditional? '(:a 1))", "false")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(match args.get(0) {
            Value::Object(object) => matches!(&**object, Object::Conditional { .. }),
            _ => false,
        }))
    },
};

const TAGGED_LITERAL: Native = Native {
    name: "tagged-literal",
    usage: "(tagged-literal tag form)",
    doc: "Returns the form with the tag, a symbol: the value of data with an unknown tag. (:tag x) and (:form x) return its parts.",
    examples: &[("(pr-str (tagged-literal 'my/tag 1))", r##""#my/tag 1""##)],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let tag = args.symbol(0)?;
        let form = args.take(1);
        Ok(Object::Tagged { tag, form }.into())
    },
};

const IS_TAGGED: Native = Native {
    name: "tagged-literal?",
    usage: "(tagged-literal? x)",
    doc: "Tells whether x is a tagged literal.",
    examples: &[("(tagged-literal? (tagged-literal 'a 1))", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(match args.get(0) {
            Value::Object(object) => matches!(&**object, Object::Tagged { .. }),
            _ => false,
        }))
    },
};
