//! Prices of model calls: a built-in table, overridden by the project.
//!
//! A model without a row has no price: nothing is guessed from similar names.

use std::sync::LazyLock;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::name_of;
use flowstone_lang::reader::read_data;
use flowstone_lang::value::Value;

use super::call::Usage;
use crate::json::items;

/// The built-in table.
const OWN: &str = include_str!("prices.edn");

const KEYS: &[&str] = &[
    "cache-write",
    "cached",
    "input",
    "long",
    "model",
    "output",
    "provider",
];
const RATES: &[&str] = &["cache-write", "cached", "input", "output"];

/// The price of models, in US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceReport {
    pub provider: String,
    pub model: String,
    pub input: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: f64,
    /// The input and output prices that apply above a number of input tokens.
    pub long: Option<(i64, f64, f64)>,
    /// The origin of the price.
    pub source: String,
}

/// The price of the models that match a pattern, at one provider.
#[derive(Debug, Clone, PartialEq)]
struct Price {
    provider: String,
    /// A model's name, in which `*` matches any text.
    model: String,
    rates: Rates,
    /// The number of input tokens above which other rates apply.
    long: Option<(i64, Rates)>,
    /// The origin of the price.
    source: &'static str,
}

/// The rates in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    pub input: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: f64,
}

/// The prices of a flow and its project. They override the built-in table, which all calls share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(Vec<Price>);

static OWN_PRICES: LazyLock<(String, Vec<Price>)> = LazyLock::new(|| {
    let table = read_data(OWN).expect("the table that comes with the program is EDN");
    let as_of = table.get("as-of").and_then(Value::as_str);
    let rows = table.get("prices").cloned().unwrap_or(Value::Nil);
    let rows = read(&rows, "the table", "built in").expect("its rows are prices");
    (as_of.unwrap_or_default().to_owned(), rows)
});

/// Returns the date of the built-in table.
pub fn as_of() -> &'static str {
    &OWN_PRICES.0
}

/// Returns the table of a project, in the order of precedence.
///
/// # Errors
/// Fails if a price in the settings is invalid.
pub fn report(settings: &Value) -> Result<Vec<PriceReport>, String> {
    let prices = Prices::of(&Value::Nil, settings)?;
    let report = |price: &Price| PriceReport {
        provider: price.provider.clone(),
        model: price.model.clone(),
        input: price.rates.input,
        cached: price.rates.cached,
        cache_write: price.rates.cache_write,
        output: price.rates.output,
        long: price
            .long
            .map(|(over, rates)| (over, rates.input, rates.output)),
        source: price.source.to_owned(),
    };
    Ok(prices.all().map(report).collect())
}

/// Checks `:prices` and those of `:llm-providers` in the settings and their profiles.
pub(crate) fn check_settings(settings: &Value) -> Result<(), String> {
    of_settings(settings)?;
    let profiles = settings.get("profiles").and_then(Value::as_map);
    for (name, profile) in profiles.into_iter().flat_map(|map| map.iter()) {
        let name = name_of(name).unwrap_or_else(|| "?".into());
        of_settings(profile).map_err(|why| format!("`:profiles :{name}`: {why}"))?;
    }
    Ok(())
}

fn of_settings(settings: &Value) -> Result<Vec<Price>, String> {
    let mut prices = of_providers(settings.get("llm-providers"), "flowstone.edn")?;
    if let Some(rows) = settings.get("prices").filter(|it| !it.is_nil()) {
        prices.extend(read(rows, "`:prices`", "flowstone.edn")?);
    }
    Ok(prices)
}

impl Prices {
    /// Returns the prices for a flow in a project.
    ///
    /// # Errors
    /// Fails if a price is invalid.
    pub fn of(flow_providers: &Value, settings: &Value) -> Result<Prices, String> {
        let mut prices = of_providers(Some(flow_providers), "the flow")?;
        prices.extend(of_settings(settings)?);
        Ok(Prices(prices))
    }

    /// Returns all applicable prices, in the order of precedence.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Price> {
        self.0.iter().chain(&OWN_PRICES.1)
    }

    /// Returns the cost of a call, in millionths of a US dollar; `None` if no row matches the model.
    pub fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<i64> {
        let rates = self.find(provider, model)?.rates_for(usage.prompt);
        let (cached, written) = (usage.cached.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let plain = (usage.prompt - cached - written).max(0);
        // A dollar for a million tokens is a millionth of a dollar for one.
        let micros = plain as f64 * rates.input
            + cached as f64 * rates.cached.unwrap_or(rates.input)
            + written as f64 * rates.cache_write.unwrap_or(rates.input)
            + usage.completion as f64 * rates.output;
        Some(micros.round() as i64)
    }

    /// Returns the row for a model: the most specific pattern of the most specific provider.
    /// Returns the highest rate of a model, in US dollars for a million tokens; `None` if its price is not known.
    pub fn highest(&self, provider: &str, model: &str) -> Option<f64> {
        let price = self.find(provider, model)?;
        let each = [Some(price.rates), price.long.map(|(_, rates)| rates)];
        let rates = each.into_iter().flatten().flat_map(|rates| {
            let more = [rates.cached, rates.cache_write];
            more.into_iter()
                .flatten()
                .chain([rates.input, rates.output])
        });
        rates.reduce(f64::max)
    }

    fn find(&self, provider: &str, model: &str) -> Option<&Price> {
        let plain = without_date(model);
        let fits = |price: &&Price| {
            price.provider == provider
                && (matches(&price.model, model) || matches(&price.model, plain))
        };
        let source = self.all().find(fits)?.source;
        let found = self.all().filter(|it| it.source == source).filter(fits);
        // Of two patterns of the same length, the first one.
        found.rev().max_by_key(|price| {
            let letters = price.model.chars().filter(|it| *it != '*').count();
            (!price.model.contains('*'), letters)
        })
    }
}

impl Price {
    fn rates_for(&self, prompt: i64) -> Rates {
        match self.long {
            Some((over, rates)) if prompt > over => rates,
            _ => self.rates,
        }
    }
}

/// Tells whether a name matches a pattern in which `*` matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| matches(rest, &name[at..]))
}

/// Returns a model's name without a date at its end: `-20250514`, `-2025-04-14`.
fn without_date(model: &str) -> &str {
    for shape in ["-00000000", "-0000-00-00"] {
        let at = model.len().saturating_sub(shape.len());
        if at > 0
            && let Some(end) = model.get(at..)
            && end.bytes().zip(shape.bytes()).all(|(byte, it)| match it {
                b'0' => byte.is_ascii_digit(),
                it => byte == it,
            })
        {
            return &model[..at];
        }
    }
    model
}

/// Reads a list of rows.
fn read(rows: &Value, place: &str, source: &'static str) -> Result<Vec<Price>, String> {
    let rows = items(rows).ok_or_else(|| format!("{place} takes a list, not {}", rows.kind()))?;
    let mut prices = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let place = format!("{place}, row {}", at + 1);
        known(row, KEYS, &place)?;
        let text = |key: &str| row.get(key).and_then(name_of).map(|it| it.to_string());
        let needed = |key: &str| format!("{place} needs `:{key}`");
        prices.push(Price {
            provider: text("provider").ok_or_else(|| needed("provider"))?,
            model: text("model").ok_or_else(|| needed("model"))?,
            rates: rates(row, &place)?,
            long: long(row, &place)?,
            source,
        });
    }
    Ok(prices)
}

/// Reads `:prices` of providers: rates for all their models, or rates by model.
fn of_providers(providers: Option<&Value>, source: &'static str) -> Result<Vec<Price>, String> {
    let mut prices = Vec::new();
    for provider in providers.and_then(items).unwrap_or_default() {
        let (Some(id), Some(given)) =
            (provider.get("id").and_then(name_of), provider.get("prices"))
        else {
            continue;
        };
        let place = format!("`:llm-providers :{id} :prices`");
        let Some(map) = given.as_map() else {
            return Err(format!("{place} takes a map, not {}", given.kind()));
        };
        let mut add = |model: &str, row: &Value, place: &str| {
            known(row, &[RATES, &["long"]].concat(), place)?;
            prices.push(Price {
                provider: id.to_string(),
                model: model.to_owned(),
                rates: rates(row, place)?,
                long: long(row, place)?,
                source,
            });
            Ok::<(), String>(())
        };
        if given.get("input").is_some() {
            add("*", given, &place)?;
            continue;
        }
        for (model, row) in map.iter() {
            let model = name_of(model).ok_or_else(|| format!("{place} is by names of models"))?;
            add(&model, row, &format!("{place} `{model}`"))?;
        }
    }
    Ok(prices)
}

fn known(row: &Value, keys: &[&str], place: &str) -> Result<(), String> {
    let map = row
        .as_map()
        .ok_or_else(|| format!("{place} must be a map, not {}", row.kind()))?;
    for (key, _) in map.iter() {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        if !keys.contains(&&*name) {
            let meant = nearest(&name, keys.iter().copied());
            let meant = meant.map_or_else(String::new, |near| format!("; did you mean `:{near}`?"));
            return Err(format!("{place} has no key `:{name}`{meant}"));
        }
    }
    Ok(())
}

fn rates(row: &Value, place: &str) -> Result<Rates, String> {
    let rate = |key: &str| match row.get(key).filter(|it| !it.is_nil()) {
        None => Ok(None),
        Some(value) => match number(value).filter(|it| it.is_finite() && *it >= 0.0) {
            Some(rate) => Ok(Some(rate)),
            None => Err(format!(
                "`:{key}` of {place} must be dollars per million tokens, such as 2.5"
            )),
        },
    };
    let needed = |key: &str| rate(key)?.ok_or_else(|| format!("{place} needs `:{key}`"));
    Ok(Rates {
        input: needed("input")?,
        cached: rate("cached")?,
        cache_write: rate("cache-write")?,
        output: needed("output")?,
    })
}

fn long(row: &Value, place: &str) -> Result<Option<(i64, Rates)>, String> {
    let Some(long) = row.get("long").filter(|it| !it.is_nil()) else {
        return Ok(None);
    };
    let place = format!("`:long` of {place}");
    known(long, &[RATES, &["over"]].concat(), &place)?;
    let over = long.get("over").and_then(Value::as_int);
    let over = over.filter(|it| *it > 0);
    let over = over.ok_or_else(|| format!("{place} needs `:over`, a number of tokens"))?;
    Ok(Some((over, rates(long, &place)?)))
}

/// Returns a number as a float.
fn number(value: &Value) -> Option<f64> {
    match crate::json::to_json(value).ok()? {
        serde_json::Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: i64, completion: i64, cached: i64, written: i64) -> Usage {
        Usage {
            prompt,
            completion,
            total: prompt + completion,
            cached: Some(cached),
            cache_write: Some(written),
            reasoning: None,
            estimated: None,
        }
    }

    fn prices(flow: &str, settings: &str) -> Result<Prices, String> {
        Prices::of(&read_data(flow).unwrap(), &read_data(settings).unwrap())
    }

    #[test]
    fn calls_cost_what_the_first_row_that_fits_says() {
        let settings = r#"{:prices [{:provider :openai :model "gpt-9*" :input 1 :output 2}
                                    {:provider :openai :model "gpt-9-mini" :input 0.1 :output 0.2}
                                    {:provider :openai :model "gpt-4o" :input 100 :output 0}]
                           :llm-providers [{:id :local :prices {:input 3 :output 4}}
                                           {:id :other :prices {"m" {:input 5 :output 6 :long {:over 10 :input 50 :output 60}}}}]}"#;
        let flow = "[{:id :local :prices {:input 7 :output 8}}]";
        let table = prices(flow, settings).unwrap();
        let cases = [
            ("openai", "gpt-9-large", usage(10, 10, 0, 0), Some(30)),
            (
                "openai",
                "gpt-9-mini-2027-01-01",
                usage(10, 10, 0, 0),
                Some(3),
            ),
            ("openai", "gpt-4o", usage(2, 10, 0, 0), Some(200)),
            (
                "openai",
                "gpt-4.1-2025-04-14",
                usage(1000, 100, 400, 0),
                Some(1200 + 200 + 800),
            ),
            (
                "anthropic",
                "claude-sonnet-4-20250514",
                usage(1000, 100, 200, 300),
                Some(1500 + 60 + 1125 + 1500),
            ),
            (
                "google",
                "gemini-2.5-pro",
                usage(200_001, 0, 0, 0),
                Some(500_003),
            ),
            (
                "google",
                "gemini-2.5-pro",
                usage(200_000, 0, 0, 0),
                Some(250_000),
            ),
            ("local", "anything", usage(1, 1, 0, 0), Some(15)),
            ("other", "m", usage(10, 1, 0, 0), Some(56)),
            ("other", "m", usage(11, 1, 0, 0), Some(610)),
            ("ollama", "qwen", usage(1_000, 1_000, 0, 0), Some(0)),
            ("other", "unknown", usage(1, 1, 0, 0), None),
            ("openai", "gpt-4.1-micro", usage(1, 1, 0, 0), None),
            ("nobody", "gpt-4.1", usage(1, 1, 0, 0), None),
        ];
        for (provider, model, usage, expected) in cases {
            assert_eq!(
                table.cost(provider, model, &usage),
                expected,
                "{provider} {model}"
            );
        }
    }

    #[test]
    fn a_price_that_is_not_right_is_named() {
        let cases = [
            (
                "{:prices [{:provider :a :model \"m\" :input 1}]}",
                "`:prices`, row 1 needs `:output`",
            ),
            (
                "{:prices [{:provider :a :input 1 :output 1}]}",
                "needs `:model`",
            ),
            (
                "{:prices [{:provider :a :model \"m\" :input \"1\" :output 1}]}",
                "`:input` of `:prices`, row 1 must be dollars",
            ),
            (
                "{:prices [{:provider :a :model \"m\" :input -1 :output 1}]}",
                "must be dollars",
            ),
            (
                "{:prices [{:provider :a :model \"m\" :inptu 1 :output 1}]}",
                "did you mean `:input`?",
            ),
            ("{:prices [7]}", "must be a map"),
            (
                "{:llm-providers [{:id :x :prices [1]}]}",
                "`:llm-providers :x :prices` takes a map",
            ),
            (
                "{:prices [{:provider :a :model \"m\" :input 1 :output 1 :long {:input 1 :output 1}}]}",
                "needs `:over`",
            ),
        ];
        for (settings, expected) in cases {
            let error = prices("nil", settings).unwrap_err();
            assert!(error.contains(expected), "{settings}: {error}");
        }
    }
}
