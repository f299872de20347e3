//! Approvals of single calls, for doors that cannot ask a person: the question is stored, and the identical call succeeds
//! once after a person agreed.
//!
//! An approval is used once, within 15 minutes, and the token that asked cannot give it. Its link shows the call, and does
//! not decide: the answer that has the link goes to the program that asked.

use flowstone_engine::Engine;
use flowstone_engine::EngineError;
use flowstone_engine::catalog::Catalog;
use flowstone_engine::feed_event::instant;
use flowstone_engine::links::KitPage;
use flowstone_engine::ports::{Random as _, SystemRandom};
use flowstone_model::token::Token;
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::error::KitError;
use super::link::{self, Linked};
use super::permission::Question;
use crate::rows::Rows;

/// Open and decided approvals, by digest.
const APPROVALS: Rows = Rows("flowstone_kit_approvals");
/// Approvals that were used, by digest and nonce. A key is inserted once.
const USED: Rows = Rows("flowstone_kit_approvals_used");
/// Questions of doors that keep nothing between a question and its answer, by their states.
const ELICITED: Rows = Rows("flowstone_kit_elicited");
/// How long an approval, and the wait for one, lasts.
pub const APPROVAL_MS: i64 = 15 * 60 * 1000;
/// Maximum number of open approvals of a token.
const OPEN_MAX: usize = 20;
/// Number of hexadecimal digits of a digest in the id of an approval.
const ID_DIGITS: usize = 24;

/// Stores that a person is asked, and returns what the door repeats with the answer. It can be used once, within 15 minutes,
/// for this call only.
///
/// # Errors
/// When the store cannot be written.
pub async fn elicit(cx: &KitCall<'_>, question: &Question) -> Result<String, KitError> {
    let now_ms = cx.engine.now_ms();
    for row in ELICITED.list(cx.engine).await? {
        let is_over = row["expires_ms"].as_i64().is_none_or(|at| at <= now_ms);
        if let Some(state) = row["state"].as_str().filter(|_| is_over) {
            ELICITED.delete_under(cx.engine, state).await?;
            USED.delete_under(cx.engine, state).await?;
        }
    }
    let (high, low) = (SystemRandom.next(), SystemRandom.next());
    let state = format!("kel_{high:016x}{low:016x}");
    let row = json!({
        "state": state,
        "digest": question.digest,
        "expires_ms": now_ms + APPROVAL_MS,
    });
    ELICITED.put(cx.engine, &state, &row).await?;
    Ok(state)
}

/// Uses the answer to a question of [`elicit`]. Tells whether it was asked for this call, is not too old, and was not used
/// before.
///
/// # Errors
/// When the store cannot be written.
pub async fn use_elicited(
    cx: &KitCall<'_>,
    question: &Question,
    state: &str,
) -> Result<bool, KitError> {
    let now_ms = cx.engine.now_ms();
    let asked = ELICITED.get(cx.engine, state).await?;
    let is_asked = asked.is_some_and(|row| {
        row["digest"] == json!(question.digest)
            && row["expires_ms"].as_i64().is_some_and(|at| now_ms < at)
    });
    Ok(is_asked
        && USED
            .insert(cx.engine, state, &json!({"at": now_ms}))
            .await?)
}

/// Uses the approval of a call, or asks for one.
///
/// # Errors
/// `approval_required` until a person decided, and `approval_denied` once when they declined.
pub async fn use_stored(cx: &KitCall<'_>, question: &Question) -> Result<(), KitError> {
    let now_ms = cx.engine.now_ms();
    let stored = APPROVALS.get(cx.engine, &question.digest).await?;
    let stored = stored.filter(|it| it["expires_ms"].as_i64().is_some_and(|at| now_ms < at));
    let status = stored.as_ref().and_then(|it| it["status"].as_str());
    match (status, &stored) {
        (Some(status @ ("approved" | "denied")), Some(stored)) => {
            let nonce = stored["nonce"].as_str().unwrap_or_default();
            let key = format!("{}/{nonce}", question.digest);
            let is_first = USED.insert(cx.engine, &key, &json!({"at": now_ms})).await?;
            match (is_first, status) {
                (true, "approved") => {
                    APPROVALS
                        .delete_exact(cx.engine, &question.digest, stored)
                        .await?;
                    Ok(())
                }
                (true, _) => {
                    APPROVALS
                        .delete_exact(cx.engine, &question.digest, stored)
                        .await?;
                    Err(KitError::approval_denied(question.tool))
                }
                // A concurrent identical call used it.
                (false, _) => Err(ask(cx, question).await?),
            }
        }
        (Some(_), Some(stored)) => Err(required(cx, question.tool, stored)?),
        (_, _) => Err(ask(cx, question).await?),
    }
}

/// Stores a question, and returns the error that tells where it is answered.
async fn ask(cx: &KitCall<'_>, question: &Question) -> Result<KitError, KitError> {
    let now_ms = cx.engine.now_ms();
    let mut open = 0;
    for row in APPROVALS.list(cx.engine).await? {
        let is_over = row["expires_ms"].as_i64().is_none_or(|at| at <= now_ms);
        match row["digest"].as_str() {
            Some(digest) if is_over => {
                APPROVALS.delete_exact(cx.engine, digest, &row).await?;
                USED.delete_under(cx.engine, digest).await?;
            }
            _ if row["status"] == json!("open") && row["token"] == json!(cx.token.id) => open += 1,
            // Somebody else's, or decided.
            _ => {}
        }
    }
    if open >= OPEN_MAX {
        return Ok(KitError::full(
            format!("{open} calls of this token wait for a person already"),
            "let a person decide about one of them, and repeat the call",
        ));
    }
    let row = json!({
        "id": format!("kap_{}", &question.digest[..ID_DIGITS]),
        "status": "open",
        "tool": question.tool,
        "target": question.target,
        "arguments": question.arguments,
        "note": question.note,
        "digest": question.digest,
        "nonce": format!("{:016x}", SystemRandom.next()),
        "token": cx.token.id,
        "asked_by": cx.token.attributed_to(),
        "created_ms": now_ms,
        "expires_ms": now_ms + APPROVAL_MS,
    });
    APPROVALS.put(cx.engine, &question.digest, &row).await?;
    required(cx, question.tool, &row)
}

/// Returns the error that says where a call is decided.
fn required(cx: &KitCall<'_>, tool: &str, row: &Json) -> Result<KitError, KitError> {
    let id = row["id"].as_str().unwrap_or_default();
    let expires_ms = row["expires_ms"].as_i64().unwrap_or_default();
    let url = link::url(cx, KitPage::Approval, (id, expires_ms))?;
    Ok(KitError::approval_required(
        tool,
        json!({
            "approval_id": id,
            "digest": row["digest"],
            "url": url,
            "command": format!("flowstone kit approve {id}"),
            "expires_at": instant(expires_ms),
        }),
    ))
}

/// Who reads and decides approvals.
#[derive(Debug, Clone)]
pub struct Decider {
    /// The token with which they decide; `None` for a person at a terminal of this machine.
    pub token: Option<Token>,
    pub name: String,
}

impl Decider {
    /// Returns the holder of a token.
    pub fn of(token: &Token) -> Decider {
        Decider {
            token: Some(token.clone()),
            name: token.attributed_to().to_owned(),
        }
    }

    /// Tells whether they reach the flow that an approval is about.
    fn reaches(&self, (engine, catalog): (&Engine, &Catalog), row: &Json) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let flow = row["target"].as_str().unwrap_or_default();
        token.reaches_flow(flow, &catalog.labels(engine, flow))
    }
}

/// Returns an approval: `{id, status, tool, target, arguments, asked_by, created_at, expires_at}`.
///
/// # Errors
/// `not_found`, also when it has expired, and for a flow that the reader does not reach.
pub async fn find_approval(
    engine: &Engine,
    catalog: &Catalog,
    id: &str,
    reader: &Decider,
) -> Result<Json, KitError> {
    Ok(shown(&stored((engine, catalog), id, reader).await?))
}

/// Returns the approvals that wait for a person, oldest first: those about flows that the reader reaches.
///
/// # Errors
/// When the store cannot be read.
pub async fn open_approvals(
    engine: &Engine,
    catalog: &Catalog,
    reader: &Decider,
) -> Result<Vec<Json>, KitError> {
    let now_ms = engine.now_ms();
    let mut rows = APPROVALS.list(engine).await?;
    rows.retain(|row| {
        row["status"] == json!("open")
            && row["expires_ms"].as_i64().is_some_and(|at| now_ms < at)
            && reader.reaches((engine, catalog), row)
    });
    rows.sort_by_key(|row| row["created_ms"].as_i64());
    Ok(rows.iter().map(shown).collect())
}

async fn stored(
    (engine, catalog): (&Engine, &Catalog),
    id: &str,
    reader: &Decider,
) -> Result<Json, KitError> {
    let none = || absent(id);
    let digest = id.strip_prefix("kap_").filter(|it| it.len() == ID_DIGITS);
    let found = APPROVALS
        .list_under(engine, digest.ok_or_else(none)?)
        .await?
        .into_iter()
        .next();
    let now_ms = engine.now_ms();
    let is_valid = |row: &Json| {
        row["expires_ms"].as_i64().is_some_and(|at| now_ms < at)
            && reader.reaches((engine, catalog), row)
    };
    found.filter(is_valid).ok_or_else(none)
}

/// Returns the error for an approval that is not there, or out of reach.
fn absent(id: &str) -> KitError {
    KitError::not_found(format!("there is no open approval `{id}`"))
}

fn shown(row: &Json) -> Json {
    let at = |key: &str| row[key].as_i64().map(instant);
    let mut shown = json!({
        "id": row["id"],
        "status": row["status"],
        "tool": row["tool"],
        "target": row["target"],
        "arguments": row["arguments"],
        "asked_by": row["asked_by"],
        "created_at": at("created_ms"),
        "expires_at": at("expires_ms"),
    });
    if row["note"].is_string() {
        shown["note"] = row["note"].clone();
    }
    shown
}

/// Why an approval was not decided.
#[derive(Debug)]
pub enum Undecided {
    /// The token that asked cannot decide.
    OwnCall,
    /// The decider does not reach the flow of the call.
    OutOfReach,
    /// Somebody has decided before.
    Decided,
    Failed(EngineError),
}

impl From<EngineError> for Undecided {
    fn from(error: EngineError) -> Undecided {
        Undecided::Failed(error)
    }
}

/// Decides about an approval that is open. Of concurrent decisions one holds.
///
/// # Errors
/// `not_found`, and `permission_denied` for the token that asked, or when somebody decided before.
pub async fn decide(
    engine: &Engine,
    catalog: &Catalog,
    (id, is_approved): (&str, bool),
    decider: &Decider,
) -> Result<Json, KitError> {
    let row = stored((engine, catalog), id, decider).await?;
    match decide_row((engine, catalog), (&row, is_approved), decider).await {
        Ok(row) => Ok(shown(&row)),
        Err(Undecided::OutOfReach) => Err(absent(id)),
        Err(Undecided::OwnCall) => Err(KitError::permission_denied(
            "the token that asked cannot approve its own call",
        )),
        Err(Undecided::Decided) => Err(KitError::permission_denied(format!(
            "the approval `{id}` was decided already"
        ))),
        Err(Undecided::Failed(error)) => Err(error.into()),
    }
}

/// Replaces an open row by a decided one. Of several deciders, one succeeds.
async fn decide_row(
    (engine, catalog): (&Engine, &Catalog),
    (row, is_approved): (&Json, bool),
    decider: &Decider,
) -> Result<Json, Undecided> {
    if !decider.reaches((engine, catalog), row) {
        return Err(Undecided::OutOfReach);
    }
    let token = decider.token.as_ref().map(|token| &*token.id);
    if token.is_some() && row["token"].as_str() == token {
        return Err(Undecided::OwnCall);
    }
    if row["status"] != json!("open") {
        return Err(Undecided::Decided);
    }
    let status = match is_approved {
        true => "approved",
        false => "denied",
    };
    let mut decided = row.clone();
    decided["status"] = json!(status);
    decided["decided_by"] = json!(decider.name);
    let digest = row["digest"].as_str().unwrap_or_default();
    if !APPROVALS
        .replace_exact(engine, digest, (row, &decided))
        .await?
    {
        return Err(Undecided::Decided);
    }
    let id = row["id"].as_str().unwrap_or_default();
    tracing::info!(target: "flowstone::kit", id, status, by = %decider.name, "a call was decided");
    Ok(decided)
}

/// An open approval as the holder of its link sees it.
#[derive(Debug, Clone)]
pub struct LinkedApproval {
    pub id: String,
    pub tool: String,
    /// The bound flow.
    pub target: Option<String>,
    pub arguments: Json,
    pub note: Option<String>,
    pub asked_by: String,
    pub digest: String,
    pub created_ms: i64,
    pub expires_ms: i64,
    row: Json,
}

impl LinkedApproval {
    /// Decides.
    ///
    /// # Errors
    /// When the decider may not, or somebody was faster.
    pub async fn decide(
        &self,
        (engine, catalog): (&Engine, &Catalog),
        is_approved: bool,
        decider: &Decider,
    ) -> Result<(), Undecided> {
        let row = (&self.row, is_approved);
        let decided = decide_row((engine, catalog), row, decider).await;
        decided.map(drop)
    }
}

/// Returns the approval that a link leads to.
///
/// # Errors
/// When the store or the key of links cannot be read.
pub async fn linked(
    engine: &Engine,
    id: &str,
    token: &str,
) -> Result<Linked<LinkedApproval>, EngineError> {
    let Some(end_ms) = engine.read_kit_token(KitPage::Approval, id, token)? else {
        return Ok(Linked::Nothing);
    };
    let digest = id.strip_prefix("kap_").unwrap_or_default();
    let rows = APPROVALS.list_under(engine, digest).await?;
    // The identical call may have been asked about again, which has a link of its own.
    let row = rows
        .into_iter()
        .find(|row| row["id"] == json!(id) && row["expires_ms"] == json!(end_ms));
    let is_late = end_ms <= engine.now_ms();
    let Some(row) = row.filter(|_| !is_late) else {
        return Ok(Linked::Over(match is_late {
            true => "nobody decided within 15 minutes, so the call was not made".to_owned(),
            false => "the decision about this call was made, and used".to_owned(),
        }));
    };
    let text = |key: &str| row[key].as_str().map(str::to_owned);
    if row["status"] != json!("open") {
        let (status, by) = (text("status"), text("decided_by"));
        let (status, by) = (status.unwrap_or_default(), by.unwrap_or_default());
        return Ok(Linked::Over(format!("the call was {status} by `{by}`")));
    }
    Ok(Linked::Open(LinkedApproval {
        id: id.to_owned(),
        tool: text("tool").unwrap_or_default(),
        target: text("target"),
        arguments: row["arguments"].clone(),
        note: text("note"),
        asked_by: text("asked_by").unwrap_or_default(),
        digest: text("digest").unwrap_or_default(),
        created_ms: row["created_ms"].as_i64().unwrap_or_default(),
        expires_ms: end_ms,
        row,
    }))
}
