//! Parts of a tree outside the project's folder: on hosts that `:allow {:net [...]}` names, and under paths that
//! `:allow {:read [...]}` covers.
//!
//! They are read once, when the tree starts, by the steps and with the permissions of a flow. A run then keeps them.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::{Direct, Engine};
use flowstone_flow::flow::Flow;
use flowstone_flow::permission::{Allow, Decision, Need, Reach, decide};
use flowstone_lang::value::Value;
use flowstone_steps::permissions;
use serde_json::Value as Json;

use super::check::{Checked, check_from};
use super::error::TreeError;
use super::file::{FILE_MAX, FILES_MAX, Files, parsed};
use crate::address::host_of;

/// How long one part may take to arrive.
const LONGEST: Duration = Duration::from_secs(30);

/// The parts that were read, by their addresses or absolute paths.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// A part, or why it cannot be used.
    pub known: HashMap<String, Result<Rc<Json>, String>>,
    /// The parts that a check looked for and that are not known.
    pub wanted: Vec<String>,
}

impl Elsewhere {
    /// Returns a part.
    ///
    /// # Errors
    /// Why it cannot be used, or that it has to be read first.
    pub(super) fn get(&mut self, place: &str) -> Result<Rc<Json>, String> {
        if let Some(known) = self.known.get(place) {
            return known.clone();
        }
        if self.known.len() + self.wanted.len() >= FILES_MAX {
            return Err(format!("the tree has more than {FILES_MAX} files"));
        }
        if !self.wanted.iter().any(|wanted| wanted == place) {
            self.wanted.push(place.to_owned());
        }
        Err("it is not read yet".to_owned())
    }
}

/// Reads the tree in a file, and its parts elsewhere. `path` is absolute, or relative to the project's folder.
///
/// # Errors
/// As of [`super::check`], and when a part cannot be read.
pub async fn check_everywhere(engine: &Engine, path: &Path) -> Result<Checked, TreeError> {
    let mut elsewhere = Elsewhere::default();
    loop {
        let (checked, mut found) = check_from(engine.project_root(), path, Some(elsewhere));
        let wanted = std::mem::take(&mut found.wanted);
        if wanted.is_empty() {
            return checked;
        }
        for place in wanted {
            let part = read(engine, &place).await;
            found.known.insert(place, part);
        }
        elsewhere = found;
    }
}

/// Reads the tree in a file if all its parts are below the project's folder; `None` if there are others, for which
/// [`check_everywhere`] needs the project.
pub fn check_inside(project: &Path, path: &Path) -> Option<Result<Checked, TreeError>> {
    let (checked, found) = check_from(project, path, Some(Elsewhere::default()));
    found.wanted.is_empty().then_some(checked)
}

/// Reads the tree in a file, and its parts in other folders that the project allows. Parts on other hosts are refused: reading
/// them takes an engine.
///
/// # Errors
/// As of [`super::check`], and when a part cannot be read.
pub(super) fn check_folders(project: (&Path, &Value), path: &Path) -> Result<Checked, TreeError> {
    let mut elsewhere = Elsewhere::default();
    loop {
        let (checked, mut found) = check_from(project.0, path, Some(elsewhere));
        let wanted = std::mem::take(&mut found.wanted);
        if wanted.is_empty() {
            return checked;
        }
        for place in wanted {
            let part = match place.contains("://") {
                false => of_folder(project, &place),
                true => Err(
                    "a called tree reads no other hosts; save the part in the project, or call the flow that `flowstone tree eject` prints"
                        .to_owned(),
                ),
            };
            found.known.insert(place, part);
        }
        elsewhere = found;
    }
}

async fn read(engine: &Engine, place: &str) -> Result<Rc<Json>, String> {
    if !place.contains("://") {
        return of_folder((engine.project_root(), engine.settings()), place);
    }
    let late = |_| format!("it did not arrive within {} s", LONGEST.as_secs());
    let read = tokio::time::timeout(LONGEST, of_server(engine, place)).await;
    let name = place.split(['?', '#']).next().unwrap_or(place);
    parsed(name, &read.map_err(late)??).map(Rc::new)
}

async fn of_server(engine: &Engine, url: &str) -> Result<String, String> {
    let host = host_of(url).ok_or("it is not an address without credentials")?;
    if !rows(engine.project_root(), engine.settings())?.net.covers(
        &host,
        host.name.parse().ok(),
        Reach::Private,
    ) {
        return Err(format!(
            "references to other hosts are off; to allow this one, add `:allow {{:net [\"{host}\"]}}` to flowstone.edn"
        ));
    }
    let options = Value::map([
        (Value::keyword("max-redirects"), Value::Int(0)),
        (
            Value::keyword("max-response-bytes"),
            Value::Int(FILE_MAX.cast_signed()),
        ),
    ]);
    let config = [
        ("url", Value::from(url)),
        ("method", Value::keyword("get")),
        ("response-as", Value::keyword("text")),
        ("client-opts", options),
    ];
    let config = config.map(|(key, value)| (Value::keyword(key), value));
    let direct = Direct {
        kind: "http",
        config: Value::map(config),
        folder: None,
    };
    let flow = Rc::new(Flow::bare("tree-reference", Value::Nil));
    let answer = engine.perform_for(flow, direct).await;
    let answer = answer.map_err(|error| error.message)?;
    let text = answer.get("body").and_then(Value::as_str);
    Ok(text.ok_or("it is not a text")?.to_owned())
}

/// Returns the rows of the project. The defaults, which reach the project's folder and every public address, are not enough
/// for a reference.
fn rows(root: &Path, settings: &Value) -> Result<Allow, String> {
    let found = permissions::of_project(settings, root, &root.join(".flowstone"));
    let found = found.map_err(|error| error.to_string())?;
    Ok(Allow {
        home: found.defaults.home,
        ..found.project.allow
    })
}

fn of_folder((root, settings): (&Path, &Value), path: &str) -> Result<Rc<Json>, String> {
    let outside = || format!("`{path}` is outside the project's folder");
    let real = std::fs::canonicalize(path).map_err(|_| outside())?;
    match decide(&rows(root, settings)?, &Need::Read(real.clone())) {
        Decision::Granted => {}
        Decision::Missing(_) => {
            return Err(format!(
                "{}; to allow it, add its folder to `:allow {{:read [...]}}` in flowstone.edn",
                outside()
            ));
        }
    }
    let (folder, name) = (real.parent(), real.file_name().and_then(|it| it.to_str()));
    let (Some(folder), Some(name)) = (folder, name) else {
        return Err(outside());
    };
    Files::below(folder)?.get(name)
}
