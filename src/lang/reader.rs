//! The reader: text in, forms out.
//!
//! One reader serves source code and data ([`Mode`]). It works on byte offsets and keeps its own stack of
//! open forms, so that nesting is bounded by [`ReadOptions::max_depth`] and never by the machine's stack.
//! It knows nothing of namespaces or of the VM: what depends on them it asks of a [`ReadContext`].
//! In code every list, vector, map, set and symbol carries its place; in data nothing does.

mod build;
mod character;
mod code;
mod complete;
mod dispatch;
mod error;
mod frame;
mod function;
mod instant;
mod number;
mod scan;
mod string;
mod syntax_quote;
mod token;
mod words;

use crate::value::{Conditionals, SourceId, Span, Symbol, Value, meter};

use frame::{Frame, Kind};
use function::FunctionArgs;

pub use error::ReadError;
pub use instant::{parse_instant, parse_uuid};

/// The deepest nesting that is read unless the options say otherwise.
pub const MAX_DEPTH: usize = 10_000;

/// What kind of text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything that Clojure reads; forms carry places.
    Code,
    /// EDN: no quoting, no `#()`, no regexes; unknown tags are kept.
    Data,
}

/// How to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'a> {
    /// What kind of text it is.
    pub mode: Mode,
    /// The features that `#?` chooses, without colon; `:default` is chosen in any case.
    pub features: &'a [&'a str],
    /// The text that spans refer to.
    pub source: SourceId,
    /// The deepest nesting that is read.
    pub max_depth: usize,
    /// What becomes of reader conditionals.
    pub conditionals: Conditionals,
}

impl ReadOptions<'_> {
    /// Source code, with the features of a program.
    pub fn code(source: SourceId) -> ReadOptions<'static> {
        ReadOptions {
            mode: Mode::Code,
            features: &["flowstone"],
            source,
            max_depth: MAX_DEPTH,
            conditionals: Conditionals::Choose,
        }
    }

    /// Source code of a flow file, where `:clj` branches count too.
    pub fn flow(source: SourceId) -> ReadOptions<'static> {
        ReadOptions {
            features: &["flowstone", "clj"],
            ..ReadOptions::code(source)
        }
    }

    /// Data.
    pub fn data(source: SourceId) -> ReadOptions<'static> {
        ReadOptions {
            mode: Mode::Data,
            features: &[],
            source,
            max_depth: MAX_DEPTH,
            conditionals: Conditionals::Choose,
        }
    }
}

/// The questions that the reader asks about namespaces.
pub trait ReadContext {
    /// Returns the namespace that an alias stands for, for `::alias/name`.
    fn resolve_alias(&self, alias: &str) -> Option<String>;

    /// Returns the current namespace, for `::name`.
    fn current_namespace(&self) -> String;

    /// Returns what syntax-quote makes of a symbol: special forms stay, others get their namespace.
    fn resolve_symbol(&self, symbol: Symbol) -> Symbol;

    /// Returns a symbol that was not there before: `prefix` and a number.
    fn gensym(&mut self, prefix: &str) -> Symbol;

    /// Returns what a tagged form stands for; `None` where the tag is unknown: data keeps it as a tagged
    /// literal, in code it is an error. `#inst` and `#uuid` need no answer here.
    fn read_tag(&mut self, tag: Symbol, form: Value) -> Option<Result<Value, String>>;
}

/// A context without namespaces or data readers: for data.
#[derive(Debug, Default)]
pub struct NoContext {
    gensym: u64,
}

impl ReadContext for NoContext {
    fn resolve_alias(&self, _alias: &str) -> Option<String> {
        None
    }

    fn current_namespace(&self) -> String {
        "user".to_owned()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        symbol
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        self.gensym += 1;
        Symbol::new(&format!("{prefix}{}", self.gensym))
    }

    fn read_tag(&mut self, _tag: Symbol, _form: Value) -> Option<Result<Value, String>> {
        None
    }
}

/// Reads forms from one text, one after another.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    options: ReadOptions<'a>,
    /// The open forms, outermost first.
    frames: Vec<Frame>,
    /// The items read so far of all open forms.
    values: Vec<Value>,
    /// A span for each of `values`, where `tracked`.
    spans: Vec<Span>,
    /// Whether spans are kept: in code always, in data only to say where an error is.
    tracked: bool,
    /// How many of the open forms will be thrown away: in them tags and aliases need not be known.
    quiet: usize,
    /// The parameters of the `#()` that is open.
    function: Option<FunctionArgs>,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the beginning of a text, after a byte order mark.
    pub fn new(text: &'a str, options: ReadOptions<'a>) -> Reader<'a> {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Reader {
            text,
            at,
            options,
            frames: Vec::new(),
            values: Vec::new(),
            spans: Vec::new(),
            tracked: options.mode == Mode::Code,
            quiet: 0,
            function: None,
        }
    }

    /// Goes on at a byte offset, at a character boundary: for a form in the middle of a file.
    pub fn skip_to(&mut self, offset: u32) {
        self.at = (offset as usize).min(self.text.len());
    }

    /// Returns the byte offset up to which the text is read.
    pub fn position(&self) -> u32 {
        self.at as u32
    }

    /// Reads the next form; `None` at the end of the text. After an error the rest of the text is not
    /// read: the next call returns `None`.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn next(&mut self, cx: &mut dyn ReadContext) -> Result<Option<Value>, ReadError> {
        if u32::try_from(self.text.len()).is_err() {
            return Err(self.too_large());
        }
        let result = self.next_form(cx);
        if result.is_err() {
            self.abandon();
        }
        result
    }

    fn next_form(&mut self, cx: &mut dyn ReadContext) -> Result<Option<Value>, ReadError> {
        loop {
            self.skip_blank();
            let Some(&byte) = self.text.as_bytes().get(self.at) else {
                return self.end();
            };
            if meter::spend_watched(1).is_err() {
                return Err(self.stopped());
            }
            if let Some((value, span)) = self.read_at(byte, cx)?
                && let Some(form) = self.complete(value, span, cx)?
            {
                return Ok(Some(form));
            }
        }
    }

    /// Reads one token. Gives a value, or nothing where it opened a form or left nothing behind.
    fn read_at(
        &mut self,
        byte: u8,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        match byte {
            b'(' => self.open(Kind::List, 1),
            b'[' => self.open(Kind::Vector, 1),
            b'{' => self.open(Kind::Map, 1),
            b')' | b']' | b'}' => self.close(byte, cx),
            b'"' => self.string().map(Some),
            b'\\' => self.character().map(Some),
            b'#' => self.dispatch(cx),
            b'^' => self.open(Kind::Meta, 1),
            b'\'' => self.open_code(Kind::Wrap("quote"), 1, "`'` (quote)"),
            b'@' => self.open_code(Kind::Wrap("clojure.core/deref"), 1, "`@` (deref)"),
            b'`' => self.open_code(Kind::SyntaxQuote, 1, "`` ` `` (syntax-quote)"),
            b'~' if self.byte(1) == Some(b'@') => {
                self.open_code(Kind::Wrap("clojure.core/unquote-splicing"), 2, "`~@`")
            }
            b'~' => self.open_code(Kind::Wrap("clojure.core/unquote"), 1, "`~` (unquote)"),
            _ => self.token(cx).map(Some),
        }
    }

    /// Ends the text: fine where nothing is open.
    fn end(&self) -> Result<Option<Value>, ReadError> {
        match self.frames.last() {
            None => Ok(None),
            Some(frame) => Err(self.unfinished(frame)),
        }
    }

    fn abandon(&mut self) {
        self.at = self.text.len();
        self.frames.clear();
        self.values.clear();
        self.spans.clear();
        self.quiet = 0;
        self.function = None;
    }

    fn is_code(&self) -> bool {
        self.options.mode == Mode::Code
    }

    /// Returns the byte `ahead` of the current one.
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            source: self.options.source,
            start: start as u32,
            end: end as u32,
        }
    }
}

/// Reads a text of exactly one form of data.
///
/// # Errors
/// What is wrong with the text, and where; also when there is no form, or more than one.
pub fn read_data(text: &str) -> Result<Value, ReadError> {
    let mut reader = Reader::new(text, ReadOptions::data(Span::NONE.source));
    let mut cx = NoContext::default();
    let Some(form) = reader.next(&mut cx)? else {
        return Err(reader.nothing_there());
    };
    reader.skip_blank();
    let second = reader.at;
    match reader.next(&mut cx)? {
        None => Ok(form),
        Some(_) => Err(reader.more_than_one(second)),
    }
}

/// Reads every form of a text of data.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn read_all_data(text: &str) -> Result<Vec<Value>, ReadError> {
    let mut reader = Reader::new(text, ReadOptions::data(Span::NONE.source));
    let mut cx = NoContext::default();
    let mut forms = Vec::new();
    while let Some(form) = reader.next(&mut cx)? {
        forms.push(form);
    }
    Ok(forms)
}
