//! JSON and CSV text to values and back.

use std::rc::Rc;

use flowstone_flow::codec;
use flowstone_flow::table::csv::is_formula;
use flowstone_lang::value::meter;
use flowstone_lang::value::{
    Arity, Class, Exception, Native, Object, Result, Signal, Value, number,
};
use flowstone_lang::vm::{Args, Vm};

use crate::json::{
    JsonError, items, name_text, read, read_with_string_keys, write_pretty_with, write_with,
};
use crate::text::{brief, nearest};

pub(super) const FNS: &[Native] = &[PARSE_CSV, WRITE_CSV];
pub(super) const JSON: &[Native] = &[PARSE, WRITE_STR];

const PARSE: Native = Native {
    name: "parse",
    usage: "(parse s)\n(parse s {:keys :string})",
    doc: "Reads JSON text. Object keys become keywords of the same spelling, or stay strings.",
    examples: &[(
        r#"(json/parse "{\"a\": [1, 2.5, null]}")"#,
        "{:a [1 2.5 nil]}",
    )],
    arity: Arity::between(1, 2),
    run: parse_json,
};

const WRITE_STR: Native = Native {
    name: "write-str",
    usage: "(write-str value)\n(write-str value {:pretty true})",
    doc: "Writes a value as JSON text. Keywords become strings of their name, without the colon.",
    examples: &[(
        r#"(json/write-str {:a [1 :b nil]})"#,
        r#""{\"a\":[1,\"b\",null]}""#,
    )],
    arity: Arity::between(1, 2),
    run: write_json,
};

const PARSE_CSV: Native = Native {
    name: "parse-csv",
    usage: "(parse-csv s)\n(parse-csv s {:header true :keys :keyword :separator \",\" :trim false})",
    doc: "Reads CSV text: a vector of maps by the names of the first row, all cells strings. With `:header false` \
          a vector of vectors. A row with another number of fields than the first is an error that names its line.",
    examples: &[(
        r#"(flow.util/parse-csv "id,name\n1,Ada\n2,\"Bo, B\"\n")"#,
        r#"[{:id "1", :name "Ada"} {:id "2", :name "Bo, B"}]"#,
    )],
    arity: Arity::between(1, 2),
    run: parse_csv,
};

const WRITE_CSV: Native = Native {
    name: "write-csv",
    usage: "(write-csv rows)\n(write-csv rows {:columns [:id :name] :separator \",\" :escape-formulas? true})",
    doc: "Writes a vector of maps as CSV text with a header row, or a vector of vectors as it is.",
    examples: &[(
        r#"(flow.util/write-csv [{:id 1 :name "Ada"} {:id 2 :name "a,b"}])"#,
        r#""id,name\n1,Ada\n2,\"a,b\"\n""#,
    )],
    arity: Arity::between(1, 2),
    run: write_csv,
};

/// The options map of a call, its keys checked.
struct Options<'a>(&'a Value);

impl<'a> Options<'a> {
    fn new(args: &'a Args<'_>, known: &[&str]) -> Result<Options<'a>> {
        let options = args.get(1);
        if options.is_nil() {
            return Ok(Options(options));
        }
        for (key, _) in args.map(1)?.iter() {
            let name = name_text(key).unwrap_or_else(|| brief(key));
            if !known.contains(&name.as_str()) {
                let exception = Exception::new(
                    Class::ILLEGAL_ARGUMENT,
                    "E0741",
                    format!(
                        "there is no option {}; there are :{}",
                        brief(key),
                        known.join(" :")
                    ),
                );
                return Err(match nearest(&name, known.iter().copied()) {
                    Some(near) => exception.hint(format!("did you mean `:{near}`?")).into(),
                    None => exception.into(),
                });
            }
        }
        Ok(Options(options))
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.0.get(name).map_or(default, Value::is_truthy)
    }

    fn string_keys(&self) -> bool {
        self.0
            .get("keys")
            .and_then(name_text)
            .is_some_and(|keys| keys.starts_with("string"))
    }

    fn separator(&self) -> Result<u8> {
        let text = match self.0.get("separator") {
            None | Some(Value::Nil) => return Ok(b','),
            Some(Value::Char(char)) => char.to_string(),
            Some(other) => name_text(other).unwrap_or_default(),
        };
        match text.as_bytes() {
            [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
            _ => Err(Exception::new(
                Class::ILLEGAL_ARGUMENT,
                "E0741",
                "`:separator` is one character, such as \";\" or \"\\t\"",
            )
            .into()),
        }
    }
}

fn parse_json(_: &mut Vm, args: Args<'_>) -> Result<Value> {
    let options = Options::new(&args, &["keys"])?;
    let text = args.text(0)?;
    let read = match options.string_keys() {
        true => read_with_string_keys(text),
        false => read(text),
    };
    read.map_err(|error| {
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
        let exception = Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0740",
            format!(
                "this is not JSON: {why} (line {}, column {})",
                error.line(),
                error.column()
            ),
        );
        Signal::from(match text.trim().is_empty() {
            true => exception.hint("the text is empty"),
            false => exception.with("line", Value::from(error.line())),
        })
    })
}

fn write_json(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let pretty = Options::new(&args, &["pretty"])?.flag("pretty", false);
    let text = match pretty {
        true => write_pretty_with(vm, args.get(0)),
        false => write_with(vm, args.get(0)),
    };
    text.map(Value::from).map_err(|error| match error {
        JsonError::Signal(signal) => signal,
        error => Exception::new(Class::ILLEGAL_ARGUMENT, "E0740", error.to_string())
            .argument(0)
            .into(),
    })
}

fn parse_csv(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let options = Options::new(&args, &["header", "keys", "separator", "trim"])?;
    let text = args.text(0)?.trim_start_matches('\u{feff}');
    vm.charge(u32::try_from(text.len() / 16).unwrap_or(u32::MAX / 2))?;
    let separator = options.separator()?;
    check_quotes(text, char::from(separator))?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .trim(if options.flag("trim", false) {
            csv::Trim::All
        } else {
            csv::Trim::None
        })
        .from_reader(text.as_bytes());
    let mut rows: Vec<Value> = Vec::new();
    let mut header: Option<Vec<Value>> = None;
    let mut width = None;
    for (idx, record) in reader.records().enumerate() {
        let record = record.map_err(|error| csv_error(error.to_string(), "the text is not CSV"))?;
        vm.charge_much(record.len() as u64 + record.as_slice().len() as u64 / 64 + 1)?;
        let expected = *width.get_or_insert(record.len());
        if record.len() != expected {
            return Err(ragged(idx + 1, &record, expected));
        }
        match &header {
            None if options.flag("header", true) => header = Some(header_keys(&record, &options)?),
            None => rows.push(Value::vector(record.iter().map(Value::from))),
            Some(keys) => rows.push(Value::map(
                keys.iter().cloned().zip(record.iter().map(Value::from)),
            )),
        }
    }
    Ok(Value::vector(rows))
}

fn header_keys(record: &csv::StringRecord, options: &Options<'_>) -> Result<Vec<Value>> {
    let mut names: Vec<&str> = Vec::new();
    for (idx, name) in record.iter().enumerate() {
        let name = name.trim();
        if name.is_empty() {
            return Err(csv_error(
                format!("field {} of the header row has no name", idx + 1),
                "give it a name, or use `:header false`",
            ));
        }
        if names.contains(&name) {
            return Err(csv_error(
                format!("the header row has the name `{name}` twice"),
                "rename one, or use `:header false`",
            ));
        }
        names.push(name);
    }
    Ok(names
        .into_iter()
        .map(|name| match options.string_keys() {
            true => Value::from(name),
            false => Value::keyword(name),
        })
        .collect())
}

fn ragged(row: usize, record: &csv::StringRecord, expected: usize) -> Signal {
    let line = record.position().map_or(0, csv::Position::line);
    let fields = match record.len() {
        1 => "1 field".to_owned(),
        count => format!("{count} fields"),
    };
    let starts: String = record
        .iter()
        .collect::<Vec<_>>()
        .join(",")
        .chars()
        .take(40)
        .collect();
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0741",
        format!("row {row} (line {line}) has {fields}, and the first row has {expected}: {starts}"),
    )
    .hint("a separator or a quote is missing there, or there is one too many")
    .with("row", Value::from(row))
    .with("line", Value::Int(i64::try_from(line).unwrap_or(0)))
    .into()
}

fn csv_error(message: String, hint: &str) -> Signal {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E0741", message)
        .hint(hint)
        .into()
}

/// The reader takes anything for CSV; what it would misread without a word is found here.
fn check_quotes(text: &str, separator: char) -> Result<()> {
    const BLOCK: u32 = 1 << 14;
    let (mut line, mut read) = (1, 0_u32);
    let mut opened = None;
    let mut at_start = true;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '\n' {
            line += 1;
        }
        read += 1;
        if read % BLOCK == 0 {
            meter::spend(BLOCK / 32)?;
        }
        match (opened, char) {
            (None, '"') if at_start => opened = Some(line),
            (None, char) => at_start = char == separator || char == '\n' || char == '\r',
            (Some(_), '"') if chars.peek() == Some(&'"') => {
                chars.next();
            }
            (Some(_), '"') => {
                opened = None;
                at_start = false;
                if let Some(next) = chars
                    .peek()
                    .filter(|next| ![separator, '\n', '\r', ' '].contains(next))
                {
                    return Err(csv_error(
                        format!("line {line}: `{next}` follows a closing quote"),
                        "write a quote inside a quoted field twice: \"\"",
                    ));
                }
            }
            (Some(_), _) => {}
        }
    }
    match opened {
        Some(line) => Err(csv_error(
            format!("the quote that is opened on line {line} is never closed"),
            "close it, or write a quote inside a quoted field twice: \"\"",
        )),
        None => Ok(()),
    }
}

fn write_csv(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let options = Options::new(&args, &["columns", "escape-formulas?", "separator"])?;
    let escapes = options.flag("escape-formulas?", false);
    let separator = options.separator()?;
    let rows = vm.realise(args.get(0)).map(|()| items(args.get(0)))?;
    let rows = rows.ok_or_else(|| args.expected(0, "a vector of maps or vectors"))?;
    let columns: Vec<Value> = match options.0.get("columns").and_then(items) {
        Some(columns) => columns,
        None => all_keys(&rows),
    };
    let mut writer = csv::WriterBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .from_writer(Vec::new());
    let mut put = |mut cells: Vec<String>| {
        for cell in cells.iter_mut().filter(|_| escapes) {
            // A number is computed to itself.
            if is_formula(cell) && cell.parse::<f64>().is_err() {
                cell.insert(0, '\'');
            }
        }
        writer
            .write_record(cells)
            .map_err(|error| csv_error(error.to_string(), "the rows cannot be written as CSV"))
    };
    if !columns.is_empty() {
        put(columns
            .iter()
            .map(|column| name_text(column).unwrap_or_else(|| brief(column)))
            .collect())?;
    }
    for (idx, row) in rows.iter().enumerate() {
        let cells: Vec<Value> = match row {
            Value::Map(map) => columns
                .iter()
                .map(|column| map.get(column).cloned().unwrap_or(Value::Nil))
                .collect(),
            row => items(row).filter(|_| !row.is_nil()).ok_or_else(|| {
                csv_error(
                    format!("row {} is {}, not a map or vector", idx + 1, row.kind()),
                    "give a vector of maps or of vectors",
                )
            })?,
        };
        vm.charge_much(cells.len() as u64 + 1)?;
        let cells: Result<Vec<String>> = cells.iter().map(|cell| cell_text(vm, cell)).collect();
        put(cells?)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv_error(error.to_string(), "the rows cannot be written as CSV"))?;
    Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The keys of all maps, in the order in which they come up.
fn all_keys(rows: &[Value]) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    rows.iter()
        .filter_map(Value::as_map)
        .flat_map(|map| map.iter().map(|entry| entry.0.clone()))
        .filter(|key| seen.insert(Rc::<str>::from(brief(key))))
        .collect()
}

fn cell_text(vm: &mut Vm, cell: &Value) -> Result<String> {
    Ok(match cell {
        Value::Nil => String::new(),
        Value::Text(text) => text.as_str().to_owned(),
        Value::Keyword(_) => name_text(cell).unwrap_or_default(),
        // As other programs read them: without the letter that the language puts behind.
        Value::BigInt(int) => {
            let mut digits = String::new();
            number::write_big(&mut digits, int);
            digits
        }
        Value::Decimal(decimal) => number::plain_decimal(decimal)?,
        Value::Object(object) if let Object::Inst(ms) = &**object => codec::instant(*ms),
        Value::Map(_) | Value::Vector(_) | Value::Set(_) => match write_with(vm, cell) {
            Ok(text) => text,
            Err(JsonError::Signal(signal)) => return Err(signal),
            Err(error) => return Err(csv_error(error.to_string(), "give text, numbers or data")),
        },
        cell => vm.print(cell, flowstone_lang::value::PrintOptions::PLAIN)?,
    })
}
