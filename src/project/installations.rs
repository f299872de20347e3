//! Installations: a flow of an author, with the connections and the setup values of somebody who runs it.
//!
//! An installation keeps the version that it was made of until somebody upgrades it, or, with `autoUpgrade`, until a release that
//! needs nothing more. Its runs start with [`to_start`].

mod error;
pub mod package;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use error::InstallationError;
use flowstone_engine::installations::of_author_missing;
pub use flowstone_engine::installations::{Need, NeedKind, Upgrade, name_of_runs, needs};
use flowstone_engine::{Engine, StartedInstallation};
use flowstone_flow::flow::{Checked, Flow, LoadedFlow};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::codec;
use flowstone_model::diagnostic::nearest;
pub use flowstone_model::installation::{
    InstallationName, InstallationRow, InstalledFlow, PACKAGE, is_name, package_workspace,
};
use flowstone_model::names::name_of;
use flowstone_model::registry::{DEFAULT_WORKSPACE, FlowName, Target, VersionFiles, VersionRow};

use crate::registry::{Base, FlowRegistry, NewCommit, VersionRef, check_version};

/// The author in the registry of versions that came in a package.
const PACKAGED: &str = "package";

/// An installation to be made.
#[derive(Debug, Clone)]
pub struct NewInstallation {
    pub flow: FlowName,
    pub at: InstallationName,
    pub is_readable: bool,
}

/// Changes of an installation.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Connections by slot; an empty name takes the connection away.
    pub set: BTreeMap<String, String>,
    /// Values of setup forms, a map; nil takes a value away.
    pub setup: Option<Value>,
    pub auto_upgrade: Option<bool>,
    /// 0 takes the limit away.
    pub max_tokens: Option<i64>,
    /// Use the released version, and agree to what it needs.
    pub upgrade: bool,
}

/// An installation, with what is still to be done.
#[derive(Debug)]
pub struct Shown {
    pub row: InstallationRow,
    pub needs: Vec<Need>,
    /// Why it does not run yet.
    pub problem: Option<InstallationError>,
    /// A released version that it does not use, and what this needs more.
    pub upgrade: Option<Upgrade>,
}

/// Makes an installation of the released version of a flow. Asked again, as after a crash that took the answer, it returns
/// what the first call made, as long as nothing has changed that.
///
/// # Errors
/// When the flow or a released version is missing, or the name is bad or taken.
pub async fn install(engine: &Engine, new: NewInstallation) -> Result<Shown, InstallationError> {
    for name in [&new.at.workspace, &new.at.name] {
        if !is_name(name) {
            let name = name.clone();
            return Err(InstallationError::BadName { name });
        }
    }
    let registry = registry_of(engine, &new.flow);
    let row = registry.flow(&new.flow.slug).await?;
    if row.archived_ms.is_some() {
        let slug = new.flow.slug;
        return Err(crate::registry::RegistryError::Archived { slug }.into());
    }
    let live = VersionRef::Target(Target::Live);
    let version = registry.version(&new.flow.slug, &live).await?;
    let loaded = load(engine, &version).await?;
    let needs = needs(&loaded.flow);
    let now_ms = engine.now_ms();
    let row = InstallationRow {
        at: new.at,
        flow: new.flow,
        version: version.number,
        content: version.content,
        auto_upgrade: false,
        is_readable: new.is_readable,
        is_configured: false,
        set: BTreeMap::new(),
        setup: "{}".to_owned(),
        accepted: accepted(&needs),
        max_tokens: None,
        created_ms: now_ms,
        updated_ms: now_ms,
        changes: 0,
    };
    let stores = engine.stores();
    if !stores.installations.install(row.clone()).await? {
        let found = stores.installations.installation(&row.at).await?;
        return match found.filter(|found| is_repeated(&row, found)) {
            Some(found) => shown(engine, found).await,
            None => Err(InstallationError::Taken { at: row.at }),
        };
    }
    shown(engine, row).await
}

/// Tells whether an installation differs in nothing but its time from the one that was found.
fn is_repeated(new: &InstallationRow, found: &InstallationRow) -> bool {
    let at_its_time = InstallationRow {
        created_ms: found.created_ms,
        updated_ms: found.updated_ms,
        ..new.clone()
    };
    at_its_time == *found
}

/// Adds the files of a package to the sealed workspace of its content, where nothing else ever is.
///
/// # Errors
/// When they are not a flow, or are one with errors.
pub async fn add_package(
    engine: &Engine,
    files: VersionFiles,
) -> Result<FlowName, InstallationError> {
    let manifest = flowstone_model::registry::Manifest::of(&files)
        .map_err(crate::registry::RegistryError::Files)?;
    let slug = package::slug_of(&files)?;
    let flow = FlowName {
        workspace: package_workspace(&manifest.digest()),
        slug,
    };
    check_version(&flow.slug, &files, |session, texts| {
        engine.check_version(session, &flow.slug, texts)
    })?;
    let registry = registry_of(engine, &flow);
    let new = NewCommit {
        base: Base::Any,
        author: PACKAGED.to_owned(),
        message: "From a package".to_owned(),
        ..NewCommit::of(&flow.slug, files)
    };
    registry.commit(new).await?;
    registry.release(&flow.slug, None, (PACKAGED, "")).await?;
    Ok(flow)
}

/// Tells whether the author lets other workspaces install the released version of a flow: `:discover {:public true}`.
///
/// # Errors
/// When the flow or a released version is missing.
pub async fn is_public(engine: &Engine, flow: &FlowName) -> Result<bool, InstallationError> {
    let registry = registry_of(engine, flow);
    let live = VersionRef::Target(Target::Live);
    let version = registry.version(&flow.slug, &live).await?;
    let loaded = load(engine, &version).await?;
    let discover = loaded.flow.definition.get("discover");
    Ok(discover.and_then(|it| it.get("public")) == Some(&Value::Bool(true)))
}

/// Returns the installations of a workspace, or all.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(
    engine: &Engine,
    workspace: Option<&str>,
) -> Result<Vec<Shown>, InstallationError> {
    let rows = engine.stores().installations.installations(workspace);
    let mut all = Vec::new();
    for row in rows.await? {
        all.push(shown(engine, row).await?);
    }
    Ok(all)
}

/// Returns an installation.
///
/// # Errors
/// [`InstallationError::Installed`] when it does not exist.
pub async fn find(
    engine: &Engine,
    at: &InstallationName,
) -> Result<InstallationRow, InstallationError> {
    Ok(engine.installation_home().find(at).await?)
}

/// Returns an installation with what is still to be done.
///
/// # Errors
/// As [`find`].
pub async fn show(engine: &Engine, at: &InstallationName) -> Result<Shown, InstallationError> {
    let row = find(engine, at).await?;
    shown(engine, row).await
}

/// Removes an installation. What its runs have made stays.
///
/// # Errors
/// As [`find`].
pub async fn uninstall(engine: &Engine, at: &InstallationName) -> Result<(), InstallationError> {
    find(engine, at).await?;
    engine.stores().installations.uninstall(at).await?;
    Ok(())
}

/// Changes an installation. Nothing is changed if something is wrong.
///
/// # Errors
/// When a slot or value does not exist, a connection is not one of the workspace, or somebody else was faster.
pub async fn configure(
    engine: &Engine,
    at: &InstallationName,
    changes: Changes,
) -> Result<Shown, InstallationError> {
    let mut row = find(engine, at).await?;
    let mut loaded = load(engine, &version_of(engine, &row).await?).await?;
    if changes.upgrade {
        let registry = registry_of(engine, &row.flow);
        let live = VersionRef::Target(Target::Live);
        let version = registry.version(&row.flow.slug, &live).await?;
        loaded = load(engine, &version).await?;
        row.version = version.number;
        row.content = version.content;
        row.accepted = accepted(&needs(&loaded.flow));
    }
    let flow = &loaded.flow;
    for (slot, name) in changes.set {
        match name.is_empty() {
            true => drop(row.set.remove(&slot)),
            false => {
                check_slot(flow, &row, &slot)?;
                check_connection(engine, &row.at, &name)?;
                row.set.insert(slot, name);
            }
        }
    }
    if let Some(given) = &changes.setup {
        let setup = merged(engine, flow, &row, given)?;
        row.setup = engine.sealed_setup(flow, &setup)?;
    }
    row.auto_upgrade = changes.auto_upgrade.unwrap_or(row.auto_upgrade);
    row.max_tokens = match changes.max_tokens {
        None => row.max_tokens,
        Some(0) => None,
        Some(most) => Some(most),
    };
    row.is_configured = true;
    row.updated_ms = engine.now_ms();
    row.changes += 1;
    if !store(engine, &row).await? {
        let at = row.at;
        return Err(InstallationError::Changed { at });
    }
    shown(engine, row).await
}

async fn store(engine: &Engine, row: &InstallationRow) -> Result<bool, InstallationError> {
    let stores = engine.stores();
    Ok(stores
        .installations
        .change_installation(row.clone())
        .await?)
}

/// Returns the flow of an installation, and how its runs start. An upgrade that needs nothing more is made first, if the
/// installation asks for it.
///
/// # Errors
/// When the installation is not complete: E1443, E1444 and E1445.
pub async fn to_start(
    engine: &Engine,
    session: &Rc<Session>,
    at: &InstallationName,
) -> Result<(Checked, StartedInstallation), InstallationError> {
    Ok(engine.installed(session, at).await?)
}

async fn shown(engine: &Engine, row: InstallationRow) -> Result<Shown, InstallationError> {
    let home = engine.installation_home();
    let loaded = load(engine, &version_of(engine, &row).await?).await?;
    let load = async |version: &VersionRow| engine.load_version(version).await;
    Ok(Shown {
        needs: needs(&loaded.flow),
        problem: home
            .problem(&loaded.flow, &row)?
            .map(InstallationError::from),
        upgrade: home.upgrade_of(&row, load).await?,
        row,
    })
}

/// Refuses a slot that the flow does not have, or that its author fills.
fn check_slot(flow: &Flow, row: &InstallationRow, slot: &str) -> Result<(), InstallationError> {
    let needs = needs(flow);
    let slots = || needs.iter().filter(|need| need.kind == NeedKind::Slot);
    match slots().find(|need| need.name == slot) {
        None => Err(InstallationError::NoSlot {
            slot: slot.to_owned(),
            near: nearest(slot, slots().map(|need| need.name.as_str())).map(str::to_owned),
        }),
        Some(need) if need.is_of_author => Err(of_author_missing(row, slot.to_owned()).into()),
        Some(_) => Ok(()),
    }
}

/// Refuses a connection that does not belong to the workspace, in the words for one that does not exist.
fn check_connection(
    engine: &Engine,
    at: &InstallationName,
    name: &str,
) -> Result<(), InstallationError> {
    let known = connections_of(engine, &at.workspace);
    match known.iter().any(|known| known == name) {
        true => Ok(()),
        false => Err(InstallationError::NoConnection {
            name: name.to_owned(),
            workspace: at.workspace.clone(),
            near: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
        }),
    }
}

/// Returns the names of the connections that a workspace has: records of flowstone.edn with its name under `:workspace`. The
/// workspace `default` has those without one, and the providers of models that need no record.
pub fn connections_of(engine: &Engine, workspace: &str) -> Vec<String> {
    let settings = engine.settings();
    let mut names = Vec::new();
    let mut add = |name: Option<Rc<str>>, record: &Value| {
        let owner = record.get("workspace").and_then(name_of);
        if let Some(name) = name
            && owner.as_deref().unwrap_or(DEFAULT_WORKSPACE) == workspace
        {
            names.push(name.to_string());
        }
    };
    let connections = settings.get("connections").and_then(Value::as_map);
    for (name, record) in connections.into_iter().flat_map(|map| map.iter()) {
        add(name_of(name), record);
    }
    let providers = settings.get("llm-providers").and_then(Value::as_vector);
    for record in providers.into_iter().flat_map(|items| items.iter()) {
        add(record.get("id").and_then(name_of), record);
    }
    if workspace == DEFAULT_WORKSPACE {
        let own = flowstone_steps::llm::PROVIDERS;
        names.extend(own.iter().map(|provider| provider.id.to_owned()));
    }
    names.sort();
    names.dedup();
    names
}

/// Returns the setup values of an installation with those that are given.
fn merged(
    engine: &Engine,
    flow: &Flow,
    row: &InstallationRow,
    given: &Value,
) -> Result<Value, InstallationError> {
    let Some(given) = given.as_map() else {
        return Err(InstallationError::NotAMap {
            found: given.kind(),
        });
    };
    let opened = engine.opened_setup(row)?;
    let old = opened.as_map().into_iter().flat_map(|map| map.iter());
    let mut values: BTreeMap<String, Value> = old
        .filter_map(|(key, value)| Some((name_of(key)?.to_string(), value.clone())))
        .collect();
    for (key, value) in given.iter() {
        let name = name_of(key).unwrap_or_default();
        if !flow.setup.iter().any(|field| *field.name == *name) {
            let names = flow.setup.iter().map(|field| &*field.name);
            return Err(InstallationError::NoValue {
                near: nearest(&name, names).map(str::to_owned),
                name: name.to_string(),
            });
        }
        match value.is_nil() {
            true => drop(values.remove(&*name)),
            false => drop(values.insert(name.to_string(), value.clone())),
        }
    }
    let entries = values.iter();
    Ok(Value::map(entries.map(|(name, value)| {
        (Value::keyword(name), value.clone())
    })))
}

fn accepted(needs: &[Need]) -> String {
    let texts = needs.iter().map(|need| Value::from(need.text.as_str()));
    codec::encode(&Value::vector(texts)).unwrap_or_default()
}

fn registry_of(engine: &Engine, flow: &FlowName) -> FlowRegistry {
    FlowRegistry::in_workspace(engine.stores(), &flow.workspace, engine.now_ms())
}

async fn version_of(
    engine: &Engine,
    row: &InstallationRow,
) -> Result<VersionRow, InstallationError> {
    let registry = registry_of(engine, &row.flow);
    let number = VersionRef::Number(row.version);
    Ok(registry.version(&row.flow.slug, &number).await?)
}

/// Reads the definition of a version.
async fn load(engine: &Engine, version: &VersionRow) -> Result<LoadedFlow, InstallationError> {
    Ok(engine.load_version(version).await?)
}
