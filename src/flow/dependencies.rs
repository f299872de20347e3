//! Shared code from outside a project: `:deps` of its settings.
//!
//! A dependency is a folder, or a revision of a git repository. The Clojure files of a revision have a digest; they are kept in a
//! folder of the project that is named after it, so what is read there is what the settings ask for. Nothing is fetched here.

use std::path::{Component, Path, PathBuf};

use flowstone_lang::value::Value;

use crate::codec::Digester;
use crate::flow::name_of;

/// The folder of a project in which fetched dependencies are kept.
const KEPT: &str = ".flowstone/deps";
/// The prefix of a digest.
const SHA256: &str = "sha256:";
/// The keys of a dependency in a folder, and in a git repository.
const OF_FOLDER: &[&str] = &["path"];
const OF_GIT: &[&str] = &["digest", "git", "rev", "root"];

/// A dependency of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub origin: Origin,
}

/// Where a dependency comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A folder, relative to the project.
    Folder(String),
    Git(Revision),
}

/// A revision of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// An address, or a folder relative to the project.
    pub repo: String,
    /// The full hash of the commit.
    pub commit: String,
    /// The folder with namespaces in the repository; empty for the whole.
    pub root: String,
    /// The digest of the Clojure files, `sha256:` and 64 digits, if the settings have it.
    pub digest: Option<String>,
}

impl Dependency {
    /// Returns the folder with the namespaces. `None`: its digest is not known yet.
    pub fn folder(&self, project: &Path) -> Option<PathBuf> {
        match &self.origin {
            Origin::Folder(path) => Some(project.join(path)),
            Origin::Git(revision) => {
                let digest = revision.digest.as_ref()?.strip_prefix(SHA256)?;
                Some(project.join(KEPT).join(digest))
            }
        }
    }
}

/// Reads the dependencies that the settings of a project name, in the order of their names.
///
/// # Errors
/// What is wrong with them.
pub fn dependencies(settings: &Value) -> Result<Vec<Dependency>, String> {
    let Some(deps) = settings.get("deps").filter(|deps| !deps.is_nil()) else {
        return Ok(Vec::new());
    };
    let Some(map) = deps.as_map() else {
        return Err(format!("`:deps` takes a map, not {}", deps.kind()));
    };
    let mut found = Vec::new();
    for (name, origin) in map.iter() {
        let Some(name) = name_of(name) else {
            return Err(format!(
                "`:deps` has {}: a dependency is named by a symbol",
                name.kind()
            ));
        };
        let origin = Origin::read(origin).map_err(|why| format!("`:deps {name}` {why}"))?;
        let name = name.to_string();
        found.push(Dependency { name, origin });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

impl Origin {
    fn read(value: &Value) -> Result<Origin, String> {
        let usage = "takes {:path \"../folder\"}, or {:git \"address\" :rev \"commit\" :digest \"sha256:...\"}";
        let Some(map) = value.as_map() else {
            return Err(format!("{usage}, not {}", value.kind()));
        };
        let known = match (value.get("path"), value.get("git")) {
            (Some(_), None) => OF_FOLDER,
            (None, Some(_)) => OF_GIT,
            (Some(_), Some(_)) => return Err("has both `:path` and `:git`".to_owned()),
            (None, None) => return Err(usage.to_owned()),
        };
        for (key, value) in map.iter() {
            let key = name_of(key).unwrap_or_else(|| "?".into());
            if !known.contains(&&*key) {
                let known: Vec<String> = known.iter().map(|key| format!("`:{key}`")).collect();
                return Err(format!(
                    "has no key `:{key}`; it takes {}",
                    known.join(", ")
                ));
            }
            if value.as_str().is_none_or(str::is_empty) {
                return Err(format!("has {} as `:{key}`, which is a text", value.kind()));
            }
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(path) = text("path") {
            return Ok(Origin::Folder(path));
        }
        let revision = Revision {
            repo: text("git").unwrap_or_default(),
            commit: text("rev").unwrap_or_default(),
            root: text("root").unwrap_or_default(),
            digest: text("digest"),
        };
        revision.check()?;
        Ok(Origin::Git(revision))
    }
}

impl Revision {
    fn check(&self) -> Result<(), String> {
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        if !is_hex(&self.commit, 40) && !is_hex(&self.commit, 64) {
            return Err(
                "needs `:rev`, the full hash of a commit: 40 digits, as `git rev-parse HEAD` prints it"
                    .to_owned(),
            );
        }
        let digest = self.digest.as_deref().map(|text| text.strip_prefix(SHA256));
        if digest.is_some_and(|digest| digest.is_none_or(|hex| !is_hex(hex, 64))) {
            return Err(
                "has a `:digest` that is not `sha256:` and 64 digits; `flowstone deps` prints the right one"
                    .to_owned(),
            );
        }
        let parts = Path::new(&self.root).components();
        let mut outside = parts.filter(|part| !matches!(part, Component::Normal(_)));
        match outside.next() {
            Some(_) => Err(format!(
                "has `:root \"{}\"`, which is not a folder in the repository",
                self.root
            )),
            None => Ok(()),
        }
    }
}

/// Tells whether a file of a dependency is kept: a namespace of Clojure.
pub fn is_code(path: &str) -> bool {
    path.ends_with(".clj") || path.ends_with(".cljc")
}

/// Returns the digest of files, given in the order of their paths.
pub fn digest<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut digester = Digester::default();
    for (path, bytes) in files {
        digester.add(format!("{path}\n{}\n", bytes.len()).as_bytes());
        digester.add(bytes);
    }
    format!("{SHA256}{}", digester.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Dependency>, String> {
        dependencies(&crate::codec::decode(text).expect("data"))
    }

    #[test]
    fn dependencies_are_read_in_the_order_of_their_names() {
        let rev = "0123456789abcdef0123456789abcdef01234567";
        let found = read(&format!(
            "{{:deps {{b {{:path \"../b\"}} acme/a {{:git \"https://example.com/a\" :rev \"{rev}\" :root \"src\"}}}}}}"
        ));
        let found = found.expect("they are right");
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["acme/a", "b"]);
        assert_eq!(found[0].folder(Path::new("/p")), None);
        assert_eq!(
            found[1].folder(Path::new("/p")),
            Some(PathBuf::from("/p/../b"))
        );
    }

    #[test]
    fn a_malformed_dependency_is_refused() {
        let rev = "0123456789abcdef0123456789abcdef01234567";
        for (text, part) in [
            ("[1]", "takes a map"),
            ("{1 {:path \"x\"}}", "named by a symbol"),
            ("{a \"x\"}", "`:deps a` takes {:path"),
            ("{a {}}", "takes {:path"),
            ("{a {:path \"x\" :git \"y\"}}", "both"),
            ("{a {:path \"x\" :rev \"y\"}}", "no key `:rev`"),
            ("{a {:path 1}}", "which is a text"),
            ("{a {:git \"x\"}}", "needs `:rev`"),
            ("{a {:git \"x\" :rev \"main\"}}", "full hash"),
            (
                &format!("{{a {{:git \"x\" :rev \"{rev}\" :digest \"sha256:1\"}}}}"),
                "64 digits",
            ),
            (
                &format!("{{a {{:git \"x\" :rev \"{rev}\" :root \"../y\"}}}}"),
                "not a folder",
            ),
        ] {
            let why = read(&format!("{{:deps {text}}}")).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn the_digest_covers_names_and_contents() {
        let of = |files: &[(&'static str, &'static str)]| {
            digest(files.iter().map(|(path, text)| (*path, text.as_bytes())))
        };
        let one = of(&[("a.clj", "1")]);
        assert!(one.starts_with("sha256:") && one.len() == 71);
        assert_ne!(one, of(&[("a.clj", "2")]));
        assert_ne!(one, of(&[("b.clj", "1")]));
        assert_ne!(of(&[("a", "1b\n0\n")]), of(&[("a", "1"), ("b", "")]));
    }
}
