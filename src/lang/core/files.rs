//! Text files, if the host allows them: in programs that were started with them, never in flows.

use crate::value::{
    Arity, Class, Exception, Keyword, Native, PrintOptions, Result, TextReader, Value,
};
use crate::vm::{Args, Vm};

pub(super) const FNS: &[Native] = &[FILES_BELOW, SLURP, SPIT];

const FILES_BELOW: Native = Native {
    name: "-files-in",
    usage: "(-files-in path)",
    doc: "Returns the paths of the files and folders in a folder, sorted; nil if the path is not a folder. Used by file-seq.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let path = args.text(0)?.as_str().to_owned();
        let paths = vm.host().list_folder(&path).map_err(refused)?;
        Ok(paths.map_or(Value::Nil, |paths| {
            Value::list(paths.into_iter().map(Value::from))
        }))
    },
};

const SLURP: Native = Native {
    name: "slurp",
    usage: "(slurp path)\n(slurp reader & options)",
    doc: "Returns the text of a file, or the rest of a reader or stream. Options such as :encoding are accepted; texts are UTF-8. Programs may read files when they are started with --allow-files; in a flow, use a :files step.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| {
        if let Some(reader) = TextReader::of(args.get(0)) {
            return super::streams::read_all(vm, reader);
        }
        if let Some(text) = vm.call_own_method(args.get(0), "readText", &[])? {
            return Ok(text);
        }
        let path = path(vm, &args)?;
        let text = vm.host().read_file(&path);
        text.map(Value::from)
            .map_err(|why| refused(why).of_class(Class::FILE_NOT_FOUND).into())
    },
};

const SPIT: Native = Native {
    name: "spit",
    usage: "(spit path content)\n(spit path content :append true)",
    doc: "Writes the text of content, as str returns it, to a file. Programs may write files when they are started with --allow-files.",
    examples: &[],
    arity: Arity::at_least(2),
    run: spit,
};

/// Returns the path of a file: a string, or the path of a `java.io.File` object.
fn path(vm: &mut Vm, args: &Args<'_>) -> Result<String> {
    if let Some(Value::Text(path)) = vm.call_own_method(args.get(0), "getPath", &[])? {
        return Ok(path.as_str().to_owned());
    }
    Ok(args.text(0)?.as_str().to_owned())
}

fn spit(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let path = path(vm, &args)?;
    let text = match args.get(1) {
        Value::Nil => String::new(),
        content => {
            let content = content.clone();
            vm.print(&content, PrintOptions::PLAIN)?
        }
    };
    let append = args.from(2).chunks(2).any(|option| {
        option.len() == 2
            && option[0] == Value::Keyword(Keyword::new("append"))
            && option[1].is_truthy()
    });
    let written = vm.host().write_file(&path, &text, append);
    written
        .map(|()| Value::Nil)
        .map_err(|why| refused(why).into())
}

fn refused(why: String) -> Exception {
    Exception::new(Class::IO_EXCEPTION, "E0388", why)
}
