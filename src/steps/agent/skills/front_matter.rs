//! The beginning of a `SKILL.md`: YAML between two lines of three dashes.

use flowstone_lang::value::Value;

use crate::http::yaml;

/// Maximum number of characters of a name, and of a description.
const MOST_NAME: usize = 64;
const MOST_DESCRIPTION: usize = 1_024;

/// What the prompt has of a skill.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub name: String,
    pub description: String,
}

/// Splits a text into its front matter and the rest; `None` if it has no front matter.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"))?;
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..from], &rest[from + line.len()..]));
        }
        from += line.len();
    }
    None
}

/// Reads the front matter of a skill. Other keys are ignored.
///
/// # Errors
/// What is wrong, as a message.
pub(super) fn read(text: &str) -> Result<FrontMatter, String> {
    let (yaml, _) = split(text).ok_or_else(|| {
        "it does not begin with front matter: a line `---`, `name:` and `description:`, a line `---`"
            .to_owned()
    })?;
    let data =
        yaml::read(yaml).map_err(|error| format!("its front matter is not YAML: {error}"))?;
    let field = |key: &str, most: usize| {
        let text = data.get(key).and_then(Value::as_str).map(str::trim);
        let text = text.filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| format!("its front matter needs `{key}`, a text"))?;
        match text.chars().count() {
            count if count > most => Err(format!(
                "`{key}` has {count} characters, at most {most} are allowed"
            )),
            _ => Ok(text.to_owned()),
        }
    };
    let name = field("name", MOST_NAME)?;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    if !name.chars().all(is_plain) {
        return Err(format!(
            "`name` can contain only letters, digits, `-` and `_`, and is `{name}`"
        ));
    }
    Ok(FrontMatter {
        name,
        description: field("description", MOST_DESCRIPTION)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_description_are_read() {
        let text = "---\nname: pdf-forms\ndescription: >\n  Fills in\n  forms.\nlicense: MIT\n---\n# How\n---\nmore";
        let read = read(text).expect("good");
        assert_eq!(
            (read.name.as_str(), read.description.as_str()),
            ("pdf-forms", "Fills in forms.")
        );
        assert_eq!(split(text).expect("front matter").1, "# How\n---\nmore");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
        for (text, expected) in [
            ("# How", "does not begin with front matter"),
            ("---\nname: a\n", "does not begin with front matter"),
            ("---\nname: [\n---\n", "is not YAML"),
            ("---\nname: a\n---\n", "needs `description`"),
            (
                "---\nname: 7\ndescription: b\n---\n",
                "needs `name`, a text",
            ),
            ("---\nname: a/b\ndescription: b\n---\n", "only letters"),
            (long.as_str(), "has 1025 characters"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
