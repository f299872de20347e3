//! The layout of source text, after the community's style guide for Clojure and the formatter cljfmt.
//!
//! Only the blanks between tokens change; where a line ends is the author's decision. The lines of a body are indented by
//! two columns, other arguments are aligned with the first one, the items of a collection with each other. Closing
//! delimiters follow the last item, one blank line remains of several, and the text ends with a line break.

mod rules;

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

use super::{Flaw, NodeId, NodeKind, Tree};
use rules::Rule;

/// The replacement of blanks between two tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The new blanks.
    pub text: String,
}

/// Returns a text in the usual layout.
///
/// # Errors
/// Returns the first place where the text is not balanced.
pub fn format(text: &str) -> Result<Cow<'_, str>, Flaw> {
    let edits = edits(text, &Tree::parse(text))?;
    if edits.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &edits {
        out.push_str(&text[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    Ok(Cow::Owned(out))
}

/// Returns the edits that bring a text into the usual layout, in the order of the text.
///
/// # Errors
/// Returns the first place where the text is not balanced.
pub fn edits(text: &str, tree: &Tree) -> Result<Vec<Edit>, Flaw> {
    match tree.flaws().first() {
        Some(flaw) => Err(flaw.clone()),
        None => Ok(Writer::new(text, tree, Mode::Change).run(text.len()).edits),
    }
}

/// Returns the column in which a line begins that is broken at an offset. The text may be unbalanced; lines before it
/// count as they are.
pub fn indentation(text: &str, offset: usize) -> usize {
    let text = text.get(..offset).unwrap_or(text);
    let tree = Tree::parse(text);
    let writer = Writer::new(text, &tree, Mode::Measure).run(text.len());
    writer.indentation()
}

/// What becomes of the blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Change,
    /// They stay; only columns are counted.
    Measure,
}

/// The kind of the token before a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// No token: the gap is at the start of the text.
    Nothing,
    Opener,
    Prefix,
    Comment,
    Other,
}

/// The kind of the token behind a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Closer,
    /// A form that begins here, or the prefix of one.
    Form,
    /// A form behind a prefix, which belongs to the form that the prefix began.
    Prefixed,
    /// A comment or a discarded form.
    Skipped,
}

/// An open collection.
struct Frame {
    id: NodeId,
    /// The column of its first item.
    base: usize,
    rule: Rule,
    /// The number of forms that have begun.
    forms: usize,
    /// The column of the first argument, if it is in the line of the head.
    argument: Option<usize>,
    /// Whether the first form of the body is the first one in its line.
    has_broken_body: bool,
}

struct Writer<'t> {
    text: &'t str,
    tree: &'t Tree,
    mode: Mode,
    /// How lines end in this text.
    line_break: &'static str,
    edits: Vec<Edit>,
    column: usize,
    before: Before,
    /// The end of the last token in the text.
    end: usize,
    frames: Vec<Frame>,
}

impl<'t> Writer<'t> {
    fn new(text: &'t str, tree: &'t Tree, mode: Mode) -> Writer<'t> {
        let first_break = text.find('\n').map_or("", |at| &text[..at]);
        Writer {
            text,
            tree,
            mode,
            line_break: if first_break.ends_with('\r') {
                "\r\n"
            } else {
                "\n"
            },
            edits: Vec::new(),
            column: 0,
            before: Before::Nothing,
            end: 0,
            frames: Vec::new(),
        }
    }

    /// Writes all tokens that begin before an offset.
    fn run(mut self, offset: usize) -> Writer<'t> {
        let mut open: Vec<NodeId> = Vec::new();
        for (id, node) in self.tree.all() {
            if node.start as usize >= offset {
                break;
            }
            self.close_before(&mut open, id.0);
            if node.kind == NodeKind::Blank {
                continue;
            }
            let parent = self
                .tree
                .parent(id)
                .map(|parent| self.tree.node(parent).kind);
            let is_prefixed = parent.is_some_and(NodeKind::is_prefix);
            let behind = match is_prefixed {
                _ if node.kind.is_skipped() => Behind::Skipped,
                true => Behind::Prefixed,
                false => Behind::Form,
            };
            let is_whole = node.open == 0;
            let end = if is_whole {
                node.end
            } else {
                node.start + node.open
            };
            let starts_line = self.gap(node.start as usize, behind);
            if behind == Behind::Form {
                self.note_form(starts_line);
            }
            let column = self.column;
            self.token(node.start as usize..end as usize);
            self.before = match node.kind {
                NodeKind::Comment => Before::Comment,
                kind if kind.is_collection() => Before::Opener,
                kind if kind.is_prefix() => Before::Prefix,
                _ => Before::Other,
            };
            if is_whole {
                continue;
            }
            open.push(id);
            if node.kind.is_collection() {
                let rule = rules::rule(
                    self.text,
                    self.tree,
                    id,
                    self.frames.last().map(|frame| (frame.id, frame.rule)),
                );
                self.frames.push(Frame {
                    id,
                    base: column + node.open as usize,
                    rule,
                    forms: 0,
                    argument: None,
                    has_broken_body: false,
                });
            }
        }
        if self.mode == Mode::Change {
            self.close_before(&mut open, u32::MAX);
            self.finish();
        } else {
            self.close_before(&mut open, self.tree.nodes.len() as u32);
        }
        self
    }

    /// Closes what ends before a node.
    fn close_before(&mut self, open: &mut Vec<NodeId>, next: u32) {
        while let Some(id) = open.last().copied() {
            let node = *self.tree.node(id);
            // A collection without its closing delimiter is open until the end of the text.
            let is_open = node.kind.is_collection()
                && !node.is_closed
                && node.end as usize == self.text.len();
            if node.next > next || is_open {
                return;
            }
            open.pop();
            if !node.kind.is_collection() {
                continue;
            }
            if node.is_closed {
                let end = node.end as usize;
                self.gap(end - 1, Behind::Closer);
                self.token(end - 1..end);
                self.before = Before::Other;
            }
            self.frames.pop();
        }
    }

    /// Writes the blanks in front of a token. Tells whether the token is the first one in its line.
    fn gap(&mut self, start: usize, behind: Behind) -> bool {
        let text = self.text;
        let old = &text[self.end..start];
        let new = match self.mode {
            Mode::Measure => Cow::Borrowed(old),
            Mode::Change => self.new_gap(old, behind),
        };
        let starts_line = self.before == Before::Nothing || new.contains('\n');
        if new != old {
            self.edits.push(Edit {
                range: self.end..start,
                text: new.to_string(),
            });
        }
        self.advance(&new);
        starts_line
    }

    fn new_gap<'g>(&self, old: &'g str, behind: Behind) -> Cow<'g, str> {
        let breaks = old.matches('\n').count();
        match (self.before, behind) {
            (Before::Nothing, _) => Cow::Borrowed(""),
            (Before::Comment, Behind::Closer) => self.lines("", 1, behind),
            (Before::Comment, _) => self.lines("", breaks.clamp(1, 2), behind),
            (_, Behind::Closer) | (Before::Opener, _) => Cow::Borrowed(""),
            (_, _) if breaks > 0 => {
                let commas = old.split('\n').next().unwrap_or_default();
                let commas = if commas.contains(',') { "," } else { "" };
                self.lines(commas, breaks.min(2), behind)
            }
            (Before::Prefix, _) if old.is_empty() => Cow::Borrowed(""),
            (Before::Prefix, _) => Cow::Borrowed(" "),
            (_, _) if old.is_empty() => Cow::Borrowed(" "),
            (_, _) if old.chars().all(|char| char == ' ' || char == ',') => Cow::Borrowed(old),
            (_, _) if old.contains(',') => Cow::Borrowed(", "),
            (_, _) => Cow::Borrowed(" "),
        }
    }

    /// Returns line breaks, and the indentation of what follows.
    fn lines(&self, commas: &str, breaks: usize, behind: Behind) -> Cow<'static, str> {
        let mut out = commas.to_owned();
        for _ in 0..breaks {
            out.push_str(self.line_break);
        }
        let column = match (self.frames.last(), behind) {
            (None, _) => 0,
            (Some(frame), Behind::Prefixed) => frame.indentation(frame.forms.saturating_sub(1)),
            (Some(frame), _) => frame.indentation(frame.forms),
        };
        out.extend(std::iter::repeat_n(' ', column));
        Cow::Owned(out)
    }

    fn note_form(&mut self, starts_line: bool) {
        let column = self.column;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        if frame.forms == 1 && !starts_line {
            frame.argument = Some(column);
        }
        if frame.rule.body() == Some(frame.forms) {
            frame.has_broken_body = starts_line;
        }
        frame.forms += 1;
    }

    fn token(&mut self, range: Range<usize>) {
        let text = self.text;
        self.end = range.end;
        self.advance(&text[range]);
    }

    fn advance(&mut self, written: &str) {
        match written.rsplit_once('\n') {
            Some((_, last)) => self.column = last.width(),
            None => self.column += written.width(),
        }
    }

    /// Replaces the blanks at the end of the text by one line break.
    fn finish(&mut self) {
        let old = &self.text[self.end..];
        let new = match self.before {
            Before::Nothing => "",
            _ => self.line_break,
        };
        if old != new {
            self.edits.push(Edit {
                range: self.end..self.text.len(),
                text: new.to_owned(),
            });
        }
    }

    /// Returns the column of the next line.
    fn indentation(&self) -> usize {
        let last = self.frames.last();
        last.map_or(0, |frame| frame.indentation(frame.forms))
    }
}

impl Frame {
    /// Returns the column of the form with an index, if it begins a line.
    fn indentation(&self, idx: usize) -> usize {
        let aligned = match (self.rule, idx) {
            (Rule::Items, _) | (_, 0 | 1) => self.base,
            _ => self.argument.unwrap_or(self.base),
        };
        let body = self.base + 1;
        match self.rule {
            Rule::Inner if idx > 0 => body,
            Rule::Methods(head) if idx > head => body,
            Rule::Block(head) if idx == head + 1 => body,
            Rule::Block(head) if idx > head && self.has_broken_body => body,
            _ => aligned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let laid_out = format(text).expect("the text is balanced");
        assert_eq!(laid_out, expected, "{text}");
        let again = format(&laid_out).expect("the text is balanced");
        assert_eq!(again, expected, "not stable: {text}");
    }

    #[test]
    fn arguments_are_aligned_with_the_first_one() {
        check("(foo a\nb\n    c)", "(foo a\n     b\n     c)\n");
        check("(foo\na\nb)", "(foo\n a\n b)\n");
        check("(:key m\nd)", "(:key m\n      d)\n");
        check("(-> x\n(f 1)\ng)", "(-> x\n    (f 1)\n    g)\n");
        check("((f) a\nb)", "((f) a\n b)\n");
        check("#(foo a\n b)", "#(foo a\n      b)\n");
    }

    #[test]
    fn bodies_are_indented_by_two_columns() {
        check(
            "(defn f\n\"Doc.\"\n[x]\nx)",
            "(defn f\n  \"Doc.\"\n  [x]\n  x)\n",
        );
        check(
            "(let [a 1\nb 2]\n(+ a b)\na)",
            "(let [a 1\n      b 2]\n  (+ a b)\n  a)\n",
        );
        check("(when x (y)\n(z))", "(when x (y)\n      (z))\n");
        check("(when x\n(y)\n(z))", "(when x\n  (y)\n  (z))\n");
        check("(if a\nb\nc)", "(if a\n  b\n  c)\n");
        check(
            "(try (a)\n(catch Exception e\nb))",
            "(try (a)\n     (catch Exception e\n       b))\n",
        );
        check("(cond\na b\nc d)", "(cond\n  a b\n  c d)\n");
        check("(fn [x]\nx)", "(fn [x]\n  x)\n");
        check(
            "(clojure.test/deftest a\nb)",
            "(clojure.test/deftest a\n  b)\n",
        );
        check(
            "(defn f\n([a]\na)\n([a b]\nb))",
            "(defn f\n  ([a]\n   a)\n  ([a b]\n   b))\n",
        );
    }

    #[test]
    fn methods_and_local_functions_have_bodies() {
        check(
            "(reify P\n(m [this]\n1))",
            "(reify P\n  (m [this]\n    1))\n",
        );
        check(
            "(defrecord R [a]\nP\n(m [this]\n1))",
            "(defrecord R [a]\n  P\n  (m [this]\n    1))\n",
        );
        check(
            "(letfn [(f [x]\nx)]\n(f 1))",
            "(letfn [(f [x]\n          x)]\n  (f 1))\n",
        );
    }

    #[test]
    fn collections_are_aligned_and_closed_behind_the_last_item() {
        check("{ :a 1\n:b [1\n2\n]\n}", "{:a 1\n :b [1\n     2]}\n");
        check("#{ a\nb }", "#{a\n  b}\n");
        check("#?(:clj a\n:cljs b)", "#?(:clj a\n   :cljs b)\n");
        check("'( a\nb )", "'(a\n  b)\n");
        check("(a[1]\"s\")(b)", "(a [1] \"s\") (b)\n");
        check("{:a   1, :b 2,\n:c 3}", "{:a   1, :b 2,\n :c 3}\n");
    }

    #[test]
    fn comments_stay_and_blank_lines_are_collapsed() {
        check(
            "\n\n(a)  \n\n\n\n;; c  \n(b) ;d\n\n",
            "(a)\n\n;; c\n(b) ;d\n",
        );
        check("(a ; c\n)", "(a ; c\n )\n");
        check(
            "(let [a 1] ; one\n;; two\na)",
            "(let [a 1] ; one\n  ;; two\n  a)\n",
        );
        check("[a\n#_(b\nc)\nd]", "[a\n #_(b\n    c)\n d]\n");
        check("#!/usr/bin/env x\n(a)", "#!/usr/bin/env x\n(a)\n");
    }

    #[test]
    fn tokens_are_never_joined_or_changed() {
        check("~ @a", "~ @a\n");
        check("^:a\nb", "^:a\nb\n");
        check("(def ^{:a 1}\nb\n1)", "(def ^{:a 1}\n  b\n  1)\n");
        check("\"a  \n  b\"", "\"a  \n  b\"\n");
        check("(a \\( \\newline)", "(a \\( \\newline)\n");
        check("", "");
        check("  \n", "");
        check("(a)\r\n(b\r\nc)", "(a)\r\n(b\r\n c)\r\n");
        check("#inst\"2020\" #_ x", "#inst\"2020\" #_ x\n");
    }

    #[test]
    fn an_unbalanced_text_is_refused_with_the_first_place() {
        let flaw = format("(a)\n(b [c)").expect_err("a bracket is open");
        assert_eq!(flaw.range, 7..8);
        let flaw = format("(a))").expect_err("a bracket is too many");
        assert_eq!(flaw.range, 3..4);
        assert!(format("\"a").is_err() && format("'").is_err() && format("(#_)").is_err());
    }

    #[test]
    fn the_next_line_has_an_indentation_in_broken_text_too() {
        let at_end = |text: &str| indentation(text, text.len());
        assert_eq!(at_end("(let [a 1]"), 2);
        assert_eq!(at_end("(let [a 1"), 6);
        assert_eq!(at_end("(foo bar"), 5);
        assert_eq!(at_end("(foo"), 1);
        assert_eq!(at_end("  {:a (when x"), 8);
        assert_eq!(at_end("(a)"), 0);
        assert_eq!(indentation("(let [a 1]\n)", 10), 2);
    }
}
