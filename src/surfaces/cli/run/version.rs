//! `flowstone run SLUG`: the version of the registry that a command names.

use std::rc::Rc;

use flowstone_engine::registry::Target;
use flowstone_engine::{Engine, StartedInstallation};
use flowstone_flow::flow::LoadedFlow;
use flowstone_project::installations::{self, InstallationError};
use flowstone_project::registry::{FlowRegistry, RegistryError, VersionRef};

use super::usable;
use crate::cli::args::Run;
use crate::cli::flows::installed::of_installation;
use crate::cli::flows::registered::of_registry;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::{flow_file, output};

/// Returns the flow of the registry that the command names. `None`: it names a file, or a flow that was never pushed.
pub(super) async fn named(engine: &Engine, args: &Run) -> Result<Option<LoadedFlow>, Report> {
    let failed = |error: RegistryError| of_registry(&error);
    let is_wanted = args.target.is_some() || args.number.is_some();
    let Some(slug) = slug(args) else {
        return match is_wanted {
            true => Err(failed(RegistryError::BadReference {
                text: args.file.display().to_string(),
            })),
            false => Ok(None),
        };
    };
    let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
    let row = match registry.find(slug).await.map_err(failed)? {
        None if !is_wanted => return Ok(None),
        _ => registry.flow(slug).await.map_err(failed)?,
    };
    if row.archived_ms.is_some() {
        let slug = slug.to_owned();
        return Err(failed(RegistryError::Archived { slug }));
    }
    let usual = row.live.map_or(Target::Draft, |_| Target::Live);
    let target = match args.number {
        Some(0) => Some(Target::Draft),
        Some(_) => None,
        None => Some(args.target.unwrap_or(usual)),
    };
    let wanted = match (target, args.number) {
        (None, Some(number)) => VersionRef::Number(number),
        (target, _) => VersionRef::Target(target.unwrap_or(usual)),
    };
    let version = registry.version(slug, &wanted).await.map_err(failed)?;
    let is_quiet = args.show.json || args.show.quiet;
    if !is_wanted && row.live.is_none() && !is_quiet {
        output::note(&format!(
            "`{slug}` has no release: running its newest version, {}",
            version.number
        ));
    }
    let session = Rc::new(engine.session());
    let checked = engine.version_flow(&session, &version, target).await;
    let checked = checked.map_err(|error| of_engine_error(&error))?;
    let name = format!("{slug}@{}", version.number);
    usable(engine, (&session, checked), (&name, is_quiet)).map(Some)
}

/// Returns the name of a flow that the command is given. A folder of that name is not a flow.
fn slug(args: &Run) -> Option<&str> {
    flow_file::name(&args.file).filter(|_| !args.file.is_file())
}

/// Returns the flow of the installation that the command names, and how its runs start.
pub(super) async fn installed(
    engine: &Engine,
    args: &Run,
) -> Result<Option<(LoadedFlow, StartedInstallation)>, Report> {
    let Some(at) = &args.installation else {
        return Ok(None);
    };
    let session = Rc::new(engine.session());
    let found = installations::to_start(engine, &session, at).await;
    let (checked, started) = found.map_err(|error| of_installation(&error))?;
    if slug(args) != Some(&*started.flow.flow.slug) {
        let at = at.clone();
        return Err(of_installation(&InstallationError::OtherFlow {
            at,
            slug: started.flow.flow.slug,
        }));
    }
    let is_quiet = args.show.json || args.show.quiet;
    let name = started.flow.to_string();
    let loaded = usable(engine, (&session, checked), (&name, is_quiet))?;
    Ok(Some((loaded, started)))
}
