//! What is wrong with an option of every step that is a map of its own, such as `:retry` or `:confirm`.

use flowstone_lang::suggest::{Respelling, respelling};
use flowstone_lang::value::{Map, Value};
use flowstone_model::names::name_of;

/// An error in an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub code: &'static str,
    /// The name of the option.
    pub key: &'static str,
    /// The key inside the option that is wrong.
    pub inner: Option<String>,
    pub message: String,
    pub hint: Option<String>,
    /// What the key inside the option is probably meant to be.
    pub near: Option<Respelling<'static>>,
}

impl Wrong {
    pub fn new(code: &'static str, key: &'static str, message: String) -> Wrong {
        Wrong {
            code,
            key,
            inner: None,
            message,
            hint: None,
            near: None,
        }
    }

    /// Returns the error for a wrong value of a key inside the option.
    pub fn value(code: &'static str, key: &'static str, inner: &str, expected: &str) -> Wrong {
        Wrong {
            inner: Some(inner.to_owned()),
            ..Wrong::new(
                code,
                key,
                format!("`:{inner}` of `:{key}` must be {expected}"),
            )
        }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Wrong {
        Wrong {
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// Returns an option as a map that has only these keys.
pub(crate) fn keys<'v>(
    code: &'static str,
    key: &'static str,
    value: &'v Value,
    known: &[&'static str],
) -> Result<&'v Map, Wrong> {
    let Some(map) = value.as_map() else {
        return Err(Wrong::new(code, key, format!("`:{key}` must be a map")));
    };
    for (found, _) in map.iter() {
        let name = name_of(found).unwrap_or_default();
        if known.contains(&&*name) {
            continue;
        }
        let mut wrong = Wrong::new(code, key, format!("`:{key}` has no option `:{name}`"));
        wrong.inner = Some(name.to_string());
        wrong.near = respelling(&name, known.iter().copied());
        return Err(match wrong.near {
            Some(near) => wrong.hint(format!("did you mean `:{}`?", near.name)),
            None => {
                let names: Vec<String> = known.iter().map(|name| format!("`:{name}`")).collect();
                wrong.hint(format!("its options are {}", names.join(", ")))
            }
        });
    }
    Ok(map)
}
