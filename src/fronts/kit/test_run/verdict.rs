//! The verdict about a test: a pure function of what the run did and of the tool that it was to call.

use flowstone_engine::test_runs::ToolEvidence;

use super::names::{Match, Named, find};

/// What a test showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The terminal tool was called and returned.
    Pass,
    /// A tool or the run failed.
    Failed,
    /// The terminal tool was not called.
    Incomplete,
    /// Nothing was expected, or it cannot be said whether it happened.
    Unconfirmed,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Failed => "failed",
            Verdict::Incomplete => "incomplete",
            Verdict::Unconfirmed => "unconfirmed",
        }
    }
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The tools that were called, in the order of their first calls.
    pub tools: &'a [ToolEvidence],
    /// The code, which may be empty, and the message of the error with which the run failed.
    pub failure: Option<(&'a str, &'a str)>,
    /// The run waits for an answer or a result from outside.
    pub is_paused: bool,
}

/// What a test was expected to do.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// As the caller wrote it.
    pub given: &'a str,
    /// The tool that it names, as far as that was known before the run.
    pub known: Option<&'a str>,
}

/// Returns the verdict with its reason: the first of the rules that holds.
pub fn verdict(shown: Shown<'_>, expected: Option<Expected<'_>>) -> (Verdict, Option<String>) {
    let reason = |verdict, text: String| (verdict, Some(text));
    if let Some(tool) = shown.tools.iter().find(|tool| tool.has_failed) {
        let text = format!("tool '{}' returned an error", tool.name);
        return reason(Verdict::Failed, text);
    }
    if let Some((code, message)) = shown.failure {
        let text = match code {
            "" => format!("the run failed: {message}"),
            code => format!("the run failed: {code} {message}"),
        };
        return reason(Verdict::Failed, text);
    }
    let Some(expected) = expected else {
        let text = "no terminal_tool expectation provided".to_owned();
        return reason(Verdict::Unconfirmed, text);
    };
    let given = expected.given;
    let tool = match called(shown.tools, expected) {
        Match::Several(names) => {
            let names = names.join(", ");
            let text = format!("terminal tool '{given}' is ambiguous: {names}");
            return reason(Verdict::Unconfirmed, text);
        }
        Match::None => {
            let text = format!("terminal tool '{given}' never ran");
            return reason(Verdict::Incomplete, text);
        }
        Match::One(name) => shown.tools.iter().find(|tool| tool.name == name),
    };
    match tool {
        Some(tool) if tool.has_returned => (Verdict::Pass, None),
        Some(_) | None if shown.is_paused => {
            let text = format!("terminal tool '{given}' is waiting for approval");
            reason(Verdict::Unconfirmed, text)
        }
        Some(_) | None => {
            let text = format!("terminal tool '{given}' ran but did not return output");
            reason(Verdict::Unconfirmed, text)
        }
    }
}

/// Finds the expected tool among those that were called. A tool that was known before the run is not looked for again.
fn called(tools: &[ToolEvidence], expected: Expected<'_>) -> Match {
    let known = expected.known;
    let known = known.and_then(|known| tools.iter().find(|tool| tool.name == known));
    if let Some(tool) = known {
        return Match::One(tool.name.clone());
    }
    let named: Vec<Named> = tools
        .iter()
        .map(|tool| Named {
            name: tool.name.clone(),
            ids: tool.ids.clone(),
        })
        .collect();
    find(expected.given, &named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case: tools, `!` after one that failed and `?` after one that has not returned, with its other names in
    /// parentheses; the failure of the run; whether it is paused; the expected tool; the verdict and its reason.
    type Case = (
        &'static str,
        Option<(&'static str, &'static str)>,
        bool,
        Option<&'static str>,
        &'static str,
        &'static str,
    );

    fn tool(text: &str) -> ToolEvidence {
        let (text, ids) = text.split_once('(').unwrap_or((text, ""));
        let ids = ids.trim_end_matches(')').split(' ');
        ToolEvidence {
            name: text.trim_end_matches(['!', '?']).to_owned(),
            ids: ids.filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            has_returned: !text.ends_with('?'),
            has_failed: text.ends_with('!'),
        }
    }

    fn check(cases: &[Case]) {
        for (tools, failure, is_paused, expected, verdict, reason) in cases {
            let listed = tools.split(';').map(str::trim).filter(|it| !it.is_empty());
            let tools: Vec<ToolEvidence> = listed.map(tool).collect();
            let shown = Shown {
                tools: &tools,
                failure: *failure,
                is_paused: *is_paused,
            };
            let expected = expected.map(|given| Expected { given, known: None });
            let (found, why) = super::verdict(shown, expected);
            assert_eq!(found.name(), *verdict, "{tools:?}");
            assert_eq!(why.unwrap_or_default(), *reason, "{tools:?}");
        }
    }

    const FAILED: Option<(&str, &str)> = Some(("E0322", "boom"));
    const SEND: Option<&str> = Some("send");

    #[test]
    fn an_error_comes_first() {
        check(&[
            (
                "send!",
                None,
                false,
                SEND,
                "failed",
                "tool 'send' returned an error",
            ),
            (
                "look!; send",
                None,
                false,
                SEND,
                "failed",
                "tool 'look' returned an error",
            ),
            (
                "send; look!",
                None,
                false,
                None,
                "failed",
                "tool 'look' returned an error",
            ),
            (
                "send!",
                None,
                true,
                SEND,
                "failed",
                "tool 'send' returned an error",
            ),
            (
                "send!",
                FAILED,
                false,
                SEND,
                "failed",
                "tool 'send' returned an error",
            ),
            (
                "look!; send!",
                None,
                false,
                None,
                "failed",
                "tool 'look' returned an error",
            ),
        ]);
    }

    #[test]
    fn a_run_that_failed_follows() {
        check(&[
            (
                "send",
                FAILED,
                false,
                SEND,
                "failed",
                "the run failed: E0322 boom",
            ),
            (
                "",
                FAILED,
                false,
                None,
                "failed",
                "the run failed: E0322 boom",
            ),
            (
                "",
                Some(("", "thrown")),
                false,
                SEND,
                "failed",
                "the run failed: thrown",
            ),
        ]);
    }

    #[test]
    fn without_an_expectation_nothing_is_confirmed() {
        let reason = "no terminal_tool expectation provided";
        check(&[
            ("send", None, false, None, "unconfirmed", reason),
            ("", None, false, None, "unconfirmed", reason),
            ("send?", None, true, None, "unconfirmed", reason),
        ]);
    }

    #[test]
    fn the_expected_tool_decides() {
        let paused = "terminal tool 'send' is waiting for approval";
        let open = "terminal tool 'send' ran but did not return output";
        let never = "terminal tool 'send' never ran";
        check(&[
            ("send", None, false, SEND, "pass", ""),
            ("look; send", None, false, SEND, "pass", ""),
            // It returned before the run was paused by something else.
            ("send; look?", None, true, SEND, "pass", ""),
            ("send?", None, true, SEND, "unconfirmed", paused),
            ("send?", None, false, SEND, "unconfirmed", open),
            ("", None, false, SEND, "incomplete", never),
            ("look", None, false, SEND, "incomplete", never),
            ("look?", None, true, SEND, "incomplete", never),
            ("Send", None, false, SEND, "incomplete", never),
        ]);
    }

    #[test]
    fn names_are_found_in_order() {
        let ambiguous = "terminal tool 'send' is ambiguous: mail__send, slack__send";
        check(&[
            ("slack__send", None, false, SEND, "pass", ""),
            ("slack__send?; send", None, false, SEND, "pass", ""),
            (
                "slack__send; mail__send",
                None,
                false,
                SEND,
                "unconfirmed",
                ambiguous,
            ),
            ("mail__send?; x(send)", None, false, SEND, "pass", ""),
            (
                "mail_send",
                None,
                false,
                SEND,
                "incomplete",
                "terminal tool 'send' never ran",
            ),
            ("a(crm/send)", None, false, Some("crm/send"), "pass", ""),
            (
                "a(send); b(send)",
                None,
                false,
                SEND,
                "unconfirmed",
                "terminal tool 'send' is ambiguous: a, b",
            ),
        ]);
    }

    #[test]
    fn a_tool_that_was_known_before_the_run_is_that_one() {
        let tools = [tool("slack__send"), tool("mail__send")];
        let shown = Shown {
            tools: &tools,
            failure: None,
            is_paused: false,
        };
        let expected = Expected {
            given: "send",
            known: Some("slack__send"),
        };
        assert_eq!(verdict(shown, Some(expected)), (Verdict::Pass, None));
    }
}
