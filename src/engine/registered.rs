//! Flows of the registry: a stored version is checked and run like a flow file.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use flowstone_lang::session::Session;

use crate::diagnostic::Severity;
use crate::disk;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::{Checked, LoadedFlow};
use crate::ports::{Registry, RunRow, Runs, StoreError};
use crate::registry::{
    DEFAULT_WORKSPACE, FlowName, FlowRow, RunVersion, Target, VersionFiles, VersionRow,
};

/// The code of a flow that is archived.
pub(crate) const ARCHIVED: &str = "E1404";
/// The code of a flow without a release.
pub(crate) const NOT_RELEASED: &str = "E1409";
/// The code of a version that does not exist.
pub(crate) const NO_VERSION: &str = "E1401";

impl Engine {
    /// Reads which flows the registry has, so that checks of calls know them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read_registered(&self) -> Result<(), StoreError> {
        let rows = self
            .services
            .stores
            .registry
            .flows(DEFAULT_WORKSPACE)
            .await?;
        self.know_registered(&rows);
        Ok(())
    }

    fn know_registered(&self, rows: &[FlowRow]) {
        let slugs = rows.iter().map(|row| row.name.slug.clone());
        *self.registered.borrow_mut() = Rc::new(slugs.collect());
    }

    /// Returns the flows of the registry when they were last read.
    pub fn registered(&self) -> Rc<BTreeSet<String>> {
        self.registered.borrow().clone()
    }

    /// Checks the texts of a version, by their paths, as [`Engine::check`] does a flow file.
    pub fn check_version(
        &self,
        session: &Session,
        slug: &str,
        texts: &BTreeMap<String, String>,
    ) -> Checked {
        let registered = self.registered();
        let project = disk::InProject {
            root: &self.services.project_root,
            settings: &self.services.settings,
            formats: self.services.formats,
            registered: Some(&registered),
        };
        let steps = &self.services.steps;
        disk::check_version(session, (slug, texts), (steps, project))
    }

    /// Returns the flow of a stored version, checked with the project's settings of today. It can be run at once. `target` is
    /// the pointer that named the version: flows that it calls are found by the same one.
    ///
    /// # Errors
    /// When the files of the version cannot be read.
    pub async fn version_flow(
        &self,
        session: &Rc<Session>,
        version: &VersionRow,
        target: Option<Target>,
    ) -> Result<Checked, EngineError> {
        self.read_registered().await?;
        let texts = texts_of(&*self.services.stores.registry, version).await?;
        let mut checked = self.check_version(session, &version.flow.slug, &texts);
        pin(&mut checked, version, target);
        let body = checked.body.take().filter(|_| !checked.has_errors());
        if let (Some(body), Some(loaded)) = (body, &checked.loaded) {
            let program = &loaded.program.hash;
            self.sessions.keep(program, session, &loaded.flow, body);
        }
        Ok(checked)
    }
}

/// Returns the texts of a version by their paths.
pub(crate) async fn texts_of(
    registry: &dyn Registry,
    version: &VersionRow,
) -> Result<BTreeMap<String, String>, StoreError> {
    let files = registry.files(&version.content).await?;
    // Only texts are added to the registry.
    files.and_then(texts).ok_or_else(|| StoreError::Damaged {
        path: "flowstone.db".to_owned(),
        detail: format!(
            "the files of version {} of the flow `{}` are missing",
            version.number, version.flow
        ),
    })
}

fn texts(files: VersionFiles) -> Option<BTreeMap<String, String>> {
    let text = |(path, bytes): (String, Vec<u8>)| Some((path, String::from_utf8(bytes).ok()?));
    files.into_iter().map(text).collect()
}

/// Notes in a flow which version it is.
pub(crate) fn pin(checked: &mut Checked, version: &VersionRow, target: Option<Target>) {
    if let Some(loaded) = &mut checked.loaded {
        loaded.version = Some(RunVersion {
            number: version.number,
            target,
        });
    }
}

/// Returns the pointer by which a run finds the flows that it calls; `None` for a run of a file.
pub(crate) fn target_of(run: &RunRow) -> Option<Target> {
    let version = run.version?;
    Some(version.target.unwrap_or(Target::Live))
}

/// Returns the version of a flow that a run calls: the one that its pointer named when the run at the root of its tree was
/// created, so that all calls of a tree get the same one, whatever is released meanwhile.
pub(crate) async fn version_for(
    rows: (&dyn Registry, &dyn Runs),
    parent: &RunRow,
    (slug, target): (&str, Target),
) -> Result<Option<VersionRow>, StoreError> {
    version_of(rows, parent, (&FlowName::local(slug), target)).await
}

/// As [`version_for`], of a flow in any workspace.
pub(crate) async fn version_of(
    (registry, runs): (&dyn Registry, &dyn Runs),
    parent: &RunRow,
    (flow, target): (&FlowName, Target),
) -> Result<Option<VersionRow>, StoreError> {
    let root = match &parent.parent {
        Some(above) => runs.find(&above.root).await?,
        None => None,
    };
    let at_ms = root.map_or(parent.created_ms, |root| root.created_ms);
    registry.as_of(flow, target, at_ms).await
}

/// What the registry says about the flows of a project: which versions are live, and which flows do not start.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    /// The live version and whether the flow is archived, by slug, when they were last read.
    seen: Option<BTreeMap<String, (Option<i64>, bool)>>,
    live: BTreeMap<String, Rc<Live>>,
    archived: BTreeSet<String>,
}

/// The live version of a flow.
#[derive(Debug)]
pub(crate) struct Live {
    pub number: i64,
    /// The flow, or the code and the message of its first error.
    pub flow: Result<LoadedFlow, (&'static str, String)>,
}

impl Releases {
    /// Reads the registry again. Returns `None` if nothing has changed.
    pub(crate) async fn refreshed(&self, engine: &Engine) -> Result<Option<Releases>, StoreError> {
        let registry = &engine.services.stores.registry;
        let rows = registry.flows(DEFAULT_WORKSPACE).await?;
        engine.know_registered(&rows);
        let now = rows.iter().map(|row| {
            let state = (row.live, row.archived_ms.is_some());
            (row.name.slug.clone(), state)
        });
        let now: BTreeMap<String, (Option<i64>, bool)> = now.collect();
        if self.seen.as_ref() == Some(&now) {
            return Ok(None);
        }
        let mut live = BTreeMap::new();
        for row in rows.iter().filter(|row| row.archived_ms.is_none()) {
            let Some(number) = row.live else { continue };
            let slug = &row.name.slug;
            let known = self.live.get(slug).filter(|it| it.number == number);
            let found = match known {
                Some(known) => known.clone(),
                None => Rc::new(Live::read(engine, &row.name, number).await?),
            };
            live.insert(slug.clone(), found);
        }
        let archived = rows.iter().filter(|row| row.archived_ms.is_some());
        Ok(Some(Releases {
            archived: archived.map(|row| row.name.slug.clone()).collect(),
            live,
            seen: Some(now),
        }))
    }

    /// Returns the live versions by slug.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&str, &Live)> {
        self.live.iter().map(|(slug, live)| (&**slug, &**live))
    }

    /// Tells whether the file of a flow is not used: another text is live, or the flow is archived.
    pub(crate) fn replaces(&self, slug: &str) -> bool {
        self.live.contains_key(slug) || self.archived.contains(slug)
    }
}

impl Live {
    async fn read(engine: &Engine, flow: &FlowName, number: i64) -> Result<Live, StoreError> {
        let registry = &engine.services.stores.registry;
        let missing = || {
            (
                NO_VERSION,
                format!("version {number} of `{flow}` is missing"),
            )
        };
        let Some(version) = registry.version(flow, number).await? else {
            let flow = Err(missing());
            return Ok(Live { number, flow });
        };
        let texts = texts_of(&**registry, &version).await?;
        let mut checked = engine.check_version(&engine.session(), &flow.slug, &texts);
        pin(&mut checked, &version, Some(Target::Live));
        let worst = checked
            .findings
            .iter()
            .find(|finding| finding.severity == Severity::Error);
        let flow = match (worst, checked.loaded) {
            (Some(worst), _) => Err((worst.code, worst.message.clone())),
            (None, Some(loaded)) => Ok(loaded),
            (None, None) => Err(missing()),
        };
        Ok(Live { number, flow })
    }
}
