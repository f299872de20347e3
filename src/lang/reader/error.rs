//! The errors of reading a text: each with its code, message and hints.

use crate::value::{Change, Class, Exception, SourceId, Span, Symbol, Value};

use super::character::NAMES;
use super::frame::{Frame, Kind};
use super::{Reader, code};

/// The reason why a text cannot be read.
#[derive(Debug, Clone)]
pub struct ReadError {
    /// A stable code; `docs/errors` has its page.
    pub code: &'static str,
    /// A sentence that describes the problem.
    pub message: String,
    /// The place of the problem.
    pub span: Span,
    /// Suggestions of what to try.
    pub hints: Vec<String>,
    /// Changes of the text that would mend it.
    pub changes: Vec<Change>,
    /// Another relevant place, such as where a delimiter was opened, and its label.
    pub related: Option<(Span, String)>,
    /// Whether more text could complete it: a prompt asks for another line.
    pub at_end: bool,
    /// Clojure's class for the error, if the code does not determine it.
    class: Option<Class>,
}

impl ReadError {
    fn new(code: &'static str, span: Span, message: impl Into<String>) -> ReadError {
        ReadError {
            code,
            message: message.into(),
            span,
            hints: Vec::new(),
            changes: Vec::new(),
            related: None,
            at_end: false,
            class: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> ReadError {
        self.hints.push(hint.into());
        self
    }

    fn related(mut self, span: Span, what: impl Into<String>) -> ReadError {
        self.related = Some((span, what.into()));
        self
    }

    /// Tells whether a delimiter is missing or wrong.
    pub(super) fn is_of_delimiters(&self) -> bool {
        [code::UNCLOSED, code::UNOPENED, code::WRONG_CLOSER].contains(&self.code)
    }

    pub(super) fn is_of(&self, class: Class) -> bool {
        self.class == Some(class)
    }

    fn of_class(mut self, class: Class) -> ReadError {
        self.class = Some(class);
        self
    }

    fn at_end(mut self) -> ReadError {
        self.at_end = true;
        self
    }

    /// Sets the text that was read.
    #[must_use]
    pub fn in_source(mut self, source: SourceId) -> ReadError {
        self.span.source = source;
        if let Some((span, _)) = &mut self.related {
            span.source = source;
        }
        let edits = self.changes.iter_mut().flat_map(|change| &mut change.edits);
        edits.for_each(|edit| edit.place.source = source);
        self
    }

    /// Returns Clojure's class for the error.
    fn class(&self) -> Class {
        if let Some(class) = self.class {
            return class;
        }
        match self.code {
            code::BAD_NUMBER => Class::NUMBER_FORMAT,
            code::DUPLICATE_KEY | code::DUPLICATE_ITEM => Class::ILLEGAL_ARGUMENT,
            code::BAD_REGEX => Class::PATTERN_SYNTAX,
            code::NAMESPACE_MAP | code::BAD_FUNCTION => Class::ILLEGAL_STATE,
            _ => Class::RUNTIME_EXCEPTION,
        }
    }

    /// Returns the exception that a program sees.
    pub fn into_exception(self) -> Exception {
        let words = self.clojure_message();
        let mut exception = Exception::new(self.class(), self.code, self.message).at(self.span);
        if let Some(words) = words {
            exception = exception.clojure(words);
        }
        for hint in self.hints {
            exception = exception.hint(hint);
        }
        exception.changes = self.changes;
        if let Some((span, what)) = self.related {
            let offset = |offset: u32| Value::Int(i64::from(offset));
            let related = [
                (Value::keyword("start"), offset(span.start)),
                (Value::keyword("end"), offset(span.end)),
                (Value::keyword("message"), Value::from(what)),
            ];
            exception = exception.with("related", Value::map(related));
        }
        if self.at_end {
            exception = exception.with("at-end", true);
        }
        exception
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ReadError {}

/// Errors of delimiters.
impl Reader<'_> {
    /// The text ends inside a form.
    pub(super) fn unfinished(&self, frame: &Frame) -> ReadError {
        let end = self.text.trim_end().len();
        let at = self.span(end, end);
        let opened = self.span(frame.start, frame.start + frame.length);
        let token = self.shown(frame);
        match frame.kind.closer() {
            Some(closer) => {
                let closer = char::from(closer);
                ReadError::new(code::UNCLOSED, opened, format!("`{token}` is never closed"))
                    .related(at, format!("the text ends here, without `{closer}`"))
                    .hint(format!("add `{closer}` where the form should end"))
            }
            None => ReadError::new(
                code::NO_FORM,
                opened,
                format!("the text ends where `{token}` needs a form"),
            )
            .hint(match frame.kind {
                Kind::Discard => "put the form to leave out after `#_`, or delete `#_`",
                Kind::Meta => "metadata is written before a form: `^:private name`",
                _ => "a form must follow it",
            }),
        }
        .at_end()
    }

    pub(super) fn nothing_open(&self, closer: u8) -> ReadError {
        let closer = char::from(closer);
        ReadError::new(
            code::UNOPENED,
            self.span(self.at, self.at + 1),
            format!("`{closer}` closes nothing"),
        )
        .hint(format!(
            "delete it, or find the form before it that ended too early with a `{closer}` too many"
        ))
    }

    pub(super) fn mismatched(&self, expected: u8, found: u8) -> ReadError {
        let (expected, found) = (char::from(expected), char::from(found));
        let error = ReadError::new(
            code::WRONG_CLOSER,
            self.span(self.at, self.at + 1),
            format!("expected `{expected}`, got `{found}`"),
        )
        .hint(format!(
            "close the inner form with `{expected}` first, or delete this `{found}`"
        ));
        match self.frames.last() {
            Some(frame) => {
                let opened = self.span(frame.start, frame.start + frame.length);
                error.related(opened, format!("`{}` was opened here", self.shown(frame)))
            }
            None => error,
        }
    }

    pub(super) fn nothing_after_prefix(&self, closer: u8) -> ReadError {
        let closer = char::from(closer);
        let prefix = self.frames.last().map_or("", |frame| self.shown(frame));
        let error = ReadError::new(
            code::NO_FORM,
            self.span(self.at, self.at + 1),
            format!("`{prefix}` needs a form, got `{closer}`"),
        );
        match self.frames.last() {
            Some(frame) => {
                let opened = self.span(frame.start, frame.start + frame.length);
                error.related(opened, format!("`{prefix}` is here"))
            }
            None => error,
        }
        .hint(format!("put a form after `{prefix}`, or delete it"))
    }

    pub(super) fn too_deep(&self, at: usize) -> ReadError {
        ReadError::new(
            "E0115",
            self.span(at, at + 1),
            format!("forms are nested more than {} deep", self.options.max_depth),
        )
        .hint(
            "text that a program wrote is best kept flat: use a vector of items instead of nesting",
        )
    }

    pub(super) fn too_many_templates(&self, at: usize) -> ReadError {
        ReadError::new(
            "E0115",
            self.span(at, at + 1),
            "syntax-quotes are nested more than 5 deep",
        )
        .hint("let functions build the inner parts: `(list 'a b)` is the same as `` `(a ~b) ``")
    }

    /// A limit of the evaluation is reached: the machine stops right after.
    pub(super) fn stopped(&self) -> ReadError {
        ReadError::new("E0902", self.span(0, 0), "reading was stopped by a limit")
    }

    pub(super) fn too_large(&self) -> ReadError {
        ReadError::new("E0127", self.span(0, 0), "the text is larger than 4 GB")
            .hint("split it into several texts")
    }

    fn shown(&self, frame: &Frame) -> &str {
        &self.text[frame.start..frame.start + frame.length]
    }
}

/// Errors of strings, characters, numbers and names.
impl Reader<'_> {
    pub(super) fn unclosed_string(&self, start: usize, what: &str) -> ReadError {
        let end = self.text.trim_end().len();
        let length = if what == "regex" { 2 } else { 1 };
        let hint = if self.has_quote_after(start + length) {
            "a `\"` inside is written `\\\"`"
        } else {
            "add the closing `\"`"
        };
        ReadError::new(
            code::OPEN_TEXT,
            self.span(start, start + length),
            format!("this {what} is never closed"),
        )
        .related(self.span(end, end), "the text ends here, without `\"`")
        .hint(hint)
        .at_end()
    }

    pub(super) fn bad_escape(&self, at: usize, length: usize, kind: &str) -> ReadError {
        let end = self.boundary(at + length);
        let escape = &self.text[at..end];
        let hint = match kind {
            "unicode" => "`\\u` needs four hexadecimal digits: `\\u00e9`",
            "octal" => "an octal escape goes up to `\\377`",
            "surrogate" => {
                "this is half of a surrogate pair: write both halves, `\\ud83d\\ude00`, or the character itself"
            }
            _ => {
                "the escapes are \\n \\t \\r \\b \\f \\\\ \\\" \\uXXXX and \\ooo; a backslash itself is `\\\\`"
            }
        };
        ReadError::new(
            code::BAD_ESCAPE,
            self.span(at, end),
            format!("`{escape}` is not an escape of a string"),
        )
        .hint(hint)
    }

    pub(super) fn lone_backslash(&self, start: usize) -> ReadError {
        ReadError::new(
            code::BAD_CHARACTER,
            self.span(start, start + 1),
            "the text ends in a `\\`",
        )
        .hint("a character is written `\\a` or `\\newline`")
        .at_end()
    }

    pub(super) fn bad_character(&self, token: &str, start: usize, end: usize) -> ReadError {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let error = ReadError::new(
            code::BAD_CHARACTER,
            self.span(start, end),
            format!("`\\{token}` is not a character"),
        );
        let hex =
            |digits: &str| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let error = match token.strip_prefix('u') {
            Some(digits) if !digits.is_empty() && !hex(digits) => {
                error.of_class(Class::ILLEGAL_ARGUMENT)
            }
            _ => error,
        };
        match crate::suggest::did_you_mean(token, names.iter().copied()).first() {
            Some(name) => error.hint(format!("did you mean `\\{name}`?")),
            None => error.hint(format!(
                "a character is `\\a`, `\\u0041`, `\\o101` or a name: \\{}",
                names.join(" \\")
            )),
        }
    }

    pub(super) fn bad_number(&self, token: &str, span: Span, wrong: &str) -> ReadError {
        let digits = token.trim_start_matches(['+', '-']);
        let is_octal = digits.len() > 1
            && digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        let hint = if is_octal {
            "a number that starts with 0 is octal, which has no digits 8 and 9"
        } else if wrong.contains("zero") {
            "a ratio cannot have the denominator 0"
        } else if wrong.contains("adix") {
            "the base in front of `r` goes from 2 to 36: `16rFF`"
        } else {
            "a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`"
        };
        let error =
            ReadError::new(code::BAD_NUMBER, span, format!("`{token}` is not a number")).hint(hint);
        if !is_octal && wrong.contains("zero") {
            error.of_class(Class::ARITHMETIC)
        } else {
            error
        }
    }

    pub(super) fn bad_keyword(&self, name: &str, span: Span) -> ReadError {
        let token = &self.text[span.start as usize..span.end as usize];
        let hint = if name.is_empty() {
            "a name must follow the colon directly: `:name`"
        } else if name.ends_with('/') {
            "a name must follow the slash: `:namespace/name`"
        } else {
            "a keyword is `:name` or `:namespace/name`"
        };
        ReadError::new(code::BAD_NAME, span, format!("`{token}` is not a keyword")).hint(hint)
    }

    pub(super) fn bad_symbol(&self, token: &str, span: Span) -> ReadError {
        let hint = if token.ends_with('/') {
            "a name must follow the slash: `namespace/name`".to_owned()
        } else if let Some(name) = token.strip_suffix(':') {
            format!("a keyword has its colon in front: `:{name}`")
        } else if token.starts_with('/') {
            "a name must come before the slash: `namespace/name`".to_owned()
        } else {
            "a symbol is `name` or `namespace/name`".to_owned()
        };
        ReadError::new(code::BAD_NAME, span, format!("`{token}` is not a symbol")).hint(hint)
    }

    pub(super) fn unknown_alias(&self, alias: &str, start: usize, end: usize) -> ReadError {
        ReadError::new(
            code::UNKNOWN_ALIAS,
            self.span(start, end),
            format!("no namespace has the alias `{alias}` here"),
        )
        .hint(format!(
            "add `[some.namespace :as {alias}]` to `:require`, or write the whole namespace: `:some.namespace/name`"
        ))
    }

    fn boundary(&self, mut at: usize) -> usize {
        at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        at
    }
}

/// Errors of collections.
impl Reader<'_> {
    /// The last of the items from `base` on has no value.
    pub(super) fn odd_map(&self, base: usize, span: Span) -> ReadError {
        let is_alone = self.values.len() - base == 1;
        let at = self.spans.last().copied().unwrap_or(span);
        ReadError::new(
            code::ODD_MAP,
            at,
            format!("the key `{}` has no value", self.quoted(at)),
        )
        .related(self.opening(span), "the map starts here")
        .hint(if is_alone {
            "a map holds keys and values in turn: `{:key value}`"
        } else {
            "a map holds keys and values in turn: count the forms, one is missing"
        })
    }

    pub(super) fn duplicate_key(
        &self,
        span: Span,
        first: Option<usize>,
        second: usize,
    ) -> ReadError {
        self.duplicate(
            code::DUPLICATE_KEY,
            "the key ",
            "map",
            (span, first, second),
        )
        .hint("keep the intended entry and delete the other")
    }

    pub(super) fn duplicate_item(
        &self,
        span: Span,
        first: Option<usize>,
        second: usize,
    ) -> ReadError {
        self.duplicate(code::DUPLICATE_ITEM, "", "set", (span, first, second))
            .hint("a set holds each item once: delete one of the two")
    }

    /// Points at the whole form, at the first item if its index is known, and at the second.
    fn duplicate(
        &self,
        code: &'static str,
        role: &str,
        kind: &str,
        (span, first, second): (Span, Option<usize>, usize),
    ) -> ReadError {
        let at = self.spans.get(second).copied().unwrap_or(span);
        let shown = self.quoted(at);
        let message = format!("{role}`{shown}` occurs twice in this {kind}");
        let error = ReadError::new(code, at, message);
        match first.and_then(|first| self.spans.get(first)) {
            Some(first) => error.related(*first, "it is here first"),
            None => error,
        }
    }

    /// Returns the text of a form, shortened if it is long.
    fn quoted(&self, span: Span) -> String {
        const LONGEST: usize = 40;
        let text = &self.text[span.start as usize..span.end as usize];
        let line = text.lines().next().unwrap_or("");
        let end = line.char_indices().nth(LONGEST).map(|(at, _)| at);
        match end {
            Some(end) => format!("{}...", &line[..end]),
            None if line.len() < text.len() => format!("{line}..."),
            None => line.to_owned(),
        }
    }

    fn opening(&self, span: Span) -> Span {
        Span {
            end: span.start + 1,
            ..span
        }
    }

    pub(super) fn bad_meta(&self, meta: &Value, span: Span) -> ReadError {
        ReadError::new(
            "E0117",
            span,
            format!(
                "`{}` ({}) cannot be metadata",
                self.quoted(span),
                meta.kind()
            ),
        )
        .hint("metadata is a map, or `^:key`, `^Tag`, `^\"Tag\"`")
    }

    pub(super) fn no_meta_here(&self, form: &Value, span: Span) -> ReadError {
        ReadError::new(
            "E0117",
            span,
            format!(
                "`{}` ({}) cannot carry metadata",
                self.quoted(span),
                form.kind()
            ),
        )
        .hint("metadata goes on symbols, lists, vectors, maps and sets")
    }
}

/// Errors of `#` forms and of quoting.
impl Reader<'_> {
    pub(super) fn bad_symbolic(&self, token: &str) -> ReadError {
        let end = self.at + 2 + token.len();
        ReadError::new(
            "E0125",
            self.span(self.at, end),
            format!("`##{token}` is not a number"),
        )
        .hint("there are `##Inf`, `##-Inf` and `##NaN`")
    }

    pub(super) fn bad_namespaced_map(&self, start: usize, end: usize) -> ReadError {
        ReadError::new(
            code::NAMESPACE_MAP,
            self.span(start, end),
            "`#:` needs a namespace and a map",
        )
        .hint("write `#:name{:key value}`, which is `{:name/key value}`")
    }

    pub(super) fn nested_function(&self) -> ReadError {
        let error = ReadError::new(
            code::BAD_FUNCTION,
            self.span(self.at, self.at + 2),
            "a `#()` cannot be inside another",
        )
        .hint("write one of the two as `(fn [x] ...)`");
        let outer = self
            .frames
            .iter()
            .find(|frame| matches!(frame.kind, Kind::Function));
        match outer {
            Some(frame) => error.related(
                self.span(frame.start, frame.start + 2),
                "the outer one starts here",
            ),
            None => error,
        }
    }

    pub(super) fn bad_parameter(&self, token: &str, span: Span, max: usize) -> ReadError {
        ReadError::new(
            code::BAD_FUNCTION,
            span,
            format!("`{token}` is not a parameter of `#()`"),
        )
        .hint(format!(
            "there are `%`, `%1` to `%{max}`, and `%&` for the rest"
        ))
    }

    pub(super) fn conditional_not_allowed(&self, start: usize) -> ReadError {
        ReadError::new(
            "E0118",
            self.span(start, (start + 2).min(self.text.len())),
            "Conditional read not allowed",
        )
        .hint("give `{:read-cond :allow}` to choose a branch, or `{:read-cond :preserve}` to keep all")
    }

    pub(super) fn conditional_without_list(&self, start: usize) -> ReadError {
        ReadError::new(
            "E0118",
            self.span(start, self.at.min(self.text.len())),
            "a reader conditional needs a list",
        )
        .hint("write `#?(:flowstone form :default form)`")
    }

    pub(super) fn odd_conditional(&self, span: Span) -> ReadError {
        ReadError::new(
            "E0118",
            span,
            "the last feature of this reader conditional has no form",
        )
        .hint("features and forms alternate: `#?(:flowstone form :default form)`")
    }

    pub(super) fn not_a_feature(&self, span: Span) -> ReadError {
        ReadError::new(
            "E0118",
            span,
            format!(
                "`{}` is not a feature: features are keywords",
                self.quoted(span)
            ),
        )
        .hint("features and forms alternate: `#?(:flowstone form :default form)`")
    }

    pub(super) fn splice_at_top(&self) -> ReadError {
        ReadError::new(
            "E0118",
            self.span(self.at, self.at + 3),
            "`#?@` needs a form around it that can take several items",
        )
        .hint("use `#?` here, with one form for each feature")
    }

    pub(super) fn not_spliceable(&self, value: &Value, span: Span) -> ReadError {
        ReadError::new(
            "E0118",
            span,
            format!("`#?@` needs a list or vector, got {}", value.kind()),
        )
        .hint("put the items into brackets: `#?@(:flowstone [a b])`")
    }

    pub(super) fn read_eval(&self) -> ReadError {
        ReadError::new(
            "E0113",
            self.span(self.at, self.at + 2),
            "`#=` would run code while reading, which is not done here",
        )
        .hint("put the expression where it is evaluated, without `#=`")
    }

    pub(super) fn bad_dispatch(&self, token: &str) -> ReadError {
        let next = self.text[self.at + 1..].chars().next();
        let length = match next {
            None => 1,
            Some(_) if !token.is_empty() => 1 + token.len(),
            Some(char) => 1 + char.len_utf8(),
        };
        let span = self.span(self.at, self.at + length);
        let shown = &self.text[self.at..self.at + length];
        let error = ReadError::new("E0112", span, format!("`{shown}` begins nothing"));
        match next {
            None => error
                .hint("a `#` begins a set, a function, a regex or a tag")
                .at_end(),
            Some('<') => error.hint("this was printed for people and cannot be read back"),
            Some(_) => error.hint(
                "`#` begins `#{` `#(` `#\"` `#'` `#_` `#?` `#:` `##` or a tag such as `#inst`",
            ),
        }
    }

    pub(super) fn bad_regex(&self, source: &str, error: &crate::value::RegexError) -> ReadError {
        let from = self.at + 2;
        let end = from + source.len();
        let at = match error.at {
            Some(at) if at < source.len() => {
                let at = self.boundary(from + at);
                self.span(at, self.boundary(at + 1))
            }
            _ => self.span(self.at, end + 1),
        };
        let hint = error.hint.as_deref().unwrap_or(
            "regexes have Java's syntax; a special character is taken literally after `\\`",
        );
        let message = format!("this regex is wrong: {}", error.message);
        ReadError::new(code::BAD_REGEX, at, message).hint(hint.to_owned())
    }

    pub(super) fn unknown_tag(&self, tag: Symbol, span: Span) -> ReadError {
        let error = ReadError::new(
            code::BAD_TAG,
            span,
            format!("no reader is known for `#{tag}`"),
        );
        let name = tag.to_string();
        match crate::suggest::did_you_mean(&name, ["inst", "uuid"].into_iter()).first() {
            Some(name) => error.hint(format!("did you mean `#{name}`?")),
            None => error.hint(
                "bind `*data-readers*`; `clojure.edn/read-string` takes :readers and :default",
            ),
        }
    }

    pub(super) fn bad_tagged(&self, tag: Symbol, why: &str, span: Span) -> ReadError {
        let error = ReadError::new(
            code::BAD_TAG,
            span,
            format!("the form after `#{tag}` cannot be read: {why}"),
        );
        if tag == Symbol::new("uuid") {
            error.of_class(Class::ILLEGAL_ARGUMENT)
        } else {
            error
        }
    }

    pub(super) fn splice_not_in_list(&self, span: Span) -> ReadError {
        ReadError::new(
            "E0123",
            span,
            "`~@` has no collection around it to splice into",
        )
        .hint("use `~` for a single form, or put `~@` inside a list, vector, map or set")
    }

    pub(super) fn code_in_data(&self, at: usize, length: usize, what: &str) -> ReadError {
        let end = self.boundary(at + length);
        ReadError::new(
            "E0124",
            self.span(at, end),
            format!("{what} is syntax of code, and this text is data"),
        )
        .hint("data holds values only: no quoting, functions, regexes or conditionals")
    }

    pub(super) fn nothing_there(&self) -> ReadError {
        ReadError::new(
            "E0126",
            self.span(self.text.len(), self.text.len()),
            "the text holds no form",
        )
        .hint("nil is written `nil`")
        .at_end()
    }

    pub(super) fn more_than_one(&self, at: usize) -> ReadError {
        let end = self.boundary(at + 1);
        ReadError::new(
            "E0126",
            self.span(at, end),
            "the text continues after its form",
        )
        .hint("put several forms into a vector: `[1 2]`")
    }

    /// Reads a form of data again to locate the error in it, because spans are not kept at first.
    pub(super) fn located(&self, form: Span, error: ReadError) -> ReadError {
        if self.tracked {
            return error;
        }
        let mut again = Reader::new(self.text, self.options);
        again.at = form.start as usize;
        again.tracked = true;
        match again.next(&mut super::NoContext::default()) {
            Err(located) if located.code == error.code => located,
            _ => error,
        }
    }
}
