//! Why something cannot be done with a resource.

use crate::codec;
use crate::ports::Gone;
use crate::resource::sign::BadLink;

/// Why something cannot be done with a resource.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResourceError {
    #[error("there is no resource `{uri}`")]
    Missing { uri: String },
    #[error("the resource `{uri}` {}", gone_text(*.why, *.at_ms))]
    Gone { uri: String, why: Gone, at_ms: i64 },
    #[error("`{uri}` is needed by {}, which {} not over", runs.join(", "), if runs.len() == 1 { "is" } else { "are" })]
    Needed { uri: String, runs: Vec<String> },
    #[error("there is a file `{name}` in the folder `{folder}` already")]
    Taken { folder: String, name: String },
    #[error("this link is not good: {0}")]
    BadLink(BadLink),
    #[error("the file cannot be stored: {0}")]
    Unstorable(String),
    #[error("the file cannot be stored: it has more than {most} bytes (`:max-upload`)")]
    TooLarge { most: u64 },
    #[error("no address of a server is known, so a link would lead nowhere")]
    NoServer,
    #[error("the {kind} `{uri}` {what}")]
    Unsuitable {
        uri: String,
        kind: &'static str,
        what: &'static str,
    },
}

fn gone_text(why: Gone, at_ms: i64) -> String {
    let at = codec::instant(at_ms);
    match why {
        Gone::Deleted => format!("was deleted at {at}"),
        Gone::Expired => format!("has expired: it was kept until {at}"),
    }
}

impl ResourceError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            ResourceError::Missing { .. } => "E0936",
            ResourceError::Gone { .. } => "E0937",
            ResourceError::Needed { .. } => "E0938",
            ResourceError::Taken { .. } => "E0939",
            ResourceError::BadLink(_) => "E0940",
            ResourceError::Unstorable(_) | ResourceError::TooLarge { .. } => "E0941",
            ResourceError::NoServer => "E1073",
            ResourceError::Unsuitable { .. } => "E0942",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> String {
        match self {
            ResourceError::Missing { .. } => "`flowstone resources list` shows what there is",
            ResourceError::Gone {
                why: Gone::Deleted, ..
            } => "upload or store it again, and use the new name",
            ResourceError::Gone {
                why: Gone::Expired, ..
            } => "store it with `:tier :retained` to keep it longer",
            ResourceError::Needed { .. } => {
                "wait for the runs, or delete it nevertheless with `--force`"
            }
            ResourceError::Taken { .. } => "`--replace` puts the new one in its place",
            ResourceError::BadLink(_) => "make another with `flowstone resources url`",
            ResourceError::NoServer => {
                "set `:server {:url \"https://...\"}` in flowstone.edn, or start `flowstone serve --listen ADDRESS`"
            }
            ResourceError::Unstorable(_) | ResourceError::TooLarge { .. } => "limits are under `:resources` in flowstone.edn",
            ResourceError::Unsuitable { .. } => "`flowstone resources get` says what it is",
        }
        .to_owned()
    }
}
