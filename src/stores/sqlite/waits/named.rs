//! Waits by their names, keys and events, and their completion.

use flowstone_model::ports::{Completion, Event, StoreError, WaitPlace, WaitRow};
use flowstone_model::rules::answers::{EarlySignal, SignalSlot, SignalState};
use flowstone_model::rules::rows::WaitRows;
use flowstone_model::waits::Answered;
use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension as _, params};

use super::super::failure::failed;
use super::super::feed;
use super::super::queue::Sql as Rows;
use super::{inbox, select};

impl Rows<'_> {
    fn one_wait(&self, condition: &str, value: &str) -> Result<Option<WaitRow>, StoreError> {
        let found = select(self.db, condition, [Sql::Text(value.to_owned())])?;
        Ok(found.into_iter().next())
    }
}

impl WaitRows for Rows<'_> {
    fn wait_by_id(&mut self, id: &str) -> Result<Option<WaitRow>, StoreError> {
        self.one_wait("wait.id = ?1", id)
    }

    fn wait_by_token(&mut self, token: &str) -> Result<Option<WaitRow>, StoreError> {
        self.one_wait("wait.token = ?1", token)
    }

    fn waits_by_prefix(&mut self, prefix: &str, most: usize) -> Result<Vec<WaitRow>, StoreError> {
        select(
            self.db,
            "wait.id >= ?1 AND wait.id < ?2 ORDER BY wait.id LIMIT ?3",
            [
                Sql::Text(prefix.to_owned()),
                Sql::Text(format!("{prefix}\u{10ffff}")),
                Sql::Integer(i64::try_from(most).unwrap_or(i64::MAX)),
            ],
        )
    }

    fn open_waits_of_key(&mut self, key: &str) -> Result<Vec<WaitRow>, StoreError> {
        select(
            self.db,
            "wait.key = ?1 AND wait.state = 'open' ORDER BY wait.opened_ms, wait.id",
            [Sql::Text(key.to_owned())],
        )
    }

    fn last_wait_of_key(&mut self, key: &str) -> Result<Option<WaitRow>, StoreError> {
        self.one_wait(
            "wait.key = ?1 ORDER BY wait.opened_ms DESC, wait.rowid DESC LIMIT 1",
            key,
        )
    }

    fn open_waits_of_event(
        &mut self,
        event: &str,
        key: Option<&str>,
        path: Option<&str>,
    ) -> Result<Vec<WaitRow>, StoreError> {
        let condition = match (key, path) {
            (None, _) => "wait.state = 'open' AND wait.event = ? AND wait.event_key IS NULL",
            (Some(_), None) => "wait.state = 'open' AND wait.event = ? AND wait.event_key = ?",
            (Some(_), Some(_)) => {
                "wait.state = 'open' AND wait.event = ? AND wait.event_key = ? AND wait.event_path = ?"
            }
        };
        let values = [Some(event), key, key.and(path)].into_iter().flatten();
        select(
            self.db,
            condition,
            values.map(|text| Sql::Text(text.to_owned())),
        )
    }

    fn event_paths(&mut self, event: &str) -> Result<Vec<String>, StoreError> {
        let mut sql = self
            .db
            .prepare_cached(
                "SELECT event_path FROM wait
                 WHERE state = 'open' AND event = ?1 AND event_path IS NOT NULL AND event_path > ?2
                 ORDER BY event_path LIMIT 1",
            )
            .map_err(failed)?;
        let mut paths: Vec<String> = Vec::new();
        loop {
            let last = paths.last().map_or("", String::as_str);
            let mut rows = sql.query([event, last]).map_err(failed)?;
            match rows.next().map_err(failed)? {
                Some(row) => paths.push(row.get(0).map_err(failed)?),
                None => return Ok(paths),
            }
        }
    }

    fn set_answered(&mut self, id: &str, answered: &Answered) -> Result<(), StoreError> {
        let found = self
            .db
            .prepare_cached(
                "UPDATE wait SET state = 'completed', payload = ?2, ending = ?3, decided_by = ?4, decided_ms = ?5
                 WHERE id = ?1 AND state = 'open' AND (deadline_ms IS NULL OR deadline_ms > ?5)
                 RETURNING run, path, key",
            )
            .and_then(|mut sql| {
                let values = params![
                    id,
                    answered.payload,
                    answered.ending.name(),
                    answered.by,
                    answered.at_ms
                ];
                sql.query_row(values, |row| {
                    let (path, key): (String, String) = (row.get(1)?, row.get(2)?);
                    let wait = WaitPlace {
                        id,
                        path: &path,
                        key: &key,
                    };
                    let event = Event::wait_answered(&wait, answered);
                    Ok((row.get::<_, i64>(0)?, key, event))
                })
                .optional()
            })
            .map_err(failed)?;
        match found {
            Some((run, key, event)) => feed::add_with_above(self.db, run, &key, event),
            None => Err(StoreError::Internal(format!(
                "the wait {id} changed inside a transaction"
            ))),
        }
    }

    fn has_signal(&mut self, slot: &SignalSlot, dedup: &str) -> Result<bool, StoreError> {
        inbox::has(self.db, slot, dedup)
    }

    fn add_signal(
        &mut self,
        slot: &SignalSlot,
        completion: &Completion,
        state: SignalState,
    ) -> Result<(), StoreError> {
        inbox::add(self.db, slot, completion, state)
    }

    fn kept_signals(
        &mut self,
        event: &str,
        key: Option<&str>,
    ) -> Result<Vec<EarlySignal>, StoreError> {
        inbox::kept(self.db, event, key)
    }

    fn settle_signal(
        &mut self,
        num: i64,
        wait: &str,
        refusal: Option<String>,
    ) -> Result<(), StoreError> {
        inbox::settle(self.db, num, wait, refusal)
    }
}
