//! Whether a call may be made: what a person allowed beforehand, and the question about a single call.
//!
//! Three sources may narrow a tool: the settings of the project, the person who opened the door, and the settings of a token. The
//! answer to a question belongs to exactly one call: its digest is made of tool, arguments, target and caller.

use std::collections::{BTreeMap, BTreeSet};

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

/// Maximum number of characters of the arguments in a question.
const MOST_SHOWN: usize = 20_000;
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

    /// Returns the permission of a tool as lists show it to a caller: `deny` also if the token may not call it, and `human` for
    /// what a person completes anyway.
    pub fn shown(&self, tool: &Tool, token: &Token) -> &'static str {
        let permission = match token.has(tool.scope) {
            true => self.of(tool),
            false => Permission::Deny,
        };
        match (permission, tool.is_human()) {
            (Permission::Allow, true) => "human",
            (permission, _) => permission.name(),
        }
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
    /// What the door repeats with the answer, if it keeps nothing itself: see [`super::approval::elicit`].
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
            "annotate_trace" => Some(format!(
                "It is written on the trace `{}`.",
                cx.trace().await?.trace
            )),
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
        format!("{}\n{}", self.headline(), shown_arguments(&self.arguments))
    }
}

/// Returns the arguments of a call as a person reads them. The text of the flow comes first, so that no other file can push it
/// out of sight.
pub fn shown_arguments(arguments: &Json) -> String {
    let main = format!("/delta/set/parameters/files/{MAIN_FILE}");
    let text = arguments.pointer(&main).and_then(Json::as_str);
    let text = text.map_or_else(String::new, |text| format!("{MAIN_FILE}:\n{text}\n"));
    let shown = visible(&format!("{text}{arguments:#}"));
    let count = shown.chars().count();
    match shown.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!(
            "{}\n({} characters of {count} are not shown)",
            &shown[..end],
            count - MOST_SHOWN
        ),
        None => shown,
    }
}

/// Returns a text with characters escaped that do not show, or that change the order in which others show. Lines stay.
pub fn visible(text: &str) -> String {
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
