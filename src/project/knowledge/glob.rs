//! Patterns of tags: `*` stands for any characters, `?` for one.

/// Tells whether a text matches a pattern.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut from) = (0, 0);
    // The last star, and where the text after it begins.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(char) if *char == '?' || *char == text[from] => {
                at += 1;
                from += 1;
            }
            Some(_) | None => match star {
                Some((place, begun)) => {
                    star = Some((place, begun + 1));
                    at = place + 1;
                    from = begun + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_are_wildcards() {
        for (pattern, text, expected) in [
            ("user*", "user-7", true),
            ("user*", "a-user", false),
            ("*er*", "a-user", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("[a]", "[a]", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
