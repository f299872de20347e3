//! `:metering`: the cost of a step, for the run's record. Estimates by the flow's author; nothing is charged.

use flowstone_lang::value::Value;

use crate::option_problem::{Wrong, keys};
use crate::step::{StepContext, StepError};

const CODE: &str = "E0455";
const KEYS: &[&str] = &["label", "quantity", "unit", "unit-cost-micros"];

/// The cost line of a step.
#[derive(Debug, Clone)]
pub struct Metering {
    pub label: Option<String>,
    pub unit: Value,
    /// The cost of a unit, in millionths of a dollar.
    pub unit_cost_micros: f64,
    pub quantity: Quantity,
}

/// The number of units that a step uses.
#[derive(Debug, Clone)]
pub enum Quantity {
    Fixed(f64),
    /// Code that computes the number from the step's value.
    Code(Value),
}

impl Metering {
    /// Reads the option. Returns `None` if it is absent.
    pub fn of(given: &Value) -> Result<Option<Metering>, Wrong> {
        if given.is_nil() {
            return Ok(None);
        }
        let wrong = |inner: &str, expected: &str| Wrong::value(CODE, "metering", inner, expected);
        let map = keys(CODE, "metering", given, KEYS)?;
        let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
        let amount = |value: &Value| number(value).filter(|number| *number >= 0.0);
        let unit_cost_micros = match get("unit-cost-micros") {
            Some(cost) => {
                amount(cost).ok_or_else(|| wrong("unit-cost-micros", "a number from 0"))?
            }
            None if map.get(&Value::keyword("unit-cost-micros")).is_some() => 0.0,
            None => {
                let message = "`:metering` needs `:unit-cost-micros`".to_owned();
                return Err(Wrong::new(CODE, "metering", message)
                    .hint("millionths of a dollar: `{:unit :request :unit-cost-micros 2000}`"));
            }
        };
        let label = match get("label") {
            Some(label) => {
                let label = label.as_str().map(str::to_owned);
                Some(label.ok_or_else(|| wrong("label", "a string"))?)
            }
            None => None,
        };
        let unit = match get("unit") {
            None => Value::keyword("request"),
            Some(unit @ (Value::Keyword(_) | Value::Text(_))) => unit.clone(),
            Some(_) => return Err(wrong("unit", "a keyword or string")),
        };
        let expected = "a number from 0, or a function of the step's value";
        let quantity = match get("quantity") {
            None => Quantity::Fixed(1.0),
            Some(code @ (Value::List(_) | Value::Fn(_) | Value::Keyword(_) | Value::Text(_))) => {
                Quantity::Code(code.clone())
            }
            Some(value) => {
                Quantity::Fixed(amount(value).ok_or_else(|| wrong("quantity", expected))?)
            }
        };
        Ok(Some(Metering {
            label,
            unit,
            unit_cost_micros,
            quantity,
        }))
    }

    /// Returns the cost line for the journal of a step that has succeeded, or `None` if the quantity depends on a value
    /// that is not known. A quantity that cannot be computed does not fail the step; the line contains the error.
    pub fn line(&self, cx: &StepContext, value: Option<&Value>) -> Option<Value> {
        let counted = match (&self.quantity, value) {
            (Quantity::Fixed(quantity), _) => Ok(*quantity),
            (Quantity::Code(_), None) => return None,
            (Quantity::Code(code), Some(value)) => count(cx, code, value),
        };
        let (quantity, problem) = match counted {
            Ok(quantity) => (quantity, Value::Nil),
            Err(error) => (0.0, Value::from(error.message)),
        };
        let micros = (self.unit_cost_micros * quantity).round() as i64;
        let label = self.label.as_deref().map_or(Value::Nil, Value::from);
        Some(Value::map([
            (Value::keyword("label"), label),
            (Value::keyword("micros"), Value::Int(micros)),
            (Value::keyword("problem"), problem),
            (Value::keyword("quantity"), plain(quantity)),
            (Value::keyword("unit"), self.unit.clone()),
        ]))
    }
}

fn count(cx: &StepContext, code: &Value, value: &Value) -> Result<f64, StepError> {
    let counted = cx.call_at_once(&cx.function(code)?, std::slice::from_ref(value))?;
    let counted = number(&counted).filter(|number| *number >= 0.0);
    counted.ok_or_else(|| {
        let message = "`:quantity` of `:metering` did not return a number from 0";
        StepError::config(CODE, message)
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) if float.is_finite() => Some(*float),
        _ => None,
    }
}

/// Returns a whole number as an integer.
fn plain(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => Value::Int(number as i64),
        false => Value::Float(number),
    }
}
