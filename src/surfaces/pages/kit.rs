//! The pages of the build kit: a person decides about a call, or completes a request for a connection.

use flowstone_fronts::kit::approval::LinkedApproval;
use flowstone_fronts::kit::catalog;
use flowstone_fronts::kit::change::Changes;
use flowstone_fronts::kit::connecting::{Asked, Mode, Place};
use maud::{Markup, html};

use super::{Frame, instant, page, shown};

/// Characters of the arguments, and of a diff, that are shown.
const TEXT_MAX: usize = 100_000;

/// The page of a call that waits for a person.
pub(crate) struct ApprovalPage<'a> {
    pub approval: &'a LinkedApproval,
    pub changes: &'a Changes,
    pub token: &'a str,
    /// Why nothing was decided yet, if something was sent.
    pub notice: Option<&'a str>,
    pub root: &'a str,
    pub now_ms: i64,
}

impl ApprovalPage<'_> {
    pub(crate) fn html(&self) -> String {
        let it = self.approval;
        let body = html! {
            h1 { "Allow " code { (shown(&it.tool)) } "?" }
            (alert(self.notice))
            p.message {
                strong { (shown(&it.asked_by)) }
                " wants to call this tool"
                @if let Some(flow) = &it.target { " on the flow " strong { (shown(flow)) } }
                "."
            }
            @if let Some(tool) = catalog::find(&it.tool) {
                p.muted { (first_sentence(tool.description)) }
            }
            @if let Some(note) = &it.note { p.text { (shown(note)) } }
            (self.changed())
            section.card aria-label="Arguments" {
                h2 { "Arguments" }
                (cut(&format!("{:#}", it.arguments)))
            }
            (self.form())
            (self.about())
        };
        let title = format!("Allow {}?", it.tool);
        whole(&title, self.root, &body)
    }

    fn changed(&self) -> Markup {
        html! {
            section.card aria-label="What changes" {
                h2 { "What changes" }
                @match self.changes {
                    Changes::Texts(diff) => { (coloured(diff)) }
                    Changes::Nothing => { p { "Nothing: the flow is like this already." } }
                    Changes::Unclear(why) => {
                        p.bad.text { "The change does not fit the newest revision: " (shown(why)) "." }
                    }
                    Changes::Trigger(parts) => {
                        dl {
                            @for (name, text) in parts { dt { (name) } dd { (shown(text)) } }
                        }
                    }
                    Changes::InArguments => {
                        p { "What the arguments say, and nothing in the texts of the flow." }
                    }
                }
            }
        }
    }

    fn form(&self) -> Markup {
        // Relative to the address of the page, without its query: the token is not sent in an address again.
        let address = format!("../approvals/{}", self.approval.id);
        let choices = [("approve", "Approve"), ("deny", "Deny")];
        html! {
            form method="post" action=(address) accept-charset="utf-8" {
                input type="hidden" name="token" value=(self.token);
                fieldset {
                    legend { "Your decision" }
                    @for (value, label) in choices {
                        @let id = format!("decision-{value}");
                        div.choice {
                            input type="radio" name="decision" required id=(id) value=(value);
                            label for=(id) { (label) }
                        }
                    }
                }
                div.field {
                    label for="access-token" { "Access token" }
                    span.hint id="access-token-hint" {
                        "The program that asks has this link, too. Paste a token with the right to approve that is not the \
                         program's own; it is not stored."
                    }
                    input type="password" id="access-token" name="access-token" required autocomplete="off"
                        aria-describedby="access-token-hint";
                }
                p { button type="submit" { "Send decision" } }
            }
        }
    }

    fn about(&self) -> Markup {
        let it = self.approval;
        html! {
            h2 { "About this request" }
            dl {
                dt { "Tool" } dd { code { (shown(&it.tool)) } }
                @if let Some(flow) = &it.target { dt { "Flow" } dd { (shown(flow)) } }
                dt { "Asked by" } dd { (shown(&it.asked_by)) }
                dt { "Asked" } dd { (instant(it.created_ms, self.now_ms)) }
                dt { "Decide before" } dd { (instant(it.expires_ms, self.now_ms)) }
                dt { "Digest" } dd { code { (it.digest) } }
            }
            p.muted {
                "An approval is good for one call with exactly these arguments. Without a token, decide in a terminal of the \
                 project: " code { "flowstone kit approve " (it.id) } " or " code { "flowstone kit deny " (it.id) } "."
            }
        }
    }
}

/// The page of a request for a connection.
pub(crate) struct ConnectionPage<'a> {
    pub asked: &'a Asked,
    pub token: &'a str,
    pub notice: Option<&'a str>,
    pub root: &'a str,
    pub now_ms: i64,
}

impl ConnectionPage<'_> {
    pub(crate) fn html(&self) -> String {
        let asked = self.asked;
        let body = html! {
            h1 { "Connect " (shown(&asked.slug)) }
            (alert(self.notice))
            p.message {
                strong { (shown(&asked.asked_by)) }
                " needs this connection for the flow " strong { (shown(&asked.flow)) } "."
            }
            @match asked.mode {
                Some(Mode::Oauth) => { (self.login()) }
                Some(Mode::ApiKey) | None => {
                    @if let Some(problem) = &asked.problem {
                        p.text { "The connection cannot be used as it is: " (shown(problem)) "." }
                    }
                    (self.secret())
                }
            }
            (self.about())
        };
        let title = format!("Connect {}", asked.slug);
        whole(&title, self.root, &body)
    }

    fn form(&self, fields: &Markup, button: &str) -> Markup {
        let address = format!("../connections/{}", self.asked.id);
        html! {
            form method="post" action=(address) accept-charset="utf-8" {
                input type="hidden" name="token" value=(self.token);
                (fields)
                p { button type="submit" { (button) } }
            }
        }
    }

    fn login(&self) -> Markup {
        let nothing = html! {
            p { "You log in at the service itself. Flowstone keeps the tokens that it grants, and no program sees them." }
        };
        self.form(&nothing, "Log in")
    }

    fn secret(&self) -> Markup {
        let variable = match &self.asked.place {
            Place::Variable(variable) => variable,
            Place::Elsewhere(place) => {
                return html! {
                    p { "The settings of the project keep this secret elsewhere, where this page cannot write: " code { (shown(place)) } "." }
                };
            }
        };
        let fields = html! {
            div.field {
                label for="secret" { "Secret" }
                span.hint id="secret-hint" {
                    "It is written to " code { ".env" } " beside the flows as " code { (shown(variable)) }
                    ". The program that asks does not see it."
                }
                input type="password" id="secret" name="secret" required minlength="6" maxlength="10000"
                    autocomplete="off" spellcheck="false" aria-describedby="secret-hint";
            }
        };
        html! {
            (self.form(&fields, "Store the secret"))
            @if let Some(missing) = &self.asked.missing {
                p { "The project does not describe this connection yet. Add this to " code { "flowstone.edn" } ", and restart the server:" }
                pre tabindex="0" { (shown(missing)) }
            }
        }
    }

    fn about(&self) -> Markup {
        let asked = self.asked;
        html! {
            h2 { "About this request" }
            dl {
                dt { "Connection" } dd { (shown(&asked.slug)) }
                dt { "Flow" } dd { (shown(&asked.flow)) }
                dt { "Asked by" } dd { (shown(&asked.asked_by)) }
                dt { "Asked" } dd { (instant(asked.created_ms, self.now_ms)) }
                dt { "Complete before" } dd { (instant(asked.expires_ms, self.now_ms)) }
            }
            p.muted { "This link works once. Do not continue if you did not expect it." }
        }
    }
}

/// Returns the page that leads to the login page of an authorization server. It is a link, because the form of a page is sent to
/// this server only.
pub(crate) fn login_page(root: &str, slug: &str, url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let body = html! {
        h1 { "Log in for " (shown(slug)) }
        p { "The login page is at " strong { (shown(host)) } ". After you have logged in there, you come back here." }
        p { a.button href=(url) rel="noopener noreferrer" { "Continue to " (shown(host)) } }
        p.muted { "You have ten minutes. Do not continue if you do not know this host." }
    };
    whole(&format!("Log in for {slug}"), root, &body)
}

/// What a page after a form says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Approved,
    Denied,
    Stored,
    LoggedIn,
}

/// Returns the page after a form was sent. Without a receipt, it says nothing about one.
pub(crate) fn done(root: &str, done: Option<Done>) -> String {
    let (title, detail) = match done {
        Some(Done::Approved) => (
            "The call is approved",
            "The program can now make this call, once.",
        ),
        Some(Done::Denied) => ("The call is denied", "The program cannot make this call."),
        Some(Done::Stored) => (
            "The secret is stored",
            "If the page before had lines for flowstone.edn, add them and restart the server. Then tell the program to go on.",
        ),
        Some(Done::LoggedIn) => (
            "You are logged in",
            "Tell the program that the connection is ready.",
        ),
        None => (
            "Nothing to see here any more",
            "This page confirms what you did for a few minutes.",
        ),
    };
    let body = html! {
        h1 { (title) }
        p { (detail) }
        p.muted { "You can close this page." }
    };
    whole(title, root, &body)
}

fn whole(title: &str, root: &str, body: &Markup) -> String {
    let frame = Frame {
        title,
        root,
        is_wide: false,
    };
    page(frame, body)
}

fn alert(notice: Option<&str>) -> Markup {
    html! {
        @if let Some(notice) = notice {
            div.notice role="alert" { p.text { (shown(notice)) } }
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// Returns the beginning of a text, and whether there is more.
fn beginning(text: &str) -> (&str, bool) {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

fn cut(text: &str) -> Markup {
    let (text, is_cut) = beginning(text);
    html! {
        pre tabindex="0" { (shown(text)) }
        (more(is_cut))
    }
}

fn more(is_cut: bool) -> Markup {
    html! {
        @if is_cut {
            p.bad { "Not everything is shown here. See it all with " code { "flowstone kit approvals --json '{}'" } "." }
        }
    }
}

/// Returns a diff with a colour for each kind of line. The signs in front say the same.
fn coloured(diff: &str) -> Markup {
    let (diff, is_cut) = beginning(diff);
    html! {
        pre tabindex="0" {
            @for line in diff.lines() {
                @match line.as_bytes().first() {
                    Some(b'+') => { span.good { (shown(line)) } }
                    Some(b'-') => { span.bad { (shown(line)) } }
                    _ => { span { (shown(line)) } }
                }
                "\n"
            }
        }
        (more(is_cut))
    }
}
