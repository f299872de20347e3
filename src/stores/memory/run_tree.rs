//! Parents and children in memory. The rules are [`flowstone_model::rules::run_tree`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Event, RunStatus, StoreError, WaitState};
use flowstone_model::rules::rows::RunTreeRows;
use flowstone_model::rules::run_tree::Member;

use super::Tx;
use super::state::Run;

fn member(num: i64, run: &Run) -> Member {
    let parent = run.row.parent.as_ref();
    Member {
        num,
        id: run.row.id.clone(),
        status: run.row.status,
        has_parent: parent.is_some(),
        close: parent.map(|parent| parent.close).unwrap_or_default(),
    }
}

impl RunTreeRows for Tx<'_> {
    fn member(&mut self, run: &RunId) -> Result<Option<Member>, StoreError> {
        let found = self.state.number(run).zip(self.state.run(run));
        Ok(found.map(|(num, run)| member(num, run)))
    }

    fn open_children(&mut self, run: &str) -> Result<Vec<Member>, StoreError> {
        let is_child = |child: &Run| {
            let parent = child.row.parent.as_ref();
            parent.is_some_and(|parent| parent.run.as_str() == run)
        };
        let children = self.state.runs.iter();
        let children =
            children.filter(|(_, child)| is_child(child) && !child.row.status.is_final());
        Ok(children.map(|(num, child)| member(*num, child)).collect())
    }

    fn terminate(&mut self, num: i64, reason: &str, now_ms: i64) -> Result<(), StoreError> {
        if let Some(run) = self.state.runs.get_mut(&num) {
            run.epoch += 1;
            run.lease = None;
            let row = &mut run.row;
            row.status = RunStatus::Terminated;
            row.cancel_requested
                .get_or_insert_with(|| reason.to_owned());
            row.force = true;
            row.wait_reason = None;
            row.due_ms = None;
            row.updated_ms = now_ms;
            row.ended_ms = Some(now_ms);
        }
        self.state
            .add_event(num, Event::ended(RunStatus::Terminated, now_ms));
        Ok(())
    }

    fn ask_to_cancel(&mut self, id: &RunId, reason: &str, now_ms: i64) -> Result<bool, StoreError> {
        let found = self.state.run(id);
        if found.is_some_and(|run| run.row.cancel_requested.is_none() && !run.is_over())
            && let Some(run) = self.state.run_mut(id)
        {
            run.row.cancel_requested = Some(reason.to_owned());
            run.row.updated_ms = now_ms;
            let num = self.state.number(id).unwrap_or_default();
            self.state.add_event(num, Event::cancelling(reason, now_ms));
            return Ok(true);
        }
        Ok(false)
    }

    fn close_waits(&mut self, num: i64) -> Result<(), StoreError> {
        let open: Vec<i64> = self
            .state
            .waits_of(num)
            .filter(|(_, wait)| wait.row.state != WaitState::Closed)
            .map(|(seq, _)| seq)
            .collect();
        for seq in open {
            if let Some(wait) = self.state.waits.get_mut(&seq) {
                wait.row.state = WaitState::Closed;
            }
        }
        Ok(())
    }
}
