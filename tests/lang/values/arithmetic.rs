//! Arithmetic: contagion, overflow, decimals, literals.

use flowstone_lang::value::number::{self, parse_number};
use flowstone_lang::value::{Result, Signal, Value};

use super::{read, show};

fn outcome(result: Result<Value>) -> String {
    match result {
        Ok(value) => show(&value),
        Err(Signal::Throw(exception)) => {
            format!("{}: {}", exception.class.0.name, exception.text())
        }
        Err(stop) => format!("{stop:?}"),
    }
}

fn calculate(text: &str) -> String {
    let form = read(text);
    let Value::List(list) = &form else {
        return "not a call".to_owned();
    };
    let items: Vec<&Value> = list.iter().collect();
    let operator = show(items[0]);
    if items.len() == 2 {
        return outcome(match &*operator {
            "-" => number::neg(items[1]),
            "-'" => number::neg_promoting(items[1]),
            "inc" => number::inc(items[1]),
            "dec" => number::dec(items[1]),
            "abs" => number::abs(items[1]),
            "rationalize" => number::rationalize(items[1]),
            "double" => number::to_float(items[1], "double").map(Value::Float),
            "long" => number::to_int(items[1], "long").map(Value::Int),
            "bigdec" => number::to_big_decimal(items[1], "bigdec").map(Value::from),
            "bigint" => number::to_big_int(items[1], "bigint").map(Value::from),
            other => panic!("{other}"),
        });
    }
    let run = match &*operator {
        "+" => number::add,
        "-" => number::sub,
        "*" => number::mul,
        "/" => number::div,
        "quot" => number::quot,
        "rem" => number::rem,
        "mod" => number::modulo,
        "+'" => number::add_promoting,
        "-'" => number::sub_promoting,
        "*'" => number::mul_promoting,
        other => panic!("{other}"),
    };
    outcome(run(items[1], items[2]))
}

#[test]
fn results_are_those_of_clojure() {
    let wrong: Vec<String> = include_str!("arithmetic.txt")
        .lines()
        .filter_map(|line| {
            let (text, expected) = line.split_once(" => ")?;
            let got = calculate(text);
            (got != expected).then(|| format!("{text}: {got}, not {expected}"))
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn number_literals_are_parsed_as_in_clojure() {
    let parsed =
        |text: &str| parse_number(text).map_or_else(|problem| problem, |value| show(&value));
    for (text, expected) in [
        ("12", "12"),
        ("+5", "5"),
        ("-0", "0"),
        ("017", "15"),
        ("0x1F", "31"),
        ("-0x10", "-16"),
        ("16r1F", "31"),
        ("2r101", "5"),
        ("36rZZ", "1295"),
        ("36RN", "23"),
        ("0xFFFFFFFFFFFFFFFF", "18446744073709551615N"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854775808N"),
        ("1N", "1N"),
        ("0xFFN", "255N"),
        ("017N", "15N"),
        ("4/2", "2"),
        ("-6/4", "-3/2"),
        ("0/5", "0"),
        ("1e5", "100000.0"),
        ("1E-3", "0.001"),
        ("1.", "1.0"),
        ("-1.5e+3", "-1500.0"),
        ("1M", "1M"),
        ("1.50M", "1.50M"),
        ("1e10M", "1E+10M"),
        ("0E-8M", "0E-8M"),
        (
            "08",
            "Invalid number: 08 (a leading zero means octal, which has no digits 8 and 9)",
        ),
        ("1/0", "Divide by zero: 1/0"),
        ("1a", "Invalid number: 1a"),
        ("1.2.3", "Invalid number: 1.2.3"),
        ("37r1", "Radix out of range: 37r1"),
        ("2r3", "Invalid number: 2r3"),
        ("1e", "Invalid number: 1e"),
        ("0x", "Invalid number: 0x"),
        ("1/-2", "Invalid number: 1/-2"),
        ("1.5N", "Invalid number: 1.5N"),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}
