//! `clojure.data.csv`: rows of cells, read and written as that library does.

use flowstone_lang::value::{Arity, Class, Exception, Native, PrintOptions, Result, Signal, Value};
use flowstone_lang::vm::{Args, Vm};

use super::json_text::{rest_of, write_to};
use super::keywords::Keywords;

pub(super) const FNS: &[Native] = &[READ_CSV, WRITE_CSV];

const READ_CSV: Native = Native {
    name: "read-csv",
    usage: "(read-csv s-or-reader & {:keys [separator quote]})",
    doc: "Returns the rows of a CSV text or of a reader, such as *in*: vectors of strings. :separator and :quote are characters, `,` and `\"` unless given.",
    examples: &[(
        r#"(clojure.data.csv/read-csv "a,\"b, c\"\n1;2,\n")"#,
        r#"[["a" "b, c"] ["1;2" ""]]"#,
    )],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let text = match args.get(0) {
            Value::Text(text) => text.as_str().to_owned(),
            reader => match rest_of(vm, reader)? {
                Some(text) => text,
                None => return Err(args.expected(0, "a string or a reader")),
            },
        };
        let options = Keywords::new(&args, 1, &["quote", "separator"])?;
        let marks = Marks::of(&options)?;
        let mut rows = Vec::new();
        let mut rest = Cells {
            text: &text,
            line: 1,
            marks,
        };
        while let Some(row) = rest.row()? {
            rows.push(Value::vector(row.into_iter().map(Value::from)));
        }
        Ok(Value::list(rows))
    },
};

const WRITE_CSV: Native = Native {
    name: "write-csv",
    usage: "(write-csv writer rows & {:keys [separator quote quote? newline]})",
    doc: "Writes rows, collections of cells, as CSV to a writer, such as *out*. A cell is quoted where it must be, or where :quote? returns true for its text; :newline is :lf or :cr+lf.",
    examples: &[(
        r#"(with-out-str (clojure.data.csv/write-csv *out* [["a" 1] ["b,c" nil]]))"#,
        r#""a,1\n\"b,c\",\n""#,
    )],
    arity: Arity::at_least(2),
    run: write_csv,
};

/// The characters that separate and quote cells.
#[derive(Clone, Copy)]
struct Marks {
    separator: char,
    quote: char,
}

impl Marks {
    fn of(options: &Keywords) -> Result<Marks> {
        Ok(Marks {
            separator: mark(options, "separator", ',')?,
            quote: mark(options, "quote", '"')?,
        })
    }
}

fn mark(options: &Keywords, name: &str, default: char) -> Result<char> {
    match options.get(name) {
        None => Ok(default),
        Some(Value::Char(char)) => Ok(char),
        Some(_) => Err(wrong(format!("`:{name}` is one character, such as `\\;`"))),
    }
}

fn wrong(message: String) -> Signal {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E0741", message).into()
}

/// A CSV text that is being read.
struct Cells<'a> {
    text: &'a str,
    line: usize,
    marks: Marks,
}

/// What ends a cell.
#[derive(PartialEq, Eq)]
enum End {
    Cell,
    Row,
    Text,
}

impl Cells<'_> {
    fn row(&mut self) -> Result<Option<Vec<String>>> {
        let mut row = Vec::new();
        loop {
            let (cell, end) = if self.text.starts_with(self.marks.quote) {
                self.quoted()?
            } else {
                self.plain()
            };
            let is_blank = row.is_empty() && cell.is_empty();
            row.push(cell);
            match end {
                End::Cell => {}
                End::Row => return Ok(Some(row)),
                End::Text => return Ok((!is_blank).then_some(row)),
            }
        }
    }

    fn take(&mut self) -> Option<char> {
        let char = self.text.chars().next()?;
        self.text = &self.text[char.len_utf8()..];
        if char == '\n' {
            self.line += 1;
        }
        Some(char)
    }

    /// Tells what a character ends, if it ends a cell.
    fn end(&mut self, char: Option<char>) -> Option<End> {
        match char {
            None => Some(End::Text),
            Some(char) if char == self.marks.separator => Some(End::Cell),
            Some('\n') => Some(End::Row),
            Some('\r') => {
                if self.text.starts_with('\n') {
                    self.take();
                }
                Some(End::Row)
            }
            Some(_) => None,
        }
    }

    fn plain(&mut self) -> (String, End) {
        let mut cell = String::new();
        loop {
            let char = self.take();
            match (self.end(char), char) {
                (Some(end), _) => return (cell, end),
                (None, Some(char)) => cell.push(char),
                (None, None) => return (cell, End::Text),
            }
        }
    }

    fn quoted(&mut self) -> Result<(String, End)> {
        let opened = self.line;
        self.take();
        let mut cell = String::new();
        loop {
            let Some(char) = self.take() else {
                return Err(wrong(format!(
                    "the quote that is opened on line {opened} is never closed"
                )));
            };
            if char != self.marks.quote {
                cell.push(char);
            } else if self.text.starts_with(self.marks.quote) {
                self.take();
                cell.push(char);
            } else {
                let line = self.line;
                let next = self.take();
                return match self.end(next) {
                    Some(end) => Ok((cell, end)),
                    None => Err(wrong(format!(
                        "line {line}: `{}` follows a closing quote",
                        next.unwrap_or_default()
                    ))),
                };
            }
        }
    }
}

fn write_csv(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let options = Keywords::new(&args, 2, &["newline", "quote", "quote?", "separator"])?;
    let marks = Marks::of(&options)?;
    let line_end = match options.get("newline") {
        None => "\n",
        Some(newline) if newline == Value::keyword("lf") => "\n",
        Some(newline) if newline == Value::keyword("cr+lf") => "\r\n",
        Some(_) => return Err(wrong("`:newline` is `:lf` or `:cr+lf`".to_owned())),
    };
    let asks = options.get("quote?");
    let mut out = String::new();
    for row in vm.items(args.get(1).clone())? {
        for (idx, cell) in vm.items(row)?.into_iter().enumerate() {
            if idx > 0 {
                out.push(marks.separator);
            }
            let cell = match cell {
                Value::Nil => String::new(),
                cell => vm.print(&cell, PrintOptions::PLAIN)?,
            };
            let is_quoted = match &asks {
                Some(function) => vm.call(function, &[Value::from(&*cell)])?.is_truthy(),
                None => cell.contains([marks.separator, marks.quote, '\n', '\r']),
            };
            if is_quoted {
                let quote = marks.quote.to_string();
                out.push(marks.quote);
                out.push_str(&cell.replace(marks.quote, &quote.repeat(2)));
                out.push(marks.quote);
            } else {
                out.push_str(&cell);
            }
        }
        out.push_str(line_end);
    }
    write_to(vm, args.get(0), out)
}
