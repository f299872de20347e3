//! The arguments of an operation: the positional ones, then options as keywords with values, or one map.

use flowstone_engine::text::nearest;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::{
    Class, Exception, PrintOptions, Result, Signal, Unforced, Value, print_value,
};

/// The arguments of a call.
pub struct Given {
    operation: &'static str,
    args: Vec<Value>,
    options: Vec<(String, Value)>,
}

impl Given {
    /// Splits the arguments of an operation. `count` of them are positional at most; keywords end them, unless the
    /// argument is one of the first `names`, which may be keywords.
    ///
    /// # Errors
    /// When an option has no value, or the operation does not take it.
    pub fn read(
        operation: &'static str,
        args: Vec<Value>,
        (names, count): (usize, usize),
        known: &[&str],
    ) -> Result<Given> {
        let mut given = Given {
            operation,
            args: Vec::new(),
            options: Vec::new(),
        };
        let mut rest = args.into_iter().peekable();
        while given.args.len() < count
            && let Some(next) = rest.peek()
            && (given.args.len() < names || next.as_keyword().is_none())
        {
            given.args.extend(rest.next());
        }
        let rest: Vec<Value> = rest.collect();
        match &rest[..] {
            [Value::Map(map)] => {
                for (key, value) in map.iter() {
                    given.add(key, value.clone(), known)?;
                }
            }
            pairs => {
                for pair in pairs.chunks(2) {
                    let [key, value] = pair else {
                        let key = shown(&pair[0]);
                        return Err(given.wrong(format!("the option {key} has no value")));
                    };
                    given.add(key, value.clone(), known)?;
                }
            }
        }
        Ok(given)
    }

    fn add(&mut self, key: &Value, value: Value, known: &[&str]) -> Result<()> {
        let name = key.as_keyword().map(|key| key.to_string());
        let name = name.as_deref().map(|name| name.trim_start_matches(':'));
        let Some(name) = name.filter(|name| known.contains(name)) else {
            let message = format!("`flow/{}` has no option {}", self.operation, shown(key));
            let error = problem(message);
            let near = name.and_then(|name| nearest(name, known.iter().copied()));
            return Err(match (near, known) {
                (Some(near), _) => error.hint(format!("did you mean `:{near}`?")),
                (None, []) => {
                    error.hint(format!("(doc flow/{}) shows its arguments", self.operation))
                }
                (None, known) => error.hint(format!("there are :{}", known.join(", :"))),
            }
            .into());
        };
        self.options.push((name.to_owned(), value));
        Ok(())
    }

    /// Returns a positional argument.
    pub fn arg(&self, idx: usize) -> Option<&Value> {
        self.args.get(idx)
    }

    /// Returns the name in a positional argument: a keyword, a symbol or a text.
    pub fn name(&self, idx: usize) -> Result<Option<String>> {
        let Some(arg) = self.args.get(idx).filter(|arg| !arg.is_nil()) else {
            return Ok(None);
        };
        match name_of(arg) {
            Some(name) => Ok(Some(name.to_string())),
            None => Err(self.wrong(format!(
                "argument {} of `flow/{}` is a name, as a keyword or a string; got {}",
                idx + 1,
                self.operation,
                shown(arg)
            ))),
        }
    }

    /// Returns an option's value; nil counts as absent.
    pub fn option(&self, name: &str) -> Option<&Value> {
        let mut options = self.options.iter().rev();
        let (_, value) = options.find(|(known, _)| known == name)?;
        Some(value).filter(|value| !value.is_nil())
    }

    /// Returns an option that is a name or a text.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.option(name) else {
            return Ok(None);
        };
        match name_of(value) {
            Some(text) => Ok(Some(text.to_string())),
            None => Err(self.wrong(format!(
                "the option :{name} is a name or a string; got {}",
                shown(value)
            ))),
        }
    }

    /// Tells whether an option is set.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.option(name) {
            None | Some(Value::Bool(false)) => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(value) => Err(self.wrong(format!(
                "the option :{name} is true or false; got {}",
                shown(value)
            ))),
        }
    }

    /// Returns the options as arguments of the command line.
    pub fn command_line(&self) -> Vec<String> {
        let mut line = Vec::new();
        for (name, value) in &self.options {
            let values: Vec<&Value> = match value {
                Value::Nil | Value::Bool(false) => continue,
                Value::Bool(true) => {
                    line.push(format!("--{name}"));
                    continue;
                }
                Value::Vector(items) => items.iter().collect(),
                Value::Set(items) => items.iter().collect(),
                value => vec![value],
            };
            for value in values {
                let text = name_of(value).map_or_else(|| shown(value), |text| text.to_string());
                line.push(format!("--{name}={text}"));
            }
        }
        line
    }

    /// Returns the error of a malformed argument.
    pub fn wrong(&self, message: String) -> Signal {
        problem(message)
            .hint(format!("(doc flow/{}) shows its arguments", self.operation))
            .into()
    }
}

fn problem(message: String) -> Exception {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E1550", message)
}

/// Prints a value in short.
pub fn shown(value: &Value) -> String {
    let mut out = String::new();
    let options = PrintOptions {
        length: Some(8),
        level: Some(3),
        ..PrintOptions::READABLE
    };
    match print_value(&mut out, &mut Unforced, value, options) {
        Ok(()) => out,
        Err(_) => value.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: Vec<Value>) -> Result<Given> {
        Given::read("run", args, (1, 2), &["invocation", "watch"])
    }

    #[test]
    fn keywords_after_the_names_are_options() {
        let slug = Value::keyword("triage");
        let input = Value::map([]);
        let given = read(vec![
            slug.clone(),
            input,
            Value::keyword("watch"),
            Value::Bool(true),
        ]);
        let given = given.expect("options");
        assert_eq!(given.name(0).expect("a name").as_deref(), Some("triage"));
        assert!(given.flag("watch").expect("a flag"));
        let given = read(vec![slug, Value::keyword("invocation"), Value::from("x")]);
        let given = given.expect("no input");
        assert!(given.arg(1).is_none());
        assert_eq!(given.command_line(), ["--invocation=x"]);
    }

    #[test]
    fn unknown_options_are_refused_with_a_suggestion() {
        let args = vec![
            Value::keyword("a"),
            Value::keyword("wach"),
            Value::Bool(true),
        ];
        let Err(Signal::Throw(error)) = read(args) else {
            panic!("an unknown option was accepted");
        };
        assert_eq!(error.code, "E1550");
        assert_eq!(error.hints, ["did you mean `:watch`?"]);
    }
}
