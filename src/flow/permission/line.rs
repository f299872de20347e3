//! Descriptions of missing permissions for people: the line to add to `flowstone.edn`, and the option.

use std::path::Path;

use super::{ANY, Access, Allow, Host, Need, OwnRows, Trust};

/// A need that no row covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub access: Access,
    /// The item that the row has to name: a path, a host, a program, a variable; the hosts of a secret.
    pub item: String,
    /// The name of the secret, if the permission is for one.
    pub secret: Option<String>,
    /// Whether the need is a proxy's.
    pub is_proxy: bool,
    /// The flow whose own rows it belongs to; `None` for those of the project.
    pub own: Option<OwnRows>,
}

impl Missing {
    /// Returns the missing permission for a need.
    pub fn of(need: &Need) -> Missing {
        let (access, item, secret) = match need {
            Need::Read(path) => (Access::Read, path.display().to_string(), None),
            Need::Write(path) => (Access::Write, path.display().to_string(), None),
            Need::Net { host, .. } | Need::Proxy(host) => (Access::Net, row(host), None),
            Need::Secret { name, host } => (Access::Secret, row(host), Some(name.clone())),
            Need::Program(program) => (Access::Program, program.clone(), None),
            Need::Env(name) => (Access::Env, name.clone(), None),
        };
        Missing {
            access,
            item,
            secret,
            is_proxy: matches!(need, Need::Proxy(_)),
            own: None,
        }
    }

    /// Sets the flow whose rows it belongs to.
    #[must_use]
    pub fn in_rows_of(self, own: Option<&OwnRows>) -> Missing {
        Missing {
            own: own.cloned(),
            ..self
        }
    }

    /// Replaces a path inside the project's folder by its path relative to the folder.
    #[must_use]
    pub fn relative_to(mut self, root: &Path) -> Missing {
        if matches!(self.access, Access::Read | Access::Write)
            && let Ok(rest) = Path::new(&self.item).strip_prefix(root)
        {
            let rest = rest.display().to_string();
            self.item = match rest.is_empty() {
                true => ".".to_owned(),
                false => rest,
            };
        }
        self
    }

    /// Returns the denied action, as in "read /etc/hosts".
    pub fn action(&self) -> String {
        let item = shown(&self.item);
        match self.access {
            Access::Read => format!("read {item}"),
            Access::Write => format!("write {item}"),
            Access::Net if self.is_proxy => format!("use the proxy {item}"),
            Access::Net => format!("connect to {item}"),
            Access::Secret => {
                let secret = self.secret.as_deref().unwrap_or_default();
                format!("send the secret `{}` to {item}", shown(secret))
            }
            Access::Program => format!("start the program {item}"),
            Access::Env => format!("read the environment variable {item}"),
        }
    }

    /// Returns the map for `flowstone.edn` that allows only this.
    pub fn edn(&self) -> String {
        format!("{{:{} {}}}", self.access.key(), self.value())
    }

    /// Returns the missing row. `resolve` makes paths absolute.
    pub fn allow(&self, resolve: super::manifest::Resolve<'_>) -> Allow {
        let mut allow = Allow::default();
        let text = match &self.secret {
            Some(secret) => format!("{secret}={}", self.item),
            None => self.item.clone(),
        };
        super::add_flag(&mut allow, self.access, &text, resolve).ok();
        allow
    }

    /// Returns the entry of `flowstone.edn`.
    pub fn line(&self) -> String {
        let allow = format!(":allow {}", self.edn());
        match &self.own {
            None => allow,
            Some(own) => format!(":flows {{{} {{{allow}}}}}", key_of_name(&own.slug)),
        }
    }

    /// Returns what a person can do about it, one sentence each.
    pub fn hints(&self) -> Vec<String> {
        let trust = self.own.as_ref().and_then(|own| {
            let state = match own.trust {
                Trust::NotNeeded => return None,
                Trust::Missing => "is not from this project",
                Trust::Outdated => "is not from this project, and has changed since it was trusted",
                Trust::Given => "is trusted with fewer permissions",
            };
            Some(format!(
                "the flow `{}` {state}; to see what it needs and to allow that: `flowstone flows trust FILE`",
                shown(&own.slug)
            ))
        });
        let lead = match &trust {
            Some(_) => "or add to flowstone.edn",
            None => "to allow it, add to flowstone.edn",
        };
        let line = format!("{lead}: {}", self.line());
        let once = format!("or allow it for one command: {}", self.flag());
        trust.into_iter().chain([line, once]).collect()
    }

    /// Returns the keys in `flowstone.edn` below which the row belongs, as they are written.
    pub(super) fn keys(&self) -> Vec<String> {
        let own = self
            .own
            .as_ref()
            .map(|own| [":flows".to_owned(), key_of_name(&own.slug)]);
        let row = [":allow".to_owned(), format!(":{}", self.access.key())];
        let secret = self.secret.as_deref().map(key_of_name);
        own.into_iter().flatten().chain(row).chain(secret).collect()
    }

    fn value(&self) -> String {
        let item = format!("[{}]", in_edn(&self.item));
        match &self.secret {
            Some(secret) => format!("{{{} {item}}}", key_of_name(secret)),
            None => item,
        }
    }

    /// Returns the option that allows it once.
    pub fn flag(&self) -> String {
        let item = match &self.secret {
            Some(secret) => format!("{secret}={}", self.item),
            None => self.item.clone(),
        };
        format!("{} {}", self.access.flag(), in_shell(&shown(&item)))
    }
}

/// Returns a host as a row names it: without a port that follows from the scheme.
fn row(host: &Host) -> String {
    match host.port {
        80 | 443 => host.name.clone(),
        _ => host.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
        && !text.starts_with(|it: char| it.is_ascii_digit())
}

/// Returns the key of a secret in `:secrets`, or of a flow in `:flows`.
pub(super) fn key_of_name(name: &str) -> String {
    match is_word(name) {
        true => format!(":{name}"),
        false => in_edn(name),
    }
}

/// Returns a text as an EDN string, with every invisible character escaped.
pub(super) fn in_edn(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if is_hidden(char) => {
                let mut units = [0; 2];
                for unit in char.encode_utf16(&mut units) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn in_shell(text: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:=@%+,".contains(it);
    match text.chars().all(is_plain) && text != ANY && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Returns text of a flow with every character escaped that a terminal would interpret or not show.
pub fn shown(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for char in text.chars() {
        match is_hidden(char) {
            true if char.is_ascii() => cleaned.push_str(&format!("\\x{:02x}", u32::from(char))),
            true => cleaned.push_str(&format!("\\u{{{:x}}}", u32::from(char))),
            false => cleaned.push(char),
        }
    }
    cleaned
}

/// Tells whether a character is a control character, or changes how the characters around it are displayed.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
