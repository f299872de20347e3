//! Parents and children as rows. The rules are [`flowstone_model::rules::run_tree`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Event, ParentClose, RunStatus, StoreError};
use flowstone_model::rules::rows::RunTreeRows;
use flowstone_model::rules::run_tree::Member;
use rusqlite::{OptionalExtension as _, Row, params};

use super::failure::failed;
use super::feed;
use super::queue::{Sql, execute};
use super::waits;

const MEMBER: &str = "SELECT num, id, status, parent IS NOT NULL, parent_close FROM run";

fn member(row: &Row<'_>) -> rusqlite::Result<Member> {
    let status: String = row.get(2)?;
    let close: Option<String> = row.get(4)?;
    Ok(Member {
        num: row.get(0)?,
        id: RunId::from_text(row.get::<_, String>(1)?),
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        has_parent: row.get(3)?,
        close: close
            .and_then(|name| ParentClose::from_name(&name))
            .unwrap_or_default(),
    })
}

impl RunTreeRows for Sql<'_> {
    fn member(&mut self, run: &RunId) -> Result<Option<Member>, StoreError> {
        self.db
            .prepare_cached(&format!("{MEMBER} WHERE id = ?1"))
            .and_then(|mut sql| sql.query_row([run.as_str()], member).optional())
            .map_err(failed)
    }

    fn open_children(&mut self, run: &str) -> Result<Vec<Member>, StoreError> {
        let mut sql = self
            .db
            .prepare_cached(&format!("{MEMBER} WHERE parent = ?1 ORDER BY num"))
            .map_err(failed)?;
        let rows = sql.query_map([run], member).map_err(failed)?;
        let mut children = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        children.retain(|child| !child.status.is_final());
        Ok(children)
    }

    fn terminate(&mut self, num: i64, reason: &str, now_ms: i64) -> Result<(), StoreError> {
        let status = RunStatus::Terminated.name();
        execute(
            self.db,
            "UPDATE run SET status = ?2, cancel = coalesce(cancel, ?3), force = 1, wait_reason = NULL, due_ms = NULL,
                            updated_ms = ?4, ended_ms = ?4, lease_epoch = lease_epoch + 1, lease_owner = NULL
             WHERE num = ?1",
            params![num, status, reason, now_ms],
        )?;
        feed::add_some(self.db, num, Event::ended(RunStatus::Terminated, now_ms))
    }

    fn ask_to_cancel(
        &mut self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let asked = self
            .db
            .prepare_cached(
                "UPDATE run SET cancel = ?2, updated_ms = ?3
                 WHERE id = ?1 AND cancel IS NULL AND ended_ms IS NULL
                   AND status NOT IN ('completed', 'failed', 'cancelled') RETURNING num",
            )
            .and_then(|mut sql| {
                let values = params![run.as_str(), reason, now_ms];
                sql.query_row(values, |row| row.get(0)).optional()
            })
            .map_err(failed)?;
        match asked {
            Some(num) => {
                feed::add(self.db, num, &Event::cancelling(reason, now_ms))?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn close_waits(&mut self, num: i64) -> Result<(), StoreError> {
        waits::close_all(self.db, num)
    }
}
