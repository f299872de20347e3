//! Names of characters in HTML: those of ASCII and Latin-1.

/// The names of U+00A0 to U+00FF, in order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

/// Returns the character that a name stands for.
pub(super) fn char_of(name: &str) -> Option<char> {
    let char = match name {
        "Tab" => '\t',
        "NewLine" => '\n',
        "excl" => '!',
        "QUOT" | "quot" => '"',
        "num" => '#',
        "dollar" => '$',
        "percnt" => '%',
        "AMP" | "amp" => '&',
        "apos" => '\'',
        "lpar" => '(',
        "rpar" => ')',
        "ast" | "midast" => '*',
        "plus" => '+',
        "comma" => ',',
        "period" => '.',
        "sol" => '/',
        "colon" => ':',
        "semi" => ';',
        "LT" | "lt" => '<',
        "equals" => '=',
        "GT" | "gt" => '>',
        "quest" => '?',
        "commat" => '@',
        "lbrack" | "lsqb" => '[',
        "bsol" => '\\',
        "rbrack" | "rsqb" => ']',
        "Hat" => '^',
        "UnderBar" | "lowbar" => '_',
        "DiacriticalGrave" | "grave" => '`',
        "lbrace" | "lcub" => '{',
        "VerticalLine" | "verbar" | "vert" => '|',
        "rbrace" | "rcub" => '}',
        _ => {
            let at = LATIN.iter().position(|known| *known == name)?;
            return u8::try_from(0xa0 + at).ok().map(char::from);
        }
    };
    Some(char)
}
