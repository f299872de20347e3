//! `:skills` of an agent: folders with a `SKILL.md`, of which the prompt has the name and the description.
//!
//! A source of skills is resolved to an immutable tree before the first turn, so what the model reads later is what was
//! there then. Everything is read by nested `:files` steps, and a path never leaves the folder of its skill: only listed files
//! are read, and links are not followed.

mod front_matter;

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{FieldType, NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::json;

use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::{Shape, most_chars, within};
use crate::json::items;
use crate::resource;
use front_matter::FrontMatter;

/// The form of `:skills`.
pub(super) const FIELD: FieldType = FieldType::Either(&[FieldType::Text, FieldType::Items]);
/// The tool that reads skills.
pub(super) const READ: &str = "skill_read";
/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// Maximum number of skills in a source, which is also how many files are read at once.
const MOST: usize = 50;
/// Maximum number of files that are listed in a source.
const MOST_FILES: i64 = 5_000;
/// Maximum number of the files of a skill that the model is shown.
const MOST_SHOWN: usize = 200;

/// A folder with instructions for one kind of work.
#[derive(Debug, Clone)]
struct Skill {
    name: String,
    description: String,
    /// The reference of the tree.
    source: Value,
    /// The folder in the tree: empty, or with a slash at its end.
    folder: String,
    /// The other files, relative to the folder.
    files: Vec<String>,
}

/// The skills of an agent.
#[derive(Debug, Clone, Default)]
pub(super) struct Skills {
    all: Rc<Vec<Skill>>,
}

impl Skills {
    /// Reads the skills of all sources.
    ///
    /// # Errors
    /// E1303 when a source has no skill, or one cannot be used; the error of a nested step.
    pub(super) async fn open(cx: &StepContext, given: Option<&Value>) -> Result<Skills, StepError> {
        let mut all: Vec<Skill> = Vec::new();
        for source in given.map(sources).unwrap_or_default() {
            for skill in of_source(cx, &source).await? {
                if all.iter().any(|known| known.name == skill.name) {
                    let message = format!("two skills have the name `{}`", skill.name);
                    return Err(wrong(message).hint("give one of them another `name`"));
                }
                all.push(skill);
            }
        }
        Ok(Skills { all: Rc::new(all) })
    }

    /// Returns the part of the system prompt about the skills.
    pub(super) fn notice(&self) -> Option<String> {
        let lines = self.all.iter().map(|skill| {
            // On one line, so that a description cannot pass for another part of the prompt.
            let words: Vec<&str> = skill.description.split_whitespace().collect();
            format!("\n- {}: {}", skill.name, words.join(" "))
        });
        let lines: String = lines.collect();
        (!lines.is_empty()).then(|| {
            format!(
                "Skills: instructions for certain kinds of work. When a skill fits what you are to do, first read it with \
                 `{READ}`, and follow it.{lines}"
            )
        })
    }

    /// Returns the tool that reads them.
    ///
    /// # Errors
    /// E0836 when its schema cannot be made.
    pub(super) fn tool(&self, cx: &StepContext) -> Result<Option<Tool>, StepError> {
        if self.all.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = self.all.iter().map(|skill| &*skill.name).collect();
        let parameters = json!({
            "type": "object",
            "properties": {
                "skill": {"type": "string", "enum": names},
                "path": {"type": "string", "description": "A file of the skill. Default: its instructions."},
            },
            "required": ["skill"],
            "additionalProperties": false,
        });
        let shape = Shape::new(READ, &parameters).map_err(|error| {
            StepError::config("E0836", format!("the schema of `{READ}` is wrong: {error}"))
        })?;
        let (skills, answers, most) = (self.clone(), self.clone(), most_chars(cx));
        Ok(Some(Tool {
            name: READ.into(),
            step: READ.into(),
            kind: ToolKind::Skill,
            description: "Reads the instructions of a skill, or one of its files.".to_owned(),
            parameters,
            ops: Vec::new(),
            call: Rc::new(move |given| skills.call(&shape.read(given)?)),
            mutates: Rc::new(|_| false),
            needs_approval: Rc::new(|_| false),
            answer: Rc::new(move |given, value| within(answers.answer(given, &value), most)),
        }))
    }

    fn find(&self, arguments: &Value) -> Option<&Skill> {
        let name = arguments.get("skill").and_then(Value::as_str)?;
        self.all.iter().find(|skill| skill.name == name)
    }

    fn call(&self, arguments: &Value) -> Result<ToolStep, StepError> {
        let bad = |message: String| StepError::new("E0837", "invalid", message);
        let skill = self.find(arguments);
        let skill = skill.ok_or_else(|| bad("there is no such skill".to_owned()))?;
        let path = path_of(arguments).unwrap_or(FILE);
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let is_relative = !path.contains('\\') && path.split('/').all(is_plain);
        // Only what the listing names: the path of a link, or one through a link, is not in it.
        if !is_relative || path != FILE && !skill.files.iter().any(|file| file == path) {
            return Err(
                bad(format!("`{path}` is not the path of a file of the skill"))
                    .hint("a path is relative to the skill, such as `reference/forms.md`; links are not followed"),
            );
        }
        Ok(ToolStep {
            kind: "files".into(),
            config: facts([
                ("op", Value::keyword("read")),
                ("source", skill.source.clone()),
                ("path", Value::from(format!("{}{path}", skill.folder))),
            ]),
        })
    }

    /// Returns what the model gets: the text, and with the instructions the names of the other files.
    fn answer(&self, arguments: &Value, value: &Value) -> Value {
        let files = value.get("files").and_then(items).unwrap_or_default();
        let content = files.first().and_then(|file| file.get("content")?.as_str());
        let Some(content) = content else {
            return facts([("error", Value::from("the file is not text"))]);
        };
        let path = path_of(arguments).unwrap_or(FILE);
        let Some(skill) = self.find(arguments).filter(|_| path == FILE) else {
            return facts([("content", Value::from(content))]);
        };
        let body = front_matter::split(content).map_or(content, |(_, body)| body);
        let files = skill.files.iter().take(MOST_SHOWN);
        let files = files.map(|path| Value::from(path.as_str()));
        facts([
            ("content", Value::from(body.trim())),
            ("files", Value::vector(files)),
        ])
    }
}

fn path_of(arguments: &Value) -> Option<&str> {
    let path = arguments.get("path").and_then(Value::as_str)?;
    Some(path.trim_start_matches("./")).filter(|path| !path.is_empty())
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1303", message)
}

/// Returns the sources of `:skills`.
fn sources(given: &Value) -> Vec<Value> {
    match given {
        Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Seq(_) | Value::Lazy(_) => {
            items(given).unwrap_or_default()
        }
        single => vec![single.clone()],
    }
}

/// Returns the skills of a source: its own, or those of its folders.
async fn of_source(cx: &StepContext, given: &Value) -> Result<Vec<Skill>, StepError> {
    let tree = resolved(cx, given).await?;
    let listed = read(
        cx,
        "skill-list",
        [
            ("op", Value::keyword("list")),
            ("source", tree.clone()),
            ("limit", Value::Int(MOST_FILES)),
        ],
    );
    let listed = listed.await?;
    let entries = listed.get("entries").and_then(items).unwrap_or_default();
    // Links are not followed, so they are neither files nor skills.
    let paths = entries.iter().filter(|entry| !is_link(entry));
    let paths: Vec<&str> = paths
        .filter_map(|entry| entry.get("path")?.as_str())
        .collect();
    let folders = folders(&paths);
    let place = crate::text::brief(given);
    if folders.is_empty() {
        return Err(wrong(format!("there is no skill in {place}")).hint(format!(
            "a skill is a folder with a file `{FILE}`; give this folder, or the one around it"
        )));
    }
    if folders.len() > MOST {
        let message = format!(
            "{place} has {} skills, at most {MOST} are allowed",
            folders.len()
        );
        return Err(wrong(message).hint("name the folders of those that the agent needs"));
    }
    let files = folders.iter();
    let files = files.map(|folder| Value::from(format!("{folder}{FILE}")));
    let found = read(
        cx,
        "skill-read",
        [
            ("op", Value::keyword("read")),
            ("source", tree.clone()),
            ("paths", Value::vector(files)),
        ],
    );
    let found = found.await?;
    let texts = found.get("files").and_then(items).unwrap_or_default();
    let skills = folders.iter().zip(&texts).map(|(folder, text)| {
        let content = text.get("content").and_then(Value::as_str);
        let FrontMatter { name, description } = front_matter::read(content.unwrap_or_default())
            .map_err(|problem| wrong(format!("`{folder}{FILE}` of {place}: {problem}")))?;
        let own = paths.iter().filter_map(|path| path.strip_prefix(folder));
        let own = own.filter(|path| *path != FILE).map(str::to_owned);
        Ok(Skill {
            name,
            description,
            source: tree.clone(),
            folder: folder.clone(),
            files: own.collect(),
        })
    });
    skills.collect()
}

fn is_link(entry: &Value) -> bool {
    entry.get("kind").and_then(name_of).as_deref() == Some("link")
}

/// Returns the tree of a source: a folder of the project, a source as `:files` takes it, or a tree.
async fn resolved(cx: &StepContext, given: &Value) -> Result<Value, StepError> {
    if let Some(uri) = resource::uri(given) {
        return Ok(Value::from(uri));
    }
    let source = match given {
        Value::Text(path) => facts([
            ("type", Value::keyword("dir")),
            ("path", Value::from(path.as_str())),
        ]),
        Value::Map(_) => given.clone(),
        other => {
            let message = format!("`:skills` holds folders, not {}", other.kind());
            return Err(wrong(message).hint("such as `:skills [\"skills/invoices\"]`"));
        }
    };
    let resolving = [("op", Value::keyword("resolve-source")), ("source", source)];
    let tree = read(cx, "skill-source", resolving).await?;
    Ok(resource::uri(&tree).map_or(tree, Value::from))
}

async fn read<const N: usize>(
    cx: &StepContext,
    id: &str,
    config: [(&str, Value); N],
) -> Result<Value, StepError> {
    cx.perform(NestedRequest::new("files", id, facts(config)))
        .await
}

/// Returns the folders with a skill: the whole tree, or folders in it.
fn folders(paths: &[&str]) -> Vec<String> {
    if paths.contains(&FILE) {
        return vec![String::new()];
    }
    let folders = paths.iter().filter_map(|path| {
        let (folder, file) = path.split_once('/')?;
        (file == FILE).then(|| format!("{folder}/"))
    });
    folders.collect()
}
