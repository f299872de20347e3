//! Reads the parts of a query: conditions, order, pages, groups and metrics.

use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_flow::table::{
    Bucket, Cell, DEFAULT_PAGE, DateUnit, Filter, GroupBy, MAX_PAGE, Metric, MetricKind, Page,
    PageStart, Sort, Test,
};
use flowstone_lang::value::Value;

use super::cells::cell;
use crate::fields::Fields;
use crate::json::{items, name_text, number_float};
use crate::literal::{self, Remarks};
use crate::text::{brief, nearest};

const MAX_DEPTH: usize = 40;
const SHAPE: &str = "a condition is written `[:column \"=\" value]`; several are a vector of them";

/// The type of the field `:page`.
pub(super) const PAGE: FieldType = FieldType::Keys(&[
    Field::optional(
        "cursor",
        FieldType::Text,
        "The `:next-cursor` of the previous page.",
    )
    .or_nil(),
    Field::optional(
        "include-total-count",
        FieldType::Bool,
        "Whether to count all rows. Default false.",
    )
    .or_nil(),
    Field::optional(
        "include-total-count?",
        FieldType::Bool,
        "The same as `:include-total-count`.",
    )
    .or_nil(),
    Field::optional(
        "limit",
        FieldType::IntIn(1, MAX_PAGE as i64),
        "The maximum number of rows. Default 25.",
    )
    .or_nil(),
    Field::optional(
        "mode",
        FieldType::OneOf(&["cursor", "offset"]),
        "Whether pages are named by a cursor or by an offset.",
    )
    .or_nil(),
    Field::optional(
        "offset",
        FieldType::Int,
        "The number of rows to skip. Default 0.",
    )
    .or_nil(),
]);

fn bad(message: String) -> StepError {
    StepError::config("E0764", message)
}

/// Checks the parts of a query that are written as literals.
pub(super) fn remarks(fields: Fields<'_>, remarks: &mut Remarks) {
    for key in ["where", "having"] {
        literal::remark(remarks, key, filter(fields, key));
    }
    for key in ["sort", "order-by"] {
        literal::remark(remarks, key, sort(fields, key));
    }
    literal::remark(remarks, "page", page(fields));
    literal::remark(remarks, "group-by", group_by(fields));
    literal::remark(remarks, "metrics", metrics(fields));
}

/// Reads conditions, all of which must hold.
pub(super) fn filter(fields: Fields<'_>, key: &str) -> Result<Filter, StepError> {
    match fields.get(key) {
        None => Ok(Filter::ALL),
        Some(given) => conditions(given, key, 0),
    }
}

fn conditions(given: &Value, key: &str, depth: usize) -> Result<Filter, StepError> {
    if let Some(map) = given.as_map() {
        let tests = map.iter().map(|(column, value)| {
            let column = column_name(column, given, key)?;
            Ok(Filter::Test {
                column,
                test: Test::Equal,
                operands: vec![operand(value, key)?],
            })
        });
        return tests.collect::<Result<_, _>>().map(Filter::And);
    }
    let Some(parts) = items(given) else {
        return Err(bad(format!(
            "`:{key}` has {} where a condition should be",
            brief(given)
        ))
        .hint(SHAPE));
    };
    let single = parts
        .first()
        .is_some_and(|first| name_text(first).is_some());
    match single {
        true => condition(given, key, depth),
        false => parts
            .iter()
            .map(|part| condition(part, key, depth))
            .collect::<Result<_, _>>()
            .map(Filter::And),
    }
}

fn condition(given: &Value, key: &str, depth: usize) -> Result<Filter, StepError> {
    if depth > MAX_DEPTH {
        return Err(bad(format!(
            "`:{key}` is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    if given.as_map().is_some() {
        return conditions(given, key, depth + 1);
    }
    let parts = items(given).filter(|parts| !parts.is_empty());
    let Some(parts) = parts else {
        return Err(bad(format!(
            "`:{key}` has {} where a condition should be",
            brief(given)
        ))
        .hint(SHAPE));
    };
    let first = parts.first().and_then(name_text);
    let nests = parts[1..]
        .iter()
        .all(|part| items(part).is_some_and(|_| !part.is_nil()) || part.as_map().is_some());
    match first.as_deref() {
        Some(word @ ("and" | "or")) if nests && parts.len() > 1 => {
            let inner: Vec<Filter> = branches(&parts[1..])
                .iter()
                .map(|part| condition(part, key, depth + 1))
                .collect::<Result<_, _>>()?;
            Ok(if word == "and" {
                Filter::And(inner)
            } else {
                Filter::Or(inner)
            })
        }
        Some("not") if nests && parts.len() == 2 => {
            Ok(Filter::Not(conditions(&parts[1], key, depth + 1)?.into()))
        }
        _ => comparison(given, &parts, key),
    }
}

/// Returns the conditions of an `and` or `or`: `["or" a b]` and `["or" [a b]]` mean the same.
fn branches(parts: &[Value]) -> Vec<Value> {
    let inner = match parts {
        [only] => items(only),
        _ => None,
    };
    match inner {
        Some(inner)
            if inner
                .first()
                .is_some_and(|first| name_text(first).is_none()) =>
        {
            inner
        }
        _ => parts.to_vec(),
    }
}

fn comparison(given: &Value, parts: &[Value], key: &str) -> Result<Filter, StepError> {
    let (column, word) = match parts {
        [column, word, ..] => (
            column_name(column, given, key)?,
            name_text(word).unwrap_or_default(),
        ),
        _ => {
            return Err(bad(format!(
                "`:{key}` has the condition {}, which is not complete",
                brief(given)
            ))
            .hint(SHAPE));
        }
    };
    let Some(test) = Test::from_name(&word) else {
        let known = Test::NAMES.iter().map(|(_, name)| *name);
        let error = bad(format!(
            "`:{key}` has the operator {}, which does not exist",
            brief(&parts[1])
        ));
        let error = match nearest(&word, known.clone()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        };
        return Err(error.hint(format!("there are {}", known.collect::<Vec<_>>().join(" "))));
    };
    let rest = &parts[2..];
    let values: Vec<Value> = match (test, rest) {
        (Test::IsNull | Test::NotNull, [Value::Bool(true)]) => Vec::new(),
        (Test::In | Test::NotIn | Test::Between, [several]) => items(several)
            .filter(|_| !several.is_nil())
            .ok_or_else(|| {
                bad(format!(
                    "`{word}` on `{column}` takes a vector, not {}",
                    brief(several)
                ))
            })?,
        (_, rest) => rest.to_vec(),
    };
    let wanted = match test {
        Test::IsNull | Test::NotNull => Some(0),
        Test::In | Test::NotIn => None,
        Test::Between => Some(2),
        _ => Some(1),
    };
    if wanted.is_some_and(|wanted| wanted != values.len()) {
        return Err(bad(format!(
            "the condition {} has {} values, and `{word}` takes {}",
            brief(given),
            values.len(),
            wanted.unwrap_or(1)
        )));
    }
    let operands = values
        .iter()
        .map(|value| operand(value, key))
        .collect::<Result<Vec<Cell>, _>>()?;
    Ok(Filter::Test {
        column,
        test,
        operands,
    })
}

fn column_name(column: &Value, given: &Value, key: &str) -> Result<String, StepError> {
    name_text(column).ok_or_else(|| {
        bad(format!(
            "the condition {} of `:{key}` does not start with a column",
            brief(given)
        ))
        .hint(SHAPE)
    })
}

fn operand(value: &Value, key: &str) -> Result<Cell, StepError> {
    cell(value).map_err(|error| {
        bad(format!(
            "`:{key}` compares with a value that is not data: {error}"
        ))
    })
}

/// Reads columns to sort by: `[[:amount :desc] :id]`.
pub(super) fn sort(fields: Fields<'_>, key: &str) -> Result<Vec<Sort>, StepError> {
    let Some(given) = fields.get(key) else {
        return Ok(Vec::new());
    };
    let parts = items(given).unwrap_or_default();
    if let [column, direction] = parts.as_slice()
        && let (Some(column), Some(direction)) = (name_text(column), name_text(direction))
        && let Some(descending) = direction_of(&direction)
    {
        return Ok(vec![Sort { column, descending }]);
    }
    parts.iter().map(|part| sort_part(part, key)).collect()
}

fn sort_part(part: &Value, key: &str) -> Result<Sort, StepError> {
    let wrong = || {
        bad(format!(
            "`:{key}` has {}, which is not a column with a direction",
            brief(part)
        ))
        .hint("write `[:column :asc]` or `[:column :desc]`")
    };
    if let Some(column) = name_text(part) {
        return Ok(Sort {
            column,
            descending: false,
        });
    }
    if part.as_map().is_some() {
        let inner = Fields::nested(":sort", part)?;
        inner.only(&["direction", "field"])?;
        let column = inner.get("field").and_then(name_text).ok_or_else(wrong)?;
        let descending = match inner.name("direction")? {
            Some(direction) => direction_of(&direction).ok_or_else(wrong)?,
            None => false,
        };
        return Ok(Sort { column, descending });
    }
    let parts = items(part).unwrap_or_default();
    let (column, descending) = match parts.as_slice() {
        [column] => (column, Some(false)),
        [column, direction] => (
            column,
            name_text(direction).and_then(|direction| direction_of(&direction)),
        ),
        _ => return Err(wrong()),
    };
    match (name_text(column), descending) {
        (Some(column), Some(descending)) => Ok(Sort { column, descending }),
        _ => Err(wrong()),
    }
}

fn direction_of(word: &str) -> Option<bool> {
    match word {
        "asc" | "ascending" => Some(false),
        "desc" | "descending" => Some(true),
        _ => None,
    }
}

/// Reads `:page`.
pub(super) fn page(fields: Fields<'_>) -> Result<Page, StepError> {
    let Some(given) = fields.get("page") else {
        return Ok(Page {
            limit: DEFAULT_PAGE,
            from: PageStart::Offset(0),
            total: false,
        });
    };
    let page = Fields::nested(":page", given)?;
    page.only(&[
        "cursor",
        "include-total-count",
        "include-total-count?",
        "limit",
        "mode",
        "offset",
    ])?;
    let limit = page.count("limit", 1, MAX_PAGE)?.unwrap_or(DEFAULT_PAGE);
    let total = page
        .bool("include-total-count")?
        .or(page.bool("include-total-count?")?)
        .unwrap_or(false);
    let offset = page.count("offset", 0, usize::MAX)?;
    let cursor = page.text("cursor")?.map(str::to_owned);
    let mode = page.name("mode")?;
    let from = match (mode.as_deref(), offset, cursor) {
        (Some("offset") | None, offset, None) => PageStart::Offset(offset.unwrap_or(0)),
        (Some("cursor") | None, None, cursor) => PageStart::Cursor(cursor),
        (Some("cursor" | "offset") | None, _, _) => {
            return Err(bad(
                "`:page` takes either `:offset` or `:cursor`, according to its `:mode`".to_owned(),
            ));
        }
        (Some(other), _, _) => {
            return Err(bad(format!(
                "`:mode` of `:page` is `:offset` or `:cursor`, not `:{other}`"
            )));
        }
    };
    Ok(Page { limit, from, total })
}

/// Reads `:group-by`.
pub(super) fn group_by(fields: Fields<'_>) -> Result<Vec<GroupBy>, StepError> {
    let given = fields.get("group-by").and_then(items).unwrap_or_default();
    given
        .iter()
        .map(|part| {
            if let Some(column) = name_text(part) {
                return Ok(GroupBy {
                    name: column.clone(),
                    column,
                    bucket: None,
                });
            }
            let inner = Fields::nested(":group-by", part)?;
            inner.only(&["as", "bucket", "field"])?;
            let Some(column) = inner.get("field").and_then(name_text) else {
                return Err(bad(format!(
                    "{} of `:group-by` needs `:field`",
                    brief(part)
                )));
            };
            Ok(GroupBy {
                name: inner
                    .get("as")
                    .and_then(name_text)
                    .unwrap_or_else(|| column.clone()),
                bucket: inner.get("bucket").map(bucket).transpose()?,
                column,
            })
        })
        .collect()
}

fn bucket(given: &Value) -> Result<Bucket, StepError> {
    let fields = Fields::nested(":bucket", given)?;
    fields.only(&["op", "size", "unit"])?;
    match fields.name("op")?.as_deref() {
        Some("numeric-bin") => {
            let size = fields.get("size").and_then(number_float);
            let size =
                size.ok_or_else(|| bad("a `numeric-bin` needs `:size`, a number".to_owned()))?;
            Ok(Bucket::NumericBin { size })
        }
        Some("date-trunc") => {
            let word = fields.name("unit")?.unwrap_or_default();
            let found = DateUnit::NAMES.iter().find(|(_, name)| *name == &*word);
            let unit = found.map(|(unit, _)| *unit).ok_or_else(|| {
                let known: Vec<&str> = DateUnit::NAMES.iter().map(|(_, name)| *name).collect();
                bad(format!(
                    "a `date-trunc` needs `:unit`, one of {}",
                    known.join(" ")
                ))
            })?;
            Ok(Bucket::DateTrunc { unit })
        }
        _ => Err(bad(format!("{} is not a bucket", brief(given)))
            .hint("as in `{:op :numeric-bin :size 100}` or `{:op :date-trunc :unit :month}`")),
    }
}

/// The metrics by the names that flows use.
const METRICS: &[(&str, MetricKind)] = &[
    ("avg", MetricKind::Avg),
    ("count", MetricKind::Count),
    ("count-distinct", MetricKind::CountDistinct),
    ("first", MetricKind::First),
    ("last", MetricKind::Last),
    ("max", MetricKind::Max),
    ("median", MetricKind::Median),
    ("min", MetricKind::Min),
    ("percentile", MetricKind::Percentile(0.5)),
    ("sum", MetricKind::Sum),
];

/// Reads `:metrics`.
pub(super) fn metrics(fields: Fields<'_>) -> Result<Vec<Metric>, StepError> {
    let given = fields.get("metrics").and_then(items).unwrap_or_default();
    given.iter().map(metric).collect()
}

fn metric(given: &Value) -> Result<Metric, StepError> {
    if let Some(word) = name_text(given) {
        return named_metric(&word, None, None, given);
    }
    let fields = Fields::nested(":metrics", given)?;
    fields.only(&["as", "field", "op", "p"])?;
    let word = fields.name("op")?.unwrap_or_default();
    let column = fields.get("field").and_then(name_text);
    let mut metric = named_metric(&word, column, fields.get("as").and_then(name_text), given)?;
    match (&mut metric.kind, fields.get("p").and_then(number_float)) {
        (MetricKind::Percentile(share), Some(p)) if (0.0..=100.0).contains(&p) => {
            *share = fraction(p);
        }
        (MetricKind::Percentile(_), _) => {
            let message = match fields.get("p") {
                Some(given) => format!(
                    "`:p` of `percentile` is a number from 0 to 100, not {}",
                    brief(given)
                ),
                None => "`percentile` needs `:p`, a number from 0 to 100".to_owned(),
            };
            return Err(bad(message).hint(
                "for the 95th percentile, write `{:op :percentile :field :ms :p 95}` or `:p 0.95`",
            ));
        }
        (_, None) if !fields.has("p") => {}
        _ => return Err(bad(format!("`:p` does not apply to `{word}`"))),
    }
    Ok(metric)
}

/// Converts a `:p` to a fraction: a value below 1 is a fraction already, one from 1 on is a percentage.
fn fraction(p: f64) -> f64 {
    match p < 1.0 {
        true => p,
        false => p / 100.0,
    }
}

fn named_metric(
    word: &str,
    column: Option<String>,
    name: Option<String>,
    given: &Value,
) -> Result<Metric, StepError> {
    let Some((word, kind)) = METRICS.iter().find(|(known, _)| *known == word) else {
        let known = METRICS.iter().map(|(name, _)| *name);
        let error = bad(format!("{} is not a metric", brief(given)));
        let error = match nearest(word, known.clone()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        };
        return Err(error.hint(format!("there are {}", known.collect::<Vec<_>>().join(" "))));
    };
    if column.is_none() && *kind != MetricKind::Count {
        return Err(bad(format!("the metric `{word}` needs `:field`"))
            .hint(format!("as in `{{:op :{word} :field :amount}}`")));
    }
    let name = name.unwrap_or_else(|| match &column {
        Some(column) => format!("{word}-{column}"),
        None => (*word).to_owned(),
    });
    Ok(Metric {
        kind: *kind,
        column,
        name,
    })
}
