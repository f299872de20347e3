//! What a flow may do to the world, as far as its text shows it.

use flowstone_flow::flow::{Flow, FlowFunction};
use flowstone_flow::step::Effect;
use flowstone_lang::value::Value;

use crate::engine::Engine;

/// Functions of the namespace `flow` that change nothing outside the run.
const HARMLESS: &[&str] = &[
    "flow/all",
    "flow/emit",
    "flow/input",
    "flow/log",
    "flow/now",
    "flow/now-ms",
    "flow/step",
];

impl Engine {
    /// Tells whether all steps of a flow are known to change nothing. What is decided at run time counts as a change.
    pub fn only_reads(&self, flow: &Flow) -> bool {
        let is_data = |function: &FlowFunction| function.code.as_str().is_none();
        if !flow.functions.iter().all(is_data) {
            return false;
        }
        let mut open = vec![flow.body.clone()];
        open.extend(flow.functions.iter().map(|function| function.code.clone()));
        while let Some(form) = open.pop() {
            match &form {
                Value::List(list) => {
                    let items: Vec<Value> = list.iter().cloned().collect();
                    if !self.form_reads(&items) {
                        return false;
                    }
                    open.extend(items.into_iter().skip(1));
                }
                Value::Vector(items) => open.extend(items.iter().cloned()),
                Value::Map(map) => {
                    open.extend(
                        map.iter()
                            .flat_map(|(key, value)| [key.clone(), value.clone()]),
                    );
                }
                // Somebody may call it, with anything.
                Value::Symbol(symbol) if symbol.to_string().starts_with("flow/") => return false,
                _ => {}
            }
        }
        true
    }

    /// Tells whether a form changes nothing, apart from the forms inside it.
    fn form_reads(&self, items: &[Value]) -> bool {
        let Some(Value::Symbol(symbol)) = items.first() else {
            return true;
        };
        let name = symbol.to_string();
        if !name.starts_with("flow/") {
            return true;
        }
        if !HARMLESS.contains(&name.as_str()) {
            return false;
        }
        if name != "flow/step" {
            return true;
        }
        let kind = items.get(1).and_then(Value::as_keyword);
        let kind = kind.map(|kind| kind.to_string());
        let kind = kind.as_deref().unwrap_or_default().trim_start_matches(':');
        let config = items.iter().skip(2).find(|item| item.as_map().is_some());
        let step = self.steps().iter().find(|step| {
            let spec = step.spec();
            spec.kind == kind || spec.aliases.contains(&kind)
        });
        let effect = step.map(|step| step.effect(config.unwrap_or(&Value::Nil)));
        matches!(effect, Some(Effect::Pure | Effect::Read))
    }
}
