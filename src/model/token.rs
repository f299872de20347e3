//! Access tokens: who may use the server, and which operations they may call.
//!
//! A token is a text `fst_<id>_<secret>`. The id names its row; only a digest of the secret is stored. Its scopes and
//! limits decide what a token permits, here and nowhere else.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::installation::{InstalledFlow, Namespace, Side};
use crate::registry::DEFAULT_WORKSPACE;

/// Prefix of every token.
const PREFIX: &str = "fst";
/// Prefix under which API keys show the same token.
const API_KEY: &str = "sk";
/// Number of random bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Number of random bytes of an id.
const ID_BYTES: usize = 6;

/// A right that a token grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Manage tokens, test connections, write profiles; includes all other scopes.
    Admin,
    /// Decide open waits.
    Approve,
    /// Check new code, change stored files and tables.
    Edit,
    /// List and show runs, follow events, read contents.
    Read,
    /// Start, cancel, resume and fork runs; send signals; upload files.
    Run,
    /// Claim and complete jobs.
    Work,
}

impl Scope {
    /// All scopes with their names on the command line and in the API.
    pub const NAMES: &'static [(Scope, &'static str)] = &[
        (Scope::Admin, "admin"),
        (Scope::Approve, "approve"),
        (Scope::Edit, "edit"),
        (Scope::Read, "read"),
        (Scope::Run, "run"),
        (Scope::Work, "work"),
    ];

    /// Returns the name of the scope.
    pub fn name(self) -> &'static str {
        let found = Scope::NAMES.iter().find(|(scope, _)| *scope == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the scope of a name.
    pub fn named(name: &str) -> Option<Scope> {
        let found = Scope::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(scope, _)| *scope)
    }
}

/// The kind of holder of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A key of an app, for callers that the app does not know.
    Anon,
    /// The owner of the project, on this machine.
    Owner,
    /// A program.
    Service,
    /// A person who is signed in to an app.
    User,
}

impl TokenKind {
    /// All kinds with their names on the command line and in the API.
    pub const NAMES: &'static [(TokenKind, &'static str)] = &[
        (TokenKind::Anon, "anon"),
        (TokenKind::Owner, "owner"),
        (TokenKind::Service, "service"),
        (TokenKind::User, "user"),
    ];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        let found = TokenKind::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the kind of a name.
    pub fn named(name: &str) -> Option<TokenKind> {
        let found = TokenKind::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }

    /// Returns the default scopes of a token of this kind.
    pub fn default_scopes(self) -> &'static [Scope] {
        match self {
            TokenKind::Owner => &[Scope::Admin],
            TokenKind::Service => &[],
            TokenKind::User => &[Scope::Read, Scope::Run],
            TokenKind::Anon => &[Scope::Run],
        }
    }
}

/// The parts of a project that a token reaches. An empty list is not a restriction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Slugs of flows; `*` matches any text.
    pub flows: Vec<String>,
    /// Tags of flows.
    pub labels: Vec<String>,
    /// Prefixes of the names of resources, tables and keys.
    pub resources: Vec<String>,
    /// Types of jobs.
    pub job_types: Vec<String>,
    /// The workspace that the token belongs to; `None`: [`DEFAULT_WORKSPACE`].
    pub workspace: Option<String>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub kind: TokenKind,
    /// The scopes, sorted and without duplicates.
    pub scopes: Vec<Scope>,
    pub limits: TokenLimits,
    /// Roles with which the holder decides waits.
    pub roles: Vec<String>,
    /// The person that the token represents, for tokens of kind `user`.
    pub subject: Option<String>,
    pub created_ms: i64,
    /// When the token expires, in milliseconds since 1970; `None`: never.
    pub expires_ms: Option<i64>,
    /// When the token was last used, to the minute.
    pub used_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
}

impl Token {
    /// Tells whether the token can be used at a time.
    pub fn is_valid(&self, now_ms: i64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|expires| now_ms < expires)
    }

    /// Tells whether the token grants a scope.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Returns the workspace that the token belongs to.
    pub fn workspace(&self) -> &str {
        let own = self.limits.workspace.as_deref();
        own.unwrap_or(DEFAULT_WORKSPACE)
    }

    /// Tells whether the token is that of the operator of the home, who sees all workspaces.
    pub fn is_operator(&self) -> bool {
        self.kind == TokenKind::Owner && self.limits.workspace.is_none()
    }

    /// Returns what the holder may see of a flow, by the name that its runs have, as far as workspaces decide.
    pub fn side(&self, flow: &str) -> Side {
        match self.is_operator() {
            true => Side::Whole,
            false => Side::of(self.workspace(), flow),
        }
    }

    /// Tells whether what is in a part of the stores may be seen, as far as workspaces decide.
    pub fn reaches_namespace(&self, namespace: &Namespace) -> bool {
        self.is_operator()
            || match namespace {
                Namespace::Project => self.workspace() == DEFAULT_WORKSPACE,
                Namespace::Installation(at) => self.workspace() == at.workspace,
            }
    }

    /// Tells whether the token is limited to some flows of its workspace.
    pub fn names_flows(&self) -> bool {
        !self.limits.flows.is_empty() || !self.limits.labels.is_empty()
    }

    /// Tells whether the token is limited to some flows, or to a workspace.
    pub fn is_limited_to_flows(&self) -> bool {
        self.names_flows() || self.workspace() != DEFAULT_WORKSPACE
    }

    /// Tells whether the token reaches all that belongs to a flow. If it is limited by flows and by labels, the flow must satisfy
    /// both. Of an installed flow, each side reaches only some things: see [`Token::reaches_side`].
    pub fn reaches_flow(&self, slug: &str, labels: &[String]) -> bool {
        self.side(slug).is_whole() && self.names_flow(slug, labels)
    }

    /// Returns the side of the token on a flow; [`Side::Neither`] if its limits leave the flow out.
    pub fn reaches_side(&self, slug: &str, labels: &[String]) -> Side {
        match self.names_flow(slug, labels) {
            true => self.side(slug),
            false => Side::Neither,
        }
    }

    fn names_flow(&self, slug: &str, labels: &[String]) -> bool {
        let flows = &self.limits.flows;
        let installed = InstalledFlow::read(slug);
        let own = installed.as_ref().map(|installed| &*installed.flow.slug);
        let fits = |pattern: &String| {
            matches(pattern, slug) || own.is_some_and(|own| matches(pattern, own))
        };
        let by_name = flows.is_empty() || flows.iter().any(fits);
        let wanted = &self.limits.labels;
        let by_label = wanted.is_empty() || wanted.iter().any(|label| labels.contains(label));
        by_name && by_label
    }

    /// Tells whether the token reaches a resource, a table or a key. A token that is limited to flows reaches only
    /// those that its own list names.
    pub fn reaches_resource(&self, name: &str) -> bool {
        let named = &self.limits.resources;
        match named.is_empty() {
            true => !self.is_limited_to_flows(),
            false => named.iter().any(|prefix| name.starts_with(prefix.as_str())),
        }
    }

    /// Tells whether the token reaches jobs of a type.
    pub fn reaches_job(&self, kind: &str) -> bool {
        let types = &self.limits.job_types;
        types.is_empty() || types.iter().any(|known| known == kind)
    }

    /// Tells whether this token may create another one: it must be an administrator's, reach at least as much, and have the
    /// roles that it passes on. The owner of the project may pass on any role.
    pub fn may_create(&self, other: &Token) -> bool {
        let is_owner = self.kind == TokenKind::Owner;
        self.has(Scope::Admin)
            && (other.kind != TokenKind::Owner || is_owner)
            && (is_owner || other.roles.iter().all(|role| self.roles.contains(role)))
            && self.covers(other)
    }

    /// Tells whether all that another token reaches is within the reach of this one. Their scopes and roles are not compared.
    pub fn covers(&self, other: &Token) -> bool {
        let within = |own: &[String], wanted: &[String]| {
            own.is_empty() || (!wanted.is_empty() && wanted.iter().all(|one| own.contains(one)))
        };
        let (own, wanted) = (&self.limits, &other.limits);
        let is_same_person = other.has_own_runs_only() && other.runs_of() == self.runs_of();
        (!self.has_own_runs_only() || is_same_person)
            && (self.is_operator() || self.workspace() == other.workspace())
            && within(&own.flows, &wanted.flows)
            && within(&own.labels, &wanted.labels)
            && self.covers_resources(other)
            && within(&own.job_types, &wanted.job_types)
    }

    fn covers_resources(&self, other: &Token) -> bool {
        let own = &self.limits.resources;
        let wanted = &other.limits.resources;
        if own.is_empty() {
            // Such a token reaches all resources, or none.
            return wanted.is_empty() || (!self.is_limited_to_flows() && !self.has_own_runs_only());
        }
        let is_within = |wanted: &String| own.iter().any(|own| wanted.starts_with(own.as_str()));
        !wanted.is_empty() && wanted.iter().all(is_within)
    }

    /// Tells whether the token is that of a person or of an app's visitor, who reaches only runs of their own.
    pub fn has_own_runs_only(&self) -> bool {
        match self.kind {
            TokenKind::User | TokenKind::Anon => true,
            TokenKind::Owner | TokenKind::Service => false,
        }
    }

    /// Returns what runs that are started with this token have as the one who started them. A person, a visitor and a
    /// program with the same name are told apart, because people and visitors reach runs of their own only.
    pub fn runs_of(&self) -> String {
        match (self.kind, &self.subject) {
            (TokenKind::Owner | TokenKind::Service, _) => format!("api:{}", self.attributed_to()),
            (TokenKind::User | TokenKind::Anon, Some(subject)) => format!("user:{subject}"),
            (TokenKind::User | TokenKind::Anon, None) => format!("anon:{}", self.name),
        }
    }

    /// Returns the name to which decisions and starts with this token are attributed.
    pub fn attributed_to(&self) -> &str {
        self.subject.as_deref().unwrap_or(&self.name)
    }
}

/// Matches a slug with a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len())
        .filter(|start| text.is_char_boundary(*start))
        .any(|start| matches(rest, &text[start..]))
}

/// The text of a token, with its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    pub id: String,
    secret: String,
}

impl TokenText {
    /// Creates a random token.
    ///
    /// # Errors
    /// When the operating system cannot provide random bytes.
    pub fn random() -> Result<TokenText, getrandom::Error> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(TokenText {
            // The id has only letters and digits, because `_` separates the parts.
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            secret: URL_SAFE_NO_PAD.encode(secret),
        })
    }

    /// Splits the text of a token into its parts; `None` if it is not the text of a token.
    pub fn parse(text: &str) -> Option<TokenText> {
        let mut parts = text.splitn(3, '_');
        let (prefix, id, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let decoded = URL_SAFE_NO_PAD.decode(secret).ok()?;
        ([PREFIX, API_KEY].contains(&prefix) && is_id && decoded.len() == SECRET_BYTES).then(|| {
            TokenText {
                id: id.to_owned(),
                secret: secret.to_owned(),
            }
        })
    }

    /// Returns the digest of the secret, which is stored.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// Tells in constant time whether the secret has this digest.
    pub fn has_digest(&self, digest: &[u8]) -> bool {
        let own = self.digest();
        let differing = own
            .iter()
            .zip(digest)
            .fold(0_u8, |sum, (one, other)| sum | (one ^ other));
        digest.len() == own.len() && differing == 0
    }

    /// Returns the complete text. It is shown once, to the person who creates the token.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, self.secret)
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(scopes: &[Scope], limits: TokenLimits) -> Token {
        Token {
            id: "0a".to_owned(),
            name: "ci".to_owned(),
            kind: TokenKind::Service,
            scopes: scopes.to_vec(),
            limits,
            roles: Vec::new(),
            subject: None,
            created_ms: 0,
            expires_ms: Some(100),
            used_ms: None,
            revoked_ms: None,
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_token_can_be_parsed_and_matches_only_its_own_secret() {
        let one = TokenText::random().expect("random bytes");
        let other = TokenText::random().expect("random bytes");
        let read = TokenText::parse(&one.reveal()).expect("its own text");
        assert_eq!(read, one);
        assert!(read.has_digest(&one.digest()));
        assert!(!read.has_digest(&other.digest()));
        assert!(!read.has_digest(&one.digest()[..31]));
        assert!(!format!("{one:?}").contains(&one.secret));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        let good = TokenText::random().expect("random bytes").reveal();
        let cut = &good[..good.len() - 1];
        for text in [
            "",
            "fst",
            "fst_",
            "fst__",
            "fst_0123456789ab_",
            "abc_0123456789ab_x",
            cut,
        ] {
            assert_eq!(TokenText::parse(text), None, "{text}");
        }
        assert_eq!(TokenText::parse(&format!("{good}=")), None);
        assert_eq!(TokenText::parse(&format!(" {good}")), None);
    }

    #[test]
    fn scopes_are_not_ordered_except_that_admin_includes_all() {
        let run = token(&[Scope::Run], TokenLimits::default());
        assert!(run.has(Scope::Run) && !run.has(Scope::Read) && !run.has(Scope::Admin));
        let admin = token(&[Scope::Admin], TokenLimits::default());
        assert!(Scope::NAMES.iter().all(|(scope, _)| admin.has(*scope)));
    }

    #[test]
    fn limits_by_flow_and_by_label_must_both_hold() {
        let flows = texts(&["pay-*", "refund"]);
        let limited = token(
            &[Scope::Run],
            TokenLimits {
                flows: flows.clone(),
                labels: texts(&["money"]),
                ..TokenLimits::default()
            },
        );
        let money = texts(&["money"]);
        assert!(limited.reaches_flow("pay-out", &money));
        assert!(limited.reaches_flow("refund", &money));
        assert!(!limited.reaches_flow("pay-out", &[]));
        assert!(!limited.reaches_flow("repay-out", &money));
        assert!(!limited.reaches_flow("refunds", &money));
        let by_flow = token(
            &[Scope::Run],
            TokenLimits {
                flows,
                ..TokenLimits::default()
            },
        );
        assert!(by_flow.reaches_flow("pay-", &[]));
        assert!(!by_flow.reaches_resource("res://v1/ws/local/a"));
    }

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*b*", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("ab", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn an_expired_or_revoked_token_is_not_valid() {
        let mut it = token(&[Scope::Run], TokenLimits::default());
        assert!(it.is_valid(99));
        assert!(!it.is_valid(100));
        it.expires_ms = None;
        assert!(it.is_valid(i64::MAX));
        it.revoked_ms = Some(5);
        assert!(!it.is_valid(4));
    }

    #[test]
    fn a_token_cannot_create_one_with_more_rights() {
        let own = TokenLimits {
            flows: texts(&["pay"]),
            ..TokenLimits::default()
        };
        let admin = token(&[Scope::Admin], own.clone());
        assert!(admin.may_create(&token(&[Scope::Admin], own.clone())));
        assert!(!admin.may_create(&token(&[Scope::Read], TokenLimits::default())));
        let other = TokenLimits {
            flows: texts(&["pay", "refund"]),
            ..TokenLimits::default()
        };
        assert!(!admin.may_create(&token(&[Scope::Read], other)));
        assert!(!token(&[Scope::Run], own.clone()).may_create(&token(&[Scope::Run], own.clone())));
        let mut owner = token(&[Scope::Read], own);
        owner.kind = TokenKind::Owner;
        assert!(!admin.may_create(&owner));
    }

    #[test]
    fn no_limit_is_widened_by_creating_a_token() {
        let limits = |of: usize, texts: &[&str]| {
            let mut limits = TokenLimits::default();
            let lists = [
                &mut limits.flows,
                &mut limits.labels,
                &mut limits.resources,
                &mut limits.job_types,
            ];
            for (idx, list) in lists.into_iter().enumerate() {
                if idx == of {
                    list.extend(texts.iter().map(|text| (*text).to_owned()));
                }
            }
            token(&[Scope::Admin], limits)
        };
        for dimension in 0..4 {
            let admin = limits(dimension, &["a", "b"]);
            assert!(admin.may_create(&limits(dimension, &["b"])), "{dimension}");
            for wider in [&["c"][..], &["a", "c"], &["*"], &[]] {
                let wider = limits(dimension, wider);
                assert!(!admin.may_create(&wider), "{dimension} {wider:?}");
            }
        }
        // A token that is limited to flows reaches no resources unless its own list names some.
        let (by_flow, mut with_files) = (limits(0, &["a"]), limits(0, &["a"]));
        with_files.limits.resources = texts(&["reports/"]);
        assert!(!by_flow.may_create(&with_files));
        assert!(with_files.may_create(&with_files));
        with_files.limits.resources = texts(&["reports/2026/"]);
        let mut admin = by_flow.clone();
        admin.limits.resources = texts(&["reports/"]);
        assert!(admin.may_create(&with_files));
        with_files.limits.resources = texts(&["rep"]);
        assert!(!admin.may_create(&with_files));
    }

    #[test]
    fn a_person_creates_no_token_for_others_and_nobody_passes_on_a_role_of_others() {
        let person = |subject: &str| {
            let mut it = token(&[Scope::Admin], TokenLimits::default());
            it.kind = TokenKind::User;
            it.subject = Some(subject.to_owned());
            it
        };
        assert!(person("ada").may_create(&person("ada")));
        assert!(!person("ada").may_create(&person("bob")));
        let mut visitor = token(&[Scope::Run], TokenLimits::default());
        visitor.kind = TokenKind::Anon;
        visitor.name = "ada".to_owned();
        assert!(!person("ada").may_create(&visitor));
        let service = token(&[Scope::Admin], TokenLimits::default());
        assert!(!person("ada").may_create(&service));
        assert!(service.may_create(&person("ada")));
        let mut treasurer = token(&[Scope::Approve], TokenLimits::default());
        treasurer.roles = texts(&["treasurer"]);
        assert!(!service.may_create(&treasurer));
        let mut owner = service.clone();
        owner.kind = TokenKind::Owner;
        assert!(owner.may_create(&treasurer));
    }

    #[test]
    fn runs_of_a_person_are_not_those_of_a_program_with_the_same_name() {
        let program = token(&[Scope::Run], TokenLimits::default());
        let (mut person, mut visitor) = (program.clone(), program.clone());
        person.kind = TokenKind::User;
        person.subject = Some(program.name.clone());
        visitor.kind = TokenKind::Anon;
        let all = [&program, &person, &visitor].map(Token::runs_of);
        assert_eq!(all, ["api:ci", "user:ci", "anon:ci"]);
    }
}
