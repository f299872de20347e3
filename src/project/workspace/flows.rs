//! Flows of the project: lists, what one is, its text, a draft of one, a run of one.
//!
//! A flow with versions is read from the registry, any other one from its file. What is `active` is what `flows/run` runs: the
//! released version, and without a release the file.

mod push;
mod registered;

use std::io;
use std::path::Path;
use std::rc::Rc;

use crate::flow_files::{self as flows, FlowFile};
use flowstone_engine::start_child;
use flowstone_flow::flow::{Flow, LoadedFlow, reload};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::ids::RunId;
use flowstone_model::registry::{FlowName, FlowRow, Target};
use flowstone_model::rooted::open_where;

pub(super) use push::push_draft;
use registered::Registered;

use super::args::Args;
use super::{facts, text};

/// How many flows a page has.
const PAGE: (usize, usize, usize) = (50, 1, 100);
/// Maximum number of digits of a version's number; what is longer is the hash of a program.
const NUMBER: usize = 9;

/// A flow of a list: its file, its row in the registry, or both.
struct Listed {
    slug: String,
    file: Option<FlowFile>,
    row: Option<FlowRow>,
}

pub(super) async fn list(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let limit = args.count("limit", (PAGE.1, PAGE.2))?.unwrap_or(PAGE.0);
    let cursor = args.name("cursor")?;
    let only_archived = args.bool("archived")?;
    let with_archived = args.bool("include-archived")?;
    let mut all = listed(cx).await?;
    all.retain(|flow| {
        let row = flow.row.as_ref();
        match row.is_some_and(|row| row.archived_ms.is_some()) {
            true => only_archived || with_archived,
            false => !only_archived,
        }
    });
    all.retain(|flow| cursor.as_deref().is_none_or(|after| *flow.slug > *after));
    let has_more = all.len() > limit;
    all.truncate(limit);
    let next = all.last().filter(|_| has_more);
    let next = next.map(|last| last.slug.clone());
    let mut page = Vec::new();
    for flow in &all {
        page.push(brief(cx, flow).await?);
    }
    Ok(facts([
        ("flows", Value::vector(page)),
        ("next-cursor", text(next.as_deref())),
    ]))
}

/// Returns the flows of the folder and of the registry, by slug.
async fn listed(cx: &StepContext) -> Result<Vec<Listed>, StepError> {
    let mut rows = registered::rows(cx).await?;
    let files = flows::files(cx.project_root()).into_iter();
    let mut all: Vec<Listed> = files
        .map(|file| {
            let slug = slug(&file);
            let at = rows.iter().position(|row| row.name.slug == slug);
            Listed {
                row: at.map(|at| rows.swap_remove(at)),
                file: Some(file),
                slug,
            }
        })
        .collect();
    all.extend(rows.into_iter().map(|row| Listed {
        slug: row.name.slug.clone(),
        file: None,
        row: Some(row),
    }));
    all.sort_by(|one, other| one.slug.cmp(&other.slug));
    Ok(all)
}

fn slug(file: &FlowFile) -> String {
    match &file.loaded {
        Some(loaded) => loaded.flow.slug.to_string(),
        None => file
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    }
}

async fn brief(cx: &StepContext, listed: &Listed) -> Result<Value, StepError> {
    let of_version = match &listed.row {
        Some(row) if row.live.is_some() || listed.file.is_none() => {
            Some(registered::current(cx, row).await?)
        }
        _ => None,
    };
    let file = listed.file.as_ref();
    let of_file = file.and_then(|file| file.loaded.as_ref());
    let loaded = of_version.as_ref().and_then(|it| it.loaded.as_ref());
    let flow = loaded.or(of_file).map(|loaded| &loaded.flow);
    let row = listed.row.as_ref();
    let has_draft = row.is_some_and(|row| row.live != Some(row.head));
    let is_archived = row.is_some_and(|row| row.archived_ms.is_some());
    let flag = |is_set: bool| {
        if is_set {
            Value::Bool(true)
        } else {
            Value::Nil
        }
    };
    let number = |number: Option<i64>| number.map_or(Value::Nil, Value::Int);
    let problem = file.and_then(|file| file.problem.as_deref());
    Ok(facts([
        ("slug", Value::from(listed.slug.as_str())),
        ("name", text(flow.and_then(|flow| flow.name.as_deref()))),
        (
            "description",
            text(flow.and_then(|flow| flow.description.as_deref())),
        ),
        ("file", text(file.map(|file| file.name.as_str()))),
        ("live", number(row.and_then(|row| row.live))),
        ("draft", number(row.map(|row| row.head))),
        ("has-draft", flag(has_draft)),
        ("archived", flag(is_archived)),
        ("problem", text(problem.filter(|_| of_version.is_none()))),
    ]))
}

/// A flow that was asked for, as its text and what it is.
struct RequestedFlow {
    slug: Rc<str>,
    source: &'static str,
    file: Option<String>,
    /// The hash of the program, or the number of the version.
    version: Value,
    /// What the registry says about the version.
    registered: Option<Registered>,
    text: String,
    loaded: Option<LoadedFlow>,
    problem: Option<String>,
}

pub(super) async fn show(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let with_text = args.bool("include-flow-literal")?;
    let asked = asked(cx, args).await?;
    let flow = asked.loaded.as_ref().map(|loaded| &*loaded.flow);
    let literal = match with_text {
        true => Value::from(asked.text.as_str()),
        false => Value::Nil,
    };
    let definition = flow.map_or(Value::Nil, about);
    let more = [("definition", definition), ("flow-literal", literal)];
    Ok(facts(asked.facts().into_iter().chain(more)))
}

/// What a flow is, without its code.
fn about(flow: &Flow) -> Value {
    let inputs = flow.default_invocation().map(|contract| {
        Value::vector(contract.inputs.iter().map(|input| {
            facts([
                ("name", Value::from(&*input.name)),
                ("type", Value::keyword(&input.type_)),
                ("required", Value::Bool(input.required)),
                ("label", text(input.label.as_deref())),
                ("description", text(input.description.as_deref())),
                ("default", input.default.clone()),
            ])
        }))
    });
    let packaged = |is_agent: bool| {
        let steps: Vec<Value> = flow
            .packaged
            .iter()
            .filter(|step| step.is_agent() == is_agent)
            .map(|step| {
                facts([
                    ("id", Value::keyword(&step.id)),
                    ("type", Value::keyword(&step.kind)),
                    ("description", text(step.description.as_deref())),
                ])
            })
            .collect();
        match steps.is_empty() {
            true => Value::Nil,
            false => Value::vector(steps),
        }
    };
    let ids = |names: Vec<&str>| match names.is_empty() {
        true => Value::Nil,
        false => Value::vector(names.into_iter().map(Value::keyword)),
    };
    facts([
        ("name", text(flow.name.as_deref())),
        ("description", text(flow.description.as_deref())),
        ("inputs", inputs.unwrap_or(Value::Nil)),
        ("steps", packaged(false)),
        ("agents", packaged(true)),
        (
            "functions",
            ids(flow.functions.iter().map(|it| &*it.id).collect()),
        ),
        (
            "templates",
            ids(flow.templates.iter().map(|it| &*it.id).collect()),
        ),
        (
            "schedules",
            ids(flow.schedules.iter().map(|it| &*it.id).collect()),
        ),
        ("mcp", ids(flow.mcp.iter().map(|it| &*it.id).collect())),
        (
            "requires",
            match flow
                .requires
                .as_vector()
                .is_none_or(|slots| slots.iter().next().is_none())
            {
                true => Value::Nil,
                false => flow.requires.clone(),
            },
        ),
    ])
}

pub(super) async fn pull(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let asked = asked(cx, args).await?;
    let literal = ("flow-literal", Value::from(asked.text.as_str()));
    Ok(facts(asked.facts().into_iter().chain([literal])))
}

impl RequestedFlow {
    /// Returns what `flows/show` and `flows/pull` both report of a flow.
    fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut all = vec![
            ("slug", Value::from(&*self.slug)),
            ("source", Value::keyword(self.source)),
            ("file", text(self.file.as_deref())),
            ("version", self.version.clone()),
        ];
        all.extend(self.registered.iter().flat_map(Registered::facts));
        all.push(("problem", text(self.problem.as_deref())));
        all
    }
}

/// What of a flow is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// What `flows/run` runs.
    Active,
    /// The newest version; the file of a flow without versions.
    Latest,
    Target(Target),
    Number(i64),
    Revision(String),
    /// The hash of a program that ran once.
    Program(Rc<str>),
}

impl Wanted {
    fn read(args: &Args) -> Result<Wanted, StepError> {
        let source = args.name("source")?;
        if let Some(version) = args.get("version") {
            if source.is_some() {
                return Err(args.wrong("`source` and `version` exclude each other"));
            }
            return Wanted::of_version(args, version);
        }
        match source.as_deref().unwrap_or("active") {
            "active" | "default" => Ok(Wanted::Active),
            "latest" => Ok(Wanted::Latest),
            name => Target::named(name).map(Wanted::Target).ok_or_else(|| {
                args.wrong(format!(
                    "`source` is active, live, draft or latest, not `{name}`"
                ))
            }),
        }
    }

    fn of_version(args: &Args, version: &Value) -> Result<Wanted, StepError> {
        if let Some(number) = version.as_int() {
            return Ok(Wanted::of_number(number));
        }
        let name = args.name("version")?.unwrap_or_default();
        let number = Some(&*name).filter(|name| name.len() <= NUMBER);
        if let Some(number) = number.and_then(|name| name.parse().ok()) {
            return Ok(Wanted::of_number(number));
        }
        Ok(match (&*name, Target::named(&name)) {
            ("latest", _) => Wanted::Latest,
            (_, Some(target)) => Wanted::Target(target),
            (id, None) if id.starts_with("rev_") => Wanted::Revision(id.to_owned()),
            (_, None) => Wanted::Program(name),
        })
    }

    fn of_number(number: i64) -> Wanted {
        match number {
            0 => Wanted::Target(Target::Draft),
            number => Wanted::Number(number),
        }
    }
}

/// Finds what is asked for: a version of the registry, the flow's file, or a program that ran once.
async fn asked(cx: &StepContext, args: &Args) -> Result<RequestedFlow, StepError> {
    let slug = args.needed("flow-slug")?;
    let wanted = Wanted::read(args)?;
    if let Wanted::Program(hash) = &wanted {
        return by_program(cx, &slug, hash).await;
    }
    if let Some(row) = registered::row(cx, &slug).await? {
        let is_file = wanted == Wanted::Active && row.live.is_none();
        let file = is_file.then(|| flows::find(cx.project_root(), &slug).ok());
        return match file.flatten() {
            Some(file) => of_file(cx, file, slug, args),
            None => registered::asked(cx, &row, wanted).await,
        };
    }
    match wanted {
        Wanted::Active | Wanted::Latest => of_file(cx, found(cx, &slug)?, slug, args),
        _ => Err(registered::unknown(&slug, &wanted)),
    }
}

fn found(cx: &StepContext, slug: &str) -> Result<FlowFile, StepError> {
    flows::find(cx.project_root(), slug).map_err(|near| {
        let error = StepError::new(
            "E0839",
            "not-found",
            format!("the project has no flow `{slug}`"),
        );
        match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`:flows/list` says which there are"),
        }
    })
}

fn of_file(
    cx: &StepContext,
    file: FlowFile,
    slug: Rc<str>,
    args: &Args,
) -> Result<RequestedFlow, StepError> {
    let may = |found: &Path| cx.gate().read(found).map(drop);
    let unreadable = |error: &dyn std::fmt::Display| {
        args.wrong(format!("{} cannot be read: {error}", file.name))
    };
    let read = open_where(&file.path, |found| {
        may(found).map_err(|error| io::Error::other(error.message))
    });
    let text = read.and_then(|opened| io::read_to_string(&*opened.file));
    let text = text.map_err(|error| unreadable(&error))?;
    Ok(RequestedFlow {
        slug: file
            .loaded
            .as_ref()
            .map_or(slug, |loaded| loaded.flow.slug.clone()),
        source: "active",
        file: Some(file.name),
        version: program_of(file.loaded.as_ref()),
        registered: None,
        text,
        loaded: file.loaded,
        problem: file.problem,
    })
}

fn program_of(loaded: Option<&LoadedFlow>) -> Value {
    text(loaded.map(|loaded| &*loaded.program.hash))
}

async fn by_program(
    cx: &StepContext,
    slug: &Rc<str>,
    hash: &str,
) -> Result<RequestedFlow, StepError> {
    let missing = || {
        StepError::new(
            "E0839",
            "not-found",
            format!("no run of `{slug}` was started with the version `{hash}`"),
        )
        .hint("`:runs/show` has the version that a run has")
    };
    let program = cx.stores()?.runs.program(hash).await?.ok_or_else(missing)?;
    let loaded = reload(&Session::new(), &program).loaded;
    let is_it = loaded
        .as_ref()
        .is_none_or(|loaded| loaded.flow.slug == *slug);
    let text = flows::text_of(&program)
        .filter(|_| is_it)
        .ok_or_else(missing)?;
    Ok(RequestedFlow {
        slug: slug.clone(),
        source: "version",
        file: None,
        version: Value::from(hash),
        registered: None,
        text,
        loaded,
        problem: None,
    })
}

/// Starts a run below this one and waits for what it gives.
pub(super) async fn run(cx: &StepContext, args: &Args, config: &Value) -> Result<RunId, StepError> {
    let slug = args.needed("flow-slug")?;
    let input = match args.get("input") {
        None => Value::map([]),
        Some(given @ Value::Map(_)) => given.clone(),
        Some(other) => {
            return Err(args.wrong(format!(
                "`input` of `flows/run` is a map, not {}",
                other.kind()
            )));
        }
    };
    let version = match version_to_run(args)? {
        Value::Nil => usual_version(cx, &slug).await?,
        version => version,
    };
    let timeout = config.get("timeout").cloned().unwrap_or(Value::Nil);
    let call = facts([
        ("flow-slug", Value::from(&*slug)),
        ("input", input),
        ("version", version),
        ("timeout", timeout),
    ]);
    start_child(cx, &call).await
}

/// Returns the version that runs if none is named: the released one. A run of a version calls others by its own pointer.
async fn usual_version(cx: &StepContext, slug: &str) -> Result<Value, StepError> {
    let parent = cx.own_stores().runs.find(cx.run_id()).await?;
    let is_of_file = parent.is_none_or(|parent| parent.version.is_none());
    let registry = &cx.own_stores().registry;
    let row = registry.flow(&FlowName::local(slug)).await?;
    Ok(
        match row.is_some_and(|row| row.live.is_some()) && is_of_file {
            true => Value::keyword("live"),
            false => Value::Nil,
        },
    )
}

/// Returns the version that a run names: a number, a pointer of the registry, or the hash of a program.
fn version_to_run(args: &Args) -> Result<Value, StepError> {
    let target = args.name("target")?;
    let Some(version) = args.get("version") else {
        return match target.as_deref() {
            None => Ok(Value::Nil),
            Some(name) if Target::named(name).is_some() => Ok(Value::keyword(name)),
            Some(name) => Err(args.wrong(format!("`target` is draft or live, not `{name}`"))),
        };
    };
    if target.is_some() {
        return Err(args.wrong("`target` and `version` exclude each other"));
    }
    let Value::Text(given) = version else {
        return Ok(version.clone());
    };
    let name = given.trim().trim_start_matches(':');
    let number = Some(name).filter(|name| name.len() <= NUMBER);
    Ok(match number.and_then(|name| name.parse().ok()) {
        Some(number) => Value::Int(number),
        None if name == "latest" || Target::named(name).is_some() => Value::keyword(name),
        None => version.clone(),
    })
}
