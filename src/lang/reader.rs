//! The reader turns text into forms.
//!
//! One reader serves source code and data ([`Mode`]). It works on byte offsets and keeps its own stack of open forms,
//! so that nesting is bounded by [`ReadOptions::max_depth`] and never by the machine's stack. It does not know about
//! namespaces or the VM: a [`ReadContext`] answers questions about them. In code every list, vector, map, set and
//! symbol carries its place; in data no form does.

mod build;
mod character;
mod clojure;
mod code;
mod complete;
mod dispatch;
mod error;
mod frame;
mod function;
mod instant;
mod number;
mod repair;
mod scan;
mod string;
mod syntax_quote;
mod token;

use crate::value::{Conditionals, SourceId, Span, Symbol, Value, meter};

use frame::{Frame, Kind};
use function::FunctionArgs;

pub use error::ReadError;
pub use instant::{parse_instant, parse_uuid};
pub(crate) use scan::is_blank;

/// Default of the maximum nesting depth.
pub const MAX_DEPTH: usize = 10_000;

/// The kind of text to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything that Clojure's reader accepts; forms carry places.
    Code,
    /// EDN: no quoting, no `#()`, no regexes; unknown tags are kept.
    Data,
}

/// The options of a reader.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'a> {
    /// The kind of text.
    pub mode: Mode,
    /// The features that `#?` chooses, without colon; `:default` is always chosen.
    pub features: &'a [&'a str],
    /// The text that spans refer to.
    pub source: SourceId,
    /// The maximum nesting depth.
    pub max_depth: usize,
    /// How to treat reader conditionals.
    pub conditionals: Conditionals,
}

impl ReadOptions<'_> {
    /// Returns the options for source code, with the features of a program.
    pub fn code(source: SourceId) -> ReadOptions<'static> {
        ReadOptions {
            mode: Mode::Code,
            features: &["flowstone"],
            source,
            max_depth: MAX_DEPTH,
            conditionals: Conditionals::Choose,
        }
    }

    /// Returns the options for the source code of a flow file, for which `:clj` branches are chosen too.
    pub fn flow(source: SourceId) -> ReadOptions<'static> {
        ReadOptions {
            features: &["flowstone", "clj"],
            ..ReadOptions::code(source)
        }
    }

    /// Returns the options for data.
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
    /// Returns the namespace of an alias, for `::alias/name`.
    fn resolve_alias(&self, alias: &str) -> Option<String>;

    /// Returns the current namespace, for `::name`.
    fn current_namespace(&self) -> String;

    /// Returns the symbol that syntax-quote writes for a symbol: special forms stay, others get their namespace.
    fn resolve_symbol(&self, symbol: Symbol) -> Symbol;

    /// Returns a new, unused symbol: `prefix` and a number.
    fn gensym(&mut self, prefix: &str) -> Symbol;

    /// Returns the value of a tagged form; `None` if the tag is unknown: data keeps it as a tagged literal, in code it
    /// is an error. `#inst` and `#uuid` are never passed to this.
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

/// A reader of the forms of one text, one after another.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    options: ReadOptions<'a>,
    /// The open forms, outermost first.
    frames: Vec<Frame>,
    /// The items of all open forms that were read so far.
    values: Vec<Value>,
    /// A span for each of `values`, where `tracked`.
    spans: Vec<Span>,
    /// Whether spans are kept: always in code, in data only to locate an error.
    tracked: bool,
    /// The number of open forms that will be discarded: their tags and aliases may be unknown.
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

    /// Continues at a byte offset, which must be a character boundary: for a form in the middle of a file.
    pub fn skip_to(&mut self, offset: u32) {
        self.at = (offset as usize).min(self.text.len());
    }

    /// Returns the byte offset up to which the text is read.
    pub fn position(&self) -> u32 {
        self.at as u32
    }

    /// Reads the next form; `None` at the end of the text. After an error the rest of the text is not read: the next
    /// call returns `None`.
    ///
    /// # Errors
    /// A description of what is wrong with the text, and where.
    pub fn next(&mut self, cx: &mut dyn ReadContext) -> Result<Option<Value>, ReadError> {
        if u32::try_from(self.text.len()).is_err() {
            return Err(self.too_large());
        }
        let mut result = self.next_form(cx);
        if let Err(error) = &mut result {
            if self.options.mode == Mode::Code && error.is_of_delimiters() {
                let source = self.options.source;
                error.changes.extend(repair::change(self.text, source));
            }
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

    /// Reads one token. Returns its value, or `None` if it opened a form or was discarded.
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

    /// Handles the end of the text: an error if a form is open.
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

    /// Returns the byte `ahead` bytes after the current one.
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
/// A description of what is wrong with the text, and where; also if there is no form, or more than one.
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
/// A description of what is wrong with the text, and where.
pub fn read_all_data(text: &str) -> Result<Vec<Value>, ReadError> {
    let mut reader = Reader::new(text, ReadOptions::data(Span::NONE.source));
    let mut cx = NoContext::default();
    let mut forms = Vec::new();
    while let Some(form) = reader.next(&mut cx)? {
        forms.push(form);
    }
    Ok(forms)
}
