//! `#(...)`: the parameters written with `%`.

use crate::value::{Span, Symbol, Value};

use super::build::{placed_list, placed_name};
use super::{ReadContext, ReadError, Reader};

/// Maximum number of positional parameters for `%n`.
const MAX_PARAMETERS: usize = 20;

/// The parameters used so far in a `#()`.
#[derive(Debug, Default)]
pub(super) struct FunctionArgs {
    positional: Vec<Symbol>,
    rest: Option<Symbol>,
}

impl FunctionArgs {
    /// Returns the parameter at `idx`; creates it and those before it if necessary.
    fn at(&mut self, idx: usize, cx: &mut dyn ReadContext) -> Symbol {
        while self.positional.len() <= idx {
            let number = self.positional.len() + 1;
            self.positional.push(hidden(cx, &format!("p{number}__")));
        }
        self.positional[idx]
    }

    fn rest(&mut self, cx: &mut dyn ReadContext) -> Symbol {
        *self.rest.get_or_insert_with(|| hidden(cx, "rest__"))
    }
}

fn hidden(cx: &mut dyn ReadContext, prefix: &str) -> Symbol {
    Symbol::new(&format!("{}#", cx.gensym(prefix)))
}

impl Reader<'_> {
    /// Returns the parameter of a token that begins with `%`.
    pub(super) fn parameter(
        &mut self,
        token: &str,
        span: Span,
        cx: &mut dyn ReadContext,
    ) -> Result<Symbol, ReadError> {
        let wrong = self.bad_parameter(token, span, MAX_PARAMETERS);
        let Some(args) = &mut self.function else {
            return Err(wrong);
        };
        match &token[1..] {
            "" => Ok(args.at(0, cx)),
            "&" => Ok(args.rest(cx)),
            number => match number.parse::<usize>() {
                Ok(number @ 1..=MAX_PARAMETERS) => Ok(args.at(number - 1, cx)),
                _ => Err(wrong),
            },
        }
    }

    /// Returns the `fn*` form of a `#()`.
    pub(super) fn build_function(&mut self, base: usize, span: Span) -> Value {
        let args = self.function.take().unwrap_or_default();
        let opening = Span {
            end: span.start + 2,
            ..span
        };
        let name = |symbol| placed_name(symbol, opening);
        let mut parameters: Vec<Value> = args.positional.into_iter().map(name).collect();
        if let Some(rest) = args.rest {
            parameters.push(name(Symbol::new("&")));
            parameters.push(name(rest));
        }
        let body_span = Span {
            start: span.start + 1,
            ..span
        };
        let body = self.build_list(base, body_span);
        placed_list(
            [name(Symbol::new("fn*")), Value::vector(parameters), body],
            span,
            [opening, opening, body_span],
        )
    }
}
