//! Installations: flows of an author that somebody else runs, with connections and setup values of their own.
//!
//! A home has workspaces. An installation belongs to the workspace of its installer and has a name there; its flow belongs
//! to the workspace of the author. Names distinguish what the runs of an installation keep: the flow of such a run is
//! called [`InstalledFlow`], and its tables and keys have a [`Namespace`]. A name therefore shows both sides, and nothing
//! has to be looked up.

use std::collections::BTreeMap;
use std::fmt;

use crate::registry::{DEFAULT_WORKSPACE, FlowName};

/// Begins the names of workspaces that hold a package.
pub const PACKAGE: &str = "pkg-";
/// Maximum number of characters in the name of a workspace or an installation.
const MOST_NAME: usize = 60;
/// Begins the keys of all installations.
const KEYS: &str = "installation:";
/// Begins the names of the tables of all installations.
const TABLES: &str = "installation/";

/// The name of an installation, in the workspace of its installer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstallationName {
    pub workspace: String,
    pub name: String,
}

impl InstallationName {
    /// Returns the part of the stores that the installation has for itself.
    pub fn namespace(&self) -> Namespace {
        Namespace::Installation(self.clone())
    }
}

impl fmt::Display for InstallationName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.workspace {
            DEFAULT_WORKSPACE => out.write_str(&self.name),
            workspace => write!(out, "{workspace}/{}", self.name),
        }
    }
}

/// Tells whether a text can name a workspace or an installation: lower-case letters, digits and `-`.
pub fn is_name(text: &str) -> bool {
    let is_inner = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    text.len() <= MOST_NAME
        && text.starts_with(|char: char| char.is_ascii_alphanumeric())
        && text.chars().all(is_inner)
}

/// Returns the name of the workspace of a package, by the digest of its content.
pub fn package_workspace(content: &str) -> String {
    format!("{PACKAGE}{}", content.get(..32).unwrap_or(content))
}

/// An installation with its flow: the name of the flow of its runs, `[AUTHOR/]SLUG@[INSTALLER/]NAME`. The workspace
/// [`DEFAULT_WORKSPACE`] is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledFlow {
    pub flow: FlowName,
    pub at: InstallationName,
}

impl InstalledFlow {
    /// Reads the name of the flow of a run. Returns `None` if the run is of no installation.
    pub fn read(text: &str) -> Option<InstalledFlow> {
        let (flow, at) = text.split_once('@')?;
        let (workspace, slug) = flow.split_once('/').unwrap_or((DEFAULT_WORKSPACE, flow));
        let (installer, name) = at.split_once('/').unwrap_or((DEFAULT_WORKSPACE, at));
        // Paths of files of other formats may have the sign, too.
        let is_good = is_name(workspace) && is_name(installer) && is_name(name);
        if !is_good || slug.is_empty() || slug.contains('/') {
            return None;
        }
        Some(InstalledFlow {
            flow: FlowName {
                workspace: workspace.to_owned(),
                slug: slug.to_owned(),
            },
            at: InstallationName {
                workspace: installer.to_owned(),
                name: name.to_owned(),
            },
        })
    }

    /// Returns the name of another flow of the same author, as the installation runs it.
    #[must_use]
    pub fn calling(&self, slug: &str) -> InstalledFlow {
        InstalledFlow {
            flow: FlowName {
                workspace: self.flow.workspace.clone(),
                slug: slug.to_owned(),
            },
            at: self.at.clone(),
        }
    }
}

impl fmt::Display for InstalledFlow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.flow, self.at)
    }
}

/// What somebody may see of what belongs to the flow of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Everything: a flow of the own workspace, or of an installation of which both sides are the own one.
    Whole,
    /// What belongs to the author of an installed flow: what its agents do, remember and cost.
    Author,
    /// What belongs to the installer: input, outcome, waits, data.
    Installer,
    /// Nothing, not even that it is there.
    Neither,
}

impl Side {
    /// Returns the side of a workspace on a flow, by the name that runs have.
    pub fn of(workspace: &str, flow: &str) -> Side {
        let Some(installed) = InstalledFlow::read(flow) else {
            return match workspace {
                DEFAULT_WORKSPACE => Side::Whole,
                _ => Side::Neither,
            };
        };
        match (
            installed.flow.workspace == workspace,
            installed.at.workspace == workspace,
        ) {
            (true, true) => Side::Whole,
            (true, false) => Side::Author,
            (false, true) => Side::Installer,
            (false, false) => Side::Neither,
        }
    }

    pub fn is_whole(self) -> bool {
        self == Side::Whole
    }

    /// Tells whether what belongs to the installer is seen.
    pub fn is_installer(self) -> bool {
        matches!(self, Side::Whole | Side::Installer)
    }

    /// Tells whether what belongs to the author is seen.
    pub fn is_author(self) -> bool {
        matches!(self, Side::Whole | Side::Author)
    }

    /// Tells whether it is known that there is something.
    pub fn is_any(self) -> bool {
        self != Side::Neither
    }
}

/// The part of the project's tables and keys that a run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// Everything but what installations have.
    Project,
    /// What one installation has.
    Installation(InstallationName),
}

impl Namespace {
    /// Returns the namespace of what the runs of a flow have.
    pub fn of_flow(flow: &str) -> Namespace {
        match InstalledFlow::read(flow) {
            Some(installed) => installed.at.namespace(),
            None => Namespace::Project,
        }
    }

    /// Returns the namespace of a stored table.
    pub fn of_table(stored: &str) -> Namespace {
        Namespace::of_parts(stored.strip_prefix(TABLES), '/')
    }

    /// Returns the namespace of a stored key.
    pub fn of_key(stored: &str) -> Namespace {
        Namespace::of_parts(stored.strip_prefix(KEYS), ':')
    }

    fn of_parts(rest: Option<&str>, separator: char) -> Namespace {
        let parts = rest.and_then(|rest| {
            let (workspace, rest) = rest.split_once(separator)?;
            let (name, _) = rest.split_once(separator)?;
            Some(InstallationName {
                workspace: workspace.to_owned(),
                name: name.to_owned(),
            })
        });
        parts.map_or(Namespace::Project, Namespace::Installation)
    }

    /// Returns the beginning of the names of its tables.
    pub fn tables(&self) -> String {
        match self {
            Namespace::Project => String::new(),
            Namespace::Installation(at) => format!("{TABLES}{}/{}/", at.workspace, at.name),
        }
    }

    /// Returns the beginning of its keys.
    pub fn keys(&self) -> String {
        match self {
            Namespace::Project => String::new(),
            Namespace::Installation(at) => format!("{KEYS}{}:{}:", at.workspace, at.name),
        }
    }

    /// Returns the name under which a table is stored that a flow names. A flow may name it as it is stored, too, because
    /// results of steps do. Returns `None` if it is of an installation, and this is the project.
    pub fn table(&self, name: &str) -> Option<String> {
        placed(&self.tables(), TABLES, name)
    }

    /// As [`Namespace::table`], of a key.
    pub fn key(&self, name: &str) -> Option<String> {
        placed(&self.keys(), KEYS, name)
    }
}

fn placed(own: &str, reserved: &str, name: &str) -> Option<String> {
    match own {
        "" if name.starts_with(reserved) => None,
        "" => Some(name.to_owned()),
        own if name.starts_with(own) => Some(name.to_owned()),
        own => Some(format!("{own}{name}")),
    }
}

/// An installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationRow {
    pub at: InstallationName,
    pub flow: FlowName,
    /// The version that its runs use.
    pub version: i64,
    /// The digest of the files of that version.
    pub content: String,
    /// Whether a new release is used at once, if it needs nothing more.
    pub auto_upgrade: bool,
    /// Whether the installer may read the text of the flow.
    pub is_readable: bool,
    /// Whether somebody has given it bindings or values.
    pub is_configured: bool,
    /// Names of connections, by slot.
    pub set: BTreeMap<String, String>,
    /// The values of the setup forms, a map as EDN text, with secrets encrypted as in the input of a run.
    pub setup: String,
    /// What the flow needed when somebody last agreed to it: a vector of texts, as EDN text.
    pub accepted: String,
    /// How many tokens models may use in all its runs together.
    pub max_tokens: Option<i64>,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// Counts the changes of the row: a change that was made from an earlier row is refused.
    pub changes: i64,
}

#[cfg(test)]
mod tests {
    use super::{InstalledFlow, Namespace, Side, is_name};

    #[test]
    fn the_flow_of_a_run_names_both_sides() {
        for text in [
            "report@main",
            "report@acme/main",
            "pkg-12/report@main",
            "pkg-12/report@acme/main",
        ] {
            let read = InstalledFlow::read(text).expect("an installation");
            assert_eq!(read.to_string(), text);
            assert_eq!(read.flow.slug, "report");
            assert_eq!(read.at.name, "main");
        }
        assert_eq!(InstalledFlow::read("report"), None);
        for other in [
            "trees/report.yaml",
            "trees/@x/a.yaml",
            "a@b/c/d",
            "@main",
            "a@",
            "a/b/c@d",
        ] {
            assert_eq!(InstalledFlow::read(other), None, "{other}");
        }
    }

    #[test]
    fn each_workspace_has_its_side() {
        for (workspace, flow, side) in [
            ("default", "report", Side::Whole),
            ("acme", "report", Side::Neither),
            ("default", "report@main", Side::Whole),
            ("default", "report@acme/main", Side::Author),
            ("acme", "report@acme/main", Side::Installer),
            ("beta", "report@acme/main", Side::Neither),
            ("default", "pkg-12/report@acme/main", Side::Neither),
            ("pkg-12", "pkg-12/report@acme/main", Side::Author),
            ("acme", "pkg-12/report@acme/main", Side::Installer),
        ] {
            assert_eq!(Side::of(workspace, flow), side, "{workspace} {flow}");
        }
    }

    #[test]
    fn names_of_one_namespace_never_lead_to_another() {
        let acme = Namespace::of_flow("report@acme/main");
        let beta = Namespace::of_flow("report@beta/main");
        let own = acme.table("orders").expect("a name");
        assert_eq!(own, "installation/acme/main/orders");
        assert_eq!(acme.table(&own).as_deref(), Some(&*own));
        assert_ne!(beta.table(&own).as_deref(), Some(&*own));
        assert_eq!(Namespace::Project.table(&own), None);
        assert_eq!(Namespace::of_table(&own), acme);
        let key = acme.key("seen").expect("a key");
        assert_eq!(key, "installation:acme:main:seen");
        assert_eq!(Namespace::of_key(&key), acme);
        assert_ne!(beta.key(&key).as_deref(), Some(&*key));
        assert_eq!(Namespace::Project.key(&key), None);
        assert_eq!(Namespace::Project.key("seen").as_deref(), Some("seen"));
        assert_eq!(Namespace::of_key("seen"), Namespace::Project);
    }

    #[test]
    fn names_have_no_separators() {
        assert!(is_name("acme-2"));
        for text in [
            "",
            "-a",
            "a/b",
            "a:b",
            "a@b",
            "A",
            "a b",
            "..",
            &"a".repeat(61),
        ] {
            assert!(!is_name(text), "{text}");
        }
    }
}
