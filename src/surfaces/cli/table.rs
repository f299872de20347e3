//! Tables for people: as wide as the terminal allows, or complete for a pipe.
//!
//! Ids and paths, which may be copied, are never broken or shortened: other columns give way.

use std::io::{self, IsTerminal};

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use console::{Term, measure_text_width, truncate_str};
use flowstone_lang::visible::visible;

/// Assumed width of a terminal that does not report one.
const WIDTH: u16 = 100;
/// Assumed height of such a terminal.
const HEIGHT: u16 = 40;
/// The separator between two columns.
const GAP: usize = 2;
/// The width to which columns are shortened before another one is left out; `LEAST` applies when no more can be left
/// out.
const READABLE: usize = 16;
const LEAST: usize = 8;

/// A column: its heading, and what happens to it if there is not enough room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// Always shown in full: ids, paths, names.
    Whole(&'a str),
    /// May be shortened: the beginning is useful on its own.
    Cut(&'a str),
    /// May be left out, the last one first.
    Extra(&'a str),
}

impl<'a> Column<'a> {
    fn heading(self) -> &'a str {
        match self {
            Column::Whole(heading) | Column::Cut(heading) | Column::Extra(heading) => heading,
        }
    }
}

/// Returns the width of the terminal in columns.
pub fn columns() -> u16 {
    size().1
}

/// Returns the numbers of rows and columns of the terminal.
pub fn size() -> (u16, u16) {
    match Term::stdout().size_checked() {
        // A detached terminal may report that it has no columns.
        Some((rows, columns)) if columns > 0 => (rows.max(1), columns),
        _ => (HEIGHT, WIDTH),
    }
}

/// Lays out rows below their headings.
pub fn table(heading: &[Column<'_>], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let width = io::stdout().is_terminal().then(|| usize::from(columns()));
    lay_out(heading, rows.into_iter().collect(), width)
}

fn lay_out(heading: &[Column<'_>], mut rows: Vec<Vec<String>>, width: Option<usize>) -> String {
    let mut shown: Vec<usize> = (0..heading.len()).collect();
    if let Some(width) = width {
        for cell in rows.iter_mut().flatten() {
            *cell = visible(cell).into_owned();
            // A row must stay on one line.
            if cell.contains(['\n', '\r', '\t']) {
                *cell = cell.split_whitespace().collect::<Vec<_>>().join(" ");
            }
        }
        let widths = fit(heading, &mut shown, &rows, width);
        for row in &mut rows {
            for (cell, width) in row.iter_mut().zip(&widths) {
                *cell = truncate_str(cell, *width, "…").into_owned();
            }
        }
    }
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(shown.iter().map(|idx| heading[*idx].heading()));
    table.add_rows(
        rows.into_iter()
            .map(|row| pick(row, &shown).collect::<Vec<_>>()),
    );
    for column in table.column_iter_mut() {
        let gap = u16::try_from(GAP).unwrap_or(0);
        column.set_padding((0, gap));
    }
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

fn pick(row: Vec<String>, shown: &[usize]) -> impl Iterator<Item = String> {
    let mut row: Vec<Option<String>> = row.into_iter().map(Some).collect();
    shown
        .iter()
        .map(move |idx| row.get_mut(*idx).and_then(Option::take).unwrap_or_default())
}

/// Decides which columns are shown, and how wide each may be.
fn fit(
    heading: &[Column<'_>],
    shown: &mut Vec<usize>,
    rows: &[Vec<String>],
    width: usize,
) -> Vec<usize> {
    let full: Vec<usize> = heading
        .iter()
        .enumerate()
        .map(|(idx, column)| {
            let cells = rows.iter().filter_map(|row| row.get(idx));
            let cells = cells.map(|cell| measure_text_width(cell));
            cells.fold(measure_text_width(column.heading()), usize::max)
        })
        .collect();
    loop {
        let mut widths = full.clone();
        if shrink(heading, shown, &mut widths, (READABLE, width)) {
            return widths;
        }
        let extra = shown
            .iter()
            .rposition(|idx| matches!(heading[*idx], Column::Extra(_)));
        let Some(extra) = extra else {
            shrink(heading, shown, &mut widths, (LEAST, width));
            return widths;
        };
        shown.remove(extra);
    }
}

/// Narrows the widest column that may be shortened, down to `least`. Tells whether everything fits then.
fn shrink(
    heading: &[Column<'_>],
    shown: &[usize],
    widths: &mut [usize],
    (least, width): (usize, usize),
) -> bool {
    loop {
        let taken: usize = shown.iter().map(|idx| widths[*idx] + GAP).sum();
        let too_wide = taken.saturating_sub(GAP).saturating_sub(width);
        if too_wide == 0 {
            return true;
        }
        let widest = shown
            .iter()
            .filter(|idx| matches!(heading[**idx], Column::Cut(_)) && widths[**idx] > least)
            .max_by_key(|idx| widths[**idx]);
        match widest {
            Some(idx) => widths[*idx] = widths[*idx].saturating_sub(too_wide).max(least),
            None => return false,
        }
    }
}

/// Formats how long ago a point in time was.
pub fn ago(now_ms: i64, then_ms: i64) -> String {
    match (now_ms - then_ms).max(0) / 1_000 {
        seconds @ ..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: [Column<'static>; 4] = [
        Column::Whole("step"),
        Column::Extra("type"),
        Column::Extra("bytes"),
        Column::Cut("result"),
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row([
                "pmap.12/fetch-page",
                "http",
                "12000",
                "{:status 200, :body \"a\nb\"}",
            ]),
            row(["sum", "function", "2", "7"]),
        ]
    }

    #[track_caller]
    fn check(width: Option<usize>, expected: &[&str]) {
        let text = lay_out(&HEADING, rows(), width);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn all_is_shown_where_it_fits() {
        check(
            Some(80),
            &[
                "step                type      bytes  result",
                "pmap.12/fetch-page  http      12000  {:status 200, :body \"a b\"}",
                "sum                 function  2      7",
            ],
        );
    }

    #[test]
    fn text_is_shortened_before_columns_go() {
        check(
            Some(54),
            &[
                "step                type      bytes  result",
                "pmap.12/fetch-page  http      12000  {:status 200, :b…",
                "sum                 function  2      7",
            ],
        );
        check(
            Some(40),
            &[
                "step                result",
                "pmap.12/fetch-page  {:status 200, :body…",
                "sum                 7",
            ],
        );
    }

    #[test]
    fn paths_are_whole_even_where_nothing_fits() {
        check(
            Some(20),
            &[
                "step                result",
                "pmap.12/fetch-page  {:statu…",
                "sum                 7",
            ],
        );
    }

    #[test]
    fn a_pipe_gets_everything() {
        let text = lay_out(&HEADING, rows(), None);
        assert!(text.contains("{:status 200, :body \"a"), "{text}");
    }

    #[test]
    fn ages_are_rounded_down() {
        let cases = [
            (0, "0 s ago"),
            (61, "1 min ago"),
            (7_300, "2 h ago"),
            (200_000, "2 d ago"),
        ];
        for (seconds, words) in cases {
            assert_eq!(ago(seconds * 1_000, 0), words);
        }
    }
}
