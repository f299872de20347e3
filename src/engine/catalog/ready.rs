//! The installations of a home that can run, with the flows that they use: what schedules and interfaces are served from.

use std::rc::Rc;

use flowstone_flow::interfaces::{self, Interface};
use flowstone_flow::mcp_interfaces::{self, McpInterface};

use super::ServedFlow;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::installation::{InstallationName, InstallationRow};
use crate::installations::{InstalledError, name_of_runs};
use crate::ports::StoreError;

/// An installation that lacks nothing, with the version that it uses.
#[derive(Debug)]
pub struct ReadyInstallation {
    pub at: InstallationName,
    /// The name of the flow of its runs.
    pub name: String,
    pub flow: Rc<ServedFlow>,
    pub interfaces: Vec<Rc<Interface>>,
    pub mcp: Vec<Rc<McpInterface>>,
}

/// An installation as it was read, and the live version of its flow.
type Seen = (InstallationRow, Option<i64>);

/// The installations of a home, as they were when they were last read.
#[derive(Debug, Default)]
pub struct Installed {
    seen: Vec<(Seen, Option<Rc<ReadyInstallation>>)>,
}

impl Installed {
    /// Returns the installations that can run, by workspace and name.
    pub fn ready(&self) -> impl Iterator<Item = &Rc<ReadyInstallation>> {
        self.seen.iter().filter_map(|(_, ready)| ready.as_ref())
    }

    /// Returns an installation that can run.
    pub fn find(&self, at: &InstallationName) -> Option<&Rc<ReadyInstallation>> {
        self.ready().find(|ready| ready.at == *at)
    }

    /// Reads the installations again. Returns `None` if neither they nor the releases of their flows have changed. Those that
    /// follow releases are upgraded.
    pub(crate) async fn refreshed(&self, engine: &Engine) -> Result<Option<Installed>, StoreError> {
        let stores = engine.stores();
        let mut now = Vec::new();
        for row in stores.installations.installations(None).await? {
            let flow = stores.registry.flow(&row.flow).await?;
            now.push((row, flow.and_then(|flow| flow.live)));
        }
        let known = self.seen.iter().map(|(seen, _)| seen);
        if known.eq(now.iter()) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for seen in now {
            let known = self.seen.iter().find(|(known, _)| *known == seen);
            let ready = match known {
                Some((_, ready)) => ready.clone(),
                None => read(engine, &seen.0).await?.map(Rc::new),
            };
            all.push((seen, ready));
        }
        Ok(Some(Installed { seen: all }))
    }
}

/// Reads an installation. Returns `None` if it lacks something, or its version has errors.
async fn read(
    engine: &Engine,
    row: &InstallationRow,
) -> Result<Option<ReadyInstallation>, StoreError> {
    let session = Rc::new(engine.session());
    let checked = match engine.installed(&session, &row.at).await {
        Ok((checked, _)) => checked,
        Err(InstalledError::Store(error) | InstalledError::Engine(EngineError::Store(error))) => {
            return Err(error);
        }
        Err(_) => return Ok(None),
    };
    let has_errors = checked.has_errors();
    let loaded = checked.loaded.filter(|_| !has_errors);
    Ok(loaded.map(|loaded| {
        let plain = interfaces::of(&loaded.flow).into_iter();
        let mcp = mcp_interfaces::of(&loaded.flow).into_iter();
        ReadyInstallation {
            at: row.at.clone(),
            name: name_of_runs(row).to_string(),
            interfaces: plain.map(Rc::new).collect(),
            mcp: mcp.map(Rc::new).collect(),
            flow: Rc::new(ServedFlow::of_version(&row.flow.slug, loaded)),
        }
    }))
}
