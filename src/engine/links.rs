//! Links that people open in a browser: to decide a wait, to look at a run, and to the pages of the build kit.
//!
//! The link of a wait has the wait's own token. The link of a run is signed with the key of links to resources, is good
//! for reading that run only, and ends.

use flowstone_lang::value::Value;
use flowstone_model::waits::{LinkTarget, LinkTemplate, Shown, actions, roles, shown};

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
pub use crate::error::LinkError;
use crate::form::Form;
use crate::ids::RunId;
use crate::ports::{WaitEnding, WaitRow, WaitState};
use crate::resource::sign::BadLink;
use crate::resources::ResourceError;
use crate::schema;
use crate::server_file;
use crate::waits::{Answered, Answering, Remark, WaitError};

/// What the signature of a run's link is for.
const RUN_PAGE: &str = "run-page";
/// What the signature of a receipt is for.
const RECEIPT: &str = "decision";
/// How long a receipt is good for.
const RECEIPT_SECONDS: i64 = 600;
/// Actions of questions about steps that come with a value.
const WITH_VALUE: &[&str] = &["edit", "use"];

/// A page of the build kit that people open by a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KitPage {
    /// A person decides about a call.
    Approval,
    /// A person enters a secret, or logs in.
    Connection,
}

impl KitPage {
    /// Returns what the signature of its link is for.
    fn purpose(self) -> &'static str {
        match self {
            KitPage::Approval => "kit-approval",
            KitPage::Connection => "kit-connection",
        }
    }
}

/// A wait as the holder of its link sees it.
#[derive(Debug)]
pub struct LinkedWait {
    pub row: WaitRow,
    pub shown: Shown,
    pub actions: Vec<String>,
    /// A person needs one of these roles to decide; if empty, the link is enough.
    pub roles: Vec<String>,
    /// Who or what started the run.
    pub started_by: String,
    details: Value,
}

impl LinkedWait {
    /// Returns the fields of the answer: those for an action, or all that any action has.
    pub fn form(&self, action: Option<&str>) -> Form {
        let is_choice = !self.actions.is_empty();
        let validation = self.details.get("validation").filter(|it| !it.is_nil());
        let schema = validation.and_then(|form| schema::parse(form).ok());
        let mut form = Form::of(schema.as_ref(), action, is_choice);
        let is_question = self.details.get("question").is_some();
        let mut with_value = WITH_VALUE.iter();
        let takes_value = match action {
            Some(action) => with_value.any(|known| *known == action),
            None => with_value.any(|known| self.actions.iter().any(|it| it == known)),
        };
        if is_question && takes_value {
            let value = self.details.get("value");
            form.add_value(value, action.is_some());
        }
        form
    }

    /// Returns why the wait can no longer be decided; `None` while it is open.
    pub fn refusal(&self, now_ms: i64) -> Option<EngineError> {
        if self.row.ending.is_some() || self.row.state != WaitState::Open {
            return Some(crate::waits::decided(&self.row));
        }
        let deadline_ms = self.row.deadline_ms.filter(|end| *end <= now_ms)?;
        let target = self.row.key.clone();
        Some(
            WaitError::Expired {
                target,
                deadline_ms,
            }
            .into(),
        )
    }

    /// Tells whether the wait was decided by an answer, and not by its time or the end of its run.
    pub fn is_answered(&self) -> bool {
        self.row.ending == Some(WaitEnding::Answered)
    }
}

/// What the holder of a link decided.
#[derive(Debug)]
pub struct LinkedAnswer {
    /// `None` for a wait that offers no actions.
    pub action: Option<String>,
    /// What [`Form::read`] returned.
    pub answer: Value,
    /// The reason.
    pub text: Option<String>,
}

impl Engine {
    /// Returns the wait that a link leads to.
    ///
    /// # Errors
    /// When the wait does not exist or has another token.
    pub async fn linked_wait(&self, id: &str, token: &str) -> Result<LinkedWait, EngineError> {
        let row = match self.find_wait(id).await {
            Ok(row) if row.id == id => Some(row),
            Ok(_) | Err(EngineError::NoSuchWait { .. } | EngineError::Wait(_)) => None,
            Err(error) => return Err(error),
        };
        let known = self.services.stores.waits.token(id).await?;
        let is_good = is_same(known.as_deref().unwrap_or_default(), token);
        let Some(row) = row.filter(|_| is_good) else {
            return Err(LinkError::Wait.into());
        };
        let details = codec::decode(&row.details)?;
        let run = self.run(&row.run).await?;
        Ok(LinkedWait {
            shown: shown(&details),
            actions: actions(&details),
            roles: roles(&details),
            started_by: run.started_by,
            details,
            row,
        })
    }

    /// Decides the wait of a link. The digest of what was shown is in `how`.
    ///
    /// # Errors
    /// As for [`Engine::answer_waits`].
    pub async fn decide_linked(
        &self,
        wait: &LinkedWait,
        given: LinkedAnswer,
        how: Answering,
    ) -> Result<Answered, EngineError> {
        let LinkedAnswer {
            action,
            answer,
            text,
        } = given;
        let Some(action) = action else {
            let target = crate::ports::Target::Name(wait.row.id.clone());
            return self.answer_waits(target, &answer, how).await;
        };
        let entries = answer.as_map().map(|map| {
            let entries = map.iter();
            entries
                .filter_map(|(key, value)| Some((crate::json::name_text(key)?, value.clone())))
                .collect()
        });
        let remark = Remark {
            text,
            fields: entries.unwrap_or_default(),
            ..Remark::default()
        };
        self.choose(&wait.row.id, &action, remark, how).await
    }

    /// Returns the link that chooses an action of a wait; nothing if no server is known, or the wait does not offer the
    /// action.
    ///
    /// # Errors
    /// When the wait cannot be read.
    pub async fn wait_link(
        &self,
        row: &WaitRow,
        action: &str,
    ) -> Result<Option<String>, EngineError> {
        let Some(token) = self.services.stores.waits.token(&row.id).await? else {
            return Ok(None);
        };
        let links = self.wait_links(row, &codec::decode(&row.details)?, &token);
        let mut links = links.into_iter();
        Ok(links
            .find(|(known, _)| known == action)
            .map(|(_, link)| link))
    }

    /// Returns the links that decide an open wait, each with its action; none if no server is known.
    pub(crate) fn wait_links(
        &self,
        row: &WaitRow,
        details: &Value,
        token: &str,
    ) -> Vec<(String, String)> {
        let base = server_file::base(&self.services.settings, &self.services.home);
        let template = LinkTemplate::of(details);
        let target = LinkTarget {
            base: base.as_deref(),
            settings: &self.services.settings,
            wait: &row.id,
            token,
        };
        let actions = actions(details).into_iter();
        actions
            .filter_map(|action| Some((template.link(target, &action)?, action)))
            .map(|(link, action)| (action, link))
            .collect()
    }

    /// Signs that a decision was made, for the page that follows it. Returns the end in seconds, and the signature.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn sign_receipt(&self, wait: &str, action: &str) -> Result<(i64, String), EngineError> {
        let expires = self.now_ms().div_euclid(1_000) + RECEIPT_SECONDS;
        let subject = format!("{wait}\n{action}");
        Ok((expires, self.signer()?.sign(RECEIPT, &subject, expires)))
    }

    /// Tells whether a receipt is one of [`Engine::sign_receipt`], and not over its time.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn is_receipt(
        &self,
        wait: &str,
        action: &str,
        (expires, signature): (i64, &str),
    ) -> Result<bool, EngineError> {
        let subject = format!("{wait}\n{action}");
        let is_signed = self
            .signer()?
            .is_signed(RECEIPT, &subject, expires, signature);
        Ok(is_signed && expires.saturating_mul(1_000) > self.now_ms())
    }

    /// Returns the token of a link to a page of the build kit: when it ends, and a signature.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn kit_token(
        &self,
        page: KitPage,
        id: &str,
        expires_ms: i64,
    ) -> Result<String, EngineError> {
        let signature = self.signer()?.sign(page.purpose(), id, expires_ms);
        Ok(format!("{expires_ms}.{signature}"))
    }

    /// Returns when the link with a token of [`Engine::kit_token`] ends, or has ended; `None` if the token is of another
    /// page, or forged.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn read_kit_token(
        &self,
        page: KitPage,
        id: &str,
        token: &str,
    ) -> Result<Option<i64>, EngineError> {
        let parts = token.split_once('.');
        let parts = parts.and_then(|(end, signature)| Some((end.parse::<i64>().ok()?, signature)));
        let Some((expires_ms, signature)) = parts else {
            return Ok(None);
        };
        let is_signed = self
            .signer()?
            .is_signed(page.purpose(), id, expires_ms, signature);
        Ok(is_signed.then_some(expires_ms))
    }

    /// Makes a link with which anybody may look at a run for a while, and says until when.
    ///
    /// # Errors
    /// When there is no such run, no server is known, or the key cannot be read.
    pub async fn run_link(
        &self,
        run: &RunId,
        ttl_seconds: i64,
    ) -> Result<(String, i64), EngineError> {
        let id = self.run(run).await?.id;
        let base = server_file::base(&self.services.settings, &self.services.home);
        let base = base.ok_or(ResourceError::NoServer)?;
        let expires = self.now_ms().div_euclid(1_000) + ttl_seconds;
        let signature = self.signer()?.sign(RUN_PAGE, id.as_str(), expires);
        let link = format!("{base}/runs/{id}?expires={expires}&signature={signature}");
        Ok((link, expires * 1_000))
    }

    /// Checks a link of [`Engine::run_link`], and returns when it ends.
    ///
    /// # Errors
    /// When it is forged, or over its time.
    pub fn check_run_link(
        &self,
        run: &str,
        expires: &str,
        signature: &str,
    ) -> Result<i64, EngineError> {
        let refused = |why| EngineError::from(LinkError::Run(why));
        let expires: i64 = expires.parse().map_err(|_| refused(BadLink::Malformed))?;
        if !self.signer()?.is_signed(RUN_PAGE, run, expires, signature) {
            return Err(refused(BadLink::Forged));
        }
        let expires_ms = expires.saturating_mul(1_000);
        match expires_ms > self.now_ms() {
            true => Ok(expires_ms),
            false => Err(refused(BadLink::Expired)),
        }
    }
}

/// Compares two texts in a time that does not depend on where they differ. An empty text is equal to none.
fn is_same(known: &str, given: &str) -> bool {
    let pairs = known.bytes().zip(given.bytes());
    let differing = pairs.fold(0_u8, |sum, (one, other)| sum | (one ^ other));
    !known.is_empty() && known.len() == given.len() && differing == 0
}
