//! Text of unknown origin, made safe to show on a terminal.
//!
//! A control character in a model's answer could move the cursor, hide a part of the text or write to the clipboard; a
//! bidirectional override shows it in another order. [`visible`] writes all of these as escapes, so that a person sees
//! the actual text. It is for displayed text only: data on a pipe or in a file is unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns the text with each character that could act on a terminal, reorder the text or hide in it shown as an escape:
/// `\x1b` for a control character, `\u202e` for any other. Newlines and tabs stay; so does `\r` before `\n`.
///
/// Joiners stay between the letters or emoji that they join.
pub fn visible(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_suspect) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    let mut before = text[..first].chars().next_back();
    let mut rest = text[first..].chars();
    while let Some(char) = rest.next() {
        let after = rest.clone().next();
        if !is_suspect(char) || stays(before, char, after) {
            out.push(char);
        } else {
            escape(&mut out, char);
        }
        before = Some(char);
    }
    Cow::Owned(out)
}

fn escape(out: &mut String, char: char) {
    let code = u32::from(char);
    // Writing to a String cannot fail.
    let _ = match code {
        ..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\u{{{code:x}}}"),
    };
}

/// Tells whether a character can act on a terminal or is invisible there.
fn is_suspect(char: char) -> bool {
    match char {
        '\n' | '\t' | ' '..='~' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => {
            true
        }
        // Vowels of Khmer and of Mongolian without width.
        '\u{17b4}' | '\u{17b5}' | '\u{180e}' => true,
        // Zero-width spaces and joiners, directional marks; line and paragraph separators; embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        // Invisible operators, isolates, and deprecated format characters.
        '\u{2060}'..='\u{206f}' => true,
        '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags and supplementary variation selectors can spell whole texts invisibly.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Tells whether a suspect character is harmless where it is.
fn stays(before: Option<char>, char: char, after: Option<char>) -> bool {
    match char {
        '\r' => after == Some('\n'),
        // They shape letters of Arabic and Indic scripts and join emoji. Next to ASCII their only use is to hide.
        '\u{200c}' | '\u{200d}' => [before, after]
            .iter()
            .all(|beside| beside.is_some_and(|it| !it.is_ascii() && !is_suspect(it))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    /// Each input and the text that a person sees.
    const ROWS: &[(&str, &str)] = &[
        ("plain text, 100 % of it", "plain text, 100 % of it"),
        ("two\n\tlines", "two\n\tlines"),
        ("dos\r\nlines", "dos\r\nlines"),
        ("Grüße, 東京, Ωμέγα, שלום", "Grüße, 東京, Ωμέγα, שלום"),
        ("e\u{301}", "e\u{301}"),
        ("❤\u{fe0f}", "❤\u{fe0f}"),
        ("👩\u{200d}💻", "👩\u{200d}💻"),
        ("👩🏽\u{200d}💻", "👩🏽\u{200d}💻"),
        ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ("\u{a0}", "\u{a0}"),
        ("over\rwrite", "over\\x0dwrite"),
        ("end\r", "end\\x0d"),
        ("\r\r\n", "\\x0d\r\n"),
        ("\0", "\\x00"),
        ("bell\x07", "bell\\x07"),
        ("ab\x08\x08xy", "ab\\x08\\x08xy"),
        ("\x0b\x0c", "\\x0b\\x0c"),
        ("\x0e\x0f", "\\x0e\\x0f"),
        (
            "Pay 10?\x1b[8m Pay 9000!\x1b[0m",
            "Pay 10?\\x1b[8m Pay 9000!\\x1b[0m",
        ),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b]52;c;aGk=\x1b\\", "\\x1b]52;c;aGk=\\x1b\\"),
        (
            "\x1b]8;;http://a\x1b\\b\x1b]8;;\x1b\\",
            "\\x1b]8;;http://a\\x1b\\b\\x1b]8;;\\x1b\\",
        ),
        ("\x1bP1$r\x1b\\", "\\x1bP1$r\\x1b\\"),
        ("\x1bc", "\\x1bc"),
        ("\x1b[?1049h", "\\x1b[?1049h"),
        ("\x1b[6n", "\\x1b[6n"),
        ("\x1b", "\\x1b"),
        ("\x7f", "\\x7f"),
        ("\u{9b}31m", "\\x9b31m"),
        ("\u{9d}0;t\u{9c}", "\\x9d0;t\\x9c"),
        ("\u{80}\u{85}\u{90}", "\\x80\\x85\\x90"),
        ("a\u{202e}cod.exe", "a\\u202ecod.exe"),
        (
            "\u{202a}\u{202b}\u{202c}\u{202d}",
            "\\u202a\\u202b\\u202c\\u202d",
        ),
        (
            "\u{2066}\u{2067}\u{2068}\u{2069}",
            "\\u2066\\u2067\\u2068\\u2069",
        ),
        ("\u{200e}\u{200f}\u{61c}", "\\u200e\\u200f\\u061c"),
        ("in\u{200b}visible", "in\\u200bvisible"),
        ("pay\u{200d}pal", "pay\\u200dpal"),
        ("pay\u{200c}pal", "pay\\u200cpal"),
        ("👩\u{200d}", "👩\\u200d"),
        ("\u{200d}👩", "\\u200d👩"),
        ("👩\u{200d}\u{200d}💻", "👩\\u200d\\u200d💻"),
        ("so\u{ad}ft", "so\\xadft"),
        ("\u{2028}\u{2029}", "\\u2028\\u2029"),
        ("\u{2060}\u{2063}", "\\u2060\\u2063"),
        ("\u{feff}mark", "\\ufeffmark"),
        ("\u{3164}\u{ffa0}\u{115f}", "\\u3164\\uffa0\\u115f"),
        ("\u{180e}", "\\u180e"),
        ("\u{fff9}a\u{fffb}", "\\ufff9a\\ufffb"),
        ("\u{e0041}\u{e0042}", "\\u{e0041}\\u{e0042}"),
        ("\u{e0100}", "\\u{e0100}"),
    ];

    #[test]
    fn control_and_hidden_characters_are_shown_as_escapes() {
        for (text, shown) in ROWS {
            assert_eq!(visible(text), *shown, "{text:?}");
        }
        assert!(ROWS.len() >= 50);
    }

    #[test]
    fn visible_characters_are_unchanged() {
        for (text, _) in ROWS {
            let once = visible(text).into_owned();
            assert_eq!(visible(&once), once);
        }
    }
}
