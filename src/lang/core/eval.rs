//! Evaluation and expansion of forms at run time.

use super::namespaces::argument_text;
use crate::compiler;
use crate::value::{Arity, Native, Value};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    DESTRUCTURE,
    EVAL,
    FORM_PLACE,
    GENSYM,
    LOAD_FILE,
    LOAD_STRING,
    MACROEXPAND,
    MACROEXPAND_1,
];

const DESTRUCTURE: Native = Native {
    name: "destructure",
    usage: "(destructure bindings)",
    doc: "Returns a vector of bindings, as in a let, with the patterns in it expanded: only plain names are bound.",
    examples: &[("(destructure '[a 1])", "[a 1]")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        args.vector(0)?;
        vm.touch_session()?;
        compiler::destructure(vm, &Value::Nil, args.get(0))
    },
};

const EVAL: Native = Native {
    name: "eval",
    usage: "(eval form)",
    doc: "Compiles and runs a form in the current namespace, and returns its value.",
    examples: &[("(eval '(+ 1 2))", "3")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.touch_session()?;
        let loader = vm.world().loader();
        loader.eval(vm, args.get(0))
    },
};

const FORM_PLACE: Native = Native {
    name: "form-place",
    usage: "(form-place form)",
    doc: "Returns a map of :file, :line and :column of the place where a form was read, or nil.",
    examples: &[("(form-place 1)", "nil")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let span = args.get(0).span();
        let sources = vm.world().sources.borrow();
        let Some(source) = span.is_some().then(|| sources.get(span.source)).flatten() else {
            return Ok(Value::Nil);
        };
        let at = source.line_column(span.start);
        Ok(Value::map([
            (Value::keyword("file"), Value::text(&*source.name)),
            (Value::keyword("line"), Value::Int(i64::from(at.line))),
            (Value::keyword("column"), Value::Int(i64::from(at.column))),
        ]))
    },
};

const GENSYM: Native = Native {
    name: "gensym",
    usage: "(gensym)\n(gensym prefix)",
    doc: "Returns a symbol that was not returned before, with prefix (G__).",
    examples: &[("(symbol? (gensym))", "true")],
    arity: Arity::between(0, 1),
    run: |vm, args| {
        let prefix = if args.is_empty() {
            "G__".to_owned()
        } else {
            argument_text(&args, 0)?
        };
        vm.touch_session()?;
        let id = vm.world().next_id();
        Ok(Value::symbol(&format!("{prefix}{id}")))
    },
};

const LOAD_FILE: Native = Native {
    name: "load-file",
    usage: "(load-file path)",
    doc: "Reads and runs all forms of a file, and returns the value of the last.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let path = args.text(0)?.as_str().to_owned();
        let text = vm.host().read_file(&path).map_err(|why| {
            crate::value::Exception::new(
                crate::value::Class::FILE_NOT_FOUND,
                "E0340",
                format!("cannot read {path}: {why}"),
            )
        })?;
        let loader = vm.world().loader();
        loader.load_text(vm, &path, &text)
    },
};

const LOAD_STRING: Native = Native {
    name: "load-string",
    usage: "(load-string s)",
    doc: "Reads and runs all forms of a string, and returns the value of the last.",
    examples: &[(r#"(load-string "(def a 1) (inc a)")"#, "2")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = args.text(0)?.clone();
        vm.touch_session()?;
        let loader = vm.world().loader();
        loader.load_text(vm, "<string>", &text)
    },
};

const MACROEXPAND: Native = Native {
    name: "macroexpand",
    usage: "(macroexpand form)",
    doc: "Expands a form until it is no longer a macro call; forms inside it are not expanded.",
    examples: &[("(macroexpand '(when a b))", "(if a (do b))")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        vm.touch_session()?;
        let loader = vm.world().loader();
        let mut form = args.take(0);
        loop {
            vm.charge(1)?;
            let expanded = loader.macroexpand_1(vm, &form)?;
            if super::hash::identical(&expanded, &form) {
                return Ok(form);
            }
            form = expanded;
        }
    },
};

const MACROEXPAND_1: Native = Native {
    name: "macroexpand-1",
    usage: "(macroexpand-1 form)",
    doc: "Expands a macro call once; returns any other form unchanged.",
    examples: &[("(macroexpand-1 '(when a b))", "(if a (do b))")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.touch_session()?;
        let loader = vm.world().loader();
        loader.macroexpand_1(vm, args.get(0))
    },
};
