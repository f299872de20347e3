//! Paths of steps, as spans read them.

/// The id of a model's turn.
pub(super) const TURN: &str = "turn";

/// Returns the path of the step that performs the one at a path; further attempts have paths of their own.
pub(super) fn outer(path: &str) -> Option<&str> {
    let (above, _) = path.rsplit_once('/')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    Some(match above.rsplit_once('~') {
        Some((start, number)) if is_number(number) => start,
        _ => above,
    })
}

/// Returns the id of a step by its path.
pub(super) fn step_id(path: &str) -> &str {
    let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
    last.split_once('#').map_or(last, |(id, _)| id)
}
