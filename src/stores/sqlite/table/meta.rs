//! The definition of a column beside its name and type, as the registry stores it: one JSON object.

use flowstone_model::codec::decode;
use flowstone_model::table::{Cell, CellFormat, CheckRule, Display, Validation};
use serde_json::{Map, Value as Json, json};

use super::cell::{data_text, from_value};
use crate::edn::{self, MapText};

/// The definition of a column beside its name and type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Meta {
    pub display_name: Option<String>,
    pub semantic_type: Option<String>,
    /// Set if the options are declared; tells whether further options are refused.
    pub options: Option<Closed>,
    pub lookup: Option<Lookup>,
    pub reference: Option<Reference>,
    pub format: Option<CellFormat>,
    pub validation: Option<Validation>,
}

/// Tells whether an enum refuses values that are not among its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed(pub bool);

/// The source of a computed column's cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    /// A column of the same table, with a reference.
    pub reference_column: String,
    /// A column of the table that it refers to.
    pub field: String,
}

/// The table and the column that the cells of a column refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub table: i64,
    /// The column that is searched for the cell.
    pub column: String,
}

impl Meta {
    /// Parses the stored definition. Keys of later builds are ignored.
    pub(super) fn read(text: &str) -> Meta {
        if text == "{}" {
            return Meta::default();
        }
        let Ok(json) = serde_json::from_str::<Json>(text) else {
            return Meta::default();
        };
        let word = |json: &Json, key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        Meta {
            display_name: word(&json, "display-name"),
            semantic_type: word(&json, "semantic-type"),
            options: json.get("closed").and_then(Json::as_bool).map(Closed),
            lookup: json.get("lookup").and_then(|lookup| {
                Some(Lookup {
                    reference_column: word(lookup, "reference-column")?,
                    field: word(lookup, "field")?,
                })
            }),
            reference: json.get("reference").and_then(|reference| {
                Some(Reference {
                    table: reference.get("table")?.as_i64()?,
                    column: word(reference, "column")?,
                })
            }),
            format: json.get("format").and_then(read_format),
            validation: json.get("validation").and_then(read_validation),
        }
    }

    /// Returns the definition in stored form.
    pub(super) fn text(&self) -> String {
        let mut map = Map::new();
        let mut put = |key: &str, value: Option<Json>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        put("display-name", self.display_name.clone().map(Json::from));
        put("semantic-type", self.semantic_type.clone().map(Json::from));
        put("closed", self.options.map(|closed| Json::from(closed.0)));
        put(
            "lookup",
            self.lookup.as_ref().map(
                |lookup| json!({"reference-column": lookup.reference_column, "field": lookup.field}),
            ),
        );
        put(
            "reference",
            self.reference
                .as_ref()
                .map(|reference| json!({"table": reference.table, "column": reference.column})),
        );
        put("format", self.format.as_ref().map(format_json));
        put("validation", self.validation.as_ref().map(validation_json));
        Json::Object(map).to_string()
    }
}

/// Returns a format in stored form.
pub(super) fn format_json(format: &CellFormat) -> Json {
    match &format.currency {
        None => json!({"display": format.display.name()}),
        Some(currency) => json!({"display": format.display.name(), "currency": currency}),
    }
}

/// Parses a stored format.
pub(super) fn read_format(json: &Json) -> Option<CellFormat> {
    let currency = json.get("currency").and_then(Json::as_str);
    Some(CellFormat {
        display: Display::from_name(json.get("display")?.as_str()?)?,
        currency: currency.map(str::to_owned),
    })
}

/// Returns a format as EDN text.
pub(super) fn format_edn(format: &CellFormat) -> String {
    let map = MapText::new().text("display", format.display.name());
    match &format.currency {
        Some(currency) => map.text("currency", currency).finish(),
        None => map.finish(),
    }
}

fn validation_json(validation: &Validation) -> Json {
    match validation {
        Validation::Schema(schema) => json!({ "schema": schema }),
        Validation::Rules(rules) => Json::Array(rules.iter().map(rule_json).collect()),
    }
}

fn rule_json(rule: &CheckRule) -> Json {
    let text = |cell: &Cell| data_text(cell).unwrap_or_else(|| "nil".to_owned());
    match rule {
        CheckRule::Required => json!(["required", true]),
        CheckRule::Min(cell) => json!(["min", text(cell)]),
        CheckRule::Max(cell) => json!(["max", text(cell)]),
        CheckRule::MinLength(length) => json!(["min-length", length]),
        CheckRule::MaxLength(length) => json!(["max-length", length]),
        CheckRule::Pattern(pattern) => json!(["pattern", pattern]),
        CheckRule::OneOf(cells) => {
            json!(["in", cells.iter().map(text).collect::<Vec<_>>()])
        }
    }
}

fn read_validation(json: &Json) -> Option<Validation> {
    if let Some(schema) = json.get("schema") {
        return schema.as_str().map(str::to_owned).map(Validation::Schema);
    }
    let rules = json.as_array()?.iter().map(read_rule);
    rules.collect::<Option<_>>().map(Validation::Rules)
}

fn read_rule(json: &Json) -> Option<CheckRule> {
    let cell = |json: &Json| from_value(&decode(json.as_str()?).ok()?);
    let length = |json: &Json| usize::try_from(json.as_u64()?).ok();
    let value = json.get(1)?;
    Some(match json.get(0)?.as_str()? {
        "required" => CheckRule::Required,
        "min" => CheckRule::Min(cell(value)?),
        "max" => CheckRule::Max(cell(value)?),
        "min-length" => CheckRule::MinLength(length(value)?),
        "max-length" => CheckRule::MaxLength(length(value)?),
        "pattern" => CheckRule::Pattern(value.as_str()?.to_owned()),
        "in" => CheckRule::OneOf(value.as_array()?.iter().map(cell).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Returns the validation of a column as EDN text, in the form that flows use.
pub(super) fn validation_edn(validation: &Validation) -> String {
    let rules = match validation {
        Validation::Schema(schema) => return schema.clone(),
        Validation::Rules(rules) => rules,
    };
    let text = |cell: &Cell| data_text(cell).unwrap_or_else(|| "nil".to_owned());
    let map = rules.iter().fold(MapText::new(), |map, rule| match rule {
        CheckRule::Required => map.bool("required", true),
        CheckRule::Min(cell) => map.raw("min", &text(cell)),
        CheckRule::Max(cell) => map.raw("max", &text(cell)),
        CheckRule::MinLength(length) => map.count("min-length", *length),
        CheckRule::MaxLength(length) => map.count("max-length", *length),
        CheckRule::Pattern(pattern) => map.text("pattern", pattern),
        CheckRule::OneOf(cells) => map.raw("in", &edn::vector(cells.iter().map(text))),
    });
    map.finish()
}
