//! Versions of flows in memory.

use std::sync::Arc;

use flowstone_model::ports::{PortFuture, Registry, RegistryAnswer, StoreError};
use flowstone_model::registry::{
    Added, FlowName, FlowRow, Manifest, Moved, NewRelease, NewVersion, ReleaseRow, Target,
    VersionFiles, VersionRow,
};
use flowstone_model::rules::registry as rules;
use flowstone_model::rules::registry::RegistryRows;

use super::{News, Session, Tx};

impl Registry for Session {
    fn add_version(&self, new: NewVersion) -> PortFuture<'_, RegistryAnswer<Added>> {
        self.write(News::Some, |tx| rules::add_version(tx, &new))
    }

    fn move_live(&self, release: NewRelease) -> PortFuture<'_, RegistryAnswer<Moved>> {
        self.write(News::Some, |tx| rules::move_live(tx, &release))
    }

    fn archive(
        &self,
        flow: &FlowName,
        archived_ms: Option<i64>,
    ) -> PortFuture<'_, RegistryAnswer<FlowRow>> {
        self.write(News::Some, |tx| rules::archive(tx, flow, archived_ms))
    }

    fn flow(&self, flow: &FlowName) -> PortFuture<'_, Option<FlowRow>> {
        self.read(|tx| tx.registered(flow))
    }

    fn flows(&self, workspace: &str) -> PortFuture<'_, Vec<FlowRow>> {
        self.read(|tx| {
            let flows = tx.state.flows.values();
            let flows = flows.filter(|row| row.name.workspace == workspace);
            Ok(flows.cloned().collect())
        })
    }

    fn version(&self, flow: &FlowName, number: i64) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|tx| RegistryRows::version(tx, flow, number))
    }

    fn revision(&self, flow: &FlowName, revision: &str) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|tx| {
            let all = (flow.clone(), i64::MIN)..=(flow.clone(), i64::MAX);
            let mut versions = tx.state.flow_versions.range(all).map(|(_, row)| row);
            Ok(versions.find(|row| row.revision == revision).cloned())
        })
    }

    fn versions(
        &self,
        flow: &FlowName,
        before: Option<i64>,
        limit: usize,
    ) -> PortFuture<'_, Vec<VersionRow>> {
        self.read(|tx| {
            let end = before.unwrap_or(i64::MAX);
            let earlier = (flow.clone(), i64::MIN)..(flow.clone(), end);
            let versions = tx.state.flow_versions.range(earlier).rev();
            Ok(versions.take(limit).map(|(_, row)| row.clone()).collect())
        })
    }

    fn as_of(
        &self,
        flow: &FlowName,
        target: Target,
        at_ms: i64,
    ) -> PortFuture<'_, Option<VersionRow>> {
        self.read(|tx| {
            let all = (flow.clone(), i64::MIN)..=(flow.clone(), i64::MAX);
            if target == Target::Draft {
                let mut versions = tx.state.flow_versions.range(all).map(|(_, row)| row);
                return Ok(versions.rfind(|row| row.created_ms <= at_ms).cloned());
            }
            let last = {
                let mut log = tx.state.flow_releases.range(all).map(|(_, row)| row);
                let last = log.rfind(|row| row.at_ms <= at_ms);
                last.map(|row| row.version)
            };
            match last {
                Some(number) => RegistryRows::version(tx, flow, number),
                None => Ok(None),
            }
        })
    }

    fn files(&self, content: &str) -> PortFuture<'_, Option<VersionFiles>> {
        self.read(|tx| {
            Ok(tx
                .state
                .flow_files
                .get(&content.to_owned())
                .map(|it| (**it).clone()))
        })
    }

    fn releases(&self, flow: &FlowName, limit: usize) -> PortFuture<'_, Vec<ReleaseRow>> {
        self.read(|tx| {
            let mut log = tx.release_log(flow)?;
            log.reverse();
            log.truncate(limit);
            Ok(log)
        })
    }

    fn version_at(&self, flow: &FlowName, place: &str) -> PortFuture<'_, Option<i64>> {
        self.read(|tx| RegistryRows::version_at(tx, flow, place))
    }

    fn check_out(&self, flow: &FlowName, place: &str, number: i64) -> PortFuture<'_, ()> {
        self.write(News::None, |tx| tx.set_version_at(flow, place, number))
    }
}

impl RegistryRows for Tx<'_> {
    fn registered(&mut self, flow: &FlowName) -> Result<Option<FlowRow>, StoreError> {
        Ok(self.state.flows.get(flow).cloned())
    }

    fn write_registered(&mut self, row: &FlowRow) -> Result<(), StoreError> {
        self.state.flows.insert(row.name.clone(), row.clone());
        Ok(())
    }

    fn version(&mut self, flow: &FlowName, number: i64) -> Result<Option<VersionRow>, StoreError> {
        let place = (flow.clone(), number);
        Ok(self.state.flow_versions.get(&place).cloned())
    }

    fn write_version(&mut self, row: &VersionRow) -> Result<(), StoreError> {
        let place = (row.flow.clone(), row.number);
        self.state.flow_versions.insert(place, row.clone());
        Ok(())
    }

    fn write_files(
        &mut self,
        manifest: &Manifest,
        files: &VersionFiles,
        _like: Option<&str>,
    ) -> Result<(), StoreError> {
        let files = Arc::new(files.clone());
        self.state.flow_files.insert(manifest.digest(), files);
        Ok(())
    }

    fn release_log(&mut self, flow: &FlowName) -> Result<Vec<ReleaseRow>, StoreError> {
        let all = (flow.clone(), i64::MIN)..=(flow.clone(), i64::MAX);
        let log = self.state.flow_releases.range(all);
        Ok(log.map(|(_, row)| row.clone()).collect())
    }

    fn write_release(&mut self, flow: &FlowName, row: &ReleaseRow) -> Result<(), StoreError> {
        let place = (flow.clone(), row.seq);
        self.state.flow_releases.insert(place, row.clone());
        Ok(())
    }

    fn version_at(&mut self, flow: &FlowName, place: &str) -> Result<Option<i64>, StoreError> {
        let place = (flow.clone(), place.to_owned());
        Ok(self.state.flow_checkouts.get(&place).copied())
    }

    fn set_version_at(
        &mut self,
        flow: &FlowName,
        place: &str,
        number: i64,
    ) -> Result<(), StoreError> {
        let place = (flow.clone(), place.to_owned());
        self.state.flow_checkouts.insert(place, number);
        Ok(())
    }
}
