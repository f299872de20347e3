//! The difference of two texts, line by line, in the format of `diff -u` and `patch`.

/// Number of equal lines that are shown around a change.
const CONTEXT: usize = 3;
/// Maximum size of the table; larger texts are shown as completely replaced.
const CELLS_MAX: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Same,
    Gone,
    Come,
}

/// Returns the unified diff of two texts; empty if they are equal.
pub(crate) fn unified(name_a: &str, name_b: &str, a: &str, b: &str) -> String {
    if a == b {
        return String::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
    let edits = edits(&a, &b);
    let mut out = format!("--- {name_a}\n+++ {name_b}\n");
    for (start, end) in hunks(&edits) {
        write_hunk(&mut out, &edits, (start, end), &a, &b);
    }
    out
}

/// Returns the ranges of edits that are shown together.
fn hunks(edits: &[Edit]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        if *edit == Edit::Same {
            continue;
        }
        let start = at.saturating_sub(CONTEXT);
        let end = (at + 1 + CONTEXT).min(edits.len());
        match hunks.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => hunks.push((start, end)),
        }
    }
    hunks
}

fn write_hunk(out: &mut String, edits: &[Edit], hunk: (usize, usize), a: &[&str], b: &[&str]) {
    let before = &edits[..hunk.0];
    let inside = &edits[hunk.0..hunk.1];
    let of_a = |edits: &[Edit]| edits.iter().filter(|edit| **edit != Edit::Come).count();
    let of_b = |edits: &[Edit]| edits.iter().filter(|edit| **edit != Edit::Gone).count();
    let (mut at_a, mut at_b) = (of_a(before), of_b(before));
    out.push_str(&format!(
        "@@ -{},{} +{},{} @@\n",
        at_a + 1,
        of_a(inside),
        at_b + 1,
        of_b(inside)
    ));
    for edit in inside {
        let (sign, line) = match edit {
            Edit::Same => (' ', a[at_a]),
            Edit::Gone => ('-', a[at_a]),
            Edit::Come => ('+', b[at_b]),
        };
        out.push_str(&format!("{sign}{line}\n"));
        at_a += usize::from(*edit != Edit::Come);
        at_b += usize::from(*edit != Edit::Gone);
    }
}

/// Returns a shortest edit script from one list of lines to the other.
fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let backwards = rest_a.iter().rev().zip(rest_b.iter().rev());
    let tail = backwards.take_while(|(a, b)| a == b).count();
    let middle_a = &rest_a[..rest_a.len() - tail];
    let middle_b = &rest_b[..rest_b.len() - tail];
    let mut edits = vec![Edit::Same; head];
    edits.extend(shortest(middle_a, middle_b));
    edits.extend(vec![Edit::Same; tail]);
    edits
}

/// Keeps a longest common subsequence, found with a table of its lengths from each pair of lines on.
fn shortest(a: &[&str], b: &[&str]) -> Vec<Edit> {
    if a.len().saturating_mul(b.len()) > CELLS_MAX {
        let mut edits = vec![Edit::Gone; a.len()];
        edits.extend(vec![Edit::Come; b.len()]);
        return edits;
    }
    let width = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            common[x * width + y] = match a[x] == b[y] {
                true => common[(x + 1) * width + y + 1] + 1,
                false => common[(x + 1) * width + y].max(common[x * width + y + 1]),
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut edits = Vec::new();
    while x < a.len() || y < b.len() {
        let edit = match (a.get(x), b.get(y)) {
            (Some(a), Some(b)) if a == b => Edit::Same,
            (Some(_), Some(_)) if common[(x + 1) * width + y] < common[x * width + y + 1] => {
                Edit::Come
            }
            (Some(_), _) => Edit::Gone,
            (None, _) => Edit::Come,
        };
        x += usize::from(edit != Edit::Come);
        y += usize::from(edit != Edit::Gone);
        edits.push(edit);
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn differences_are_shown_with_their_surroundings() {
        let a = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        let b = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13";
        let shown = unified("a", "b", a, b);
        let expected = "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
                        @@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13\n";
        assert_eq!(shown, expected);
        assert_eq!(unified("a", "b", a, a), "");
    }

    #[test]
    fn lines_move_as_little_as_possible() {
        let cases = [
            ("a\nb", "b", "-a\n b\n"),
            ("b", "a\nb", "+a\n b\n"),
            ("a\nb\nc", "c\na\nb", "+c\n a\n b\n-c\n"),
            ("a", "b", "-a\n+b\n"),
        ];
        for (a, b, lines) in cases {
            let shown = unified("a", "b", a, b);
            let body = shown.splitn(4, '\n').nth(3).unwrap_or_default();
            assert_eq!(body, lines, "{a:?} {b:?}");
        }
    }
}
