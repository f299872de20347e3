//! Reads SQL as far as a step has to: where its strings, quoted names and comments are, and where its placeholders.
//!
//! Nothing is ever put into a statement here but placeholders. A misread statement can therefore be refused by its
//! database, but cannot become another statement.

/// The rules for strings and comments, which differ between databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    MySql,
    Sqlite,
}

/// A part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Words, numbers, operators and white space.
    Code(&'a str),
    /// A string or a quoted name, with its quotes.
    Quoted(&'a str),
    Comment(&'a str),
    /// `?`.
    Mark,
    /// `??`, which is the operator `?` in PostgreSQL.
    Escaped,
    /// The content of `{{...}}` of a template.
    Tag(&'a str),
}

/// Splits a statement.
///
/// # Errors
/// A description of a string, quoted name or comment without an end.
pub(crate) fn pieces(sql: &str, dialect: Dialect) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut code = 0;
    let mut at = 0;
    while at < sql.len() {
        let (length, piece) = match special(&sql[at..], before(sql, at), dialect)? {
            Some(found) => found,
            None => {
                at += sql[at..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
        };
        if code < at {
            pieces.push(Piece::Code(&sql[code..at]));
        }
        pieces.push(piece);
        at += length;
        code = at;
    }
    if code < sql.len() {
        pieces.push(Piece::Code(&sql[code..]));
    }
    Ok(pieces)
}

/// Returns the character before a place.
fn before(sql: &str, at: usize) -> Option<char> {
    sql[..at].chars().next_back()
}

/// Tells whether a name may contain a character.
fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_' || it == '$'
}

/// Returns the piece at the beginning of a text if it is not code, with its length.
fn special(
    rest: &str,
    before: Option<char>,
    dialect: Dialect,
) -> Result<Option<(usize, Piece<'_>)>, String> {
    if let Some(inner) = rest.strip_prefix("{{") {
        let end = inner.find("}}").ok_or("`{{` has no `}}`")?;
        return Ok(Some((end + 4, Piece::Tag(&inner[..end]))));
    }
    if rest.starts_with("??") {
        return Ok(Some((2, Piece::Escaped)));
    }
    let length = match rest.as_bytes().first().copied() {
        Some(b'?') => return Ok(Some((1, Piece::Mark))),
        Some(b'\'') => {
            let has_escapes = match dialect {
                Dialect::MySql => true,
                Dialect::Postgres => matches!(before, Some('e' | 'E')),
                Dialect::Sqlite => false,
            };
            quoted(rest, '\'', has_escapes)
        }
        Some(b'"') => quoted(rest, '"', dialect == Dialect::MySql),
        Some(b'`') if dialect != Dialect::Postgres => quoted(rest, '`', false),
        Some(b'[') if dialect == Dialect::Sqlite => rest.find(']').map(|end| end + 1),
        Some(b'$') if dialect == Dialect::Postgres && !before.is_some_and(is_word) => {
            match dollar_tag(rest) {
                Some(tag) => rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len()),
                None => return Ok(None),
            }
        }
        Some(b'-') if starts_line_comment(rest, dialect) => return Ok(Some(line(rest))),
        Some(b'#') if dialect == Dialect::MySql => return Ok(Some(line(rest))),
        Some(b'/') if rest.starts_with("/*") => {
            let length = block(rest, dialect == Dialect::Postgres).ok_or("`/*` has no `*/`")?;
            return Ok(Some((length, Piece::Comment(&rest[..length]))));
        }
        _ => return Ok(None),
    };
    let length = length.ok_or_else(|| {
        let start: String = rest.chars().take(12).collect();
        format!("`{start}` begins a string or name without an end")
    })?;
    Ok(Some((length, Piece::Quoted(&rest[..length]))))
}

fn starts_line_comment(rest: &str, dialect: Dialect) -> bool {
    match (rest.strip_prefix("--"), dialect) {
        (None, _) => false,
        // `5--1` is a number there.
        (Some(rest), Dialect::MySql) => rest.is_empty() || rest.starts_with(char::is_whitespace),
        (Some(_), Dialect::Postgres | Dialect::Sqlite) => true,
    }
}

fn line(rest: &str) -> (usize, Piece<'_>) {
    let length = rest.find('\n').unwrap_or(rest.len());
    (length, Piece::Comment(&rest[..length]))
}

/// Returns the length of a text in quotes, in which a doubled quote stands for one.
fn quoted(rest: &str, quote: char, has_escapes: bool) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, it)) = chars.next() {
        if has_escapes && it == '\\' {
            chars.next()?;
        } else if it == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => drop(chars.next()),
                _ => return Some(at + quote.len_utf8()),
            }
        }
    }
    None
}

/// Returns the length of a comment; those of PostgreSQL nest.
fn block(rest: &str, nests: bool) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (2, 1);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            b"/*" if nests => {
                depth += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns `$tag$` at the beginning of a text.
fn dollar_tag(rest: &str) -> Option<&str> {
    let end = rest[1..].find('$')? + 1;
    let name = &rest[1..end];
    let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_')
        && !name.starts_with(|it: char| it.is_ascii_digit());
    is_name.then(|| &rest[..=end])
}

/// Returns the statement with `$1`, `$2` ... in place of `?`, and the number of placeholders. A statement that has
/// `$1` itself stays as it is.
pub(crate) fn numbered(sql: &str) -> Result<(String, usize), String> {
    let pieces = pieces(sql, Dialect::Postgres)?;
    let own = pieces.iter().filter_map(|piece| match piece {
        Piece::Code(code) => highest_number(code),
        _ => None,
    });
    if let Some(highest) = own.max() {
        return Ok((sql.to_owned(), highest));
    }
    let mut text = String::with_capacity(sql.len() + 8);
    let mut count = 0;
    for piece in pieces {
        match piece {
            Piece::Code(part) | Piece::Quoted(part) | Piece::Comment(part) => text.push_str(part),
            Piece::Escaped => text.push('?'),
            Piece::Mark => {
                count += 1;
                text.push_str(&format!("${count}"));
            }
            Piece::Tag(tag) => text.push_str(&format!("{{{{{tag}}}}}")),
        }
    }
    Ok((text, count))
}

/// Returns the highest `$n` in code.
fn highest_number(code: &str) -> Option<usize> {
    let numbers = code.match_indices('$').filter_map(|(at, _)| {
        if before(code, at).is_some_and(is_word) {
            return None;
        }
        let digits: String = code[at + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    });
    numbers.max()
}

/// Returns the number of `?` in a statement.
pub(crate) fn marks(sql: &str, dialect: Dialect) -> Result<usize, String> {
    let pieces = pieces(sql, dialect)?;
    let count = |piece: &Piece<'_>| match piece {
        Piece::Mark => 1,
        Piece::Escaped => 2,
        _ => 0,
    };
    Ok(pieces.iter().map(count).sum())
}

/// Tells whether a text is more than one statement. Definitions of triggers and procedures hold statements themselves;
/// the database decides about them.
pub(crate) fn has_several(pieces: &[Piece<'_>]) -> bool {
    let first = words(pieces).into_iter().next().unwrap_or_default();
    if matches!(first.as_str(), "alter" | "begin" | "create") {
        return false;
    }
    let mut is_over = false;
    for piece in pieces {
        let code = match piece {
            Piece::Comment(_) => continue,
            Piece::Code(code) => code,
            _ if is_over => return true,
            _ => continue,
        };
        let rest = match (is_over, code.split_once(';')) {
            (true, _) => code,
            (false, Some((_, rest))) => rest,
            (false, None) => continue,
        };
        is_over = true;
        if rest.contains(|it: char| it != ';' && !it.is_whitespace()) {
            return true;
        }
    }
    false
}

/// Returns the words of a statement outside of strings, names and comments, in lower case.
pub(crate) fn words(pieces: &[Piece<'_>]) -> Vec<String> {
    let code = pieces.iter().filter_map(|piece| match piece {
        Piece::Code(code) => Some(*code),
        _ => None,
    });
    code.flat_map(|code| code.split(|it: char| !it.is_alphanumeric() && it != '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Statements that only read.
const READING: &[&str] = &[
    "desc", "describe", "explain", "select", "show", "table", "values", "with",
];

/// Returns why a statement cannot run where only reading is allowed, if this can be seen in its text. The session of
/// the database decides about the rest.
pub(crate) fn writes(pieces: &[Piece<'_>], dialect: Dialect) -> Option<String> {
    let words = words(pieces);
    let first = words.first().map_or("", String::as_str);
    if dialect != Dialect::Sqlite && !READING.contains(&first) {
        return Some(format!(
            "a statement that begins with `{first}` may change something"
        ));
    }
    if dialect != Dialect::MySql {
        return None;
    }
    let is_executed = |comment: &str| comment.starts_with("/*!") || comment.starts_with("/*M!");
    let hides =
        |piece: &Piece<'_>| matches!(piece, Piece::Comment(comment) if is_executed(comment));
    if pieces.iter().any(hides) {
        return Some("the server executes what is in a comment `/*! ... */`".to_owned());
    }
    let into = words
        .windows(2)
        .find(|pair| pair[0] == "into" && matches!(&*pair[1], "outfile" | "dumpfile"));
    into.map(|_| "`into outfile` writes a file on the server".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_of_strings_names_and_comments() {
        let cases = [
            ("select ?, ?", "select $1, $2", 2),
            ("select '?', \"?\", ? -- ?", "select '?', \"?\", $1 -- ?", 1),
            ("select 'it''s ?' || ?", "select 'it''s ?' || $1", 1),
            ("select E'\\'?' || ?", "select E'\\'?' || $1", 1),
            ("select '\\' || ?", "select '\\' || $1", 1),
            (
                "select $$ ? $$, $a$ $$ ? $a$, ?",
                "select $$ ? $$, $a$ $$ ? $a$, $1",
                1,
            ),
            (
                "/* ? /* ? */ ? */ select ?",
                "/* ? /* ? */ ? */ select $1",
                1,
            ),
            ("select a ?? 'k' and b = ?", "select a ? 'k' and b = $1", 1),
            ("select a ? $1 and b = $2", "select a ? $1 and b = $2", 2),
            (
                "select a$1 from t where x = ?",
                "select a$1 from t where x = $1",
                1,
            ),
            ("select 'ä?' where ü = ?", "select 'ä?' where ü = $1", 1),
        ];
        for (sql, expected, count) in cases {
            assert_eq!(numbered(sql), Ok((expected.to_owned(), count)), "{sql}");
        }
        assert!(numbered("select 'a").is_err());
        assert!(numbered("select /* a").is_err());
    }

    #[test]
    fn several_statements_are_seen() {
        let several = |sql| has_several(&pieces(sql, Dialect::Postgres).expect("well formed"));
        for sql in [
            "create trigger a after insert on t begin delete from u; end",
            "select 1",
            "select 1;",
            "select ';' ; -- a;b\n",
            "select 1 ;; ",
        ] {
            assert!(!several(sql), "{sql}");
        }
        for sql in [
            "select 1; drop table t",
            "select 1;'a'",
            "select 1; /* x */ commit",
        ] {
            assert!(several(sql), "{sql}");
        }
    }

    #[test]
    fn statements_that_may_write_are_seen() {
        let writes = |sql, dialect| writes(&pieces(sql, dialect).expect("well formed"), dialect);
        for sql in [
            "select 1",
            " (select 1)",
            "-- a\nWITH a as (select 1) select * from a",
            "SHOW tables",
        ] {
            assert_eq!(writes(sql, Dialect::Postgres), None, "{sql}");
        }
        for sql in [
            "delete from t",
            "call p()",
            "copy t to program 'x'",
            "/* select */ do $$ $$",
            "",
            "commit",
        ] {
            assert!(writes(sql, Dialect::Postgres).is_some(), "{sql}");
        }
        for sql in [
            "select 1 into outfile '/tmp/a'",
            "select 1 INTO/**/DUMPFILE '/tmp/a'",
            "select 1 /*! into outfile '/tmp/a' */",
            "select 1 /*M! into outfile '/tmp/a' */",
        ] {
            assert!(writes(sql, Dialect::MySql).is_some(), "{sql}");
        }
        assert_eq!(writes("select 'into outfile'", Dialect::MySql), None);
    }
}
