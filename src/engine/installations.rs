//! Installations as the engine starts them: the version in use, the upgrades that need nothing more, and what is missing.
//!
//! Everything that starts a run of an installation asks here: commands, routes, schedules, interfaces and calls. What a flow needs
//! is compared as texts: see [`needs`].

mod error;
mod needs;

use std::collections::BTreeMap;
use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

pub use self::error::InstalledError;
pub use self::needs::{Need, NeedKind, needs};
use crate::codec;
use crate::diagnostic::{Severity, nearest};
use crate::engine::{Engine, StartedInstallation};
use crate::flow::{Checked, Flow, LoadedFlow, activated, name_of};
use crate::installation::{InstallationName, InstallationRow, InstalledFlow, PACKAGE};
use crate::installed::opened_setup;
use crate::ports::{Stores, Vault};
use crate::registry::{DEFAULT_WORKSPACE, Target, VersionRow};
use crate::start::setup_settings;

/// A released version that an installation does not use yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    pub version: i64,
    /// What it needs and the version in use does not, as texts.
    pub grew: Vec<String>,
}

/// The part of a home that decides about its installations.
#[derive(Clone, Copy)]
pub struct InstallationHome<'a> {
    pub(crate) stores: &'a Stores,
    /// The settings of the home, in which the author binds slots.
    pub(crate) settings: &'a Value,
    pub(crate) vault: &'a dyn Vault,
    pub(crate) now_ms: i64,
}

impl Engine {
    /// Returns what decides about the installations of the engine's home.
    pub fn installation_home(&self) -> InstallationHome<'_> {
        InstallationHome {
            stores: self.stores(),
            settings: self.settings(),
            vault: &*self.services.vault,
            now_ms: self.now_ms(),
        }
    }

    /// Returns the flow of an installation, and how its runs start. An upgrade that needs nothing more is made first, if the
    /// installation asks for it. A flow with errors is returned for its caller to report.
    ///
    /// # Errors
    /// When the installation does not exist or is not complete: E1440, E1443, E1444 and E1445.
    pub async fn installed(
        &self,
        session: &Rc<Session>,
        at: &InstallationName,
    ) -> Result<(Checked, StartedInstallation), InstalledError> {
        let home = self.installation_home();
        let row = home.find(at).await?;
        let load = async |version: &VersionRow| self.load_version(version).await;
        let (row, version) = home.in_use(row, load).await?;
        let checked = self.version_flow(session, &version, Some(Target::Live));
        let checked = checked.await?;
        let started = match checked.loaded.as_ref().filter(|_| !checked.has_errors()) {
            Some(loaded) => home.start_of(&loaded.flow, &row)?,
            None => unstarted(&row),
        };
        Ok((checked, started))
    }

    /// Reads the flow of a version, which must have no errors.
    ///
    /// # Errors
    /// When it has errors, or the store cannot be read.
    pub async fn load_version(&self, version: &VersionRow) -> Result<LoadedFlow, InstalledError> {
        let session = Rc::new(self.session());
        let checked = self.version_flow(&session, version, Some(Target::Live));
        let checked = checked.await?;
        let worst = checked.findings.iter();
        let worst = worst
            .filter(|finding| finding.severity == Severity::Error)
            .map(|finding| finding.message.clone())
            .next();
        match (checked.loaded, worst) {
            (Some(loaded), None) => Ok(loaded),
            (_, worst) => Err(InstalledError::Unusable {
                flow: version.flow.clone(),
                version: version.number,
                detail: worst.unwrap_or_else(|| "it is not a flow".to_owned()),
            }),
        }
    }
}

impl InstallationHome<'_> {
    /// Returns an installation.
    ///
    /// # Errors
    /// [`InstalledError::Missing`].
    pub async fn find(&self, at: &InstallationName) -> Result<InstallationRow, InstalledError> {
        let rows = &self.stores.installations;
        if let Some(row) = rows.installation(at).await? {
            return Ok(row);
        }
        let known = rows.installations(Some(&at.workspace)).await?;
        let names = known.iter().map(|row| row.at.name.as_str());
        Err(InstalledError::Missing {
            near: nearest(&at.name, names).map(str::to_owned),
            at: at.clone(),
        })
    }

    /// Returns an installation with the version that it uses. An upgrade that needs nothing more is made first, if the
    /// installation asks for it.
    pub(crate) async fn in_use(
        &self,
        row: InstallationRow,
        load: impl AsyncFn(&VersionRow) -> Result<LoadedFlow, InstalledError>,
    ) -> Result<(InstallationRow, VersionRow), InstalledError> {
        if let Some(live) = self.upgrade_of(&row, load).await?
            && row.auto_upgrade
            && live.grew.is_empty()
        {
            let next = self.version(&row, live.version).await?;
            let upgraded = InstallationRow {
                version: next.number,
                content: next.content.clone(),
                updated_ms: self.now_ms,
                changes: row.changes + 1,
                ..row.clone()
            };
            // Of two starts at once, one upgrades; the other starts what it has seen.
            let rows = &self.stores.installations;
            if rows.change_installation(upgraded.clone()).await? {
                return Ok((upgraded, next));
            }
        }
        let version = self.version(&row, row.version).await?;
        Ok((row, version))
    }

    /// Returns a version of the flow of an installation.
    ///
    /// # Errors
    /// [`InstalledError::NoVersion`].
    pub async fn version(
        &self,
        row: &InstallationRow,
        number: i64,
    ) -> Result<VersionRow, InstalledError> {
        let found = self.stores.registry.version(&row.flow, number).await?;
        found.ok_or_else(|| InstalledError::NoVersion {
            flow: row.flow.clone(),
            version: number,
        })
    }

    /// Returns the released version of an installation's flow, if it is another one than that in use.
    ///
    /// # Errors
    /// When the version cannot be read.
    pub async fn upgrade_of(
        &self,
        row: &InstallationRow,
        load: impl AsyncFn(&VersionRow) -> Result<LoadedFlow, InstalledError>,
    ) -> Result<Option<Upgrade>, InstalledError> {
        let found = self.stores.registry.flow(&row.flow).await?;
        let live = found.filter(|flow| flow.archived_ms.is_none());
        let live = live.and_then(|flow| flow.live);
        let Some(live) = live.filter(|live| *live != row.version) else {
            return Ok(None);
        };
        let version = self.version(row, live).await?;
        let loaded = load(&version).await?;
        let agreed = codec::decode(&row.accepted).unwrap_or(Value::Nil);
        let agreed: Vec<&str> = match agreed.as_vector() {
            Some(items) => items.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let grew = needs(&loaded.flow).into_iter().map(|need| need.text);
        let grew = grew.filter(|text| !agreed.contains(&text.as_str()));
        Ok(Some(Upgrade {
            version: live,
            grew: grew.collect(),
        }))
    }

    /// Returns how the runs of an installation start.
    ///
    /// # Errors
    /// When it is not complete.
    pub(crate) fn start_of(
        &self,
        flow: &Flow,
        row: &InstallationRow,
    ) -> Result<StartedInstallation, InstalledError> {
        if let Some(problem) = self.problem(flow, row)? {
            return Err(problem);
        }
        Ok(StartedInstallation {
            flow: name_of_runs(row),
            set: self.bound(flow, row),
            setup: opened_setup(self.vault, row)?,
            is_outside: row.flow.workspace != DEFAULT_WORKSPACE,
            max_tokens: row.max_tokens,
        })
    }

    /// Returns why an installation cannot run.
    ///
    /// # Errors
    /// When its setup values cannot be decrypted.
    pub fn problem(
        &self,
        flow: &Flow,
        row: &InstallationRow,
    ) -> Result<Option<InstalledError>, InstalledError> {
        let at = || row.at.clone();
        let needs = needs(flow);
        let slots = needs.iter().filter(|need| need.kind == NeedKind::Slot);
        let bound = self.bound(flow, row);
        let missing = slots.filter(|need| !need.is_optional && !bound.contains_key(&need.name));
        let (of_author, missing): (Vec<&Need>, Vec<&Need>) =
            missing.partition(|it| it.is_of_author);
        if let Some(need) = of_author.first() {
            let slot = need.name.clone();
            return Ok(Some(of_author_missing(row, slot)));
        }
        let settings = setup_settings(flow, opened_setup(self.vault, row)?);
        let values = activated(flow, &settings, Value::map([])).err();
        if !row.is_configured && (!missing.is_empty() || values.is_some()) {
            return Ok(Some(InstalledError::Unconfigured { at: at() }));
        }
        if !missing.is_empty() {
            let slots = missing.iter().map(|need| need.name.clone()).collect();
            return Ok(Some(InstalledError::Unbound { at: at(), slots }));
        }
        Ok(values.map(|cause| InstalledError::Setup { at: at(), cause }))
    }

    /// Returns the connections of the runs of an installation: its own, and for slots that the author provides those of the
    /// author.
    fn bound(&self, flow: &Flow, row: &InstallationRow) -> BTreeMap<String, String> {
        let mut bound = row.set.clone();
        let is_here = row.flow.workspace == DEFAULT_WORKSPACE;
        for need in needs(flow).iter().filter(|need| need.is_of_author) {
            bound.remove(&need.name);
            let own = || of_author(self.settings, &need.name);
            if let Some(name) = is_here.then(own).flatten() {
                bound.insert(need.name.clone(), name);
            }
        }
        bound
    }
}

/// Returns the start of a flow that has errors, which its caller reports.
fn unstarted(row: &InstallationRow) -> StartedInstallation {
    StartedInstallation {
        flow: name_of_runs(row),
        set: BTreeMap::new(),
        setup: Value::Nil,
        is_outside: true,
        max_tokens: None,
    }
}

/// Returns the name that the flow of an installation's runs has.
pub fn name_of_runs(row: &InstallationRow) -> InstalledFlow {
    InstalledFlow {
        flow: row.flow.clone(),
        at: row.at.clone(),
    }
}

/// Returns the error about a slot that only the author can fill.
pub fn of_author_missing(row: &InstallationRow, slot: String) -> InstalledError {
    let at = row.at.clone();
    match row.flow.workspace.starts_with(PACKAGE) {
        true => InstalledError::Packaged { slot, at },
        false => InstalledError::AuthorProvides { slot, at },
    }
}

/// Returns the connection that the author has bound to a slot.
fn of_author(settings: &Value, slot: &str) -> Option<String> {
    let entry = |map: &str, name: &str| {
        let map = settings.get(map)?.as_map()?.clone();
        let found = map
            .iter()
            .find(|(key, _)| name_of(key).is_some_and(|it| *it == *name));
        found.map(|(_, value)| value.clone())
    };
    let bound = entry("bindings", slot).and_then(|it| name_of(it.get("conn")?));
    let bound = bound.map(|it| it.to_string());
    bound.or_else(|| entry("connections", slot).map(|_| slot.to_owned()))
}
