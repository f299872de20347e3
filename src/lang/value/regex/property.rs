//! Character properties: `\p{...}`, and the sets of `\w` and similar escapes.

use std::cell::OnceCell;

use regex_syntax::hir::{Class, HirKind};

use super::blocks::block;
use super::parse::{Flags, Parsed, Parser};
use super::tree::{Set, negated, range, ranges, union};

impl Parser {
    /// Parses a property from its `p` or `P` on.
    pub(super) fn property(&mut self) -> Parsed<Set> {
        let start = self.source.at - 1;
        let is_negated = self.source.get(self.source.at) == 'P';
        let name = self.property_name(start)?;
        match self.named(&name) {
            Some(set) if is_negated => Ok(negated(set)),
            Some(set) => Ok(set),
            None => Err(self
                .source
                .wrong_at(start, format!("there is no character property `{name}`"))
                .hint("write a category such as `\\p{L}` or `\\p{Lu}`, a script `\\p{IsGreek}`, a block `\\p{InGreek}`, `\\p{Alpha}`, `\\p{IsAlphabetic}` or `\\p{javaLowerCase}`")),
        }
    }

    fn property_name(&mut self, start: usize) -> Parsed<String> {
        if self.next() != '{' {
            let name = self.source.get(self.source.at);
            if self.source.is_at_end() {
                let error = self
                    .source
                    .wrong_at(start, "`\\p` needs the name of a property");
                return Err(error);
            }
            self.source.at += 1;
            return Ok(name.to_string());
        }
        self.source.at += 1;
        let mut name = String::new();
        loop {
            if self.source.is_at_end() {
                let error = self
                    .source
                    .wrong_at(start, "this `\\p{` is never closed with `}`");
                return Err(error);
            }
            match self.read() {
                '}' => return Ok(name),
                char => name.push(char),
            }
        }
    }

    fn named(&self, name: &str) -> Option<Set> {
        let ignores_case = self.flags.has(Flags::IGNORE_CASE);
        if let Some((key, value)) = name.split_once('=') {
            return match key.to_lowercase().as_str() {
                "sc" | "script" => script(value),
                "blk" | "block" => block(value),
                "gc" | "general_category" => java(value, ignores_case),
                _ => None,
            };
        }
        if let Some(name) = name.strip_prefix("In") {
            return block(name);
        }
        if let Some(name) = name.strip_prefix("Is") {
            return unicode(name, ignores_case)
                .or_else(|| java(name, ignores_case))
                .or_else(|| script(name));
        }
        let posix = if self.flags.has(Flags::UNICODE_CLASSES) {
            unicode_posix(name, ignores_case)
        } else {
            None
        };
        posix.or_else(|| java(name, ignores_case))
    }
}

/// Returns the characters of a property from the Unicode tables.
fn table(name: &str) -> Option<Set> {
    let parsed = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(set)) => Some(set),
        // A set of one character is represented as a literal.
        HirKind::Literal(literal) => {
            let char = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(range(u32::from(char), u32::from(char)))
        }
        _ => Some(Set::empty()),
    }
}

fn tables(names: &[&str]) -> Set {
    names.iter().fold(Set::empty(), |set, name| {
        union(set, &table(name).unwrap_or_else(Set::empty))
    })
}

/// Returns the characters of a category, or of a property that only Java defines.
fn java(name: &str, ignores_case: bool) -> Option<Set> {
    const CASED: &[&str] = &["Lu", "Ll", "Lt"];
    Some(match name {
        "Lu" | "Ll" | "Lt" if ignores_case => tables(CASED),
        "Lower" | "Upper" if ignores_case => ascii("Alpha")?,
        "javaLowerCase" | "javaUpperCase" | "javaTitleCase" if ignores_case => {
            tables(&["Lowercase", "Uppercase", "Lt"])
        }
        "LC" => tables(CASED),
        "LD" | "javaLetterOrDigit" => tables(&["L", "Nd"]),
        "L1" => range(0, 0xFF),
        "all" => negated(Set::empty()),
        "Cs" => Set::empty(),
        "Cn" | "Lu" | "Ll" | "Lt" | "Lm" | "Lo" | "Mn" | "Me" | "Mc" | "Nd" | "Nl" | "No"
        | "Zs" | "Zl" | "Zp" | "Cc" | "Cf" | "Co" | "Pd" | "Ps" | "Pe" | "Pc" | "Po" | "Sm"
        | "Sc" | "Sk" | "So" | "Pi" | "Pf" | "L" | "M" | "N" | "Z" | "C" | "P" | "S" => {
            table(name)?
        }
        "javaLowerCase" => tables(&["Lowercase"]),
        "javaUpperCase" => tables(&["Uppercase"]),
        "javaAlphabetic" => tables(&["Alphabetic"]),
        "javaIdeographic" => tables(&["Ideographic"]),
        "javaTitleCase" => tables(&["Lt"]),
        "javaDigit" => tables(&["Nd"]),
        "javaDefined" => negated(tables(&["Cn"])),
        "javaLetter" => tables(&["L"]),
        "javaJavaIdentifierStart" => tables(&["L", "Nl", "Sc", "Pc"]),
        "javaJavaIdentifierPart" => union(
            tables(&["L", "Nl", "Sc", "Pc", "Nd", "Mn", "Mc"]),
            &ignorable(),
        ),
        "javaUnicodeIdentifierStart" => tables(&["ID_Start"]),
        "javaUnicodeIdentifierPart" => union(tables(&["ID_Continue"]), &ignorable()),
        "javaIdentifierIgnorable" => ignorable(),
        "javaSpaceChar" => tables(&["Z"]),
        "javaWhitespace" => {
            let mut set = union(tables(&["Z"]), &ranges(&[(9, 0x0D), (0x1C, 0x1F)]));
            set.difference(&ranges(&[(0xA0, 0xA0), (0x2007, 0x2007), (0x202F, 0x202F)]));
            set
        }
        "javaISOControl" => ranges(&[(0, 0x1F), (0x7F, 0x9F)]),
        "javaMirrored" => ranges(MIRRORED),
        name => ascii(name)?,
    })
}

fn ignorable() -> Set {
    union(
        tables(&["Cf"]),
        &ranges(&[(0, 8), (0x0E, 0x1B), (0x7F, 0x9F)]),
    )
}

/// Returns the characters of a POSIX class, which are ASCII.
fn ascii(name: &str) -> Option<Set> {
    let found = ASCII.iter().find(|(known, _)| *known == name)?;
    Some(ranges(found.1))
}

const ASCII: &[(&str, &[(u32, u32)])] = &[
    ("ASCII", &[(0, 0x7F)]),
    ("Alnum", &[(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)]),
    ("Alpha", &[(0x41, 0x5A), (0x61, 0x7A)]),
    ("Blank", &[(9, 9), (0x20, 0x20)]),
    ("Cntrl", &[(0, 0x1F), (0x7F, 0x7F)]),
    ("Digit", &[(0x30, 0x39)]),
    ("Graph", &[(0x21, 0x7E)]),
    ("Lower", &[(0x61, 0x7A)]),
    ("Print", &[(0x20, 0x7E)]),
    (
        "Punct",
        &[(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
    ),
    ("Space", &[(9, 0x0D), (0x20, 0x20)]),
    ("Upper", &[(0x41, 0x5A)]),
    ("XDigit", &[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
];

/// Returns the characters of a Unicode property, by its name after `Is`.
fn unicode(name: &str, ignores_case: bool) -> Option<Set> {
    let name = name.to_uppercase();
    Some(match name.as_str() {
        "LOWERCASE" | "UPPERCASE" | "TITLECASE" if ignores_case => {
            tables(&["Lowercase", "Uppercase", "Lt"])
        }
        "ALPHABETIC" => tables(&["Alphabetic"]),
        "LETTER" => tables(&["L"]),
        "IDEOGRAPHIC" => tables(&["Ideographic"]),
        "LOWERCASE" => tables(&["Lowercase"]),
        "UPPERCASE" => tables(&["Uppercase"]),
        "TITLECASE" => tables(&["Lt"]),
        "WHITE_SPACE" | "WHITESPACE" => tables(&["White_Space"]),
        "CONTROL" => tables(&["Cc"]),
        "PUNCTUATION" => tables(&["P"]),
        "HEX_DIGIT" | "HEXDIGIT" => union(tables(&["Nd"]), &table("Hex_Digit")?),
        "ASSIGNED" => negated(tables(&["Cn"])),
        "NONCHARACTER_CODE_POINT" | "NONCHARACTERCODEPOINT" => tables(&["Noncharacter_Code_Point"]),
        "DIGIT" => tables(&["Nd"]),
        "ALNUM" => tables(&["Alphabetic", "Nd"]),
        "BLANK" => union(tables(&["Zs"]), &range(9, 9)),
        "GRAPH" => negated(tables(&["Z", "Cc", "Cn"])),
        "PRINT" => union(negated(tables(&["Zl", "Zp", "Cc", "Cn"])), &tables(&["Zs"])),
        "WORD" => word(true),
        "JOIN_CONTROL" | "JOINCONTROL" => range(0x200C, 0x200D),
        _ => return None,
    })
}

/// Returns the characters of a POSIX class under `(?U)`.
fn unicode_posix(name: &str, ignores_case: bool) -> Option<Set> {
    let name = name.to_uppercase();
    let known = match name.as_str() {
        "ALPHA" => "ALPHABETIC",
        "LOWER" => "LOWERCASE",
        "UPPER" => "UPPERCASE",
        "SPACE" => "WHITE_SPACE",
        "PUNCT" => "PUNCTUATION",
        "XDIGIT" => "HEX_DIGIT",
        "CNTRL" => "CONTROL",
        "ALNUM" | "DIGIT" | "BLANK" | "GRAPH" | "PRINT" => &name,
        _ => return None,
    };
    unicode(known, ignores_case)
}

/// Returns the characters of a script by name or code. The parts of a name are joined by `_`.
fn script(name: &str) -> Option<Set> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !name.chars().all(is_word) {
        return None;
    }
    let upper = name.to_uppercase();
    let joined = upper.replace('_', "");
    let mut long = LONG_SCRIPTS.split(' ');
    match long.find(|long| long.replace('_', "") == joined) {
        Some(long) if long != upper => return None,
        None if joined != upper => return None,
        _ => {}
    }
    table(&format!("sc={name}"))
}

const LONG_SCRIPTS: &str = "ANATOLIAN_HIEROGLYPHS BASSA_VAH CANADIAN_ABORIGINAL CAUCASIAN_ALBANIAN \
    DIVES_AKURU EGYPTIAN_HIEROGLYPHS GUNJALA_GONDI HANIFI_ROHINGYA IMPERIAL_ARAMAIC \
    INSCRIPTIONAL_PAHLAVI INSCRIPTIONAL_PARTHIAN KAYAH_LI KHITAN_SMALL_SCRIPT LINEAR_A LINEAR_B \
    MASARAM_GONDI MEETEI_MAYEK MENDE_KIKAKUI MEROITIC_CURSIVE MEROITIC_HIEROGLYPHS NEW_TAI_LUE \
    NYIAKENG_PUACHUE_HMONG OLD_HUNGARIAN OLD_ITALIC OLD_NORTH_ARABIAN OLD_PERMIC OLD_PERSIAN \
    OLD_SOGDIAN OLD_SOUTH_ARABIAN OLD_TURKIC OL_CHIKI PAHAWH_HMONG PAU_CIN_HAU PHAGS_PA \
    PSALTER_PAHLAVI SORA_SOMPENG SYLOTI_NAGRI TAI_LE TAI_THAM TAI_VIET WARANG_CITI \
    ZANABAZAR_SQUARE";

/// Returns the characters of `\d`.
pub(super) fn digits(is_unicode: bool) -> Set {
    if is_unicode {
        tables(&["Nd"])
    } else {
        range(0x30, 0x39)
    }
}

/// Returns the characters of `\h`.
pub(super) fn horizontal_space() -> Set {
    ranges(&[
        (9, 9),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x180E, 0x180E),
        (0x2000, 0x200A),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
    ])
}

/// Returns the characters of `\v`, and the single characters of `\R`.
pub(super) fn vertical_space() -> Set {
    ranges(&[(0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029)])
}

/// Returns the characters of `\s`.
pub(super) fn space(is_unicode: bool) -> Set {
    if is_unicode {
        tables(&["White_Space"])
    } else {
        ranges(&[(9, 0x0D), (0x20, 0x20)])
    }
}

/// Returns the characters of `\w`.
pub(super) fn word(is_unicode: bool) -> Set {
    if is_unicode {
        let set = tables(&["Alphabetic", "M", "Nd", "Pc"]);
        return union(set, &range(0x200C, 0x200D));
    }
    ranges(&[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// Tells whether a character is a letter.
pub(crate) fn is_letter(char: char) -> bool {
    char.is_ascii_alphabetic()
        || !char.is_ascii() && with_word_sets(|sets| holds(&sets.letters, char))
}

/// Tells whether a character is a decimal digit.
pub(crate) fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || !char.is_ascii() && with_word_sets(|sets| holds(&sets.digits, char))
}

/// Sets of characters that are tested one character at a time.
pub(super) struct WordSets {
    letters: Set,
    digits: Set,
    pub(super) letters_and_digits: Set,
    pub(super) marks: Set,
    pub(super) unicode_words: Set,
}

/// Runs `ask` with the sets of letters, digits and words.
pub(super) fn with_word_sets<T>(ask: impl FnOnce(&WordSets) -> T) -> T {
    thread_local! {
        static SETS: OnceCell<WordSets> = const { OnceCell::new() };
    }
    SETS.with(|sets| {
        ask(sets.get_or_init(|| WordSets {
            letters: tables(&["L"]),
            digits: tables(&["Nd"]),
            letters_and_digits: tables(&["L", "Nd"]),
            marks: tables(&["Mn"]),
            unicode_words: word(true),
        }))
    })
}

/// Tells whether a set contains a character.
pub(super) fn holds(set: &Set, char: char) -> bool {
    set.ranges()
        .binary_search_by(|range| {
            if range.end() < char {
                std::cmp::Ordering::Less
            } else if range.start() > char {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// Characters that are mirrored in text from right to left.
const MIRRORED: &[(u32, u32)] = &[
    (0x0028, 0x0029),
    (0x003C, 0x003C),
    (0x003E, 0x003E),
    (0x005B, 0x005B),
    (0x005D, 0x005D),
    (0x007B, 0x007B),
    (0x007D, 0x007D),
    (0x00AB, 0x00AB),
    (0x00BB, 0x00BB),
    (0x0F3A, 0x0F3D),
    (0x169B, 0x169C),
    (0x2039, 0x203A),
    (0x2045, 0x2046),
    (0x207D, 0x207E),
    (0x208D, 0x208E),
    (0x2140, 0x2140),
    (0x2201, 0x2204),
    (0x2208, 0x220D),
    (0x2211, 0x2211),
    (0x2215, 0x2216),
    (0x221A, 0x221D),
    (0x221F, 0x2222),
    (0x2224, 0x2224),
    (0x2226, 0x2226),
    (0x222B, 0x2233),
    (0x2239, 0x2239),
    (0x223B, 0x224C),
    (0x2252, 0x2255),
    (0x225F, 0x2260),
    (0x2262, 0x2262),
    (0x2264, 0x226B),
    (0x226E, 0x228C),
    (0x228F, 0x2292),
    (0x2298, 0x2298),
    (0x22A2, 0x22A3),
    (0x22A6, 0x22B8),
    (0x22BE, 0x22BF),
    (0x22C9, 0x22CD),
    (0x22D0, 0x22D1),
    (0x22D6, 0x22ED),
    (0x22F0, 0x22FF),
    (0x2308, 0x230B),
    (0x2320, 0x2321),
    (0x2329, 0x232A),
    (0x2768, 0x2775),
    (0x27C0, 0x27C0),
    (0x27C3, 0x27C6),
    (0x27C8, 0x27C9),
    (0x27CB, 0x27CD),
    (0x27D3, 0x27D6),
    (0x27DC, 0x27DE),
    (0x27E2, 0x27EF),
    (0x2983, 0x2998),
    (0x299B, 0x29A0),
    (0x29A2, 0x29AF),
    (0x29B8, 0x29B8),
    (0x29C0, 0x29C5),
    (0x29C9, 0x29C9),
    (0x29CE, 0x29D2),
    (0x29D4, 0x29D5),
    (0x29D8, 0x29DC),
    (0x29E1, 0x29E1),
    (0x29E3, 0x29E5),
    (0x29E8, 0x29E9),
    (0x29F4, 0x29F9),
    (0x29FC, 0x29FD),
    (0x2A0A, 0x2A1C),
    (0x2A1E, 0x2A21),
    (0x2A24, 0x2A24),
    (0x2A26, 0x2A26),
    (0x2A29, 0x2A29),
    (0x2A2B, 0x2A2E),
    (0x2A34, 0x2A35),
    (0x2A3C, 0x2A3E),
    (0x2A57, 0x2A58),
    (0x2A64, 0x2A65),
    (0x2A6A, 0x2A6D),
    (0x2A6F, 0x2A70),
    (0x2A73, 0x2A74),
    (0x2A79, 0x2AA3),
    (0x2AA6, 0x2AAD),
    (0x2AAF, 0x2AD6),
    (0x2ADC, 0x2ADC),
    (0x2ADE, 0x2ADE),
    (0x2AE2, 0x2AE6),
    (0x2AEC, 0x2AEE),
    (0x2AF3, 0x2AF3),
    (0x2AF7, 0x2AFB),
    (0x2AFD, 0x2AFD),
    (0x2BFE, 0x2BFE),
    (0x2E02, 0x2E05),
    (0x2E09, 0x2E0A),
    (0x2E0C, 0x2E0D),
    (0x2E1C, 0x2E1D),
    (0x2E20, 0x2E29),
    (0x3008, 0x3011),
    (0x3014, 0x301B),
    (0xFE59, 0xFE5E),
    (0xFE64, 0xFE65),
    (0xFF08, 0xFF09),
    (0xFF1C, 0xFF1C),
    (0xFF1E, 0xFF1E),
    (0xFF3B, 0xFF3B),
    (0xFF3D, 0xFF3D),
    (0xFF5B, 0xFF5B),
    (0xFF5D, 0xFF5D),
    (0xFF5F, 0xFF60),
    (0xFF62, 0xFF63),
    (0x1D6DB, 0x1D6DB),
    (0x1D715, 0x1D715),
    (0x1D74F, 0x1D74F),
    (0x1D789, 0x1D789),
    (0x1D7C3, 0x1D7C3),
];
