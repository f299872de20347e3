//! Exceptions as values, and the signals that unwind the VM.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::drops::discard_value;
use super::{Change, Keyword, Native, Span, Value};

/// The result of every operation that may fail.
pub type Result<T, E = Signal> = std::result::Result<T, E>;

/// The reason why evaluation stops. Boxed, so that a `Result<Value>` stays small.
#[derive(Debug, Clone)]
pub enum Signal {
    /// An exception was thrown: `catch` sees it.
    Throw(Rc<Exception>),
    /// The run is stopped from outside: no `catch` sees it.
    Stop(Rc<Stop>),
}

impl Signal {
    /// Sets the place where it occurred, unless that is known already.
    #[must_use]
    pub fn at(self, place: Option<Span>) -> Signal {
        if let Signal::Throw(exception) = &self
            && let Some(place) = place.filter(|place| place.is_some())
        {
            let mut origin = exception.origin.borrow_mut();
            origin.span.get_or_insert(place);
        }
        self
    }

    /// Sets the argument of the failing native that is at fault, counted from 0, unless that is known already or the
    /// error came from code that the native called.
    #[must_use]
    pub fn at_argument(mut self, idx: usize) -> Signal {
        if let Signal::Throw(exception) = &mut self
            && let Some(exception) = Rc::get_mut(exception)
            && exception.fault.is_none()
            && exception.origin.get_mut().is_fresh()
        {
            let idx = u32::try_from(idx).unwrap_or(u32::MAX);
            exception.fault = Some(Fault::new(Culprit::Argument(idx)));
        }
        self
    }
}

/// Why a run was stopped. User code cannot catch any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The budget of instructions is used up.
    OutOfFuel,
    /// The deadline has passed.
    Deadline,
    /// More memory was requested than the run may have; the text says what for.
    OutOfMemory(String),
    /// The user or the owner cancelled the run: `finally` runs.
    Cancelled,
    /// The run is suspended, to be replayed later: no `finally` runs.
    Evicted,
    /// Interrupted by the keyboard, or by the host; the text says why.
    Interrupted(String),
    /// The program ends the process with this status: no `finally` runs.
    Exit(i32),
}

impl Stop {
    /// Tells whether `finally` blocks run while this unwinds.
    pub fn runs_finally(&self) -> bool {
        matches!(self, Stop::Cancelled)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::OutOfFuel => out.write_str("the budget of instructions is used up"),
            Stop::Deadline => out.write_str("the deadline has passed"),
            Stop::OutOfMemory(what) => write!(out, "out of memory: {what}"),
            Stop::Cancelled => out.write_str("cancelled"),
            Stop::Evicted => out.write_str("evicted"),
            Stop::Interrupted(why) => out.write_str(why),
            Stop::Exit(status) => write!(out, "the program ends with status {status}"),
        }
    }
}

/// A host class name that programs use in `catch` and `instance?`.
#[derive(Clone, Copy)]
pub struct Class(pub &'static ClassInfo);

/// A row of the table of classes.
#[derive(Debug)]
pub struct ClassInfo {
    /// The short name, such as `ArithmeticException`.
    pub name: &'static str,
    /// The full name, such as `java.lang.ArithmeticException`.
    pub full_name: &'static str,
    /// The direct superclass.
    pub parent: Option<&'static ClassInfo>,
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Class {}

impl fmt::Debug for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.name)
    }
}

impl Class {
    /// Tells whether this is `other` or one of its subclasses.
    pub fn is_a(self, other: Class) -> bool {
        let mut at = Some(self.0);
        while let Some(info) = at {
            if std::ptr::eq(info, other.0) {
                return true;
            }
            at = info.parent;
        }
        false
    }
}

macro_rules! classes {
    ($($constant:ident $package:literal $name:literal < $parent:expr;)*) => {
        impl Class {
            $(#[doc = concat!("`", $package, ".", $name, "`")]
            pub const $constant: Class = {
                static INFO: ClassInfo = ClassInfo {
                    name: $name,
                    full_name: concat!($package, ".", $name),
                    parent: $parent,
                };
                Class(&INFO)
            };)*

            /// Every throwable class.
            pub const THROWABLES: &'static [Class] = &[$(Class::$constant),*];
        }
    };
}

const fn under(class: Class) -> Option<&'static ClassInfo> {
    Some(class.0)
}

classes! {
    THROWABLE "java.lang" "Throwable" < None;
    EXCEPTION "java.lang" "Exception" < under(Class::THROWABLE);
    ERROR "java.lang" "Error" < under(Class::THROWABLE);
    RUNTIME_EXCEPTION "java.lang" "RuntimeException" < under(Class::EXCEPTION);
    ARITHMETIC "java.lang" "ArithmeticException" < under(Class::RUNTIME_EXCEPTION);
    CLASS_CAST "java.lang" "ClassCastException" < under(Class::RUNTIME_EXCEPTION);
    ILLEGAL_ARGUMENT "java.lang" "IllegalArgumentException" < under(Class::RUNTIME_EXCEPTION);
    ILLEGAL_STATE "java.lang" "IllegalStateException" < under(Class::RUNTIME_EXCEPTION);
    INDEX_OUT_OF_BOUNDS "java.lang" "IndexOutOfBoundsException" < under(Class::RUNTIME_EXCEPTION);
    ARRAY_INDEX_OUT_OF_BOUNDS "java.lang" "ArrayIndexOutOfBoundsException" < under(Class::INDEX_OUT_OF_BOUNDS);
    STRING_INDEX_OUT_OF_BOUNDS "java.lang" "StringIndexOutOfBoundsException" < under(Class::INDEX_OUT_OF_BOUNDS);
    NEGATIVE_ARRAY_SIZE "java.lang" "NegativeArraySizeException" < under(Class::RUNTIME_EXCEPTION);
    NULL_POINTER "java.lang" "NullPointerException" < under(Class::RUNTIME_EXCEPTION);
    UNSUPPORTED_OPERATION "java.lang" "UnsupportedOperationException" < under(Class::RUNTIME_EXCEPTION);
    NUMBER_FORMAT "java.lang" "NumberFormatException" < under(Class::ILLEGAL_ARGUMENT);
    ARITY "clojure.lang" "ArityException" < under(Class::ILLEGAL_ARGUMENT);
    EXCEPTION_INFO "clojure.lang" "ExceptionInfo" < under(Class::RUNTIME_EXCEPTION);
    DATE_TIME "java.time" "DateTimeException" < under(Class::RUNTIME_EXCEPTION);
    DATE_TIME_PARSE "java.time.format" "DateTimeParseException" < under(Class::DATE_TIME);
    PATTERN_SYNTAX "java.util.regex" "PatternSyntaxException" < under(Class::ILLEGAL_ARGUMENT);
    COMPILER_EXCEPTION "clojure.lang" "CompilerException" < under(Class::RUNTIME_EXCEPTION);
    ILLEGAL_FORMAT "java.util" "IllegalFormatException" < under(Class::ILLEGAL_ARGUMENT);
    DUPLICATE_FORMAT_FLAGS "java.util" "DuplicateFormatFlagsException" < under(Class::ILLEGAL_FORMAT);
    FORMAT_FLAGS_CONVERSION "java.util" "FormatFlagsConversionMismatchException" < under(Class::ILLEGAL_FORMAT);
    ILLEGAL_FORMAT_CONVERSION "java.util" "IllegalFormatConversionException" < under(Class::ILLEGAL_FORMAT);
    ILLEGAL_FORMAT_FLAGS "java.util" "IllegalFormatFlagsException" < under(Class::ILLEGAL_FORMAT);
    ILLEGAL_FORMAT_PRECISION "java.util" "IllegalFormatPrecisionException" < under(Class::ILLEGAL_FORMAT);
    MISSING_FORMAT_ARGUMENT "java.util" "MissingFormatArgumentException" < under(Class::ILLEGAL_FORMAT);
    MISSING_FORMAT_WIDTH "java.util" "MissingFormatWidthException" < under(Class::ILLEGAL_FORMAT);
    UNKNOWN_FORMAT_CONVERSION "java.util" "UnknownFormatConversionException" < under(Class::ILLEGAL_FORMAT);
    READER_EXCEPTION "clojure.lang" "ReaderException" < under(Class::RUNTIME_EXCEPTION);
    IO_EXCEPTION "java.io" "IOException" < under(Class::EXCEPTION);
    EOF "java.io" "EOFException" < under(Class::IO_EXCEPTION);
    FILE_NOT_FOUND "java.io" "FileNotFoundException" < under(Class::IO_EXCEPTION);
    UNSUPPORTED_ENCODING "java.io" "UnsupportedEncodingException" < under(Class::IO_EXCEPTION);
    UNCHECKED_IO "java.io" "UncheckedIOException" < under(Class::RUNTIME_EXCEPTION);
    ARRAY_STORE "java.lang" "ArrayStoreException" < under(Class::RUNTIME_EXCEPTION);
    CLASS_NOT_FOUND "java.lang" "ClassNotFoundException" < under(Class::REFLECTIVE_OPERATION);
    CLONE_NOT_SUPPORTED "java.lang" "CloneNotSupportedException" < under(Class::EXCEPTION);
    ILLEGAL_MONITOR_STATE "java.lang" "IllegalMonitorStateException" < under(Class::RUNTIME_EXCEPTION);
    SECURITY "java.lang" "SecurityException" < under(Class::RUNTIME_EXCEPTION);
    MALFORMED_URL "java.net" "MalformedURLException" < under(Class::IO_EXCEPTION);
    URI_SYNTAX "java.net" "URISyntaxException" < under(Class::EXCEPTION);
    PARSE "java.text" "ParseException" < under(Class::EXCEPTION);
    CONCURRENT_MODIFICATION "java.util" "ConcurrentModificationException" < under(Class::RUNTIME_EXCEPTION);
    NO_SUCH_ELEMENT "java.util" "NoSuchElementException" < under(Class::RUNTIME_EXCEPTION);
    EXECUTION "java.util.concurrent" "ExecutionException" < under(Class::EXCEPTION);
    TIMEOUT "java.util.concurrent" "TimeoutException" < under(Class::EXCEPTION);
    INTERRUPTED "java.lang" "InterruptedException" < under(Class::EXCEPTION);
    ASSERTION_ERROR "java.lang" "AssertionError" < under(Class::ERROR);
    LINKAGE "java.lang" "LinkageError" < under(Class::ERROR);
    ILLEGAL_ACCESS "java.lang" "IllegalAccessError" < under(Class::LINKAGE);
    NO_CLASS_DEF_FOUND "java.lang" "NoClassDefFoundError" < under(Class::LINKAGE);
    THREAD_DEATH "java.lang" "ThreadDeath" < under(Class::ERROR);
    VIRTUAL_MACHINE "java.lang" "VirtualMachineError" < under(Class::ERROR);
    STACK_OVERFLOW "java.lang" "StackOverflowError" < under(Class::VIRTUAL_MACHINE);
    OUT_OF_MEMORY "java.lang" "OutOfMemoryError" < under(Class::VIRTUAL_MACHINE);
    REFLECTIVE_OPERATION "java.lang" "ReflectiveOperationException" < under(Class::EXCEPTION);
    NO_SUCH_FIELD "java.lang" "NoSuchFieldException" < under(Class::REFLECTIVE_OPERATION);
    NO_SUCH_METHOD "java.lang" "NoSuchMethodException" < under(Class::REFLECTIVE_OPERATION);
}

/// A call that was active when an error occurred.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The function, with its namespace if it has one.
    pub function: Rc<str>,
    /// The call that was under way in the function.
    pub span: Span,
}

/// A sentence that suggests what to try.
pub type Hint = String;

/// An exception: class, message, data, cause and origin. The VM sets place and trace.
#[derive(Debug)]
pub struct Exception {
    /// The class that `catch` and `instance?` test.
    pub class: Class,
    /// A stable code such as `E0301`; empty for exceptions thrown by a program.
    pub code: &'static str,
    /// The message, if there is one.
    pub message: Option<Box<str>>,
    /// The map given to `ex-info`, or nil.
    pub data: Value,
    /// Another exception, or nil.
    pub cause: Value,
    /// The message for people, if `message` keeps Clojure's text.
    pub display_message: Option<Box<str>>,
    /// Suggestions of what to try.
    pub hints: Vec<Hint>,
    /// Changes of the text that would mend it.
    pub changes: Vec<Change>,
    /// The argument at fault in the failing call, and its value.
    pub fault: Option<Box<Fault>>,
    /// Where the exception was thrown; set by the machine.
    pub origin: RefCell<Origin>,
}

/// An argument that a function cannot work with.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The part of the call that is at fault.
    pub at: Culprit,
    /// What was expected, such as `a map`; empty if the message states it.
    pub wanted: Box<str>,
    /// The value in short printed form; empty if it is not known.
    pub value: Box<str>,
    /// The kind of the value, such as `a keyword`.
    pub kind: &'static str,
    /// The function that was called, once it is known.
    pub function: Option<Box<str>>,
}

/// The part of a call that is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Culprit {
    /// The value in function position.
    Function,
    /// An argument, counted from 0.
    Argument(u32),
    /// An argument that is a collection; the function's usage tells which one.
    Collection,
}

/// When an error happened, as in `clojure.main`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The text could not be read as forms.
    Read,
    /// A macro refused its forms.
    MacroSyntax,
    /// The forms could not be compiled.
    Compile,
    /// The program was running.
    Execution,
    /// The result was being printed.
    Print,
}

impl Phase {
    /// Returns the phase's name as surfaces show it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::MacroSyntax => "macro-syntax",
            Phase::Compile => "compile",
            Phase::Execution => "execution",
            Phase::Print => "print",
        }
    }
}

/// The origin of a thrown exception.
#[derive(Debug, Default, Clone)]
pub struct Origin {
    /// The place of the call or of the argument at fault.
    pub span: Option<Span>,
    /// The calls, innermost first.
    pub trace: Vec<Frame>,
    /// Places where the lazy sequences whose computation failed were created, innermost first.
    pub lazies: Vec<Span>,
    /// The natives that were active when one failed, each called by the next, innermost first.
    pub natives: Vec<Cow<'static, str>>,
    /// The macros, with their calls, that were being expanded when the code failed, innermost first.
    pub expanding: Vec<(Rc<str>, Span)>,
    /// The phase, if the error code does not determine it.
    pub phase: Option<Phase>,
}

impl Origin {
    /// Tells whether the exception was not thrown yet: the native that made it is still running.
    pub fn is_fresh(&self) -> bool {
        self.trace.is_empty() && self.natives.is_empty()
    }
}

impl Exception {
    /// Returns an exception raised by the language itself; `code` has a page in `docs/errors`.
    pub fn new(class: Class, code: &'static str, message: impl Into<String>) -> Exception {
        Exception {
            class,
            code,
            message: Some(message.into().into_boxed_str()),
            data: Value::Nil,
            cause: Value::Nil,
            display_message: None,
            hints: Vec::new(),
            changes: Vec::new(),
            fault: None,
            origin: RefCell::default(),
        }
    }

    /// The range of the reader's error codes.
    pub const READER_CODES: Range<&str> = "E01".."E02";

    /// Tells whether the reader raised it: the text could not be read as forms.
    pub fn is_of_reader(&self) -> bool {
        Exception::READER_CODES.contains(&self.code)
    }

    /// Returns a copy with the same place, as if it had not been thrown yet.
    #[must_use]
    pub fn again(&self) -> Exception {
        let origin = Origin {
            span: self.origin.borrow().span,
            ..Origin::default()
        };
        Exception {
            class: self.class,
            code: self.code,
            message: self.message.clone(),
            data: self.data.clone(),
            cause: self.cause.clone(),
            display_message: self.display_message.clone(),
            hints: self.hints.clone(),
            changes: self.changes.clone(),
            fault: self.fault.clone(),
            origin: RefCell::new(origin),
        }
    }

    /// Adds a sentence that suggests what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Exception {
        self.hints.push(hint.into());
        self
    }

    /// Adds a change of the text that would mend it.
    #[must_use]
    pub fn change(mut self, change: Change) -> Exception {
        self.changes.push(change);
        self
    }

    /// Changes the class of the exception.
    #[must_use]
    pub fn of_class(mut self, class: Class) -> Exception {
        self.class = class;
        self
    }

    /// Sets the argument of the failing call that is at fault, counted from 0.
    #[must_use]
    pub fn argument(mut self, idx: usize) -> Exception {
        self.fault = u32::try_from(idx)
            .ok()
            .map(|idx| Fault::new(Culprit::Argument(idx)));
        self
    }

    /// Marks the value in function position as being at fault.
    #[must_use]
    pub fn at_function(mut self) -> Exception {
        self.fault = Some(Fault::new(Culprit::Function));
        self
    }

    /// Sets the value of the argument at fault.
    #[must_use]
    pub fn got(mut self, value: &Value) -> Exception {
        if let Some(fault) = &mut self.fault {
            fault.value = super::print::brief(value).into();
            fault.kind = value.kind();
        }
        self
    }

    /// Sets Clojure's text as the message for programs; people still see the current message.
    #[must_use]
    pub fn clojure(mut self, message: impl Into<String>) -> Exception {
        self.display_message = self.message.replace(message.into().into());
        self
    }

    /// Sets the text for people; programs still see the message.
    #[must_use]
    pub fn display_message(mut self, message: impl Into<String>) -> Exception {
        self.display_message = Some(message.into().into_boxed_str());
        self
    }

    /// Sets the place where it was thrown, unless that is known already.
    #[must_use]
    pub fn at(self, span: Span) -> Exception {
        if span.is_some() {
            self.origin.borrow_mut().span.get_or_insert(span);
        }
        self
    }

    /// Adds an entry to the exception's data.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Exception {
        let mut data = self
            .data
            .as_map()
            .map_or_else(Default::default, |map| map.entries().clone());
        data.insert(Value::Keyword(Keyword::new(key)), value.into());
        self.data = Value::Map(Rc::new(super::Map::new(data)));
        self
    }

    /// Sets the cause of the exception.
    #[must_use]
    pub fn caused_by(mut self, cause: Value) -> Exception {
        self.cause = cause;
        self
    }

    /// Returns the message, or the class name.
    pub fn text(&self) -> &str {
        self.message.as_deref().unwrap_or(self.class.0.name)
    }

    /// Returns the phase in which it was thrown.
    pub fn phase(&self) -> Phase {
        if let Some(phase) = self.origin.borrow().phase {
            return phase;
        }
        match self.code.get(..3) {
            Some("E01") => Phase::Read,
            Some("E02") if MACRO_SYNTAX.contains(&self.code) => Phase::MacroSyntax,
            Some("E02") => Phase::Compile,
            _ if self.is_of_reader() => Phase::Read,
            _ if self.class.is_a(Class::COMPILER_EXCEPTION) => Phase::Compile,
            _ => Phase::Execution,
        }
    }

    /// Names the native that rejected one of its `count` arguments, and its usage.
    pub(crate) fn blame_native(&mut self, native: &Native, count: usize) {
        if let Some(fault) = &mut self.fault
            && fault.at == Culprit::Collection
            && fault.function.is_none()
            && let Some(idx) = native.collection(count)
        {
            fault.at = Culprit::Argument(idx);
        }
        self.blame(native.name, 0);
        let is_of_kind = self
            .fault
            .as_ref()
            .is_some_and(|fault| !fault.wanted.is_empty());
        let is_plain = self
            .fault
            .as_ref()
            .is_some_and(|fault| &*fault.wanted == NUMBER);
        if self.hints.is_empty() && is_of_kind && !is_plain && !native.usage.is_empty() {
            let usage = native.usage.lines().collect::<Vec<_>>().join(" or ");
            self.hints.push(format!("it is called as {usage}"));
        }
    }

    /// Returns the text shown to people.
    pub fn display_text(&self) -> &str {
        self.display_message
            .as_deref()
            .unwrap_or_else(|| self.text())
    }

    /// Names the function that rejected its argument, and the argument's place in the whole call.
    pub(crate) fn blame(&mut self, function: &str, shift: u32) {
        let Some(fault) = &mut self.fault else {
            return;
        };
        if fault.at == Culprit::Collection && fault.function.is_some() {
            return;
        }
        if let Culprit::Argument(idx) = &mut fault.at
            && *idx > 0
        {
            *idx += shift;
        }
        if fault.function.is_none() {
            fault.function = Some(function.into());
        }
        if let Some(sentence) = fault.sentence() {
            self.message = Some(sentence.into());
        }
    }

    /// Returns where it was thrown, as far as known.
    pub fn span(&self) -> Span {
        self.origin.borrow().span.unwrap_or(Span::NONE)
    }
}

impl Fault {
    fn new(at: Culprit) -> Box<Fault> {
        Box::new(Fault {
            at,
            wanted: Box::default(),
            value: Box::default(),
            kind: "",
            function: None,
        })
    }

    /// Returns the fault of the argument at `idx`, counted from 0, with what was expected.
    pub fn of(value: &Value, wanted: &str, idx: usize) -> Box<Fault> {
        let idx = u32::try_from(idx).unwrap_or(u32::MAX);
        Box::new(Fault {
            at: Culprit::Argument(idx),
            wanted: wanted.into(),
            value: super::print::brief(value).into(),
            kind: value.kind(),
            function: None,
        })
    }

    /// Returns the message, if the fault determines it: `keys needs a map, got 1 (an integer) as argument 1`.
    pub fn sentence(&self) -> Option<String> {
        if self.wanted.is_empty() || self.value.is_empty() {
            return None;
        }
        let got = match (&*self.value, self.kind) {
            ("nil", _) => "nil".to_owned(),
            (value, kind) => format!("{value} ({kind})"),
        };
        let wanted = &self.wanted;
        let place = match self.at {
            Culprit::Argument(idx) => format!(" as argument {}", idx + 1),
            Culprit::Collection | Culprit::Function => String::new(),
        };
        Some(match self.function.as_deref() {
            None => format!("expected {wanted}, got {got}{place}"),
            // The name of an arithmetic function implies that it needs numbers.
            Some(function) if &**wanted == NUMBER => format!("{function} got {got}{place}"),
            Some(function) => format!("{function} needs {wanted}, got {got}{place}"),
        })
    }
}

/// The codes of malformed macro calls.
const MACRO_SYNTAX: &[&str] = &["E0210", "E0213", "E0219", "E0224", "E0225"];

/// The operand that arithmetic expects, as messages name it.
pub const NUMBER: &str = "a number";

impl Drop for Exception {
    fn drop(&mut self) {
        discard_value(&mut self.cause);
    }
}

impl From<Exception> for Signal {
    fn from(exception: Exception) -> Self {
        Signal::Throw(Rc::new(exception))
    }
}

impl From<Stop> for Signal {
    fn from(stop: Stop) -> Self {
        Signal::Stop(Rc::new(stop))
    }
}

impl From<Exception> for Value {
    fn from(exception: Exception) -> Self {
        Value::Exception(Rc::new(exception))
    }
}
