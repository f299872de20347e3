//! Strings, keywords and symbols: creating them, splitting them, and testing for them.

use crate::value::{
    Arity, Class, Exception, Keyword, Native, Result, Signal, Symbol, Value, check_name,
    check_names, name_count, write_str,
};
use crate::vm::{Args, Vm, wrong_type};

pub(super) const FNS: &[Native] = &[
    FIND_KEYWORD,
    IS_CHAR,
    IS_IDENT,
    IS_KEYWORD,
    IS_QUALIFIED_IDENT,
    IS_QUALIFIED_KEYWORD,
    IS_QUALIFIED_SYMBOL,
    IS_SIMPLE_IDENT,
    IS_SIMPLE_KEYWORD,
    IS_SIMPLE_SYMBOL,
    IS_STRING,
    IS_SYMBOL,
    KEYWORD,
    MUNGE,
    NAME,
    NAMESPACE,
    NAMESPACE_MUNGE,
    STR,
    SUBS,
    SYMBOL,
];

const STR: Native = Native {
    name: "str",
    usage: "(str & xs)",
    doc: "Returns the text of each x, joined. nil has no text.",
    examples: &[
        (r#"(str "a" 1 :b nil \c)"#, r#""a1:bc""#),
        (r#"(str ["a"])"#, r#""[\"a\"]""#),
    ],
    arity: Arity::at_least(0),
    run: |vm, mut args| {
        if let [Value::Text(_)] = args.as_slice() {
            return Ok(args.take(0));
        }
        let mut out = String::new();
        for value in args.as_slice() {
            write_str(&mut out, vm, value)?;
        }
        // Copying is fast, but appending a letter to a long text repeatedly is not.
        vm.charge((out.len() / 256) as u32)?;
        Ok(Value::from(out))
    },
};

const SUBS: Native = Native {
    name: "subs",
    usage: "(subs s start)\n(subs s start end)",
    doc: "Returns the characters of s from start up to, not including, end, or to its end.",
    examples: &[
        (r#"(subs "hello" 1 3)"#, r#""el""#),
        (r#"(subs "hello" 1)"#, r#""ello""#),
    ],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        let text = args.text(0)?;
        let start = position(&args, 1)?;
        let end = if args.len() == 3 {
            position(&args, 2)?
        } else {
            text.len()
        };
        if start > end {
            return Err(out_of_text(&args, 2));
        }
        vm.charge((end - start) as u32 / 256)?;
        Ok(Value::from(&text[start..end]))
    },
};

/// Returns the byte offset in the string of argument 0 of the character index given by an argument.
fn position(args: &Args<'_>, idx: usize) -> Result<usize> {
    let at = args.position(idx)?;
    usize::try_from(at)
        .ok()
        .and_then(|at| args.text(0).ok()?.offset(at))
        .ok_or_else(|| out_of_text(args, idx))
}

fn out_of_text(args: &Args<'_>, idx: usize) -> Signal {
    let count = args.text(0).map_or(0, |text| text.count());
    let at = args.get(idx).as_int().unwrap_or(0);
    let message = if idx == 2 && usize::try_from(at).is_ok_and(|at| at <= count) {
        let start = args.get(1).as_int().unwrap_or(0);
        format!("the end {at} lies before the start {start}")
    } else {
        format!("there is no position {at} in a string of {count} characters")
    };
    Exception::new(Class::STRING_INDEX_OUT_OF_BOUNDS, "E0381", message)
        .argument(idx)
        .hint("positions go from 0 to the length, (count s), and the end is not before the start")
        .into()
}

const MUNGE: Native = Native {
    name: "munge",
    usage: "(munge s)",
    doc: "Returns a name that is valid in Java: each special character in the string or symbol is replaced by a word, a hyphen by an underscore.",
    examples: &[
        (r#"(munge "ready?")"#, r#""ready_QMARK_""#),
        ("(munge 'a-b)", "a_b"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let mut name = String::new();
        write_str(&mut name, vm, args.get(0))?;
        let mut out = String::with_capacity(name.len());
        for char in name.chars() {
            vm.charge(1)?;
            match word_of_sign(char) {
                Some(word) => out.push_str(word),
                None => out.push(char),
            }
        }
        Ok(match args.get(0).as_symbol() {
            Some(_) => Value::symbol(&out),
            None => Value::from(out),
        })
    },
};

/// Returns the name that Clojure uses for a special character in the names of Java classes.
fn word_of_sign(sign: char) -> Option<&'static str> {
    Some(match sign {
        '-' => "_",
        ':' => "_COLON_",
        '+' => "_PLUS_",
        '>' => "_GT_",
        '<' => "_LT_",
        '=' => "_EQ_",
        '~' => "_TILDE_",
        '!' => "_BANG_",
        '@' => "_CIRCA_",
        '#' => "_SHARP_",
        '\'' => "_SINGLEQUOTE_",
        '"' => "_DOUBLEQUOTE_",
        '%' => "_PERCENT_",
        '^' => "_CARET_",
        '&' => "_AMPERSAND_",
        '*' => "_STAR_",
        '|' => "_BAR_",
        '{' => "_LBRACE_",
        '}' => "_RBRACE_",
        '[' => "_LBRACK_",
        ']' => "_RBRACK_",
        '/' => "_SLASH_",
        '\\' => "_BSLASH_",
        '?' => "_QMARK_",
        _ => return None,
    })
}

const NAME: Native = Native {
    name: "name",
    usage: "(name x)",
    doc: "Returns the name of a keyword or symbol without its namespace, or the string itself.",
    examples: &[("(name :a/b)", r#""b""#), (r#"(name "a")"#, r#""a""#)],
    arity: Arity::exactly(1),
    run: |_, mut args| match args.get(0) {
        Value::Keyword(keyword) => Ok(Value::from(&*keyword.name())),
        Value::Symbol(symbol) => Ok(Value::from(&*symbol.name())),
        Value::Name(name) => Ok(Value::from(&*name.symbol.name())),
        Value::Text(_) => Ok(args.take(0)),
        _ => Err(args.expected(0, "a keyword, symbol or string")),
    },
};

const NAMESPACE: Native = Native {
    name: "namespace",
    usage: "(namespace x)",
    doc: "Returns the namespace of a keyword or symbol, or nil if it has none.",
    examples: &[("(namespace :a/b)", r#""a""#), ("(namespace :b)", "nil")],
    arity: Arity::exactly(1),
    run: |_, args| {
        let (namespace, _) =
            parts(args.get(0)).ok_or_else(|| args.expected(0, "a keyword or symbol"))?;
        Ok(namespace.map_or(Value::Nil, |namespace| Value::from(&*namespace)))
    },
};

const NAMESPACE_MUNGE: Native = Native {
    name: "namespace-munge",
    usage: "(namespace-munge ns)",
    doc: "Returns the name of a namespace, given as a symbol or string, with hyphens replaced by underscores.",
    examples: &[("(namespace-munge 'my-app.main)", r#""my_app.main""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let mut name = String::new();
        write_str(&mut name, vm, args.get(0))?;
        Ok(Value::from(name.replace('-', "_")))
    },
};

type Parts = (Option<std::rc::Rc<str>>, std::rc::Rc<str>);

/// Returns the namespace and name of a keyword or symbol.
fn parts(value: &Value) -> Option<Parts> {
    if let Value::Keyword(keyword) = value {
        return Some((keyword.namespace(), keyword.name()));
    }
    let symbol = value.as_symbol()?;
    Some((symbol.namespace(), symbol.name()))
}

const KEYWORD: Native = Native {
    name: "keyword",
    usage: "(keyword name)\n(keyword namespace name)",
    doc: "Returns the keyword of that name. name may be a keyword, symbol or string; nil for anything else.",
    examples: &[
        (r#"(keyword "a")"#, ":a"),
        (r#"(keyword "a" "b")"#, ":a/b"),
        ("(keyword 'a/b)", ":a/b"),
    ],
    arity: Arity::between(1, 2),
    run: |_, args| {
        let before = name_count();
        if args.len() == 2 {
            return two_parts(&args, |namespace, name| {
                Keyword::with_namespace(namespace, name).into()
            });
        }
        let made = match args.get(0) {
            Value::Keyword(keyword) => Value::Keyword(*keyword),
            Value::Text(text) => {
                check_name(text.len())?;
                Value::keyword(text)
            }
            other => other
                .as_symbol()
                .map_or(Value::Nil, |symbol| Value::Keyword(symbol.into())),
        };
        check_names(before)?;
        Ok(made)
    },
};

/// Creates a name from the two strings of a call; the first may be nil.
fn two_parts(args: &Args<'_>, make: fn(Option<&str>, &str) -> Value) -> Result<Value> {
    let text = |idx| match args.get(idx) {
        Value::Nil if idx == 0 => Ok(None),
        Value::Text(text) => Ok(Some(text.to_string())),
        _ => Err(args.expected(idx, "a string")),
    };
    let namespace = text(0)?;
    let name = text(1)?.unwrap_or_default();
    check_name(namespace.as_ref().map_or(0, String::len) + name.len())?;
    let before = name_count();
    let made = make(namespace.as_deref(), &name);
    check_names(before)?;
    Ok(made)
}

const FIND_KEYWORD: Native = Native {
    name: "find-keyword",
    usage: "(find-keyword name)\n(find-keyword namespace name)",
    doc: "Returns the keyword of that name. Keywords need not exist before they are found here.",
    examples: &[(r#"(find-keyword "a")"#, ":a")],
    arity: Arity::between(1, 2),
    run: KEYWORD.run,
};

const SYMBOL: Native = Native {
    name: "symbol",
    usage: "(symbol name)\n(symbol namespace name)",
    doc: "Returns the symbol of that name: of a string, a keyword or a var.",
    examples: &[
        (r#"(symbol "a")"#, "a"),
        (r#"(symbol "a" "b")"#, "a/b"),
        ("(symbol :a/b)", "a/b"),
    ],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        if args.len() == 2 {
            let namespace = match args.get(0) {
                Value::Nil => None,
                _ => Some(args.text(0)?.as_str()),
            };
            let name = args.text(1)?;
            check_name(namespace.map_or(0, str::len) + name.len())?;
            let before = name_count();
            let symbol = Symbol::with_namespace(namespace, name);
            check_names(before)?;
            return Ok(symbol.into());
        }
        match args.get(0) {
            Value::Symbol(_) | Value::Name(_) => Ok(args.take(0)),
            Value::Text(text) => {
                check_name(text.len())?;
                let before = name_count();
                let symbol = Value::symbol(text);
                check_names(before)?;
                Ok(symbol)
            }
            Value::Keyword(keyword) => Ok(Value::Symbol((*keyword).into())),
            Value::Var(var) => Ok(Value::Symbol(var.qualified())),
            _ => Err(
                wrong_type(args.get(0), "a string, symbol, keyword or var", 0)
                    .of_class(Class::ILLEGAL_ARGUMENT)
                    .into(),
            ),
        }
    },
};

const IS_STRING: Native = Native {
    name: "string?",
    usage: "(string? x)",
    doc: "Tells whether x is a string.",
    examples: &[(r#"(string? "a")"#, "true"), ("(string? :a)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| matches!(value, Value::Text(_))),
};

const IS_CHAR: Native = Native {
    name: "char?",
    usage: "(char? x)",
    doc: "Tells whether x is a character.",
    examples: &[(r"(char? \a)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| matches!(value, Value::Char(_))),
};

const IS_KEYWORD: Native = Native {
    name: "keyword?",
    usage: "(keyword? x)",
    doc: "Tells whether x is a keyword.",
    examples: &[("(keyword? :a)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| value.as_keyword().is_some()),
};

const IS_SYMBOL: Native = Native {
    name: "symbol?",
    usage: "(symbol? x)",
    doc: "Tells whether x is a symbol.",
    examples: &[("(symbol? 'a)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| value.as_symbol().is_some()),
};

const IS_IDENT: Native = Native {
    name: "ident?",
    usage: "(ident? x)",
    doc: "Tells whether x is a keyword or a symbol.",
    examples: &[("(ident? :a)", "true"), (r#"(ident? "a")"#, "false")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| parts(value).is_some()),
};

const IS_SIMPLE_IDENT: Native = Native {
    name: "simple-ident?",
    usage: "(simple-ident? x)",
    doc: "Tells whether x is a keyword or symbol without a namespace.",
    examples: &[
        ("(simple-ident? :a)", "true"),
        ("(simple-ident? :a/b)", "false"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| is_qualified(value) == Some(false)),
};

const IS_QUALIFIED_IDENT: Native = Native {
    name: "qualified-ident?",
    usage: "(qualified-ident? x)",
    doc: "Tells whether x is a keyword or symbol with a namespace.",
    examples: &[("(qualified-ident? 'a/b)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| test(&args, |value| is_qualified(value) == Some(true)),
};

const IS_SIMPLE_KEYWORD: Native = Native {
    name: "simple-keyword?",
    usage: "(simple-keyword? x)",
    doc: "Tells whether x is a keyword without a namespace.",
    examples: &[("(simple-keyword? :a)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        test(&args, |value| {
            value.as_keyword().is_some() && is_qualified(value) == Some(false)
        })
    },
};

const IS_QUALIFIED_KEYWORD: Native = Native {
    name: "qualified-keyword?",
    usage: "(qualified-keyword? x)",
    doc: "Tells whether x is a keyword with a namespace.",
    examples: &[("(qualified-keyword? :a/b)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        test(&args, |value| {
            value.as_keyword().is_some() && is_qualified(value) == Some(true)
        })
    },
};

const IS_SIMPLE_SYMBOL: Native = Native {
    name: "simple-symbol?",
    usage: "(simple-symbol? x)",
    doc: "Tells whether x is a symbol without a namespace.",
    examples: &[("(simple-symbol? 'a)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        test(&args, |value| {
            value.as_symbol().is_some() && is_qualified(value) == Some(false)
        })
    },
};

const IS_QUALIFIED_SYMBOL: Native = Native {
    name: "qualified-symbol?",
    usage: "(qualified-symbol? x)",
    doc: "Tells whether x is a symbol with a namespace.",
    examples: &[("(qualified-symbol? 'a/b)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        test(&args, |value| {
            value.as_symbol().is_some() && is_qualified(value) == Some(true)
        })
    },
};

/// Tells whether a keyword or symbol has a namespace; `None` for any other value.
fn is_qualified(value: &Value) -> Option<bool> {
    parts(value).map(|(namespace, _)| namespace.is_some())
}

fn test(args: &Args<'_>, holds: fn(&Value) -> bool) -> Result<Value> {
    Ok(Value::Bool(holds(args.get(0))))
}

/// Returns the text of a value, as `str` does.
pub(super) fn text_of(vm: &mut Vm, value: &Value) -> Result<String> {
    let mut out = String::new();
    write_str(&mut out, vm, value)?;
    Ok(out)
}
