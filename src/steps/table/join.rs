//! `:op :materialize-join`: reads the description of a join.

use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_flow::table::{
    JoinSide, JoinSource, MaterializeJoin, Partitions, Projected, RightFields, WriteMode,
};
use flowstone_lang::value::Value;

use super::{names, query, rows, target};
use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::text::brief;

/// The type of the fields `:left` and `:right`.
pub(super) const SIDE: FieldType = FieldType::Keys(&[
    Field::optional("rows", FieldType::Items, "Rows instead of a table."),
    Field::optional(
        "select",
        FieldType::Items,
        "The columns that the result may keep.",
    ),
    Field::optional("table", FieldType::Any, "A table, as in other operations."),
    Field::optional(
        "where",
        FieldType::Either(&[FieldType::Items, FieldType::Map]),
        "The conditions that a row must satisfy to take part.",
    ),
]);

/// The type of the field `:on`.
pub(super) const ON: FieldType = FieldType::List(&FieldType::Keys(&[
    Field::required("left-field", FieldType::Name, "A column of the left side."),
    Field::required(
        "right-field",
        FieldType::Name,
        "A column of the right side.",
    ),
]));

/// The type of the field `:project`.
pub(super) const PROJECT: FieldType = FieldType::Keys(&[
    Field::optional(
        "keep-left",
        FieldType::Either(&[FieldType::Name, FieldType::Items]),
        "`\"all\"`, `\"none\"`, or the left fields to keep.",
    ),
    Field::optional(
        "right-fields",
        FieldType::Either(&[FieldType::Name, FieldType::Items]),
        "`\"all\"`, `\"none\"`, or the right fields to keep: names, or `{:field :name :as :customer}`.",
    ),
]);

/// The type of the field `:into`.
pub(super) const INTO: FieldType = FieldType::Keys(&[
    Field::optional(
        "index-fields",
        FieldType::Items,
        "Columns that get an index.",
    ),
    Field::optional(
        "key-fields",
        FieldType::Items,
        "The columns that identify a row.",
    ),
    Field::optional(
        "partitions",
        FieldType::Map,
        "The partition to write to: `{:key \"2026-03\"}`.",
    ),
    Field::required(
        "table",
        FieldType::Any,
        "The table to write to; it is created if it does not exist.",
    ),
    Field::optional(
        "write-mode",
        FieldType::OneOf(&["append", "insert", "replace", "upsert"]),
        "How rows are written: `append` (or `insert`) adds them, `upsert` also updates existing rows, `replace` removes all others. \
         Default: `upsert` if there are key fields, else `append`.",
    ),
]);

fn wrong(message: &str) -> StepError {
    StepError::config("E0722", message)
}

/// Reads the join that the fields of a step describe.
pub(super) fn read(fields: Fields<'_>) -> Result<MaterializeJoin, StepError> {
    let map = |key: &str| fields.get(key).unwrap_or(&Value::Nil);
    let into = Fields::nested(":into", map("into"))?;
    into.only(&[
        "index-fields",
        "key-fields",
        "partitions",
        "table",
        "write-mode",
    ])?;
    let key_fields = names(into, "key-fields")?;
    let mode = match into.name("write-mode")?.as_deref() {
        None if key_fields.is_empty() => WriteMode::Insert,
        None | Some("upsert") => WriteMode::Upsert,
        Some("append" | "insert") => WriteMode::Insert,
        Some("replace") => WriteMode::Replace,
        Some(other) => {
            let message =
                format!("`:write-mode` is `:append`, `:upsert` or `:replace`, not `:{other}`");
            return Err(wrong(&message));
        }
    };
    let Some(table) = into.get("table") else {
        return Err(wrong("`:into` needs `:table`").hint("as in `:into {:table \"joined\"}`"));
    };
    let mut table = target(table)?;
    if let Some(given) = into.get("partitions") {
        table.partitions = super::partitions(given)?;
    }
    if let Partitions::All = table.partitions {
        return Err(wrong("a join is written to one partition, not to all"));
    }
    let (keep_left, right_fields) = project(fields)?;
    Ok(MaterializeJoin {
        left: side(":left", map("left"))?,
        right: side(":right", map("right"))?,
        on: on(map("on"))?,
        keep_unmatched: match fields.name("join-type")?.as_deref() {
            None | Some("left") => true,
            Some("inner") => false,
            Some(other) => {
                let message = format!("`:join-type` is `left` or `inner`, not `{other}`");
                return Err(wrong(&message));
            }
        },
        keep_left,
        right_fields,
        into: table,
        mode,
        key_fields,
        index_fields: names(into, "index-fields")?,
        op_id: op_id(fields)?,
    })
}

fn op_id(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    let id = fields.text("op-id")?;
    match id {
        Some(id) if id.trim().is_empty() || id.len() > 256 => {
            Err(wrong("`:op-id` is text of 1 to 256 bytes"))
        }
        id => Ok(id.map(str::to_owned)),
    }
}

fn side(at: &'static str, given: &Value) -> Result<JoinSide, StepError> {
    let fields = Fields::nested(at, given)?;
    fields.only(&["rows", "select", "table", "where"])?;
    let source = match (fields.get("table"), fields.get("rows")) {
        (Some(table), None) => JoinSource::Table(target(table)?),
        (None, Some(given)) => JoinSource::Rows(rows(given, at)?),
        (None, None) => {
            return Err(wrong(&format!("`{at}` needs `:table` or `:rows`"))
                .hint(format!("as in `{at} {{:table \"orders\"}}`")));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(&format!(
                "`{at}` takes `:table` or `:rows`, not both"
            )));
        }
    };
    Ok(JoinSide {
        source,
        select: names(fields, "select")?,
        filter: query::filter(fields, "where")?,
    })
}

fn on(given: &Value) -> Result<Vec<(String, String)>, StepError> {
    const SHAPE: &str = "as in `:on [{:left-field :customer-id :right-field :id}]`";
    let pairs = items(given).filter(|pairs| !pairs.is_empty());
    let Some(pairs) = pairs else {
        return Err(wrong("`:on` must be a vector of at least one pair of fields").hint(SHAPE));
    };
    pairs
        .iter()
        .map(|pair| {
            let fields = Fields::nested(":on", pair)?;
            fields.only(&["left-field", "right-field"])?;
            let field = |key: &str| {
                fields
                    .get(key)
                    .and_then(name_text)
                    .ok_or_else(|| wrong(&format!("`:on` needs `:{key}`, a name")).hint(SHAPE))
            };
            Ok((field("left-field")?, field("right-field")?))
        })
        .collect()
}

fn project(fields: Fields<'_>) -> Result<(Option<Vec<String>>, RightFields), StepError> {
    let Some(given) = fields.get("project") else {
        return Ok((None, RightFields::All));
    };
    let project = Fields::nested(":project", given)?;
    project.only(&["keep-left", "right-fields"])?;
    let word = |key: &str| {
        project
            .get(key)
            .filter(|value| items(value).is_none())
            .and_then(name_text)
    };
    let keep_left = match word("keep-left").as_deref() {
        Some("all") => None,
        Some("none") => Some(Vec::new()),
        _ if !project.has("keep-left") => None,
        _ => Some(names(project, "keep-left")?),
    };
    let right = match (word("right-fields").as_deref(), project.get("right-fields")) {
        (Some("all"), _) | (_, None) => RightFields::All,
        (Some("none"), _) => RightFields::These(Vec::new()),
        (_, Some(given)) => {
            let entries = items(given).unwrap_or_else(|| vec![given.clone()]);
            RightFields::These(entries.iter().map(projected).collect::<Result<_, _>>()?)
        }
    };
    Ok((keep_left, right))
}

fn projected(given: &Value) -> Result<Projected, StepError> {
    if let Some(name) = name_text(given) {
        return Ok(Projected {
            field: name.clone(),
            name,
        });
    }
    let fields = Fields::nested(":right-fields", given)?;
    fields.only(&["as", "field"])?;
    let Some(field) = fields.get("field").and_then(name_text) else {
        let message = format!(
            "a field of `:right-fields` must be a name or a map with `:field`, got {}",
            brief(given)
        );
        return Err(wrong(&message).hint("as in `{:field :name :as :customer}`"));
    };
    let name = fields.get("as").and_then(name_text);
    Ok(Projected {
        name: name.unwrap_or_else(|| field.clone()),
        field,
    })
}
