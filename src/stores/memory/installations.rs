//! Installations in memory.

use flowstone_model::ids::RunId;
use flowstone_model::installation::{InstallationName, InstallationRow};
use flowstone_model::ports::{Installations, PortFuture};

use super::{News, Session};

impl Installations for Session {
    fn install(&self, row: InstallationRow) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let is_free = tx.state.installations.get(&row.at).is_none();
            if is_free {
                tx.state.installations.insert(row.at.clone(), row);
            }
            Ok(is_free)
        })
    }

    fn installation(&self, at: &InstallationName) -> PortFuture<'_, Option<InstallationRow>> {
        self.read(|tx| Ok(tx.state.installations.get(at).cloned()))
    }

    fn installations(&self, workspace: Option<&str>) -> PortFuture<'_, Vec<InstallationRow>> {
        self.read(|tx| {
            let rows = tx.state.installations.values();
            let rows = rows.filter(|row| workspace.is_none_or(|it| row.at.workspace == it));
            Ok(rows.cloned().collect())
        })
    }

    fn change_installation(&self, row: InstallationRow) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let found = tx.state.installations.get(&row.at);
            let is_next = found.is_some_and(|found| found.changes + 1 == row.changes);
            if is_next {
                tx.state.installations.insert(row.at.clone(), row);
            }
            Ok(is_next)
        })
    }

    fn note_tokens(&self, at: &InstallationName, run: &RunId, tokens: i64) -> PortFuture<'_, ()> {
        let place = (at.clone(), run.clone());
        self.write(News::None, |tx| {
            tx.state.installation_tokens.insert(place, tokens);
            Ok(())
        })
    }

    fn tokens_used(&self, at: &InstallationName, except: &RunId) -> PortFuture<'_, i64> {
        self.read(|tx| {
            let rows = tx.state.installation_tokens.iter();
            let rows = rows.filter(|((of, run), _)| of == at && run != except);
            Ok(rows.fold(0, |sum: i64, (_, tokens)| sum.saturating_add(*tokens)))
        })
    }

    fn uninstall(&self, at: &InstallationName) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            Ok(tx.state.installations.remove(at).is_some())
        })
    }
}
