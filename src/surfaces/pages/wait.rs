//! The page on which the holder of a link decides a wait.

use std::collections::BTreeMap;

use flowstone_engine::form::{FieldKind, FieldProblem, FormField};
use flowstone_engine::links::LinkedWait;
use flowstone_engine::resource::segment;
use maud::{Markup, html};

use super::{Budget, Frame, capital, data, instant, page, shown};

/// Parts of data that the page draws. A person decides about what is shown, so it is much.
const PARTS: usize = 20_000;

/// The page of an open wait.
pub(crate) struct WaitPage<'a> {
    pub wait: &'a LinkedWait,
    pub token: &'a str,
    /// The action that is chosen at first.
    pub action: &'a str,
    /// What was typed before, by the name of the field; `None` for the first look.
    pub typed: Option<&'a BTreeMap<String, String>>,
    pub problems: &'a [FieldProblem],
    /// Why nothing was decided yet, if something was sent.
    pub notice: Option<&'a str>,
    pub root: &'a str,
    pub now_ms: i64,
}

impl WaitPage<'_> {
    pub(crate) fn html(&self) -> String {
        let wait = self.wait;
        let title = wait.shown.title.as_deref();
        let title = title.unwrap_or("A decision is needed");
        let body = html! {
            h1 { (shown(title)) }
            @if let Some(notice) = self.notice {
                div.notice role="alert" { p.text { (shown(notice)) } }
            }
            @if let Some(message) = &wait.shown.message {
                p.message { (shown(message)) }
            }
            (self.parts())
            (self.form())
            (self.about())
        };
        let frame = Frame {
            title,
            root: self.root,
            is_wide: false,
        };
        page(frame, &body)
    }

    /// What the decision is about.
    fn parts(&self) -> Markup {
        let mut budget = Budget::of(PARTS);
        html! {
            @for (name, value) in &self.wait.shown.parts {
                section.card aria-label=(part_title(name)) {
                    h2 { (part_title(name)) }
                    (data::value(value, &mut budget))
                }
            }
            @if budget.is_cut {
                p.bad { "Not everything is shown here. See it all with " code { "flowstone waits show " (self.wait.row.id) } "." }
            }
        }
    }

    fn form(&self) -> Markup {
        let wait = self.wait;
        let form = wait.form(None);
        let has_own_comment = form.fields.iter().any(|field| field.name == "comment");
        // Relative to the address of the page, without its query: the token is not sent in an address again.
        let address = format!("../{}/{}", wait.row.id, segment(self.action));
        html! {
            form method="post" action=(address) accept-charset="utf-8" {
                input type="hidden" name="token" value=(self.token);
                input type="hidden" name="digest" value=(wait.row.digest);
                @if !wait.actions.is_empty() {
                    fieldset {
                        legend { "Your decision" }
                        @for action in &wait.actions {
                            @let id = format!("action-{action}");
                            div.choice {
                                input type="radio" name="action" required id=(id) value=(action)
                                    checked[action == self.action];
                                label for=(id) { (shown(&label_of(action))) }
                            }
                        }
                    }
                }
                @for field in &form.fields {
                    (self.field(field))
                }
                @if !wait.actions.is_empty() && !has_own_comment {
                    (self.comment())
                }
                @if !wait.roles.is_empty() {
                    (self.access_token())
                }
                p { button type="submit" { "Send decision" } }
            }
        }
    }

    fn typed(&self, name: &str) -> Option<&str> {
        Some(self.typed?.get(name).map_or("", String::as_str))
    }

    fn field(&self, field: &FormField) -> Markup {
        let id = format!("field-{}", field.name);
        let problem = self.problems.iter().find(|(name, _)| *name == field.name);
        let problem = problem.map(|(_, why)| why.as_str());
        let text = self.typed(&field.name).unwrap_or(&field.initial);
        let described = format!("{id}-hint");
        let hint = hint(field);
        let is_described = hint.is_some() || problem.is_some();
        let invalid = problem.map(|_| "true");
        let described = is_described.then_some(&*described);
        let name = &*field.name;
        let required = field.is_required;
        let control = html! {
            @match &field.kind {
                FieldKind::Choice(known) => {
                    select id=(id) name=(name) required[required] aria-invalid=[invalid] aria-describedby=[described] {
                        @if !required || text.is_empty() {
                            option value="" selected[text.is_empty()] { "–" }
                        }
                        @for (choice, _) in known {
                            option value=(choice) selected[choice == text] { (shown(choice)) }
                        }
                    }
                }
                FieldKind::Data => {
                    textarea.code id=(id) name=(name) rows="6" spellcheck="false" required[required]
                        aria-invalid=[invalid] aria-describedby=[described] { "\n" (text) }
                }
                FieldKind::Text { is_long: true, .. } => {
                    textarea id=(id) name=(name) rows="5" required[required]
                        aria-invalid=[invalid] aria-describedby=[described] { "\n" (text) }
                }
                FieldKind::Number { is_whole, .. } => {
                    input type="text" id=(id) name=(name) value=(text) required[required] autocomplete="off"
                        inputmode=(if *is_whole { "numeric" } else { "decimal" })
                        aria-invalid=[invalid] aria-describedby=[described];
                }
                FieldKind::Flag | FieldKind::Text { .. } => {
                    input type="text" id=(id) name=(name) value=(text) required[required]
                        aria-invalid=[invalid] aria-describedby=[described];
                }
            }
        };
        let notes = html! {
            @if let Some(described) = described {
                span id=(described) {
                    @if let Some(hint) = &hint { span.hint { (shown(hint)) } }
                    @if let Some(problem) = problem { span.problem { (shown(problem)) } }
                }
            }
        };
        if field.kind == FieldKind::Flag {
            return html! {
                div.field {
                    div.choice {
                        input type="checkbox" id=(id) name=(name) value="on" checked[!text.is_empty()]
                            aria-describedby=[described];
                        label for=(id) { (shown(&field.label)) }
                    }
                    (notes)
                }
            };
        }
        html! {
            div.field {
                label for=(id) {
                    (shown(&field.label))
                    @if !required { span.muted { " (optional)" } }
                }
                (notes)
                (control)
            }
        }
    }

    fn comment(&self) -> Markup {
        html! {
            div.field {
                label for="field-comment" { "Comment" span.muted { " (optional)" } }
                textarea id="field-comment" name="comment" rows="3" {
                    "\n" (self.typed("comment").unwrap_or_default())
                }
            }
        }
    }

    fn access_token(&self) -> Markup {
        let roles = self.wait.roles.join(", ");
        html! {
            div.field {
                label for="field-access-token" { "Access token" }
                span.hint id="field-access-token-hint" {
                    "This decision needs one of these roles: " (shown(&roles))
                    ". Paste a token that has it; it is not stored."
                }
                input type="password" id="field-access-token" name="access-token" required autocomplete="off"
                    aria-describedby="field-access-token-hint";
            }
        }
    }

    /// Who asks, and until when.
    fn about(&self) -> Markup {
        let row = &self.wait.row;
        html! {
            h2 { "About this request" }
            dl {
                dt { "Flow" } dd { (shown(&row.flow)) }
                dt { "Run" } dd { code { (shown(row.run.as_str())) } }
                dt { "Step" } dd { code { (shown(&row.path)) } }
                dt { "Started by" } dd { (shown(&self.wait.started_by)) }
                dt { "Asked" } dd { (instant(row.opened_ms, self.now_ms)) }
                @if let Some(deadline) = row.deadline_ms {
                    dt { "Decide before" } dd { (instant(deadline, self.now_ms)) }
                }
                dt { "Digest" } dd { code { (row.digest) } }
            }
            p.muted {
                "The link to this page decides this request, once. Keep it to yourself. The digest is that of the request as you see it: if the request changes, your decision does not count."
            }
        }
    }
}

/// Returns the page that follows a decision. Without an action, it says nothing about one.
pub(crate) fn decided(root: &str, action: Option<&str>) -> String {
    let title = match action {
        Some(_) => "Your decision was recorded",
        None => "Nothing to see here any more",
    };
    let body = html! {
        h1 { (title) }
        @if let Some(action) = action {
            p { "Decision: " strong { (shown(&label_of(action))) } }
            p.muted { "The run continues. You can close this page." }
        } @else {
            p.muted { "This page confirms a decision for a few minutes after it was made." }
        }
    };
    let frame = Frame {
        title,
        root,
        is_wide: false,
    };
    page(frame, &body)
}

fn part_title(name: &str) -> &'static str {
    match name {
        "data" => "Details",
        "error" => "Error",
        "request" => "What the step is going to do",
        "value" => "Result to review",
        _ => "More",
    }
}

/// Returns the name of an action as a person reads it: `ask-again` as `Ask again`.
fn label_of(action: &str) -> String {
    capital(&action.replace(['-', '_'], " "))
}

fn hint(field: &FormField) -> Option<String> {
    let own = field.description.clone();
    let bounds = match &field.kind {
        FieldKind::Number { is_whole, range } => {
            let kind = if *is_whole {
                "a whole number"
            } else {
                "a number"
            };
            let edge = |edge: Option<f64>| edge.map(|edge| edge.to_string());
            match (edge(range.min), edge(range.max)) {
                (Some(min), Some(max)) => Some(format!("{kind} from {min} to {max}")),
                (Some(min), None) => Some(format!("{kind}, at least {min}")),
                (None, Some(max)) => Some(format!("{kind}, at most {max}")),
                (None, None) => Some(kind.to_owned()),
            }
        }
        FieldKind::Text { size, .. } => match (size.min, size.max) {
            (Some(min), Some(max)) => Some(format!("{min} to {max} characters")),
            (Some(min), None) => Some(format!("at least {min} characters")),
            (None, Some(max)) => Some(format!("at most {max} characters")),
            (None, None) => None,
        },
        FieldKind::Data => Some("one value as EDN or JSON".to_owned()),
        FieldKind::Choice(_) | FieldKind::Flag => None,
    };
    match (own, bounds) {
        (Some(own), Some(bounds)) => Some(format!("{own} ({bounds})")),
        (own, bounds) => own.or(bounds),
    }
}
