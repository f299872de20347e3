//! Schedules from outside: what is known of them, and starting one out of turn.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::codec;
use crate::engine::{Engine, StartOptions, StartedInstallation};
use crate::error::EngineError;
use crate::flow::{LoadedFlow, reload};
use crate::ids::RunId;
use crate::installation::{InstallationName, InstalledFlow};
use crate::ports::{RunRow, ScheduleRow};
use crate::schedule::Schedule;
use crate::start::StartedRun;

/// A schedule, and the last run that it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleReport {
    pub row: ScheduleRow,
    pub run: Option<RunRow>,
}

impl ScheduleReport {
    /// Returns the outcome of the last instant: why no run was started, or the run's status.
    pub fn outcome(&self) -> Option<&str> {
        let note = self.row.note.as_deref();
        note.or(self.run.as_ref().map(|run| run.status.name()))
    }
}

/// Returns an instant as a clock in a schedule's time zone shows it. The zone is the last word of `timing`.
pub fn local_time(timing: &str, ms: i64) -> String {
    let name = timing.rsplit(' ').next().unwrap_or("UTC");
    let zone = TimeZone::get(name).unwrap_or(TimeZone::UTC);
    match Timestamp::from_millisecond(ms) {
        Ok(instant) => {
            let instant = instant.to_zoned(zone);
            instant.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
        }
        Err(_) => codec::instant(ms),
    }
}

impl Engine {
    /// Returns what is known of schedules, by flow and id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn schedules(&self) -> Result<Vec<ScheduleReport>, EngineError> {
        let stores = self.stores();
        let mut reports = Vec::new();
        for row in stores.agenda.schedules().await? {
            let run = match &row.last_run {
                Some(run) => stores.runs.find(run).await?,
                None => None,
            };
            reports.push(ScheduleReport { row, run });
        }
        Ok(reports)
    }

    /// Starts the run of a schedule now. With `is_left`, a worker is to execute it.
    ///
    /// # Errors
    /// When no such schedule is known, or as [`Engine::start`].
    pub async fn start_schedule(
        &self,
        flow: &str,
        id: &str,
        is_left: bool,
    ) -> Result<RunId, EngineError> {
        let stores = self.stores();
        let rows = stores.agenda.schedules().await?;
        let row = rows.iter().find(|row| row.flow == flow && row.id == id);
        let Some(row) = row else {
            return Err(EngineError::NoSuchSchedule {
                flow: flow.to_owned(),
                id: id.to_owned(),
                known: rows
                    .iter()
                    .map(|row| format!("{} {}", row.flow, row.id))
                    .collect(),
            });
        };
        if let Some(installed) = InstalledFlow::read(flow) {
            let started = self.start_installed(&installed.at, id, None, is_left);
            return Ok(started.await?.run);
        }
        let gone =
            || EngineError::Internal(format!("the program of the schedule {flow} {id} is gone"));
        let program = stores.runs.program(&row.program).await?.ok_or_else(gone)?;
        let loaded = reload(&self.session(), &program).loaded.ok_or_else(gone)?;
        let schedule = loaded
            .flow
            .schedules
            .iter()
            .find(|schedule| *schedule.id == *id);
        let schedule = schedule.ok_or_else(gone)?;
        let started = self.start_scheduled((&loaded, None), schedule, None, is_left);
        Ok(started.await?.run)
    }

    /// Starts a run of an installation as a schedule of its flow says, in the version that it uses now.
    ///
    /// # Errors
    /// When the installation cannot run, its flow has no such schedule, or as [`Engine::start`].
    pub(crate) async fn start_installed(
        &self,
        at: &InstallationName,
        id: &str,
        external_id: Option<String>,
        is_left: bool,
    ) -> Result<StartedRun, EngineError> {
        let session = Rc::new(self.session());
        let (checked, installation) = self.installed(&session, at).await?;
        let has_errors = checked.has_errors();
        let loaded = checked.loaded.filter(|_| !has_errors);
        let schedules = loaded.iter().flat_map(|it| &it.flow.schedules);
        let schedule = schedules.clone().find(|schedule| *schedule.id == *id);
        let (Some(loaded), Some(schedule)) = (&loaded, schedule) else {
            return Err(EngineError::NoSuchSchedule {
                flow: installation.flow.to_string(),
                id: id.to_owned(),
                known: schedules.map(|it| it.id.to_string()).collect(),
            });
        };
        let flow = (loaded, Some(installation));
        self.start_scheduled(flow, schedule, external_id, is_left)
            .await
    }

    /// Starts a run as a schedule says.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub(crate) async fn start_scheduled(
        &self,
        (loaded, installation): (&LoadedFlow, Option<StartedInstallation>),
        schedule: &Schedule,
        external_id: Option<String>,
        is_left: bool,
    ) -> Result<StartedRun, EngineError> {
        let options = StartOptions {
            invocation: schedule.invocation.as_ref().map(ToString::to_string),
            external_id,
            is_left,
            installation,
            started_by: Some(format!("schedule:{}", schedule.id)),
            ..StartOptions::with_input(schedule.input.clone())
        };
        self.submit(loaded, options).await
    }
}
