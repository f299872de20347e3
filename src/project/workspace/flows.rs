//! Flows of the project: lists, what one is, its text, a draft of one, a run of one.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use crate::flow_files::{self as flows, FlowFile, TextFinding};
use flowstone_engine::start_child;
use flowstone_flow::flow::{Flow, LoadedFlow, reload};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::Severity;
use flowstone_model::ids::RunId;
use flowstone_model::rooted::open_where;

use super::args::Args;
use super::{facts, text};

/// How many flows a page has.
const PAGE: (usize, usize, usize) = (50, 1, 100);

/// How many findings are told.
const TOLD: usize = 10;

pub(super) fn list(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let limit = args.count("limit", (PAGE.1, PAGE.2))?.unwrap_or(PAGE.0);
    let cursor = args.name("cursor")?;
    // Files are there or not: nothing is archived.
    let only_archived = args.bool("archived")?;
    args.bool("include-archived")?;
    let mut files = match only_archived {
        true => Vec::new(),
        false => flows::files(cx.project_root()),
    };
    files.sort_by_key(slug);
    let after = files
        .iter()
        .filter(|file| cursor.as_deref().is_none_or(|cursor| *slug(file) > *cursor));
    let page: Vec<&FlowFile> = after.clone().take(limit).collect();
    let has_more = after.count() > page.len();
    let next = page.last().filter(|_| has_more).map(|last| slug(last));
    Ok(facts([
        (
            "flows",
            Value::vector(page.iter().map(|file| brief(cx, file))),
        ),
        ("next-cursor", text(next.as_deref())),
    ]))
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

fn brief(cx: &StepContext, file: &FlowFile) -> Value {
    let flow = file.loaded.as_ref().map(|loaded| &loaded.flow);
    let slug = slug(file);
    let has_draft = draft_path(cx, &slug).is_file();
    facts([
        ("slug", Value::from(slug)),
        ("name", text(flow.and_then(|flow| flow.name.as_deref()))),
        (
            "description",
            text(flow.and_then(|flow| flow.description.as_deref())),
        ),
        ("file", Value::from(file.name.as_str())),
        (
            "has-draft",
            if has_draft {
                Value::Bool(true)
            } else {
                Value::Nil
            },
        ),
        ("problem", text(file.problem.as_deref())),
    ])
}

/// A flow that was asked for, as its text and what it is.
struct RequestedFlow {
    slug: Rc<str>,
    source: &'static str,
    file: Option<String>,
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
    fn facts(&self) -> [(&'static str, Value); 5] {
        let program = self.loaded.as_ref().map(|loaded| &*loaded.program.hash);
        [
            ("slug", Value::from(&*self.slug)),
            ("source", Value::keyword(self.source)),
            ("file", text(self.file.as_deref())),
            ("version", text(program)),
            ("problem", text(self.problem.as_deref())),
        ]
    }
}

/// Finds what is asked for: the flow's file, its draft, the younger of both, or a program that ran once.
async fn asked(cx: &StepContext, args: &Args) -> Result<RequestedFlow, StepError> {
    let slug = args.needed("flow-slug")?;
    if let Some(hash) = args
        .name("version")?
        .filter(|hash| &**hash != "latest" && &**hash != "0")
    {
        return by_version(cx, &slug, &hash).await;
    }
    // A name from a model is not a path.
    let is_slug = slug
        .chars()
        .all(|it| it.is_alphanumeric() || it == '-' || it == '_');
    if !is_slug {
        return found(cx, &slug).and_then(|file| of_file(cx, file, slug, "active", args));
    }
    let draft = draft_path(cx, &slug);
    let source = args.name("source")?;
    let file = || found(cx, &slug);
    match source.as_deref().unwrap_or("active") {
        "active" => of_file(cx, file()?, slug, "active", args),
        "draft" if draft.is_file() => of_file(
            cx,
            flows::read(cx.project_root(), draft),
            slug,
            "draft",
            args,
        ),
        "draft" => Err(StepError::new(
            "E0839",
            "not-found",
            format!("there is no draft of `{slug}`"),
        )
        .hint("`:flows/push-draft` makes one")),
        "latest" => {
            let changed = |path: &PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
            match file() {
                Ok(file) if !draft.is_file() || changed(&file.path) > changed(&draft) => {
                    of_file(cx, file, slug, "active", args)
                }
                Err(error) if !draft.is_file() => Err(error),
                _ => of_file(
                    cx,
                    flows::read(cx.project_root(), draft),
                    slug,
                    "draft",
                    args,
                ),
            }
        }
        other => Err(args.wrong(format!(
            "`source` is active, draft or latest, not `{other}`"
        ))),
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
    source: &'static str,
    args: &Args,
) -> Result<RequestedFlow, StepError> {
    let is_draft = file.path.starts_with(cx.home().join("drafts"));
    let may = |found: &Path| match is_draft {
        true => Ok(()),
        false => cx.gate().read(found).map(drop),
    };
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
        source,
        file: Some(file.name),
        text,
        loaded: file.loaded,
        problem: file.problem,
    })
}

async fn by_version(
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
        text,
        loaded,
        problem: None,
    })
}

fn draft_path(cx: &StepContext, slug: &str) -> PathBuf {
    cx.home().join("drafts").join(format!("{slug}.edn"))
}

/// Keeps a draft beside the flows, where nothing runs it. The flow's own file stays as it is.
pub(super) fn push_draft(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let literal = args.needed_text("flow-literal")?;
    let session = Session::new();
    flowstone_flow::natives::install(&session);
    flowstone_steps::sandbox::register(&session);
    let place = (cx.project_root(), cx.scope().services.formats);
    let (loaded, findings) = flows::check_text(&session, literal, place, cx.steps());
    let is_error = |finding: &&TextFinding| finding.severity == Severity::Error;
    let errors: Vec<String> = findings
        .iter()
        .filter(is_error)
        .take(TOLD)
        .map(line)
        .collect();
    let Some(loaded) = loaded.filter(|_| errors.is_empty()) else {
        return Err(StepError::new(
            "E0839",
            "invalid",
            format!("the draft was not kept: {}", errors.join("; ")),
        )
        .hint("correct it and push it again: the whole text of the flow"));
    };
    if loaded.flow.definition.as_map().is_none() {
        return Err(args.wrong("the draft was not kept: a flow is a map with `:slug` and `:flow`"));
    }
    let path = draft_path(cx, &loaded.flow.slug);
    let unwritable = |error: std::io::Error| {
        StepError::new(
            "E0839",
            "unavailable",
            format!("{} cannot be written: {error}", path.display()),
        )
    };
    let folder = cx.home().join("drafts");
    fs::create_dir_all(&folder).map_err(unwritable)?;
    let beside = folder.join(format!(".{}.new", loaded.flow.slug));
    fs::write(&beside, literal).map_err(unwritable)?;
    fs::rename(&beside, &path).map_err(unwritable)?;
    let warnings: Vec<Value> = findings
        .iter()
        .filter(|finding| !is_error(finding))
        .take(TOLD)
        .map(|finding| Value::from(line(finding)))
        .collect();
    let file = path.strip_prefix(cx.project_root()).unwrap_or(&path);
    Ok(facts([
        ("slug", Value::from(&*loaded.flow.slug)),
        ("source", Value::keyword("draft")),
        ("file", Value::from(file.display().to_string())),
        ("version", Value::from(&*loaded.program.hash)),
        (
            "warnings",
            match warnings.is_empty() {
                true => Value::Nil,
                false => Value::vector(warnings),
            },
        ),
    ]))
}

fn line(finding: &TextFinding) -> String {
    let place = match finding.line {
        0 => String::new(),
        line => format!("{line}:{} ", finding.column),
    };
    let hint = finding
        .hints
        .first()
        .map_or_else(String::new, |hint| format!(" ({hint})"));
    format!("{place}{} {}{hint}", finding.code, finding.message)
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
    let version = args.get("version").cloned().unwrap_or(Value::Nil);
    let timeout = config.get("timeout").cloned().unwrap_or(Value::Nil);
    let call = facts([
        ("flow-slug", Value::from(&*slug)),
        ("input", input),
        ("version", version),
        ("timeout", timeout),
    ]);
    start_child(cx, &call).await
}
