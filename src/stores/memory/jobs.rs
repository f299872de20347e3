//! Jobs in memory. The rules are [`flowstone_model::rules::jobs`].

use std::collections::BTreeMap;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Event, JobAnswer, JobBatch, JobCall, JobClaim, JobQuery, JobReach, JobRow, Jobs, PortFuture,
    StoreError,
};
use flowstone_model::rules::jobs::{self as rules, JobRows};

use super::state::next;
use super::{News, Session, Tx};
use crate::failure::rejected;

impl Jobs for Session {
    fn claim(&self, claim: JobClaim) -> PortFuture<'_, Vec<JobRow>> {
        self.write(News::None, |tx| rules::claim(tx, &claim))
    }

    fn call(&self, calls: Vec<JobCall>, now_ms: i64) -> PortFuture<'_, Vec<JobAnswer>> {
        self.write(News::Some, |tx| {
            let calls = calls.iter();
            calls.map(|call| rules::call(tx, call, now_ms)).collect()
        })
    }

    fn expire(&self, now_ms: i64) -> PortFuture<'_, usize> {
        self.write(News::Some, |tx| rules::expire(tx, now_ms))
    }

    fn find(&self, id: &str) -> PortFuture<'_, Option<JobRow>> {
        self.read(|tx| tx.job(id))
    }

    fn list(&self, query: JobQuery) -> PortFuture<'_, Vec<JobRow>> {
        self.read(|tx| {
            let before = match &query.after {
                Some(after) => Some(tx.job_number(after).ok_or_else(|| {
                    let message = format!("there is no job `{after}`");
                    rejected("E0536", "not-found", message)
                })?),
                None => None,
            };
            let jobs = tx.state.jobs.iter().rev();
            let found = jobs.filter(|(num, job)| {
                before.is_none_or(|before| **num < before) && fits(job, &query)
            });
            let most = match query.limit {
                0 => usize::MAX,
                limit => limit,
            };
            Ok(found.take(most).map(|(_, job)| job.clone()).collect())
        })
    }

    fn batch(&self, id: &str) -> PortFuture<'_, Option<JobBatch>> {
        self.read(|tx| JobRows::batch(tx, id))
    }
}

fn fits(job: &JobRow, query: &JobQuery) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_ref().is_none_or(|wanted| found == Some(wanted))
    };
    is(&query.kind, Some(&job.kind))
        && is(&query.batch, job.batch.as_deref())
        && query.status.is_none_or(|status| status == job.status)
        && query.run.as_ref().is_none_or(|run| *run == job.run)
        && query
            .id_prefix
            .as_ref()
            .is_none_or(|prefix| job.id.starts_with(prefix))
}

impl Tx<'_> {
    fn job_number(&self, id: &str) -> Option<i64> {
        let mut jobs = self.state.jobs.iter();
        jobs.find(|(_, job)| job.id == id).map(|(num, _)| *num)
    }

    fn jobs(&self, condition: impl Fn(&JobRow) -> bool) -> Vec<(i64, JobRow)> {
        let jobs = self.state.jobs.iter();
        let found = jobs.filter(|(_, job)| condition(job));
        found.map(|(num, job)| (*num, job.clone())).collect()
    }
}

impl JobRows for Tx<'_> {
    fn add_job(&mut self, job: &JobRow) -> Result<(), StoreError> {
        let flow = self.state.run(&job.run).map(|run| run.row.flow.clone());
        let num = next(&self.state.jobs);
        let job = JobRow {
            flow: flow.unwrap_or_default(),
            ..job.clone()
        };
        self.state.jobs.insert(num, job);
        Ok(())
    }

    fn job(&mut self, id: &str) -> Result<Option<JobRow>, StoreError> {
        Ok(self.state.jobs.values().find(|job| job.id == id).cloned())
    }

    fn write_job(&mut self, job: &JobRow) -> Result<(), StoreError> {
        if let Some(num) = self.job_number(&job.id)
            && let Some(row) = self.state.jobs.get_mut(&num)
        {
            row.clone_from(job);
        }
        Ok(())
    }

    fn queued_jobs(
        &mut self,
        kind: &str,
        reach: Option<&JobReach>,
        most: usize,
    ) -> Result<Vec<(i64, JobRow)>, StoreError> {
        let is_queued = |job: &JobRow| {
            job.status == flowstone_model::ports::JobStatus::Queued
                && job.kind == kind
                && reach.is_none_or(|reach| reach.takes(&job.flow))
        };
        let mut found = self.jobs(is_queued);
        found.sort_unstable_by_key(|(num, job)| (std::cmp::Reverse(job.priority), *num));
        found.truncate(most);
        Ok(found)
    }

    fn due_jobs(&mut self, now_ms: i64, most: usize) -> Result<Vec<JobRow>, StoreError> {
        let mut found = self.jobs(|job| rules::due_ms(job).is_some_and(|due| due <= now_ms));
        found.sort_by_key(|(_, job)| rules::due_ms(job));
        Ok(found.into_iter().take(most).map(|(_, job)| job).collect())
    }

    fn open_jobs(&mut self, run: &RunId) -> Result<Vec<JobRow>, StoreError> {
        let found = self.jobs(|job| job.run == *run && job.ended_ms.is_none());
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }

    fn batch(&mut self, id: &str) -> Result<Option<JobBatch>, StoreError> {
        let mut counts = BTreeMap::new();
        for (_, job) in self.jobs(|job| job.batch.as_deref() == Some(id)) {
            *counts.entry(job.status).or_insert(0) += 1;
        }
        Ok((!counts.is_empty()).then(|| JobBatch {
            id: id.to_owned(),
            counts: counts.into_iter().collect(),
        }))
    }

    fn is_batch_open(&mut self, id: &str) -> Result<bool, StoreError> {
        let mut jobs = self.state.jobs.values();
        Ok(jobs.any(|job| job.batch.as_deref() == Some(id) && job.ended_ms.is_none()))
    }

    fn note_in_run(&mut self, run: &RunId, event: Event) -> Result<(), StoreError> {
        let found = self.state.number(run).zip(self.state.run(run));
        if let Some((num, run)) = found
            && !run.row.status.is_final()
        {
            self.state.add_event(num, event);
        }
        Ok(())
    }
}
