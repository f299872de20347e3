//! The flows that a server serves: read from their files, and read again when these change.
//!
//! A file that can no longer be used keeps the flow that it had before. A flow whose file is gone is gone, too. Once a version
//! of a flow is released in the registry, that version is served instead of the file; an archived flow is not served.

mod ready;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_flow::interfaces::{self, Interface};
use flowstone_flow::mcp_interfaces::{self, McpInterface, McpKind};

pub use self::ready::{Installed, ReadyInstallation};
use crate::diagnostic::Severity;
use crate::disk::changes::{Stamp, gather};
use crate::engine::Engine;
use crate::flow::LoadedFlow;
use crate::registered::Releases;

/// How often files are looked at, at most.
const LOOK_EVERY_MS: i64 = 500;

/// A flow that is served.
#[derive(Debug)]
pub struct ServedFlow {
    pub slug: String,
    /// Its file; empty for a version of the registry.
    pub path: PathBuf,
    /// The path from the project's folder, or the version: `SLUG@N`.
    pub name: String,
    /// The last text of the file that could be used.
    pub loaded: LoadedFlow,
    /// Tags of the flow, as access tokens name them.
    pub labels: Vec<String>,
}

impl ServedFlow {
    /// Returns the flow of a version of the registry.
    pub fn of_version(slug: &str, loaded: LoadedFlow) -> ServedFlow {
        let number = loaded.version.map_or(0, |version| version.number);
        ServedFlow {
            slug: slug.to_owned(),
            labels: labels_of(&loaded),
            path: PathBuf::new(),
            name: format!("{slug}@{number}"),
            loaded,
        }
    }
}

/// Something that keeps a flow from being served as its file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblem {
    /// The file, from the project's folder.
    pub file: String,
    pub code: &'static str,
    pub message: String,
}

/// An interface that is served.
#[derive(Debug, Clone)]
pub struct ServedInterface {
    pub flow: Rc<ServedFlow>,
    pub interface: Rc<Interface>,
    /// The installation whose runs it starts; the interfaces of the catalog itself have none.
    pub installation: Option<Rc<ReadyInstallation>>,
}

impl ServedInterface {
    /// Returns the name of the flow that its runs have.
    pub fn owner(&self) -> &str {
        match &self.installation {
            Some(installation) => &installation.name,
            None => &self.flow.slug,
        }
    }

    /// Returns its name in the project: `FLOW/ID`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.owner(), self.interface.id)
    }
}

/// Something that a flow offers to clients of MCP.
#[derive(Debug, Clone)]
pub struct ServedMcp {
    pub flow: Rc<ServedFlow>,
    pub interface: Rc<McpInterface>,
}

/// The flows below some paths, by slug.
#[derive(Debug)]
pub struct Catalog {
    paths: Vec<PathBuf>,
    stamp: Cell<Stamp>,
    looked_ms: Cell<Option<i64>>,
    /// The flows of the files.
    files: RefCell<BTreeMap<String, Rc<ServedFlow>>>,
    file_problems: RefCell<Vec<CatalogProblem>>,
    releases: RefCell<Rc<Releases>>,
    installed: RefCell<Rc<Installed>>,
    asked_ms: Cell<Option<i64>>,
    /// How many changes of the registry by this process are in `releases`.
    changes: Cell<u64>,
    /// The flows that are served.
    flows: RefCell<BTreeMap<String, Rc<ServedFlow>>>,
    interfaces: RefCell<Vec<ServedInterface>>,
    mcp: RefCell<Vec<ServedMcp>>,
    problems: RefCell<Vec<CatalogProblem>>,
}

/// The code of two files whose flows have one slug.
pub const SLUG_TAKEN: &str = "E1030";
/// The code of interfaces with one address.
pub const ADDRESS_TAKEN: &str = "E1042";
/// The code of two tools, prompts or resources with one name.
pub const NAME_TAKEN: &str = "E1081";

impl Catalog {
    /// Creates a catalog of the flows in files and folders.
    pub fn new(paths: Vec<PathBuf>) -> Catalog {
        Catalog {
            paths,
            stamp: Cell::default(),
            looked_ms: Cell::new(None),
            files: RefCell::default(),
            file_problems: RefCell::default(),
            releases: RefCell::default(),
            installed: RefCell::default(),
            asked_ms: Cell::new(None),
            changes: Cell::new(0),
            flows: RefCell::default(),
            interfaces: RefCell::default(),
            mcp: RefCell::default(),
            problems: RefCell::default(),
        }
    }

    /// Returns a flow by its slug.
    pub fn flow(&self, engine: &Engine, slug: &str) -> Option<Rc<ServedFlow>> {
        self.refresh(engine);
        self.flows.borrow().get(slug).cloned()
    }

    /// Returns all flows, by slug.
    pub fn flows(&self, engine: &Engine) -> Vec<Rc<ServedFlow>> {
        self.refresh(engine);
        self.flows.borrow().values().cloned().collect()
    }

    /// Returns the interfaces of all flows. Those with one address are left out.
    pub fn interfaces(&self, engine: &Engine) -> Vec<ServedInterface> {
        self.refresh(engine);
        self.interfaces.borrow().clone()
    }

    /// Returns what flows offer to clients of MCP, by flow. What shares its name with another one is left out.
    pub fn mcp(&self, engine: &Engine) -> Vec<ServedMcp> {
        self.refresh(engine);
        self.mcp.borrow().clone()
    }

    /// Returns the installations that can run, as they were when [`Catalog::follow`] last read them.
    pub fn installed(&self) -> Rc<Installed> {
        self.installed.borrow().clone()
    }

    /// Returns what is wrong with the files.
    pub fn problems(&self, engine: &Engine) -> Vec<CatalogProblem> {
        self.refresh(engine);
        self.problems.borrow().clone()
    }

    /// Returns the labels of a flow; none if it is not served.
    pub fn labels(&self, engine: &Engine, slug: &str) -> Vec<String> {
        let flow = self.flow(engine, slug);
        flow.map(|flow| flow.labels.clone()).unwrap_or_default()
    }

    /// Follows the releases of the registry. Called before the catalog is asked, at least as often as files are looked at.
    pub async fn follow(&self, engine: &Engine) {
        if is_due(&self.asked_ms, engine.now_ms()) {
            self.read_releases(engine, self.changes.get()).await;
        }
    }

    /// As [`Catalog::follow`], and at once if this process has changed the registry since: `changes` counts that.
    pub async fn follow_changes(&self, engine: &Engine, changes: u64) {
        match self.changes.get() < changes {
            true => {
                self.asked_ms.set(Some(engine.now_ms()));
                self.read_releases(engine, changes).await;
            }
            false => self.follow(engine).await,
        }
    }

    /// Reads the registry as it is after some changes. What was read before later ones is not used.
    async fn read_releases(&self, engine: &Engine, changes: u64) {
        let known = self.releases.borrow().clone();
        let read = known.refreshed(engine).await;
        let installed = self.installed();
        match installed.refreshed(engine).await {
            Ok(Some(installed)) => drop(self.installed.replace(Rc::new(installed))),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(
                    code = error.code(),
                    "the installations cannot be read: {error}"
                );
            }
        }
        if self.changes.get() > changes {
            return;
        }
        match read {
            Ok(Some(releases)) => {
                self.releases.replace(Rc::new(releases));
                self.merge();
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(code = error.code(), "the registry cannot be read: {error}");
                return;
            }
        }
        self.changes.set(changes);
    }

    /// Returns the flows whose released version differs from their file: slug, file and number of the version.
    pub fn differing(&self, engine: &Engine) -> Vec<(String, String, i64)> {
        self.refresh(engine);
        let flows = self.flows.borrow();
        let files = self.files.borrow();
        let pairs = flows.values().filter_map(|flow| {
            let version = flow.loaded.version?;
            let file = files.get(&flow.slug)?;
            let is_same = file.loaded.flow.digest == flow.loaded.flow.digest;
            (!is_same).then(|| (flow.slug.clone(), file.name.clone(), version.number))
        });
        pairs.collect()
    }

    fn refresh(&self, engine: &Engine) {
        if !is_due(&self.looked_ms, engine.now_ms()) {
            return;
        }
        let files = gather(&self.paths);
        let stamp = Stamp::of(&files, &gather(&engine.shared_code().paths()));
        if self.stamp.replace(stamp) == stamp {
            return;
        }
        let mut flows: BTreeMap<String, Rc<ServedFlow>> = BTreeMap::new();
        let mut problems = Vec::new();
        for file in files.into_iter().filter(|file| file.is_source()) {
            let served = match self.read(engine, file.path) {
                Ok(Some(served)) => served,
                Ok(None) => continue,
                Err((problem, earlier)) => {
                    problems.push(problem);
                    let Some(earlier) = earlier else { continue };
                    earlier
                }
            };
            if let Some(other) = flows.get(&served.slug) {
                problems.push(CatalogProblem {
                    message: format!("the flow `{}` is in {}, too", served.slug, other.name),
                    file: served.name.clone(),
                    code: SLUG_TAKEN,
                });
                continue;
            }
            flows.insert(served.slug.clone(), served);
        }
        *self.files.borrow_mut() = flows;
        *self.file_problems.borrow_mut() = problems;
        self.merge();
    }

    /// Puts the released versions in the place of the files.
    fn merge(&self) {
        let mut flows = self.files.borrow().clone();
        let mut problems = self.file_problems.borrow().clone();
        let releases = self.releases.borrow();
        flows.retain(|slug, _| !releases.replaces(slug));
        for (slug, live) in releases.live() {
            match &live.flow {
                Ok(loaded) => {
                    let served = ServedFlow::of_version(slug, loaded.clone());
                    flows.insert(slug.to_owned(), Rc::new(served));
                }
                Err((code, message)) => problems.push(CatalogProblem {
                    file: format!("{slug}@{}", live.number),
                    code,
                    message: message.clone(),
                }),
            }
        }
        *self.interfaces.borrow_mut() = served_interfaces(&flows, &mut problems);
        *self.mcp.borrow_mut() = served_mcp(&flows, &mut problems);
        *self.flows.borrow_mut() = flows;
        *self.problems.borrow_mut() = problems;
    }

    /// Reads a file; nothing if it holds something else than a flow.
    #[expect(
        clippy::type_complexity,
        reason = "what is wrong, and what is served instead"
    )]
    fn read(
        &self,
        engine: &Engine,
        path: PathBuf,
    ) -> Result<Option<Rc<ServedFlow>>, (CatalogProblem, Option<Rc<ServedFlow>>)> {
        let root = engine.project_root();
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.display().to_string();
        let session = engine.session();
        let checked = engine.check(&session, &path, &name);
        let worst = checked
            .findings
            .iter()
            .find(|finding| finding.severity == Severity::Error);
        let earlier = || {
            let files = self.files.borrow();
            files.values().find(|flow| flow.path == path).cloned()
        };
        if let Some(worst) = worst {
            let problem = CatalogProblem {
                file: name,
                code: worst.code,
                message: worst.message.clone(),
            };
            return Err((problem, earlier()));
        }
        let Some(loaded) = checked.loaded else {
            return Ok(None);
        };
        // A bare form, or settings.
        if loaded.flow.definition.as_map().is_none() {
            return Ok(None);
        }
        Ok(Some(Rc::new(ServedFlow {
            slug: loaded.flow.slug.to_string(),
            labels: labels_of(&loaded),
            path,
            name,
            loaded,
        })))
    }
}

/// Tells whether it is time to look again, and notes that.
fn is_due(last_ms: &Cell<Option<i64>>, now_ms: i64) -> bool {
    let is_fresh = |last: i64| (0..LOOK_EVERY_MS).contains(&(now_ms - last));
    let is_due = !last_ms.get().is_some_and(is_fresh);
    if is_due {
        last_ms.set(Some(now_ms));
    }
    is_due
}

/// Returns the interfaces of flows, without those that have the address of another one.
fn served_interfaces(
    flows: &BTreeMap<String, Rc<ServedFlow>>,
    problems: &mut Vec<CatalogProblem>,
) -> Vec<ServedInterface> {
    let mut all = Vec::new();
    for flow in flows.values() {
        for interface in interfaces::of(&flow.loaded.flow) {
            all.push(ServedInterface {
                flow: flow.clone(),
                interface: Rc::new(interface),
                installation: None,
            });
        }
    }
    let plain: Vec<&Interface> = all.iter().map(|it| &*it.interface).collect();
    let mut taken = Vec::new();
    for clash in interfaces::clashes(&plain) {
        for idx in &clash.members {
            let Some(one) = all.get(*idx) else { continue };
            problems.push(CatalogProblem {
                file: one.flow.name.clone(),
                code: ADDRESS_TAKEN,
                message: format!(
                    "the interface `{}` is not served: another one has the address `{}`",
                    one.interface.id, clash.address
                ),
            });
        }
        taken.extend(clash.members);
    }
    let free = all.into_iter().enumerate();
    free.filter(|(idx, _)| !taken.contains(idx))
        .map(|(_, served)| served)
        .collect()
}

/// Returns what flows offer to clients of MCP, without what has the name or address of another one.
fn served_mcp(
    flows: &BTreeMap<String, Rc<ServedFlow>>,
    problems: &mut Vec<CatalogProblem>,
) -> Vec<ServedMcp> {
    let mut all = Vec::new();
    for flow in flows.values() {
        for interface in mcp_interfaces::of(&flow.loaded.flow) {
            all.push(ServedMcp {
                flow: flow.clone(),
                interface: Rc::new(interface),
            });
        }
    }
    let mut owners: BTreeMap<(McpKind, String), Vec<usize>> = BTreeMap::new();
    for (idx, one) in all.iter().enumerate() {
        owners.entry(one.interface.key()).or_default().push(idx);
    }
    let mut taken = Vec::new();
    for ((_, name), members) in owners.into_iter().filter(|(_, members)| members.len() > 1) {
        let flows: Vec<&ServedMcp> = members.iter().filter_map(|idx| all.get(*idx)).collect();
        let slugs: Vec<String> = flows
            .iter()
            .map(|it| format!("`{}`", it.flow.slug))
            .collect();
        for one in &flows {
            problems.push(CatalogProblem {
                file: one.flow.name.clone(),
                code: NAME_TAKEN,
                message: format!(
                    "`{name}` is not offered over MCP: the flows {} have it",
                    slugs.join(" and ")
                ),
            });
        }
        taken.extend(members);
    }
    let free = all.into_iter().enumerate();
    free.filter(|(idx, _)| !taken.contains(idx))
        .map(|(_, served)| served)
        .collect()
}

fn labels_of(loaded: &LoadedFlow) -> Vec<String> {
    let tags = loaded.flow.definition.get("tags");
    let items = tags
        .and_then(flowstone_model::json::items)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(flowstone_model::json::name_text)
        .collect()
}
