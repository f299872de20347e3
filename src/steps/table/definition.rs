//! Reads the definition of a column, and the format in which a cell is shown.

use flowstone_flow::codec;
use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_flow::table::{
    Cell, CellFormat, CheckRule, ColumnDefinition, ColumnType, Computed, Display, EnumDefinition,
    EnumOption, Patch, Reference, Validation,
};
use flowstone_lang::value::{Object, Value};

use super::{cells, target};
use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::text::{brief, nearest};

/// The type of the field `:format`.
pub(super) const FORMAT: FieldType = FieldType::Keys(&[
    Field::optional(
        "currency",
        FieldType::Text,
        "The code of a currency, such as `\"USD\"`.",
    ),
    Field::required(
        "display",
        FieldType::OneOf(&[
            "currency",
            "date",
            "date-time",
            "relative-time",
            "timestamp",
        ]),
        "The form in which the cell is shown.",
    ),
]);

/// The type of the field `:definition`.
pub(super) const FIELD: FieldType = FieldType::Keys(&[
    Field::optional(
        "computed",
        FieldType::Map,
        "`{:type \"lookup\" :reference-column :customer-id :field :name}`: each cell is taken from the row that another column refers to.",
    )
    .or_nil(),
    Field::optional("display-name", FieldType::Text, "The name that people see.").or_nil(),
    Field::optional(
        "enum",
        FieldType::Map,
        "`{:options [{:id :name :aliases}] :closed? false}`: the values of its cells, which are stored by their ids.",
    )
    .or_nil(),
    Field::optional("format", FORMAT, "How its cells are shown.").or_nil(),
    Field::optional(
        "reference",
        FieldType::Map,
        "`{:table \"customers\" :column :id}`: the table and the column that its cells refer to.",
    )
    .or_nil(),
    Field::optional("semantic-type", FieldType::Name, "The meaning of its cells, such as `email`.").or_nil(),
    Field::optional(
        "type-hint",
        FieldType::Name,
        "Its type: string long double decimal boolean date timestamp json enum.",
    ),
    Field::optional(
        "validation",
        FieldType::Any,
        "The rule that later writes must satisfy: a Malli schema, or `{:required :min :max :min-length :max-length :pattern :in}`.",
    )
    .or_nil(),
]);

const KEYS: &[&str] = &[
    "computed",
    "display-name",
    "enum",
    "format",
    "reference",
    "semantic-type",
    "type-hint",
    "validation",
];

fn wrong(message: String) -> StepError {
    StepError::config("E0721", message)
}

/// Reads `:definition`.
pub(super) fn read(given: &Value) -> Result<ColumnDefinition, StepError> {
    let fields = Fields::nested(":definition", given)?;
    fields.only(KEYS)?;
    definition(fields, fields.get("type-hint"), "a column")
}

/// Reads a column of `:columns` that is a map.
pub(super) fn of_column(given: &Value, name: &Value) -> Result<ColumnDefinition, StepError> {
    let fields = Fields::nested(":columns", given)?;
    fields.only(&[KEYS, &["name", "type"]].concat())?;
    let definition = definition(
        fields,
        fields.get("type").or(fields.get("type-hint")),
        &label(name),
    )?;
    let says_type = definition.type_.is_some()
        || definition.options != Patch::Keep
        || definition.computed != Patch::Keep;
    match says_type {
        true => Ok(definition),
        false => of_type(&Value::Nil, name),
    }
}

fn label(name: &Value) -> String {
    name_text(name).map_or_else(|| "a column".to_owned(), |name| format!("column `{name}`"))
}

/// Reads a column of `:columns` that is only the name of its type.
pub(super) fn of_type(given: &Value, name: &Value) -> Result<ColumnDefinition, StepError> {
    Ok(ColumnDefinition {
        type_: Some(column_type(given, &label(name))?),
        ..ColumnDefinition::default()
    })
}

fn definition(
    fields: Fields<'_>,
    type_: Option<&Value>,
    label: &str,
) -> Result<ColumnDefinition, StepError> {
    Ok(ColumnDefinition {
        display_name: patch(fields, "display-name", text)?,
        type_: type_.map(|type_| column_type(type_, label)).transpose()?,
        semantic_type: patch(fields, "semantic-type", text)?,
        options: patch(fields, "enum", options)?,
        computed: patch(fields, "computed", computed)?,
        reference: patch(fields, "reference", reference)?,
        format: patch(fields, "format", format)?,
        validation: patch(fields, "validation", validation)?,
    })
}

fn patch<T>(
    fields: Fields<'_>,
    key: &str,
    read: impl Fn(&Value) -> Result<T, StepError>,
) -> Result<Patch<T>, StepError> {
    match fields.given(key) {
        None => Ok(Patch::Keep),
        Some(Value::Nil) => Ok(Patch::Clear),
        Some(given) => read(given).map(Patch::Set),
    }
}

fn text(given: &Value) -> Result<String, StepError> {
    name_text(given).ok_or_else(|| wrong(format!("a name is a string, not {}", brief(given))))
}

/// Reads the name of a type.
fn column_type(given: &Value, label: &str) -> Result<ColumnType, StepError> {
    let word = name_text(given).unwrap_or_default();
    let found = ColumnType::from_name(match word.as_str() {
        "int" | "integer" => "long",
        "float" | "number" => "double",
        "text" => "string",
        "bool" => "boolean",
        "date-time" | "datetime" | "instant" => "timestamp",
        other => other,
    });
    found.ok_or_else(|| {
        let known = ColumnType::NAMES.iter().map(|(_, name)| *name);
        let shown = if word.is_empty() {
            brief(given)
        } else {
            word.clone()
        };
        let error = StepError::config("E0764", format!("{label} has no type `{shown}`"));
        let error = match nearest(&word, known.clone()) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error,
        };
        error.hint(format!(
            "there are :{}",
            known.collect::<Vec<_>>().join(" :")
        ))
    })
}

fn options(given: &Value) -> Result<EnumDefinition, StepError> {
    let fields = Fields::nested(":enum", given)?;
    fields.only(&["closed?", "options"])?;
    let Some(all) = fields.get("options").and_then(items) else {
        return Err(wrong("`:enum` needs `:options`, a vector".to_owned())
            .hint("as in `:enum {:options [{:id \"open\" :name \"Open\" :aliases [\"new\"]}]}`"));
    };
    Ok(EnumDefinition {
        options: all.iter().map(option).collect::<Result<_, _>>()?,
        closed: fields.bool("closed?")?.unwrap_or(false),
    })
}

/// Reads an option of an enum: a map, or only its id.
fn option(given: &Value) -> Result<EnumOption, StepError> {
    let id = |given: &Value| match given {
        Value::Keyword(_) | Value::Text(_) => {
            cells::cell(given).map_err(|error| wrong(format!("`:options`: {error}")))
        }
        other => Err(wrong(format!(
            "the id of an option is a keyword or a string, not {}",
            brief(other)
        ))),
    };
    if given.as_map().is_none() {
        return Ok(EnumOption {
            id: id(given)?,
            name: None,
            aliases: Vec::new(),
        });
    }
    let fields = Fields::nested(":options", given)?;
    fields.only(&["aliases", "id", "name"])?;
    let name = fields.get("name").map(text).transpose()?;
    let aliases = items(fields.get("aliases").unwrap_or(&Value::Nil)).unwrap_or_default();
    let given = fields.get("id").or(fields.get("name"));
    Ok(EnumOption {
        id: id(given.unwrap_or(&Value::Nil))?,
        name,
        aliases: aliases.iter().map(text).collect::<Result<_, _>>()?,
    })
}

fn computed(given: &Value) -> Result<Computed, StepError> {
    let fields = Fields::nested(":computed", given)?;
    fields.only(&["field", "reference-column", "type"])?;
    match fields.name("type")?.as_deref() {
        Some("lookup") => {}
        other => {
            let found = other.unwrap_or("nil");
            return Err(wrong(format!("`:computed` has no type `{found}`"))
                .hint("there is `lookup`: `{:type \"lookup\" :reference-column :customer-id :field :name}`"));
        }
    }
    let named = |key: &str| {
        fields.get(key).map(text).transpose()?.ok_or_else(|| {
            wrong(format!("`:computed` needs `:{key}`"))
                .hint("as in `{:type \"lookup\" :reference-column :customer-id :field :name}`")
        })
    };
    Ok(Computed::Lookup {
        reference_column: named("reference-column")?,
        field: named("field")?,
    })
}

fn reference(given: &Value) -> Result<Reference, StepError> {
    let fields = Fields::nested(":reference", given)?;
    fields.only(&["column", "table"])?;
    let (Some(table), Some(column)) = (fields.get("table"), fields.get("column")) else {
        return Err(
            wrong("`:reference` needs `:table` and `:column`".to_owned())
                .hint("as in `{:table \"customers\" :column :id}`"),
        );
    };
    Ok(Reference {
        table: target(table)?.name,
        column: text(column)?,
    })
}

/// Reads `:format`.
pub(super) fn format(given: &Value) -> Result<CellFormat, StepError> {
    let fields = Fields::nested(":format", given)?;
    fields.only(&["currency", "display"])?;
    let known = Display::NAMES.iter().map(|(_, name)| *name);
    let listed = known.clone().collect::<Vec<_>>().join(" ");
    let word = fields.name("display")?.unwrap_or_default();
    let Some(display) = Display::from_name(&word) else {
        let error = wrong(format!("`:display` is one of {listed}, not `{word}`"));
        return Err(match nearest(&word, known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        });
    };
    let currency = fields.get("currency").map(text).transpose()?;
    match (display, &currency) {
        (Display::Currency, Some(code))
            if code.len() == 3 && code.chars().all(|char| char.is_ascii_uppercase()) => {}
        (Display::Currency, _) => {
            return Err(wrong(
                "`:display \"currency\"` needs `:currency`, a code of three letters".to_owned(),
            )
            .hint("as in `{:display \"currency\" :currency \"USD\"}`"));
        }
        (_, None) => {}
        (_, Some(_)) => {
            return Err(wrong(format!("`:display \"{word}\"` takes no `:currency`")));
        }
    }
    Ok(CellFormat { display, currency })
}

const RULES: &[&str] = &[
    "in",
    "max",
    "max-length",
    "min",
    "min-length",
    "pattern",
    "required",
];

fn validation(given: &Value) -> Result<Validation, StepError> {
    if given.as_map().is_none() {
        let text = codec::encode(given)
            .map_err(|error| wrong(format!("`:validation` is not a valid schema: {error}")))?;
        return Ok(Validation::Schema(text));
    }
    let fields = Fields::nested(":validation", given)?;
    fields.only(RULES)?;
    let cell = |key: &str| -> Result<Option<Cell>, StepError> {
        let given = fields.get(key);
        let read = given
            .map(|value| cells::cell(value).map_err(|error| wrong(format!("`:{key}`: {error}"))));
        read.transpose()
    };
    let mut rules = Vec::new();
    if fields.bool("required")? == Some(true) {
        rules.push(CheckRule::Required);
    }
    rules.extend(cell("min")?.map(CheckRule::Min));
    rules.extend(cell("max")?.map(CheckRule::Max));
    let length = |key: &str| fields.count(key, 0, 1_000_000_000);
    rules.extend(length("min-length")?.map(CheckRule::MinLength));
    rules.extend(length("max-length")?.map(CheckRule::MaxLength));
    if let Some(pattern) = fields.get("pattern") {
        let source = match pattern {
            Value::Text(text) => text.as_str().to_owned(),
            Value::Object(object) if let Object::Regex { source, .. } = &**object => {
                source.to_string()
            }
            other => {
                return Err(wrong(format!(
                    "`:pattern` is a regular expression, not {}",
                    brief(other)
                )));
            }
        };
        rules.push(CheckRule::Pattern(source));
    }
    if let Some(all) = fields.get("in") {
        let Some(all) = items(all) else {
            return Err(wrong("`:in` is a vector of values".to_owned()));
        };
        let cells = all
            .iter()
            .map(|value| cells::cell(value).map_err(|error| wrong(format!("`:in`: {error}"))));
        rules.push(CheckRule::OneOf(cells.collect::<Result<_, _>>()?));
    }
    Ok(Validation::Rules(rules))
}
