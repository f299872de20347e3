//! `:table`: tables that flows write and query. Each change happens exactly once.

mod cells;
mod csv;
mod definition;
mod join;
mod query;
mod target;

use flowstone_flow::codec;
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::ports::{StoreError, StoreOp};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Step, StepContext,
    StepError, StepSpec,
};
use flowstone_flow::table::{
    Aggregate, ColumnDefinition, CreateTable, Filter, FormatCell, NewColumn, Partitions, Recompute,
    RowChoice, RowsQuery, SetColumn, TableName, TableOp, TableQuery, TableTarget, UpdateCell,
    WriteMode, WriteRows,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::literal::{self, Remarks};
use crate::operation::choose;
use crate::text::brief;
pub(crate) use cells::rows;
pub(crate) use target::{partitions, target};

/// The `:table` step.
pub struct Table;

const SPEC: StepSpec = StepSpec {
    kind: "table",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Writes rows to a table, and queries it.\n\n\
        `:table` is the name of a table, or the reference that `:persist {:type :table}` returned. Writing creates the table \
        and its columns; the type of a column is inferred from its first cells and enforced from then on. Conditions are \
        vectors such as `[\"amount\" \">\" 100]`, and all of them must hold; `[\"or\" [...]]`, `[\"and\" [...]]` and `[\"not\" [...]]` \
        can be nested. Names and operators may be strings or keywords.",
    fields: FIELDS,
    examples: &[
        "(flow/step :table :save {:op :upsert :table \"orders\" :rows rows :key-fields [:order-id] :index-fields [:status]})",
        "(flow/step :table :open {:op :query :table \"orders\" :where [[:status := \"open\"]] :sort [[:amount :desc]] :page {:limit 10}})",
        "(flow/step :table :totals {:op :aggregate :table \"orders\" :group-by [:status] :metrics [{:op :sum :field :amount :as :total}]})",
    ],
    effect: Effect::OwnStore,
};

const FIELDS: &[Field] = &[
    Field::optional("all", FieldType::Bool, "Whether `:delete` removes every row. Default false."),
    Field::optional("column", FieldType::Name, "The name of the column."),
    Field::optional(
        "columns",
        FieldType::Either(&[FieldType::Map, FieldType::Items]),
        "The columns of a new table, `{:id :long :note :string}` or `[{:name :id :type :long}]`; with `:op :import`, the types of \
         some columns. Types: string long double decimal boolean date timestamp json enum.",
    ),
    Field::optional("csv", FieldType::Text, "The CSV text to import."),
    Field::optional(
        "definition",
        definition::FIELD,
        "The new definition of the column. Keys that are left out keep their value, and nil removes one.",
    ),
    Field::optional(
        "delimiter",
        FieldType::Text,
        "The separator between the fields of CSV text, a comma by default.",
    ),
    Field::optional(
        "encoding",
        FieldType::Name,
        "The encoding of CSV text, such as `latin1` or `utf-16le`. Default: the one of its byte order mark, else UTF-8.",
    ),
    Field::optional(
        "escape-formulas?",
        FieldType::Bool,
        "Whether an export writes an apostrophe before text that a spreadsheet would compute as a formula. Default false.",
    ),
    Field::optional(
        "format",
        definition::FORMAT,
        "How the cell is shown: `{:display \"currency\" :currency \"USD\"}`. nil removes the format.",
    )
    .or_nil(),
    Field::optional(
        "from",
        FieldType::Any,
        "The CSV to import: a file of the project, another file that the flow may read, or a reference to a blob.",
    ),
    Field::optional(
        "from-ref",
        FieldType::Any,
        "A reference to the blob to import.",
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
        "Whether the first line of CSV text names the columns. Default true. If false, `:columns` names them, or they are `column-1`, `column-2` and so on.",
    ),
    Field::optional(
        "index-fields",
        FieldType::Items,
        "Columns that get an index.",
    ),
    Field::optional("into", join::INTO, "The table to write the result of the join to."),
    Field::optional(
        "join-type",
        FieldType::OneOf(&["inner", "left"]),
        "`left` keeps left rows without a matching right row, `inner` drops them. Default `left`.",
    ),
    Field::optional(
        "key",
        FieldType::Map,
        "The row with these cells, as `{:order-id 7}`.",
    ),
    Field::optional(
        "key-fields",
        FieldType::Items,
        "The columns that identify a row.",
    ),
    Field::optional(
        "left",
        join::SIDE,
        "The left side of the join: a table, or rows.",
    ),
    Field::optional(
        "limit",
        FieldType::Int,
        "The maximum number of groups to return, or of rows to recompute.",
    ),
    Field::optional(
        "metrics",
        FieldType::Items,
        "The figures to compute: `{:op :sum :field :amount :as :total}`. Ops: count count-distinct sum avg min max median percentile first last. \
         `percentile` takes `:p`, a percentage from 1 to 100 or a fraction below 1: 95 and 0.95 mean the same, and 1 is the \
         first percentile.",
    ),
    Field::optional("offset", FieldType::Int, "The number of rows to skip. Default 0."),
    Field::optional("on", join::ON, "Pairs of fields that must be equal."),
    Field::optional(
        "on-bad-row",
        FieldType::Name,
        "What happens to invalid rows of CSV text: `:fail` (default) imports nothing, `:skip` leaves them out, `:collect` lists them under `:rejected`.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "The operation: `:create :insert :upsert :replace :delete :query :get-row :aggregate :schema :export :import :update-cell :update-cell-format \
         :set-column :recompute :materialize-join`.",
    ),
    Field::optional(
        "op-id",
        FieldType::Text,
        "A name for this join: a second join with the same name returns the result of the first.",
    ),
    Field::optional(
        "order-by",
        FieldType::Items,
        "The order of the groups, by the names of the result.",
    ),
    Field::optional(
        "page",
        query::PAGE,
        "The page to return: `{:limit 25 :offset 0}` or `{:mode :cursor :limit 25 :cursor ...}`; `:include-total-count true` adds the number of all rows.",
    ),
    Field::optional(
        "project",
        join::PROJECT,
        "The fields of the result. Default: all of them; of two fields that are joined on, the left one.",
    ),
    Field::optional(
        "query",
        FieldType::Map,
        "`:select :where :sort :page` of `:op :query`, in a map.",
    ),
    Field::optional(
        "right",
        join::SIDE,
        "The right side of the join: a table, or rows.",
    ),
    Field::optional("row-id", FieldType::Int, "The number of the row."),
    Field::optional("rows", FieldType::Items, "The rows to write: maps of columns and their cells."),
    Field::optional("select", FieldType::Items, "Columns to return."),
    Field::optional(
        "sort",
        FieldType::Items,
        "Columns to sort by: `[[:amount :desc] :id]`.",
    ),
    Field::optional(
        "table",
        FieldType::Any,
        "The table: its name, its `res://` name, or the reference that a step returned. A table with partitions is written \
         `{:name \"orders\" :partitions {:key \"2026-03\"}}`, or with `{:keys [...]}` to read several partitions.",
    ),
    Field::optional(
        "value",
        FieldType::Any,
        "The new value of the cell; nil empties it.",
    )
    .or_nil(),
    Field::optional(
        "where",
        FieldType::Either(&[FieldType::Items, FieldType::Map]),
        "Conditions that must all hold: `[[:status := \"open\"] [:amount :> 100]]`, or a map of columns and values.",
    ),
    Field::optional(
        "write-mode",
        FieldType::Name,
        "How `:import` writes rows: `:append` (default), `:upsert` by the key fields, or `:replace` all rows.",
    ),
];

const OPERATIONS: Operations = Operations {
    key: "op",
    code: "E0764",
    all: &[
        Operation {
            name: "aggregate",
            doc: "Computes figures of groups of rows.",
            needs: &["table"],
            takes: &[
                "group-by", "having", "limit", "metrics", "order-by", "where",
            ],
            gives: r#"[:map [:groups [:vector :map]] [:count :int]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "create",
            doc: "Creates a table with the given columns.",
            needs: &["table", "columns"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "delete",
            doc: "Removes rows.",
            needs: &["table"],
            takes: &["all", "key", "row-id", "where"],
            gives: r#"[:map [:rows-deleted :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "export",
            doc: "Returns rows as CSV text.",
            needs: &["table"],
            takes: &["escape-formulas?", "select", "sort", "where"],
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
            for_agents: false,
        },
        Operation {
            name: "insert",
            doc: "Adds rows; fails if a row with the same key exists.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "materialize-join",
            doc: "Joins two sides and writes the result to a table.",
            needs: &["left", "right", "on", "into"],
            takes: &["join-type", "op-id", "project"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int] [:row-count :int]]"#,
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
            name: "recompute",
            doc: "Recomputes the computed columns of rows.",
            needs: &["table"],
            takes: &["limit", "offset", "where"],
            gives: r#"[:map [:rows-scanned :int] [:rows-updated :int] [:has-more :boolean]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "replace",
            doc: "Removes all rows of a table, or of one partition, and adds the given ones.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
        Operation {
            name: "schema",
            doc: "Returns the columns and the number of rows.",
            needs: &["table"],
            takes: &[],
            gives: r#"[:map [:columns [:vector :map]]]"#,
            effect: Effect::Read,
            for_agents: true,
        },
        Operation {
            name: "set-column",
            doc: "Adds a column, or changes its definition.",
            needs: &["table", "column", "definition"],
            takes: &[],
            gives: r#"[:map [:created? :boolean] [:column :map] [:cells-changed :int]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "update-cell",
            doc: "Changes one cell.",
            needs: &["table", "column", "value"],
            takes: &["key", "row-id"],
            gives: r#"[:map [:row-id :int] [:column :string] [:value :any] [:previous :any]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "update-cell-format",
            doc: "Changes how one cell is shown, but not its value.",
            needs: &["table", "column", "format"],
            takes: &["key", "row-id"],
            gives: r#"[:map [:row-id :int] [:column :string] [:format [:maybe :map]]]"#,
            effect: Effect::OwnStore,
            for_agents: true,
        },
        Operation {
            name: "upsert",
            doc: "Adds rows; if a row with the same key exists, replaces its cells.",
            needs: &["table", "rows"],
            takes: &["index-fields", "key-fields"],
            gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:rows-written :int] [:rows-inserted :int] [:rows-updated :int]]"#,
            effect: Effect::OwnStore,
            for_agents: false,
        },
    ],
};

impl Step for Table {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Remarks {
        let known = literal::known(config);
        let mut remarks = Remarks::new();
        query::remarks(Fields::new(&known), &mut remarks);
        if let Some(inner @ Value::Map(_)) = known.get("query") {
            query::remarks(Fields::new(inner), &mut remarks);
        }
        remarks
    }

    fn needs(&self, _: &Flow, _: &Value, config: &Value) -> Vec<PlannedNeed> {
        crate::needs::of_table(config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let op = choose(&SPEC, fields)?.name;
            if op == "materialize-join" {
                let join = join::read(fields)?;
                return Ok(Outcome::Commit(StoreOp::Table(Box::new(TableOp::Join(
                    join,
                )))));
            }
            let table = target(fields.get("table").unwrap_or(&Value::Nil))?;
            match op {
                "export" => csv::export(cx, table, fields).await,
                "import" => csv::import(cx, table, fields).await,
                "create" | "delete" | "insert" | "recompute" | "replace" | "set-column"
                | "update-cell" | "update-cell-format" | "upsert" => change(op, table, fields)
                    .map(|op| Outcome::Commit(StoreOp::Table(Box::new(op)))),
                _ => {
                    let text = cx.stores()?.tables.query(query(op, table, fields)?).await?;
                    let value = codec::decode(&text);
                    value.map(Outcome::Value).map_err(|error| {
                        StoreError::unreadable("a cell of the table", &error).into()
                    })
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
        "recompute" => TableOp::Recompute(Recompute {
            table,
            filter: query::filter(fields, "where")?,
            limit: fields.count("limit", 1, 1_000_000_000)?,
            offset: fields.count("offset", 0, 1_000_000_000)?.unwrap_or(0),
        }),
        "set-column" => TableOp::SetColumn(SetColumn {
            table,
            column: column_named(fields)?,
            definition: definition::read(fields.get("definition").unwrap_or(&Value::Nil))?,
        }),
        "update-cell" => TableOp::UpdateCell(UpdateCell {
            table,
            row: choice(fields, false)?,
            column: column_named(fields)?,
            value: {
                let value = fields.given("value").unwrap_or(&Value::Nil);
                cells::cell(value).map_err(|error| {
                    StepError::new("E0764", "invalid", format!("`:value`: {error}"))
                        .hint("a cell holds data, not functions")
                })?
            },
        }),
        "update-cell-format" => TableOp::FormatCell(FormatCell {
            table,
            row: choice(fields, false)?,
            column: column_named(fields)?,
            format: fields.get("format").map(definition::format).transpose()?,
        }),
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

/// Reads the name of a column.
fn column_named(fields: Fields<'_>) -> Result<String, StepError> {
    let given = fields.get("column").unwrap_or(&Value::Nil);
    name_text(given).ok_or_else(|| {
        let message = format!("`:column` is the name of a column, not {}", brief(given));
        StepError::config("E0764", message)
    })
}

fn query(op: &str, table: TableTarget, fields: Fields<'_>) -> Result<TableQuery, StepError> {
    Ok(match op {
        "query" => {
            let inner = match fields.get("query") {
                Some(inner) => {
                    let inner = Fields::nested(":query", inner)?;
                    inner.only(&["page", "select", "sort", "where"])?;
                    if let Some(twice) = ["page", "select", "sort", "where"]
                        .iter()
                        .find(|key| fields.has(key))
                    {
                        return Err(StepError::config(
                            "E0764",
                            format!("`:{twice}` is set beside `:query`"),
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
                filter: query::filter(inner, "where")?,
                sort: query::sort(inner, "sort")?,
                page: query::page(inner)?,
            })
        }
        "get-row" => TableQuery::Row {
            table,
            row: choice(fields, false)?,
            select: names(fields, "select")?,
        },
        "aggregate" => {
            let metrics = query::metrics(fields)?;
            let group_by = query::group_by(fields)?;
            if metrics.is_empty() && group_by.is_empty() {
                return Err(StepError::config(
                    "E0764",
                    "`:op :aggregate` needs `:metrics` or `:group-by`",
                )
                .hint("such as `:metrics [{:op :count :as :count}]`"));
            }
            TableQuery::Aggregate(Aggregate {
                table,
                filter: query::filter(fields, "where")?,
                group_by,
                metrics,
                having: query::filter(fields, "having")?,
                order_by: query::sort(fields, "order-by")?,
                limit: fields.count("limit", 1, 100_000)?,
            })
        }
        _ => TableQuery::Schema { table },
    })
}

/// Reads the choice of rows: one of `:row-id`, `:key`, `:where`, or explicitly all of them.
fn choice(fields: Fields<'_>, all: bool) -> Result<RowChoice, StepError> {
    const SELECTORS: [&str; 3] = ["key", "row-id", "where"];
    let given: Vec<&str> = SELECTORS
        .into_iter()
        .filter(|key| fields.has(key))
        .collect();
    match (given.as_slice(), all) {
        ([], true) => Ok(RowChoice::All),
        (["key"], false) => {
            let key = fields.get("key").unwrap_or(&Value::Nil);
            if key
                .as_map()
                .is_some_and(|cells| cells.iter().next().is_none())
            {
                let message = "`:key` is empty, which would mean every row";
                return Err(StepError::config("E0764", message)
                    .hint("name the cells that identify the row: `:key {:id 7}`"));
            }
            Ok(RowChoice::Key(cells::row(key, ":key")?))
        }
        (["row-id"], false) => Ok(RowChoice::Id(
            fields.int("row-id", 0, i64::MAX)?.unwrap_or(0),
        )),
        (["where"], false) => match query::filter(fields, "where")? {
            Filter::And(parts) if parts.is_empty() => Err(StepError::config(
                "E0764",
                "`:where` is empty, which would mean every row",
            )
            .hint("write `:all true` instead")),
            filter => Ok(RowChoice::Where(filter)),
        },
        ([], false) => Err(StepError::config("E0764", "no row was chosen").hint(
            "give `:key {...}` or `:row-id n`; to delete also `:where [...]` or `:all true`",
        )),
        _ => Err(
            StepError::config("E0764", "the row is chosen in more than one way")
                .hint("give one of `:key`, `:row-id`, `:where` and `:all`"),
        ),
    }
}

fn columns(fields: Fields<'_>) -> Result<Vec<NewColumn>, StepError> {
    let given = fields.get("columns").unwrap_or(&Value::Nil);
    if let Some(map) = given.as_map() {
        return map
            .iter()
            .map(|(name, given)| match given {
                Value::Map(_) => new_column(name, definition::of_column(given, name)?),
                type_ => new_column(name, definition::of_type(type_, name)?),
            })
            .collect();
    }
    items(given)
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            let name = entry.get("name").unwrap_or(&Value::Nil);
            new_column(name, definition::of_column(entry, name)?)
        })
        .collect()
}

fn new_column(name: &Value, definition: ColumnDefinition) -> Result<NewColumn, StepError> {
    let Some(name) = name_text(name) else {
        return Err(StepError::config(
            "E0764",
            format!("a column needs a name, not {}", brief(name)),
        ));
    };
    Ok(NewColumn { name, definition })
}

/// Reads a list of names of columns.
pub(crate) fn names(fields: Fields<'_>, key: &str) -> Result<Vec<String>, StepError> {
    let Some(given) = fields.get(key) else {
        return Ok(Vec::new());
    };
    let single = name_text(given).map(|_| vec![given.clone()]);
    let Some(given) = single.or_else(|| items(given)) else {
        return Err(StepError::config(
            "E0764",
            format!(
                "`:{key}` needs a vector of column names, got {}",
                brief(given)
            ),
        ));
    };
    let mut names: Vec<String> = Vec::new();
    for item in &given {
        let Some(name) = name_text(item) else {
            return Err(StepError::config(
                "E0764",
                format!(
                    "`:{key}` needs a vector of column names, got {}",
                    brief(item)
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
