//! What one call of a model, or one loop of an agent, uses at most: for `flowstone check --bounds`.
//!
//! The numbers are those of one attempt, without what the tools do inside. They may be too large, and are never too small.

use flowstone_flow::bounds::{Most, Quantity, StepBounds};
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::tools;
use flowstone_lang::value::Value;

use super::prices::Prices;
use crate::agent::window_of;
use crate::literal::is_known;
use crate::needs::connection;

/// The largest values that the limits of a loop can have.
const MOST_TURNS: u64 = 100;
const MOST_CALLS: u64 = 1_000;
const MOST_REPAIRS: u64 = 10;
const MOST_CONNECTIONS: u64 = 8;
/// The values that they have if they are not given.
const USUAL_TURNS: u64 = 20;
const USUAL_CALLS: u64 = 100;
/// Answers of a loop beside its turns: the concluding one, and a summary for the memory.
const EXTRA: u64 = 2;

/// Returns the bounds of one attempt. `is_loop`: the model's calls of tools are executed.
pub(crate) fn bounds(flow: &Flow, settings: &Value, config: &Value, is_loop: bool) -> StepBounds {
    let config = Config(config);
    let mut bounds = StepBounds::default();
    let repairs = config.repairs();
    let (answers, calls, surplus) = match is_loop {
        true => {
            let turns = config.loop_limit("max-iterations", (USUAL_TURNS, MOST_TURNS));
            let calls = config.loop_limit("max-tool-calls", (USUAL_CALLS, MOST_CALLS));
            let evaluated = u64::from(config.may_have("evaluate"));
            let compacted = match config.may_have("compact") {
                true => turns + EXTRA,
                false => 0,
            };
            let surplus = EXTRA + evaluated + compacted;
            (turns + surplus, calls, surplus)
        }
        false => (1 + config.fallbacks(), 0, 0),
    };
    let answers = answers.saturating_mul(1 + repairs);
    bounds.amounts = bounds
        .amounts
        .with(Quantity::Turns, Most::Number(answers))
        .with(Quantity::ToolCalls, Most::Number(calls));
    if is_loop {
        tools_of(flow, config.0, &mut bounds);
    }
    let model = model(flow, settings, config.0);
    let tokens = match model.as_ref().map(|(_, model)| (model, window_of(model))) {
        Ok((_, Some(window))) => {
            let window = Most::Number(window);
            let whole = Most::Number(answers).times(window);
            match config.int("max-tokens-budget") {
                // The answer that exceeds the budget is the last but for those that conclude the loop.
                Some(budget) => {
                    let beyond =
                        Most::Number((1 + surplus).saturating_mul(1 + repairs)).times(window);
                    whole.min(Most::Number(budget).plus(beyond))
                }
                None => whole,
            }
        }
        Ok((model, None)) => {
            let message = format!("the context window of the model `{model}` is not known");
            bounds.reasons.push((Quantity::Tokens, message));
            Most::Unbounded
        }
        Err(why) => {
            bounds.reasons.push((Quantity::Tokens, why.clone()));
            Most::Unbounded
        }
    };
    bounds.amounts = bounds.amounts.with(Quantity::Tokens, tokens);
    let cost = cost(flow, settings, model, tokens, &mut bounds);
    bounds.amounts = bounds.amounts.with(Quantity::Cost, cost);
    bounds
}

/// Adds the packaged steps and flows that the model may call.
fn tools_of(flow: &Flow, config: &Value, bounds: &mut StepBounds) {
    let given = config.get("tools").unwrap_or(&Value::Nil);
    if config.as_map().is_none()
        || !is_known(given)
        || config
            .get("before-tool-call")
            .is_some_and(|it| !it.is_nil())
    {
        let packaged = flow.packaged.iter().map(|step| step.id.to_string());
        bounds.tools.extend(packaged);
        return;
    }
    let (envelope, _) = tools::read(flow, config, true);
    let ids = envelope.steps.iter().chain(&envelope.agents);
    bounds.tools.extend(ids.map(ToString::to_string));
    bounds
        .flows
        .extend(envelope.flows.iter().map(ToString::to_string));
}

/// Returns the provider and the model of a step, or why they are not known.
fn model(
    flow: &Flow,
    settings: &Value,
    config: &Value,
) -> Result<(Option<String>, String), String> {
    let unknown = || "its model is not known before the run".to_owned();
    let text = |key: &str| match config.get(key) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) if is_known(value) => Ok(name_of(value).map(|name| name.to_string())),
        Some(_) => Err(unknown()),
    };
    if config.as_map().is_none() {
        return Err(unknown());
    }
    let connection = connection(flow, settings, config);
    let (provider, model) = (text("provider")?, text("model")?);
    let of_connection = connection.as_ref();
    let model = model.or_else(|| of_connection.and_then(|it| it.model.clone()));
    let provider = provider.or_else(|| of_connection.and_then(|it| it.backend.clone()));
    model.map(|model| (provider, model)).ok_or_else(unknown)
}

/// Returns the cost of a number of tokens, each at the highest rate.
fn cost(
    flow: &Flow,
    settings: &Value,
    model: Result<(Option<String>, String), String>,
    tokens: Most,
    bounds: &mut StepBounds,
) -> Most {
    let (provider, model) = match model {
        Ok(found) => found,
        Err(why) => {
            bounds.reasons.push((Quantity::Cost, why));
            return Most::Unbounded;
        }
    };
    let Some(tokens) = tokens.number() else {
        let message = "the number of its tokens has no bound".to_owned();
        bounds.reasons.push((Quantity::Cost, message));
        return Most::Unbounded;
    };
    let prices = Prices::of(&flow.llm_providers, settings).unwrap_or_default();
    let rate = provider.and_then(|provider| prices.highest(&provider, &model));
    match rate {
        Some(rate) => micros(tokens, rate),
        None => {
            let message = format!("the price of the model `{model}` is not known");
            bounds.reasons.push((Quantity::Cost, message));
            Most::Unbounded
        }
    }
}

/// Returns the cost in millionths of a dollar, rounded up, of tokens at a rate in dollars for a million of them.
fn micros(tokens: u64, rate: f64) -> Most {
    let cost = (tokens as f64 * rate).ceil();
    // Larger numbers are not exact.
    match cost.is_finite() && (0.0..9.0e15).contains(&cost) {
        true => Most::Number(cost as u64 + 1),
        false => Most::Unbounded,
    }
}

/// A config as it is written. If it is not a map, it is computed as a whole.
struct Config<'a>(&'a Value);

impl Config<'_> {
    /// Tells whether an option may be set.
    fn may_have(&self, key: &str) -> bool {
        let is_set = |value: &Value| !matches!(value, Value::Nil | Value::Bool(false));
        !self.has_written_keys() || self.0.get(key).is_some_and(is_set)
    }

    /// Tells whether all keys are written out: a computed one may be any.
    fn has_written_keys(&self) -> bool {
        let map = self.0.as_map();
        map.is_some_and(|map| map.iter().all(|(key, _)| key.as_keyword().is_some()))
    }

    fn int(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Int(number) if self.has_written_keys() => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns a limit of the loop: that of `:tools`, or that of the step, or the usual one.
    fn loop_limit(&self, key: &str, (usual, most): (u64, u64)) -> u64 {
        if !self.has_written_keys() {
            return most;
        }
        let tools = self.0.get("tools").unwrap_or(&Value::Nil);
        let of_tools = match tools {
            Value::Map(map) => match map.iter().all(|(key, _)| key.as_keyword().is_some()) {
                true => tools.get(key).cloned(),
                false => return most,
            },
            Value::Nil | Value::Vector(_) => None,
            _ => return most,
        };
        let given = of_tools
            .filter(|it| !it.is_nil())
            .or_else(|| self.0.get(key).cloned());
        match given {
            None | Some(Value::Nil) => usual,
            Some(Value::Int(number)) => {
                u64::try_from(number).map_or(usual, |number| number.min(most))
            }
            Some(_) => most,
        }
    }

    /// Returns how often an answer may be sent back to the model.
    fn repairs(&self) -> u64 {
        let of = |given: Option<&Value>| match given {
            None | Some(Value::Nil) => 0,
            Some(Value::Int(number)) => {
                u64::try_from(*number).map_or(0, |number| number.min(MOST_REPAIRS))
            }
            Some(_) => MOST_REPAIRS,
        };
        if !self.has_written_keys() {
            return MOST_REPAIRS;
        }
        let own = of(self.0.get("repair"));
        match self.0.get("output") {
            Some(output @ Value::Map(_)) => own.max(of(output.get("repair"))),
            Some(Value::Nil | Value::Keyword(_) | Value::Text(_)) | None => own,
            Some(_) => MOST_REPAIRS,
        }
    }

    /// Returns the number of further connections that are tried.
    fn fallbacks(&self) -> u64 {
        match self.0.get("connection") {
            Some(Value::Vector(names)) => u64::try_from(names.len()).unwrap_or(MOST_CONNECTIONS),
            Some(Value::Keyword(_) | Value::Text(_) | Value::Nil) | None => 0,
            Some(_) => MOST_CONNECTIONS,
        }
    }
}
