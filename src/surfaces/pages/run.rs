//! The page of a run: how it stands, what it was given and what it gave.

use flowstone_engine::codec;
use flowstone_engine::ports::{RunStatus, WaitRow, WaitState};
use flowstone_engine::viewer::View;
use flowstone_engine::waits::shown as shown_of;
use flowstone_engine::{RunReport, StepReport};
use flowstone_lang::value::Value;
use maud::{Markup, html};

use super::view::{self, Resources};
use super::{Budget, Frame, data, instant, length, page, shown};

/// Parts of the result and of the input that are drawn.
const PARTS: usize = 5_000;
const INPUT_PARTS: usize = 500;
/// Steps that are listed.
const STEPS: usize = 200;

/// The page of a run.
pub(crate) struct RunPage<'a> {
    pub report: &'a RunReport,
    /// How the result is shown; `None` if the run has no result, or one that is too large.
    pub view: Option<&'a View>,
    pub resources: &'a Resources,
    /// Where the whole result is, and its size.
    pub content: Option<(String, usize)>,
    /// When the link to this page ends.
    pub until_ms: Option<i64>,
    pub root: &'a str,
    pub now_ms: i64,
}

impl RunPage<'_> {
    pub(crate) fn html(&self) -> String {
        let row = &self.report.row;
        let title = format!("{} · {}", row.flow, row.status.name());
        let body = html! {
            h1 { (shown(&row.flow)) }
            p { strong class=(tone(row.status)) { (row.status.name()) }
                @if let Some(reason) = &row.wait_reason { span.muted { " – " (shown(reason)) } }
            }
            (self.waits())
            (self.error())
            (self.result())
            (self.input())
            (self.steps())
            (self.about())
        };
        let frame = Frame {
            title: &title,
            root: self.root,
            is_wide: true,
        };
        page(frame, &body)
    }

    /// The open questions, without links that decide: the right to look at a run is not the right to decide.
    fn waits(&self) -> Markup {
        let is_open = |wait: &&WaitRow| wait.state == WaitState::Open && wait.ending.is_none();
        let open: Vec<&WaitRow> = self.report.waits.iter().filter(is_open).collect();
        html! {
            @if !open.is_empty() {
                h2 { "Waiting for a decision" }
                @for wait in open {
                    @let asked = shown_of(&codec::decode(&wait.details).unwrap_or(Value::Nil));
                    div.card {
                        p { strong { (shown(asked.title.as_deref().unwrap_or(&wait.key))) } }
                        @if let Some(message) = &asked.message { p.text { (shown(message)) } }
                        p.muted {
                            "Decide with the link that was sent to those who may decide, or with "
                            code { "flowstone waits show " (wait.id) }
                            @if let Some(deadline) = wait.deadline_ms {
                                ", before " (instant(deadline, self.now_ms))
                            }
                            "."
                        }
                    }
                }
            }
        }
    }

    fn error(&self) -> Markup {
        let Some(failure) = &self.report.failure else {
            return html! {};
        };
        let message = failure.exception.message.as_deref().unwrap_or("failed");
        html! {
            h2 { "Error" }
            div.notice {
                p.text { (shown(message)) }
                @if !failure.exception.code.is_empty() { p.muted { (failure.exception.code) } }
            }
        }
    }

    fn result(&self) -> Markup {
        if self.report.row.result.is_none() {
            return html! {};
        }
        let mut budget = Budget::of(PARTS);
        let drawn = self
            .view
            .map(|found| view::view(found, self.resources, &mut budget));
        html! {
            h2 { "Result" }
            @if let Some(drawn) = &drawn { (drawn) }
            @if drawn.is_none() { p { "The result is too large for this page." } }
            @else if budget.is_cut { p.muted { "The result is longer than this page." } }
            @if let Some((href, size)) = &self.content {
                p { a href=(href) { "The whole result" } span.muted { " (EDN, " (view::bytes(*size as u64)) ")" } }
            }
        }
    }

    fn input(&self) -> Markup {
        let input = codec::decode(&self.report.row.input).unwrap_or(Value::Nil);
        if input.as_map().is_none_or(|input| input.is_empty()) {
            return html! {};
        }
        let mut budget = Budget::of(INPUT_PARTS);
        html! {
            h2 { "Input" }
            (data::value(&input, &mut budget))
            @if budget.is_cut { p.muted { "The input is longer than this page." } }
        }
    }

    fn steps(&self) -> Markup {
        let steps = &self.report.steps;
        html! {
            @if !steps.is_empty() {
                h2 { "Steps" }
                div.scroll tabindex="0" role="region" aria-label="Steps" {
                    table {
                        thead { tr { th scope="col" { "Step" } th scope="col" { "Type" } th scope="col" { "Status" } th scope="col" { "Took" } } }
                        tbody { @for step in steps.iter().take(STEPS) { (self.step(step)) } }
                    }
                }
                @if steps.len() > STEPS { p.muted { "and " (steps.len() - STEPS) " more" } }
            }
        }
    }

    fn step(&self, step: &StepReport) -> Markup {
        let took = step.ended_ms.map(|end| (end - step.started_ms).max(0));
        let title = step.title.as_deref().filter(|title| *title != step.path);
        html! {
            tr {
                td { code { (shown(&step.path)) } @if let Some(title) = title { br; span.muted { (shown(title)) } } }
                td { (shown(&step.kind)) }
                td { (step.status.name()) }
                td { @if let Some(took) = took { (duration_text(took)) } }
            }
        }
    }

    fn about(&self) -> Markup {
        let row = &self.report.row;
        html! {
            h2 { "About this run" }
            dl {
                dt { "Run" } dd { code { (shown(row.id.as_str())) } }
                dt { "Started by" } dd { (shown(&row.started_by)) }
                dt { "Started" } dd { (instant(row.created_ms, self.now_ms)) }
                @if let Some(ended) = row.ended_ms { dt { "Ended" } dd { (instant(ended, self.now_ms)) } }
                @if let Some(until) = self.until_ms { dt { "This link ends" } dd { (instant(until, self.now_ms)) } }
            }
        }
    }
}

fn tone(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "good",
        RunStatus::Failed
        | RunStatus::FailedCompensating
        | RunStatus::TimedOut
        | RunStatus::Terminated => "bad",
        RunStatus::Cancelled | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => "",
    }
}

fn duration_text(millis: i64) -> String {
    match millis {
        0..=999 => format!("{millis} ms"),
        1_000..=59_999 => format!("{:.1} s", millis as f64 / 1_000.0),
        _ => length(millis),
    }
}
