//! Schedules: reads them from the project's files, its releases and its installations, and starts their runs when they are due.
//!
//! The next instant of each schedule is in the store, so that instants that pass while no worker runs are recognised as
//! missed. A run is started under an id derived from flow, schedule and instant, so that two workers, or one that was
//! killed in between, start it only once.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use flowstone_lang::session::Session;

use super::{Watch, WorkerEvent};
use crate::catalog::Installed;
use crate::diagnostic::{Diagnostic, Severity};
use crate::disk::changes::{Stamp, gather};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::LoadedFlow;
use crate::installation::InstallationName;
use crate::ports::{PlanChange, ScheduleRow, StartDecision, StoreError};
use crate::registered::Releases;
use crate::schedule::Schedule;
use crate::start::StartedRun;
use crate::triggers::Deliveries;

/// How often the files are checked.
const LOOK_EVERY_MS: i64 = 1_000;

/// The schedules of the given files.
pub struct Planner {
    engine: Rc<Engine>,
    paths: Vec<PathBuf>,
    watch: Arc<dyn Watch>,
    /// The state of the files when they were last read.
    stamp: Stamp,
    looked_ms: i64,
    /// The flows of the files.
    files: Vec<Planned>,
    releases: Releases,
    installed: Installed,
    /// The flows with schedules: released versions, files of flows without a release, and installations.
    flows: Vec<Planned>,
    /// Whether the schedules of the files are registered in the store.
    is_registered: bool,
    next_ms: Option<i64>,
    /// The schedules and subscriptions that were created for flows.
    deliveries: Deliveries,
}

/// A flow with schedules.
#[derive(Clone)]
struct Planned {
    /// Its file, or its version in the registry: `SLUG@N`.
    file: PathBuf,
    loaded: LoadedFlow,
    /// The name that its runs have: its slug, or that of an installation.
    name: String,
    installation: Option<InstallationName>,
}

impl Planner {
    /// Returns a planner of the flows in these files and folders. It has read nothing yet.
    pub fn new(engine: Rc<Engine>, paths: Vec<PathBuf>, watch: Arc<dyn Watch>) -> Planner {
        Planner {
            deliveries: Deliveries::new(engine.clone()),
            engine,
            paths,
            watch,
            stamp: Stamp::default(),
            looked_ms: i64::MIN,
            files: Vec::new(),
            releases: Releases::default(),
            installed: Installed::default(),
            flows: Vec::new(),
            is_registered: false,
            next_ms: None,
        }
    }

    /// Returns the time at which the planner has work again.
    pub(super) fn next_ms(&self) -> Option<i64> {
        let deliveries = self.deliveries.next_ms();
        self.next_ms.into_iter().chain(deliveries).min()
    }

    /// Reads files that have changed, and starts the runs that are due.
    ///
    /// # Errors
    /// When the store fails; errors in a flow are reported to the watch as events.
    pub async fn turn(&mut self) -> Result<(), StoreError> {
        let now_ms = self.engine.now_ms();
        let was_set_back = now_ms < self.looked_ms;
        if was_set_back || now_ms.saturating_sub(self.looked_ms) >= LOOK_EVERY_MS {
            self.looked_ms = now_ms;
            let files_changed = self.read_files();
            let releases = self.releases.refreshed(&self.engine).await?;
            let releases_changed = releases.is_some();
            if let Some(releases) = releases {
                self.releases = releases;
            }
            let installed = self.installed.refreshed(&self.engine).await?;
            let installed_changed = installed.is_some();
            if let Some(installed) = installed {
                self.installed = installed;
            }
            if releases_changed || files_changed || installed_changed {
                self.merge();
            }
            self.is_registered &= !was_set_back;
        }
        if !self.is_registered {
            self.register(now_ms).await?;
            self.is_registered = true;
        }
        if self.next_ms.is_some_and(|next_ms| next_ms <= now_ms) {
            self.start_due(now_ms).await?;
        }
        self.deliver(now_ms).await
    }

    /// Starts the runs that schedules and subscriptions are due for.
    async fn deliver(&mut self, now_ms: i64) -> Result<(), StoreError> {
        for fired in self.deliveries.turn(now_ms).await? {
            self.watch.event(&WorkerEvent::Scheduled {
                flow: &fired.row.flow.slug,
                schedule: &fired.row.id,
                tick_ms: fired.tick_ms,
                started: &fired.attempt.started,
            });
        }
        Ok(())
    }

    /// Reads the files if they have changed, and tells whether they have.
    fn read_files(&mut self) -> bool {
        let files = gather(&self.paths);
        let stamp = Stamp::of(&files, &gather(&self.engine.shared_code().paths()));
        if stamp == self.stamp {
            return false;
        }
        self.stamp = stamp;
        let mut flows: Vec<Planned> = Vec::new();
        for file in files.into_iter().filter(|file| file.may_plan()) {
            let before = self.files.iter().find(|flow| flow.file == file.path);
            let Some(loaded) = self
                .load(&file.path)
                .or(before.map(|flow| flow.loaded.clone()))
            else {
                continue;
            };
            if loaded.flow.schedules.is_empty() {
                continue;
            }
            match flows
                .iter()
                .find(|flow| flow.loaded.flow.slug == loaded.flow.slug)
            {
                Some(first) => self.tell_twice(&file.path, first),
                None => flows.push(Planned {
                    file: file.path,
                    name: loaded.flow.slug.to_string(),
                    loaded,
                    installation: None,
                }),
            }
        }
        self.files = flows;
        true
    }

    /// Puts the released versions in the place of the files.
    fn merge(&mut self) {
        self.is_registered = false;
        let files = self.files.iter();
        let files = files.filter(|flow| !self.releases.replaces(&flow.loaded.flow.slug));
        let mut flows: Vec<Planned> = files.cloned().collect();
        for (slug, live) in self.releases.live() {
            let file = PathBuf::from(format!("{slug}@{}", live.number));
            match &live.flow {
                Ok(loaded) if !loaded.flow.schedules.is_empty() => flows.push(Planned {
                    file,
                    loaded: loaded.clone(),
                    name: slug.to_owned(),
                    installation: None,
                }),
                Ok(_) => {}
                Err((code, message)) => {
                    let finding = Diagnostic::error(code, message.clone());
                    self.tell_broken(&file, &Session::new(), &[finding]);
                }
            }
        }
        for ready in self.installed.ready() {
            let loaded = &ready.flow.loaded;
            if loaded.flow.schedules.is_empty() {
                continue;
            }
            let number = loaded.version.map_or(0, |version| version.number);
            flows.push(Planned {
                file: PathBuf::from(format!("{}@{number}", ready.name)),
                loaded: loaded.clone(),
                name: ready.name.clone(),
                installation: Some(ready.at.clone()),
            });
        }
        self.flows = flows;
        let schedules = self
            .flows
            .iter()
            .map(|flow| flow.loaded.flow.schedules.len());
        self.watch.event(&WorkerEvent::Planned {
            flows: self.flows.len(),
            schedules: schedules.sum(),
        });
    }

    /// Reads a flow; reports its errors.
    fn load(&self, file: &Path) -> Option<LoadedFlow> {
        let session = self.engine.session();
        let checked = self
            .engine
            .check(&session, file, &file.display().to_string());
        if !checked.has_errors() {
            return checked.loaded;
        }
        self.tell_broken(file, &session, &checked.findings);
        None
    }

    fn tell_broken(&self, file: &Path, session: &Session, findings: &[Diagnostic]) {
        let errors: Vec<Diagnostic> = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .cloned()
            .collect();
        self.watch.event(&WorkerEvent::BrokenFlow {
            file,
            session,
            findings: &errors,
        });
    }

    fn tell_twice(&self, file: &Path, first: &Planned) {
        let message = format!(
            "the flow `{}` is in {} as well; the schedules here are not used",
            first.loaded.flow.slug,
            first.file.display()
        );
        let finding = Diagnostic::error("E0551", message)
            .hint("give one of them another `:slug`, or take one of the files away");
        self.tell_broken(file, &Session::new(), &[finding]);
    }

    /// Stores the schedules of the files, and computes the next instant of those that are new or have changed.
    async fn register(&mut self, now_ms: i64) -> Result<(), StoreError> {
        let agenda = self.engine.stores().agenda.clone();
        let rows = agenda.schedules().await?;
        for flow in &self.flows {
            for schedule in &flow.loaded.flow.schedules {
                let seen = find(&rows, &flow.name, &schedule.id);
                let row = registered(flow, schedule, seen, now_ms);
                if seen != Some(&row) {
                    let program = Some(flow.loaded.program.clone());
                    let change = PlanChange {
                        seen: seen.cloned(),
                        row,
                        program,
                        now_ms,
                    };
                    // If another worker was faster, it stored the same.
                    agenda.plan(change).await?;
                }
            }
        }
        for row in rows {
            let is_registered = row.file.strip_prefix(&row.flow);
            let is_ours = is_registered.is_some_and(|rest| rest.starts_with('@'))
                || self
                    .paths
                    .iter()
                    .any(|path| Path::new(&row.file).starts_with(path));
            if is_ours && row.next_ms.is_some() && self.find(&row).is_none() {
                let off = ScheduleRow {
                    next_ms: None,
                    ..row.clone()
                };
                let change = PlanChange {
                    seen: Some(row),
                    row: off,
                    program: None,
                    now_ms,
                };
                agenda.plan(change).await?;
            }
        }
        self.find_next().await
    }

    fn find(&self, row: &ScheduleRow) -> Option<(&Planned, &Schedule)> {
        let flow = self.flows.iter().find(|flow| flow.name == row.flow)?;
        let schedules = &flow.loaded.flow.schedules;
        let schedule = schedules.iter().find(|schedule| *schedule.id == *row.id)?;
        Some((flow, schedule))
    }

    async fn find_next(&mut self) -> Result<(), StoreError> {
        let rows = self.engine.stores().agenda.schedules().await?;
        let ours = rows.iter().filter(|row| self.find(row).is_some());
        self.next_ms = ours.filter_map(|row| row.next_ms).min();
        Ok(())
    }

    /// Starts the runs that are due.
    async fn start_due(&mut self, now_ms: i64) -> Result<(), StoreError> {
        let agenda = self.engine.stores().agenda.clone();
        for row in agenda.schedules().await? {
            let Some((flow, schedule)) = self.find(&row) else {
                continue;
            };
            let Some(next_ms) = row.next_ms.filter(|next_ms| *next_ms <= now_ms) else {
                continue;
            };
            let due = schedule.due(next_ms, now_ms);
            let mut after = ScheduleRow {
                next_ms: due.next_ms,
                ..row.clone()
            };
            for tick_ms in due.ticks {
                let started = self.start(flow, schedule, tick_ms).await;
                // The clock was set back: the run of this instant was started before.
                let is_known = started
                    .as_ref()
                    .is_ok_and(|started| started.decision == StartDecision::Deduped);
                let started = started.map(|started| started.run);
                after.last_ms = Some(tick_ms);
                match &started {
                    // The instant remains due as long as the store cannot be written.
                    Err(EngineError::Store(error)) => return Err(error.clone()),
                    Err(error) => after.note = Some(format!("{}: {error}", error.code())),
                    Ok(run) => {
                        after.last_run = Some(run.clone());
                        after.note = None;
                    }
                }
                if is_known {
                    continue;
                }
                self.watch.event(&WorkerEvent::Scheduled {
                    flow: &row.flow,
                    schedule: &row.id,
                    tick_ms,
                    started: &started,
                });
            }
            let change = PlanChange {
                seen: Some(row),
                row: after,
                program: None,
                now_ms,
            };
            agenda.plan(change).await?;
        }
        self.find_next().await
    }

    async fn start(
        &self,
        flow: &Planned,
        schedule: &Schedule,
        tick_ms: i64,
    ) -> Result<StartedRun, EngineError> {
        let tick = crate::codec::instant(tick_ms);
        let name = Some(format!("schedule:{}:{}:{tick}", flow.name, schedule.id));
        match &flow.installation {
            Some(at) => {
                let engine = &self.engine;
                engine.start_installed(at, &schedule.id, name, true).await
            }
            None => {
                let flow = (&flow.loaded, None);
                self.engine
                    .start_scheduled(flow, schedule, name, true)
                    .await
            }
        }
    }
}

fn find<'r>(rows: &'r [ScheduleRow], flow: &str, id: &Rc<str>) -> Option<&'r ScheduleRow> {
    rows.iter()
        .find(|row| *row.flow == *flow && *row.id == **id)
}

/// Returns the new state of a schedule, given the stored one.
fn registered(
    flow: &Planned,
    schedule: &Schedule,
    seen: Option<&ScheduleRow>,
    now_ms: i64,
) -> ScheduleRow {
    let timing = schedule.timing.to_string();
    let known = seen.filter(|row| row.timing == timing);
    let fresh = schedule.timing.next_ms(now_ms);
    let next_ms = match known.and_then(|row| row.next_ms) {
        _ if !schedule.enabled => None,
        None => fresh,
        // The clock was ahead and was corrected: its instants come again, under the same ids.
        Some(next_ms) if known.and_then(|row| row.last_ms) > Some(now_ms) => {
            fresh.map(|fresh| fresh.min(next_ms))
        }
        Some(next_ms) => Some(next_ms),
    };
    ScheduleRow {
        flow: flow.name.clone(),
        id: schedule.id.to_string(),
        timing,
        program: flow.loaded.program.hash.clone(),
        file: flow.file.display().to_string(),
        next_ms,
        last_ms: seen.and_then(|row| row.last_ms),
        last_run: seen.and_then(|row| row.last_run.clone()),
        note: seen.and_then(|row| row.note.clone()),
    }
}
