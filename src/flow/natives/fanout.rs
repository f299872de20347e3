//! `:fanout`: one step that stands for several. Each item is performed as a step on a branch, so that single items are
//! journaled, retried and waited for, and never the whole.

use flowstone_lang::value::{Class, Exception, Native, Result, Signal, Value};
use flowstone_lang::vm::Vm;

use super::branches::{self, Gather, Node, OnFailure, Options};
use crate::config;
use crate::diagnostic::Diagnostic;
use crate::step::{
    COMMON, Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_model::names::name_of;

pub const KIND: &str = "fanout";
/// Items of this type run concurrently.
const CALL_FLOW: &str = "call-flow";

/// The step type, for lookups of steps.
pub struct Fanout;

static SPEC: StepSpec = StepSpec {
    kind: KIND,
    operations: None,
    aliases: &[],
    doc: "Performs several steps and returns their values in the order of the items. Items of type `:call-flow` run \
          side by side, others one after another; the two are not mixed. Other steps run side by side with \
          `flow/pmap`.",
    fields: &[
        Field::required(
            "items",
            FieldType::Items,
            "Maps, each the config of a step with its `:type`.",
        ),
        Field::optional(
            "max-concurrency",
            FieldType::Int,
            "How many child runs are under way at once.",
        )
        .or("5"),
        Field::optional(
            "on-error",
            FieldType::OneOf(&["collect", "continue", "fail"]),
            "`:fail` ends the others, `:continue` gives nil for the item, `:collect` gives `{:error {...}}`.",
        )
        .or(":fail"),
        Field::optional(
            "transform",
            FieldType::Any,
            "A function of the vector of values, or its quoted form; the step's value is what it returns.",
        ),
    ],
    examples: &[
        "(flow/step :fanout :receipts {:items [{:type :call-flow :flow-slug :send-receipt :input {:order 1}} \
         {:type :call-flow :flow-slug :send-receipt :input {:order 2}}] :on-error :collect})",
    ],
    effect: Effect::Pure,
};

impl Step for Fanout {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    /// Only reached outside of a flow; a flow requests the items instead.
    fn run<'a>(
        &'a self,
        _cx: &'a StepContext,
        _config: Value,
    ) -> LocalFuture<'a, std::result::Result<Outcome, StepError>> {
        Box::pin(async {
            let message = "a `:fanout` step works only in the body of a flow";
            Err(StepError::config("E0447", message).hint("perform its items as steps of their own"))
        })
    }
}

/// Tells whether a step type names this step.
pub(super) fn is_fanout(kind: &Value) -> bool {
    matches!(kind, Value::Keyword(kind) if kind.namespace().is_none() && &*kind.name() == KIND)
}

/// Performs the items; `step` performs a single one.
pub(super) fn perform(
    vm: &mut Vm,
    id: &Value,
    given: &Value,
    step: &'static Native,
) -> Result<Value> {
    let resolved = config::resolve(&SPEC, given).map_err(|error| {
        let exception = Exception::new(Class::ILLEGAL_ARGUMENT, error.code, error.message);
        Signal::from(error.hints.into_iter().fold(exception, Exception::hint))
    })?;
    if let Some(finding) = foreign_option(given) {
        return Err(super::exception(finding).into());
    }
    let items = vm.items(resolved.get("items").cloned().unwrap_or(Value::Nil))?;
    let (nodes, are_children) = nodes(&items, step).map_err(super::exception)?;
    let most = resolved.get("max-concurrency").and_then(Value::as_int);
    let most = most.and_then(|most| usize::try_from(most).ok());
    let Some(most) = most.filter(|most| *most > 0) else {
        let finding = wrong("`:max-concurrency` is a number from 1 on");
        return Err(super::exception(finding).into());
    };
    let name = match id {
        Value::Keyword(_) | Value::Text(_) => name_of(id).filter(|name| !name.is_empty()),
        _ => None,
    };
    let Some(name) = name else {
        let message = format!("a step id is a keyword, not {}", id.kind());
        return Err(super::exception(Diagnostic::error("E0433", message)).into());
    };
    let on_error = resolved.get("on-error");
    let options = Options {
        id: name.to_string(),
        on_failure: on_error
            .and_then(OnFailure::named)
            .unwrap_or(OnFailure::Fail),
        max: if are_children { most } else { 1 },
    };
    let values = branches::request(vm, options, Gather::All, nodes)?;
    transformed(vm, resolved.get("transform"), values)
}

/// Checks the types of the items. Returns whether they are child runs.
pub fn check_types(items: &[Value]) -> Result<bool, Diagnostic> {
    let mut children = 0;
    for (number, item) in items.iter().enumerate() {
        let Some(kind) = item.get("type").and_then(name_of) else {
            let message = format!("item {number} of the `:fanout` has no `:type`");
            return Err(wrong(message).hint("an item is a map such as {:type :http :url \"...\"}"));
        };
        if &*kind == KIND {
            return Err(wrong("a `:fanout` cannot contain a `:fanout`")
                .hint("merge the items of both into one"));
        }
        children += usize::from(&*kind == CALL_FLOW);
    }
    if children != 0 && children != items.len() {
        return Err(
            wrong("a `:fanout` cannot mix items of type `:call-flow` with others")
                .hint("use two steps, or flow/pmap, which runs any steps concurrently"),
        );
    }
    Ok(children != 0)
}

/// Returns a branch for each item, and whether they are child runs.
fn nodes(items: &[Value], step: &'static Native) -> Result<(Vec<Node>, bool), Diagnostic> {
    let are_children = check_types(items)?;
    let each = (0..).zip(items).map(|(number, item)| {
        let kind = item.get("type").and_then(name_of).unwrap_or_default();
        let kind = Value::keyword(&kind);
        let args = vec![kind.clone(), kind, item.clone()];
        branches::node(Value::Int(number), Value::Native(step), args)
    });
    Ok((each.collect(), are_children))
}

fn transformed(vm: &mut Vm, transform: Option<&Value>, values: Value) -> Result<Value> {
    let function = match transform {
        None | Some(Value::Nil) => return Ok(values),
        Some(form @ Value::List(_)) => {
            let loader = vm.world().loader();
            loader.eval(vm, form)?
        }
        Some(function) => function.clone(),
    };
    vm.call(&function, &[values])
}

/// Finds a common option that has no effect on a `:fanout`.
pub fn foreign_option(given: &Value) -> Option<Diagnostic> {
    let own = |name: &str| SPEC.fields.iter().any(|field| field.name == name);
    let foreign = COMMON
        .iter()
        .map(|field| field.name)
        .filter(|name| !own(name) && !matches!(*name, "title" | "type"))
        .find(|name| given.get(name).is_some_and(|value| !value.is_nil()))?;
    Some(wrong(format!("`:{foreign}` does not apply to a `:fanout`")).hint("give it to the items"))
}

fn wrong(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("E0446", message)
}
