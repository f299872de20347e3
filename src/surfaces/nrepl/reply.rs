//! Messages to clients.

use super::bencode::{Bencode, Dict};

/// Where answers to a request go: its id, and its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    pub id: Option<String>,
    pub session: Option<String>,
}

impl Address {
    /// Returns an answer with these members.
    pub fn reply(&self, members: impl IntoIterator<Item = (&'static str, Bencode)>) -> Dict {
        let own = [("id", &self.id), ("session", &self.session)];
        let own = own
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), Bencode::from(text.as_deref()?))));
        let members = members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        own.chain(members).collect()
    }

    /// Returns an answer that is only a status.
    pub fn status(&self, status: &[&str]) -> Dict {
        self.reply([("status", status_of(status))])
    }
}

/// Returns a set of statuses.
pub fn status_of(status: &[&str]) -> Bencode {
    status.iter().map(|status| Bencode::from(*status)).collect()
}

/// Returns the last message to a client that does not speak the protocol.
pub fn refusal(why: &str) -> Dict {
    Address::default().reply([
        ("status", status_of(&["done", "error", "bencode-error"])),
        ("err", Bencode::from(format!("{why}\n"))),
    ])
}
