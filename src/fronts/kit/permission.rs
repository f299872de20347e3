//! Whether a call may be made: what a person allowed beforehand, and approvals of single calls.
//!
//! Three sources may narrow a tool: the settings of the project, the person who opened the door, and the settings of a token. An approval
//! belongs to exactly one call: its digest is made of tool, arguments, target and caller. It is used once, within 15
//! minutes, and the token that asked cannot give it.

use std::collections::{BTreeMap, BTreeSet};

use flowstone_engine::Engine;
use flowstone_engine::catalog::Catalog;
use flowstone_engine::feed_event::instant;
use flowstone_engine::ports::{Random as _, SystemRandom};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::codec::digest_bytes;
use flowstone_model::diagnostic::nearest;
use flowstone_model::registry::MAIN_FILE;
use flowstone_model::token::Token;
use serde_json::{Value as Json, json};

use super::catalog;
use super::context::KitCall;
use super::error::KitError;
use super::tool::{Arguments, Permission, Tool};
use super::trigger;
use crate::rows::Rows;

/// Open and decided approvals, by digest.
const APPROVALS: Rows = Rows("flowstone_kit_approvals");
/// Approvals that were used, by digest and nonce. A key is inserted once.
const USED: Rows = Rows("flowstone_kit_approvals_used");
/// Questions of doors that keep nothing between a question and its answer, by their states.
const ELICITED: Rows = Rows("flowstone_kit_elicited");
/// How long an approval, and the wait for one, lasts.
pub const APPROVAL_MS: i64 = 15 * 60 * 1000;
/// Maximum number of characters of the arguments in a question.
const MOST_SHOWN: usize = 20_000;
/// Maximum number of open approvals of a token.
const OPEN_MAX: usize = 20;
/// Number of hexadecimal digits of a digest in the id of an approval.
const ID_DIGITS: usize = 24;

/// What people allowed at a door.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// One map for each person that said something.
    sources: Vec<BTreeMap<String, Permission>>,
    /// Tools that are off by default and were enabled.
    enabled: BTreeSet<String>,
}

impl Permissions {
    /// Returns what the project's settings say, for everybody and for a token:
    /// `:kit {:permissions {:commit_revision :allow} :tokens {"ci" {:commit_revision :deny}} :enable [:read_config]}`.
    ///
    /// # Errors
    /// `permission_denied` when the settings name a tool that does not exist: it is not known what they were to refuse.
    pub fn of_settings(settings: &Value, token: &Token) -> Result<Permissions, KitError> {
        let Some(kit) = settings.get("kit") else {
            return Ok(Permissions::default());
        };
        let mut sources = Vec::new();
        if let Some(given) = kit.get("permissions") {
            sources.push(permissions_of(given)?);
        }
        let tokens = kit.get("tokens").and_then(Value::as_map);
        for (name, given) in tokens.into_iter().flat_map(|map| map.iter()) {
            let given = permissions_of(given)?;
            if name_of(name).is_some_and(|it| *it == *token.name) {
                sources.push(given);
            }
        }
        let enabled = kit.get("enable").and_then(Value::as_vector);
        let enabled = enabled.into_iter().flat_map(|names| names.iter());
        let enabled = enabled.filter_map(name_of).map(|name| in_settings(&name));
        Ok(Permissions {
            sources,
            enabled: enabled.collect::<Result<_, _>>()?,
        })
    }

    /// Adds what the person says who opens a door.
    #[must_use]
    pub fn and(mut self, door: &DoorPermissions) -> Permissions {
        if !door.permissions.is_empty() {
            self.sources.push(door.permissions.clone());
        }
        self.enabled.extend(door.enabled.iter().cloned());
        self
    }

    /// Returns the permission of a tool: the narrowest that somebody gave, or its own.
    pub fn of(&self, tool: &Tool) -> Permission {
        let given = self
            .sources
            .iter()
            .filter_map(|source| source.get(tool.name));
        given.copied().max().unwrap_or(tool.permission)
    }

    pub fn is_enabled(&self, tool: &Tool) -> bool {
        tool.default_on || self.enabled.contains(tool.name)
    }
}

fn permissions_of(given: &Value) -> Result<BTreeMap<String, Permission>, KitError> {
    let given = given.as_map().into_iter().flat_map(|map| map.iter());
    let given = given.filter_map(|(tool, permission)| {
        let permission = Permission::named(&name_of(permission)?)?;
        let tool = in_settings(&name_of(tool)?);
        Some(tool.map(|tool| (tool, permission)))
    });
    given.collect()
}

fn in_settings(tool: &str) -> Result<String, KitError> {
    known(tool)
        .map_err(|why| KitError::permission_denied(format!("`:kit` in flowstone.edn: {why}")))
}

/// Returns the name of a tool in its own spelling: settings may write it with hyphens.
fn spelled(name: &str) -> String {
    name.replace('-', "_")
}

/// What the person says who opens a door: `--permission NAME=allow|ask|deny` and `--enable NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoorPermissions {
    permissions: BTreeMap<String, Permission>,
    enabled: BTreeSet<String>,
}

impl DoorPermissions {
    /// Enables tools whose names a flow says.
    pub fn enabling(tools: &[&str]) -> DoorPermissions {
        DoorPermissions {
            enabled: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            ..DoorPermissions::default()
        }
    }

    /// Reads options.
    ///
    /// # Errors
    /// What is wrong with the first one that cannot be read.
    pub fn read(permissions: &[String], enabled: &[String]) -> Result<DoorPermissions, String> {
        let mut door = DoorPermissions::default();
        for given in permissions {
            let (tool, permission) = given
                .split_once('=')
                .ok_or_else(|| format!("expected NAME=allow|ask|deny, got `{given}`"))?;
            let permission = Permission::named(permission)
                .ok_or_else(|| format!("expected allow, ask or deny, got `{permission}`"))?;
            door.permissions.insert(known(tool)?, permission);
        }
        for tool in enabled {
            door.enabled.insert(known(tool)?);
        }
        Ok(door)
    }
}

fn known(tool: &str) -> Result<String, String> {
    let name = spelled(tool);
    match catalog::find(&name) {
        Some(_) => Ok(name),
        None => Err(match nearest(&name, catalog::names()) {
            Some(near) => format!("the kit has no tool `{tool}`; did you mean `{near}`?"),
            None => format!("the kit has no tool `{tool}`"),
        }),
    }
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub tool: &'static str,
    /// The bound flow.
    pub target: Option<String>,
    pub arguments: Json,
    /// What the arguments do not say, such as the revision that a schedule is bound to.
    pub note: Option<String>,
    /// What an answer is bound to.
    pub digest: String,
    /// What the door repeats with the answer, if it keeps nothing itself: see [`elicit`].
    pub state: Option<String>,
}

impl Question {
    /// Returns the question about a call.
    ///
    /// # Errors
    /// When the call could not be made, because the flow has no revision.
    pub async fn about(
        cx: &KitCall<'_>,
        tool: &Tool,
        arguments: &Arguments,
    ) -> Result<Question, KitError> {
        let arguments = Json::Object(arguments.clone());
        let target = cx.bound.map(str::to_owned);
        let note = match tool.name {
            "create_schedule" | "create_subscription" | "test_run" => {
                Some(trigger::pinned(cx).await?)
            }
            _ => None,
        };
        let whole = json!([
            tool.name,
            arguments,
            cx.workspace,
            target,
            cx.token.id,
            note
        ]);
        Ok(Question {
            tool: tool.name,
            target,
            digest: digest_bytes(sorted(&whole).to_string().as_bytes()),
            arguments,
            note,
            state: None,
        })
    }

    /// Returns the question without the arguments.
    pub fn headline(&self) -> String {
        let target = match &self.target {
            Some(slug) => format!(" on the flow `{slug}`"),
            None => String::new(),
        };
        let note = self.note.as_ref();
        let note = note.map_or_else(String::new, |note| format!(" {note}"));
        format!("Allow `{}`{target}?{note}", self.tool)
    }

    /// Returns the question as a person reads it.
    pub fn text(&self) -> String {
        let mut arguments = String::new();
        // The text of the flow comes first, so that no other file can push it out of sight.
        let main = format!("/delta/set/parameters/files/{MAIN_FILE}");
        if let Some(text) = self.arguments.pointer(&main).and_then(Json::as_str) {
            arguments = format!("{MAIN_FILE}:\n{text}\n");
        }
        arguments += &format!("{:#}", self.arguments);
        let arguments = visible(&arguments);
        let count = arguments.chars().count();
        let arguments = match arguments.char_indices().nth(MOST_SHOWN) {
            Some((end, _)) => format!(
                "{}\n({} characters of {count} are not shown)",
                &arguments[..end],
                count - MOST_SHOWN
            ),
            None => arguments,
        };
        format!("{}\n{arguments}", self.headline())
    }
}

/// Returns a text with characters escaped that do not show, or that change the order in which others show. Lines stay.
fn visible(text: &str) -> String {
    let is_hidden = |letter: char| {
        let is_format = matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        );
        is_format || letter.is_control() && letter != '\n' && letter != '\t'
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown
}

/// Returns JSON with the members of objects sorted.
fn sorted(json: &Json) -> Json {
    match json {
        Json::Array(items) => items.iter().map(sorted).collect(),
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let members = members.into_iter();
            Json::Object(
                members
                    .map(|(name, it)| (name.clone(), sorted(it)))
                    .collect(),
            )
        }
        plain => plain.clone(),
    }
}

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
        (Some(_), Some(stored)) => Err(required(cx, question.tool, stored)),
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
            _ => open += usize::from(row["token"] == json!(cx.token.id)),
        }
    }
    if open >= OPEN_MAX {
        return Ok(KitError::limit_exceeded(
            format!("{open} calls of this token wait for a person already"),
            60,
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
    Ok(required(cx, question.tool, &row))
}

fn required(cx: &KitCall<'_>, tool: &str, row: &Json) -> KitError {
    let id = row["id"].as_str().unwrap_or_default();
    let base = cx.origin.base.as_deref().filter(|base| !base.is_empty());
    let url = base.map(|base| format!("{base}/api/tools/approvals/{id}"));
    let expires = row["expires_ms"].as_i64().map(instant);
    KitError::approval_required(
        tool,
        json!({
            "approval_id": id,
            "digest": row["digest"],
            "url": url,
            "command": format!("flowstone kit approve {id}"),
            "expires_at": expires,
        }),
    )
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
    let none = || KitError::not_found(format!("there is no open approval `{id}`"));
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
    let mut row = stored((engine, catalog), id, decider).await?;
    let token = decider.token.as_ref().map(|token| &*token.id);
    if token.is_some() && row["token"].as_str() == token {
        return Err(KitError::permission_denied(
            "the token that asked cannot approve its own call",
        ));
    }
    let digest = row["digest"].as_str().unwrap_or_default().to_owned();
    let nonce = row["nonce"].as_str().unwrap_or_default();
    let decision = format!("{digest}/{nonce}/decision");
    let at = json!({"at": engine.now_ms()});
    if row["status"] != json!("open") || !USED.insert(engine, &decision, &at).await? {
        return Err(KitError::permission_denied(format!(
            "the approval `{id}` was decided already"
        )));
    }
    let status = match is_approved {
        true => "approved",
        false => "denied",
    };
    row["status"] = json!(status);
    row["decided_by"] = json!(decider.name);
    APPROVALS.put(engine, &digest, &row).await?;
    tracing::info!(target: "flowstone::kit", id, status, by = %decider.name, "a call was decided");
    Ok(shown(&row))
}
