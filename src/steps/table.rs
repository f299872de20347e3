//! `:table`: real tables, written by flows and asked in their own terms. Changes happen exactly once.

mod cells;
mod csv;
mod question;
mod target;

use flowstone_engine::codec;
use flowstone_engine::ports::StoreOp;
use flowstone_engine::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Step, StepContext,
    StepError, StepSpec,
};
use flowstone_engine::table::{
    Aggregate, ColumnDefinition, ColumnType, CreateTable, Filter, NewColumn, Partitions, RowChoice,
    RowsQuery, TableName, TableOp, TableQuery, TableTarget, WriteMode, WriteRows,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::operation::choose;
use crate::words::{nearest, shown};
pub(crate) use cells::rows;
pub(crate) use target::{partitions, target};

/// The `:table` step.
pub struct Table;

const SPEC: StepSpec = StepSpec {
    kind: "table",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Writes rows to a table, and asks it.\n\n\
        `:table` is the name of a table, or the reference that `:persist {:type :table}` gave. Writing makes the table \
        and its columns; the type of a column is taken from its first cells and enforced from then on. Conditions are \
        vectors, `[\"amount\" \">\" 100]`, of which all must hold; `[\"or\" [...]]`, `[\"and\" [...]]` and `[\"not\" [...]]` nest. \
        Names and operators may be strings or keywords.",
    fields: FIELDS,
    examples: &[
        "(flow/step :table :save {:op :upsert :table \"orders\" :rows rows :key-fields [:order-id] :index-fields [:status]})",
        "(flow/step :table :open {:op :query :table \"orders\" :where [[:status := \"open\"]] :sort [[:amount :desc]] :page {:limit 10}})",
        "(flow/step :table :totals {:op :aggregate :table \"orders\" :group-by [:status] :metrics [{:op :sum :field :amount :as :total}]})",
    ],
    effect: Effect::OwnStore,
};

const FIELDS: &[Field] = &[
    Field::optional("all", FieldType::Bool, "With `:op :delete`: every row."),
    Field::optional(
        "columns",
        FieldType::Either(&[FieldType::Map, FieldType::Items]),
        "With `:op :import` the types of some columns; else the columns of a new table: `{:id :long :note :string}`, or `[{:name :id :type :long}]`. Types: string long double decimal \
         boolean date timestamp json enum.",
    ),
    Field::optional("csv", FieldType::Text, "With `:op :import`: the text."),
    Field::optional(
        "delimiter",
        FieldType::Text,
        "What stands between the fields of CSV text: a comma unless it says otherwise.",
    ),
    Field::optional(
        "encoding",
        FieldType::Name,
        "The encoding of CSV text, such as `latin1` or `utf-16le`; else UTF-8, or what a byte order mark says.",
    ),
    Field::optional(
        "from",
        FieldType::Any,
        "With `:op :import`: a file of the project, or a reference to a blob.",
    ),
    Field::optional(
        "from-ref",
        FieldType::Any,
        "With `:op :import`: a reference to a blob.",
    ),
    Field::optional(
        "group-by",
        FieldType::Items,
        "Columns, or `{:field :amount :bucket {:op :numeric-bin :size 100} :as :bin}`.",
    ),
    Field::optional(
        "having",
        FieldType::Items,
        "Conditions on groups, by the names of the result.",
    ),
    Field::optional(
        "header?",
        FieldType::Bool,
        "Whether the first line of CSV text names the columns, which it does unless this is false; then `:columns` may.",
    ),
    Field::optional(
        "index-fields",
        FieldType::Items,
        "Columns that get an index.",
    ),
    Field::optional(
        "key",
        FieldType::Map,
        "The row with these cells, as `{:order-id 7}`.",
    ),
    Field::optional(
        "key-fields",
        FieldType::Items,
        "What makes a row the same row.",
    ),
    Field::optional("limit", FieldType::Int, "How many groups to return."),
    Field::optional(
        "metrics",
        FieldType::Items,
        "Figures: `{:op :sum :field :amount :as :total}`. Ops: count count-distinct sum avg min max median percentile (with `:p`) first last.",
    ),
    Field::optional(
        "on-bad-row",
        FieldType::Name,
        "What to do with a row of CSV text that does not fit: `:fail` and import nothing, `:skip` it, or `:collect` it under `:rejected`.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "What to do: `:create :insert :upsert :delete :replace :query :get-row :aggregate :schema :export :import`.",
    ),
    Field::optional(
        "order-by",
        FieldType::Items,
        "How to sort groups, by the names of the result.",
    ),
    Field::optional(
        "page",
        FieldType::Map,
        "`{:limit 25 :offset 0}` or `{:mode :cursor :limit 25 :cursor ...}`; with `:include-total-count true` the number of all rows.",
    ),
    Field::optional(
        "query",
        FieldType::Map,
        "`:select :where :sort :page` of `:op :query`, in a map.",
    ),
    Field::optional("row-id", FieldType::Int, "The row of this number."),
    Field::optional("rows", FieldType::Items, "Maps of column and cell."),
    Field::optional("select", FieldType::Items, "Columns to return."),
    Field::optional(
        "sort",
        FieldType::Items,
        "Columns to sort by: `[[:amount :desc] :id]`.",
    ),
    Field::required(
        "table",
        FieldType::Any,
        "A name, a `res://` name, or the reference that a step returned; of a table with partitions as \
         `{:name \"orders\" :partitions {:key \"2026-03\"}}`, or `{:keys [...]}` to read several.",
    ),
    Field::optional(
        "where",
        FieldType::Either(&[FieldType::Items, FieldType::Map]),
        "Conditions, all of which hold.",
    ),
    Field::optional(
        "write-mode",
        FieldType::Name,
        "With `:op :import`: `:append`, `:upsert` by the key fields, or `:replace` all rows.",
    ),
];

const OPERATIONS: Operations = Operations {
    key: "op",
    all: &[
        Operation {
            name: "aggregate",
            doc: "Computes figures of groups of rows.",
            needs: &["table"],
            takes: &[
                "group-by", "having", "limit", "metrics", "order-by", "where",
            ],
            gives: r#"[:map [:rows [:vector :map]] [:count :int]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "create",
            doc: "Makes a table with these columns.",
            needs: &["table", "columns"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "delete",
            doc: "Removes rows.",
            needs: &["table"],
            takes: &["all", "key", "row-id", "where"],
            gives: r#"[:map [:rows-deleted :int]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "export",
            doc: "Returns rows as CSV text.",
            needs: &["table"],
            takes: &["select", "sort", "where"],
            gives: r#"[:map [:content :string] [:content-type :string] [:filename :string]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "get-row",
            doc: "Returns one row.",
            needs: &["table"],
            takes: &["key", "row-id", "select"],
            gives: r#"[:map [:row [:maybe :map]]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "import",
            doc: "Adds the rows of CSV text, of any size.",
            needs: &["table"],
            takes: &[
                "columns",
                "csv",
                "delimiter",
                "encoding",
                "from",
                "from-ref",
                "header?",
                "index-fields",
                "key-fields",
                "on-bad-row",
                "write-mode",
            ],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int] [:rows-rejected :int] [:rejected [:vector [:map [:line :int] [:reason :string]]]]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "insert",
            doc: "Adds rows; one whose key is there is an error.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "query",
            doc: "Returns a page of rows.",
            needs: &["table"],
            takes: &["page", "query", "select", "sort", "where"],
            gives: r#"[:map [:rows [:vector :map]] [:count :int] [:page :map]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "replace",
            doc: "Removes all rows of a table, or of one partition, and adds these.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "schema",
            doc: "Returns the columns and how many rows there are.",
            needs: &["table"],
            takes: &[],
            gives: r#"[:map [:columns [:vector :map]]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "upsert",
            doc: "Adds rows, or replaces the cells of those whose key is there.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
    ],
};

impl Step for Table {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let op = choose(&SPEC, fields, "E0764")?.name;
            let table = target(fields.get("table").unwrap_or(&Value::Nil))?;
            match op {
                "export" => csv::export(cx, table, fields).await,
                "import" => csv::import(cx, table, fields).await,
                "create" | "delete" | "insert" | "replace" | "upsert" => {
                    change(op, table, fields).map(|op| Outcome::Commit(StoreOp::Table(op)))
                }
                _ => {
                    let text = cx.stores().tables.query(query(op, table, fields)?).await?;
                    let value = codec::decode(&text);
                    value
                        .map(Outcome::Value)
                        .map_err(|error| StepError::new(error.code(), "store", error.to_string()))
                }
            }
        })
    }
}

fn change(op: &str, table: TableTarget, fields: Fields<'_>) -> Result<TableOp, StepError> {
    Ok(match op {
        "create" => TableOp::Create(CreateTable {
            partitions: match table.partitions {
                Partitions::Keys(keys) => keys,
                Partitions::All | Partitions::Unnamed => Vec::new(),
            },
            name: match table.name {
                TableName::Name(name) => name,
                TableName::Id(_) => {
                    return Err(StepError::config(
                        "E0764",
                        "a new table needs a name, not a reference",
                    ));
                }
            },
            columns: columns(fields)?,
            key_fields: names(fields, "key-fields")?,
            index_fields: names(fields, "index-fields")?,
        }),
        "delete" => {
            let all = fields.bool("all")?.unwrap_or(false);
            let choice = choice(fields, all)?;
            TableOp::Delete {
                table,
                rows: choice,
            }
        }
        op => TableOp::Write(WriteRows {
            table,
            rows: rows(fields.get("rows").unwrap_or(&Value::Nil), ":rows")?,
            mode: match op {
                "upsert" => WriteMode::Upsert,
                "replace" => WriteMode::Replace,
                _ => WriteMode::Insert,
            },
            key_fields: names(fields, "key-fields")?,
            index_fields: names(fields, "index-fields")?,
        }),
    })
}

fn query(op: &str, table: TableTarget, fields: Fields<'_>) -> Result<TableQuery, StepError> {
    Ok(match op {
        "query" => {
            let inner = match fields.get("query") {
                Some(inner) => {
                    let inner = Fields::inside(":query", inner)?;
                    inner.only(&["page", "select", "sort", "where"])?;
                    if let Some(twice) = ["page", "select", "sort", "where"]
                        .iter()
                        .find(|key| fields.has(key))
                    {
                        return Err(StepError::config(
                            "E0764",
                            format!("`:{twice}` stands beside `:query`"),
                        )
                        .hint(format!("put it inside: `:query {{:{twice} ...}}`")));
                    }
                    inner
                }
                None => fields,
            };
            TableQuery::Rows(RowsQuery {
                table,
                select: names(inner, "select")?,
                filter: question::filter(inner, "where")?,
                sort: question::sort(inner, "sort")?,
                page: question::page(inner)?,
            })
        }
        "get-row" => TableQuery::Row {
            table,
            row: choice(fields, false)?,
            select: names(fields, "select")?,
        },
        "aggregate" => {
            let metrics = question::metrics(fields)?;
            let group_by = question::group_by(fields)?;
            if metrics.is_empty() && group_by.is_empty() {
                return Err(StepError::config(
                    "E0764",
                    "`:op :aggregate` needs `:metrics` or `:group-by`",
                )
                .hint("as in `:metrics [{:op :count :as :count}]`"));
            }
            TableQuery::Aggregate(Aggregate {
                table,
                filter: question::filter(fields, "where")?,
                group_by,
                metrics,
                having: question::filter(fields, "having")?,
                order_by: question::sort(fields, "order-by")?,
                limit: fields.count("limit", 1, 100_000)?,
            })
        }
        _ => TableQuery::Schema { table },
    })
}

/// Reads which rows are meant: one of `:row-id`, `:key`, `:where`, or all of them when that is said.
fn choice(fields: Fields<'_>, all: bool) -> Result<RowChoice, StepError> {
    const WAYS: [&str; 3] = ["key", "row-id", "where"];
    let given: Vec<&str> = WAYS.into_iter().filter(|key| fields.has(key)).collect();
    match (given.as_slice(), all) {
        ([], true) => Ok(RowChoice::All),
        (["key"], false) => Ok(RowChoice::Key(cells::row(
            fields.get("key").unwrap_or(&Value::Nil),
            ":key",
        )?)),
        (["row-id"], false) => Ok(RowChoice::Id(
            fields.int("row-id", 0, i64::MAX)?.unwrap_or(0),
        )),
        (["where"], false) => match question::filter(fields, "where")? {
            Filter::And(parts) if parts.is_empty() => Err(StepError::config(
                "E0764",
                "`:where` is empty, which would mean every row",
            )
            .hint("say `:all true` instead")),
            filter => Ok(RowChoice::Where(filter)),
        },
        ([], false) => Err(
            StepError::config("E0764", "nothing says which row is meant").hint(
                "give `:key {...}` or `:row-id n`; to delete also `:where [...]` or `:all true`",
            ),
        ),
        _ => Err(StepError::config("E0764", "the row is named in two ways")
            .hint("give one of `:key`, `:row-id`, `:where` and `:all`")),
    }
}

fn columns(fields: Fields<'_>) -> Result<Vec<NewColumn>, StepError> {
    let given = fields.get("columns").unwrap_or(&Value::Nil);
    if let Some(map) = given.as_map() {
        return map
            .iter()
            .map(|(name, type_)| column(name, type_))
            .collect();
    }
    let mut columns = Vec::new();
    for entry in items(given).unwrap_or_default() {
        let entry_fields = Fields::inside(":columns", &entry)?;
        entry_fields.only(&["name", "type", "type-hint"])?;
        let type_ = entry_fields
            .get("type")
            .or(entry_fields.get("type-hint"))
            .unwrap_or(&Value::Nil);
        columns.push(column(
            entry_fields.get("name").unwrap_or(&Value::Nil),
            type_,
        )?);
    }
    Ok(columns)
}

fn column(name: &Value, type_: &Value) -> Result<NewColumn, StepError> {
    let Some(name) = name_text(name) else {
        return Err(StepError::config(
            "E0764",
            format!("a column needs a name, not {}", shown(name)),
        ));
    };
    let word = match type_ {
        Value::Map(_) => type_.get("type").and_then(name_text),
        type_ => name_text(type_),
    };
    let word = word.unwrap_or_default();
    let known = ColumnType::NAMES.iter().map(|(_, name)| *name);
    let found = ColumnType::from_name(match word.as_str() {
        "int" | "integer" => "long",
        "float" | "number" => "double",
        "text" => "string",
        "bool" => "boolean",
        "datetime" | "instant" => "timestamp",
        other => other,
    });
    let Some(type_) = found else {
        let error = StepError::config(
            "E0764",
            format!(
                "column `{name}` has no type `{}`",
                if word.is_empty() {
                    shown(type_)
                } else {
                    word.clone()
                }
            ),
        );
        let error = match nearest(&word, known.clone()) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error,
        };
        return Err(error.hint(format!(
            "there are :{}",
            known.collect::<Vec<_>>().join(" :")
        )));
    };
    Ok(NewColumn {
        name,
        type_,
        definition: ColumnDefinition::default(),
    })
}

/// Reads a list of names of columns.
pub(crate) fn names(fields: Fields<'_>, key: &str) -> Result<Vec<String>, StepError> {
    let Some(given) = fields.get(key) else {
        return Ok(Vec::new());
    };
    let single = name_text(given).map(|_| vec![given.clone()]);
    let given = single.or_else(|| items(given)).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for item in &given {
        let Some(name) = name_text(item) else {
            return Err(StepError::config(
                "E0764",
                format!(
                    "`:{key}` is a vector of names of columns, and {} is none",
                    shown(item)
                ),
            ));
        };
        if names.contains(&name) {
            return Err(StepError::config(
                "E0764",
                format!("`:{key}` names `{name}` twice"),
            ));
        }
        names.push(name);
    }
    Ok(names)
}
