//! The part of a thread that one run added. Complete in itself: each call has its result.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::super::conversation::{Said, Source};
use super::super::notes::{facts, plain, shortened, with};
use super::super::prompt::message;
use crate::json::items;

/// Maximum number of characters of a tool's result.
const MOST_RESULT: usize = 4_000;
/// Maximum number of characters of any other text.
const MOST_TEXT: usize = 20_000;
/// Replaces parts that are not text.
const DROPPED: &str = "[a picture or file, which is no longer shown]";
/// The result of a call that nobody performed.
const OPEN: &str = "The call ended the run; it has no result.";

/// What one run added.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The run and the step.
    pub id: String,
    /// A summary that replaces all blocks up to `until`.
    summary: Option<Value>,
    /// The last block that the run read.
    until: Option<String>,
    messages: Vec<Value>,
}

impl Block {
    /// Returns the block of a conversation; `None` if the run added nothing. It has at most `most` messages.
    pub(super) fn new<'a>(
        id: &str,
        until: Option<String>,
        kept: impl Iterator<Item = &'a Said>,
        most: usize,
    ) -> Option<Block> {
        let kept: Vec<&Said> = kept.collect();
        let summary = kept.iter().find(|said| said.source == Source::Summary);
        let own = kept.iter().filter(|said| match said.source {
            Source::Asked | Source::Reply | Source::Results => true,
            // What the summary does not cover belongs to this block.
            Source::Earlier => summary.is_some(),
            Source::Summary | Source::System | Source::Aside => false,
        });
        let messages: Vec<Value> = own.map(|said| plainly(&said.message)).collect();
        let messages = within(paired(messages), most);
        let summary = summary.map(|said| plainly(&said.message));
        (!messages.is_empty()).then(|| Block {
            id: id.to_owned(),
            until: until.filter(|_| summary.is_some()),
            summary,
            messages,
        })
    }

    /// Reads a stored block.
    pub(super) fn of(stored: &Value) -> Option<Block> {
        let text = |key: &str| stored.get(key)?.as_str().map(str::to_owned);
        Some(Block {
            id: text("id")?,
            summary: stored.get("summary").filter(|it| !it.is_nil()).cloned(),
            until: text("until"),
            messages: stored.get("messages").and_then(items)?,
        })
    }

    /// Returns the stored form.
    pub(super) fn value(&self) -> Value {
        let mut entries = vec![
            ("id", Value::from(self.id.as_str())),
            ("messages", Value::vector(self.messages.iter().cloned())),
        ];
        entries.extend(self.summary.clone().map(|summary| ("summary", summary)));
        let until = self.until.as_deref().map(Value::from);
        entries.extend(until.map(|until| ("until", until)));
        facts(entries)
    }

    /// Returns the number of messages.
    pub(super) fn count(&self) -> usize {
        self.messages.len() + usize::from(self.summary.is_some())
    }

    pub(super) fn said(&self) -> impl Iterator<Item = Said> {
        let all = self.summary.iter().chain(&self.messages);
        all.map(|message| Said {
            message: message.clone(),
            source: Source::Earlier,
        })
    }
}

/// Returns the blocks that a run continues: without those that a summary replaces, and up to its own from an earlier
/// execution.
pub(super) fn visible(mut blocks: Vec<Block>, own: &str) -> Vec<Block> {
    if let Some(at) = blocks.iter().position(|block| block.id == own) {
        blocks.truncate(at);
    }
    let Some(last) = blocks.iter().rposition(|block| block.summary.is_some()) else {
        return blocks;
    };
    let until = blocks[last].until.clone();
    let is_until = |block: &Block| Some(&block.id) == until.as_ref();
    // Blocks of runs that ended in the meantime are not in the summary.
    let first = blocks[..last].iter().position(is_until).map(|at| at + 1);
    let summarized = blocks.remove(last);
    let mut visible = vec![summarized];
    visible.extend(blocks.into_iter().skip(first.unwrap_or(0)));
    visible
}

/// Returns a message without provider data and pictures, and with texts of limited size.
fn plainly(message: &Value) -> Value {
    let is_result = role(message) == "tool";
    let most = if is_result { MOST_RESULT } else { MOST_TEXT };
    let content = message.get("content").map(|content| match content {
        Value::Text(text) => shortened(text.as_str(), most),
        parts => {
            let parts = items(parts).unwrap_or_default();
            let texts = parts.iter().map(|part| match part.get("text") {
                Some(text) => plain(text),
                None => DROPPED.to_owned(),
            });
            shortened(&texts.collect::<Vec<_>>().join("\n"), most)
        }
    });
    let kept = ["role", "tool-calls", "tool-call-id", "name", "error?"];
    let kept = kept
        .into_iter()
        .filter_map(|key| Some((key, message.get(key)?.clone())));
    let content = content.map(|text| ("content", Value::from(text)));
    facts(kept.chain(content))
}

fn role(message: &Value) -> String {
    let role = message.get("role").and_then(name_of);
    role.map(|role| role.to_string()).unwrap_or_default()
}

/// Returns the ids of a message's calls, with their names.
fn calls(message: &Value) -> Vec<(String, String)> {
    let calls = message.get("tool-calls").and_then(items);
    let text = |call: &Value, key: &str| {
        let text = call.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let calls = calls.unwrap_or_default();
    calls
        .iter()
        .map(|call| (text(call, "tool-call-id"), text(call, "name")))
        .collect()
}

/// Adds a result for each call that has none.
fn paired(messages: Vec<Value>) -> Vec<Value> {
    let mut paired = Vec::new();
    let mut rest = messages.into_iter().peekable();
    while let Some(said) = rest.next() {
        let mut open = calls(&said);
        paired.push(said);
        while let Some(result) = rest.next_if(|next| role(next) == "tool") {
            let id = result.get("tool-call-id").and_then(Value::as_str);
            open.retain(|(call, _)| Some(call.as_str()) != id);
            paired.push(result);
        }
        paired.extend(open.into_iter().map(|(id, name)| {
            with(
                &message("tool", Value::from(OPEN)),
                [
                    ("tool-call-id", Value::from(id)),
                    ("name", Value::from(name)),
                    ("error?", Value::Bool(true)),
                ],
            )
        }));
    }
    paired
}

/// Removes the oldest turns with calls, each with its results, until at most `most` messages are left.
fn within(mut messages: Vec<Value>, most: usize) -> Vec<Value> {
    while messages.len() > most {
        let Some(at) = messages.iter().position(|said| !calls(said).is_empty()) else {
            break;
        };
        let results = messages[at + 1..]
            .iter()
            .take_while(|said| role(said) == "tool");
        let end = at + 1 + results.count();
        messages.drain(at..end);
    }
    // Without calls, any part can be left out.
    let surplus = messages.len().saturating_sub(most);
    if surplus > 0 {
        messages.drain(..surplus);
        let asked = messages.iter().position(|said| role(said) == "user");
        messages.drain(..asked.unwrap_or(0));
    }
    messages
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::*;

    fn said(text: &str) -> Vec<Said> {
        let messages = items(&read_data(text).expect("EDN")).expect("messages");
        let said = messages.into_iter().map(|message| Said {
            source: match role(&message).as_str() {
                "assistant" => Source::Reply,
                "tool" => Source::Results,
                _ => Source::Asked,
            },
            message,
        });
        said.collect()
    }

    fn roles(block: &Block) -> String {
        let roles = block.messages.iter().map(role);
        roles.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_call_without_a_result_gets_one() {
        let said = said(
            "[{:role :user :content \"a\"}
              {:role :assistant :tool-calls [{:tool-call-id \"c1\" :name \"x\"} {:tool-call-id \"c2\" :name \"y\"}]}
              {:role :tool :tool-call-id \"c1\" :content \"1\"}]",
        );
        let block = Block::new("r/a", None, said.iter(), 40).expect("a block");
        assert_eq!(roles(&block), "user assistant tool tool");
        let last = block.messages.last().expect("a result");
        assert_eq!(last.get("tool-call-id").and_then(Value::as_str), Some("c2"));
    }

    #[test]
    fn old_calls_leave_with_their_results() {
        let said = said(
            "[{:role :user :content \"a\"}
              {:role :assistant :tool-calls [{:tool-call-id \"c1\" :name \"x\"}]}
              {:role :tool :tool-call-id \"c1\" :content \"1\"}
              {:role :assistant :tool-calls [{:tool-call-id \"c2\" :name \"x\"}]}
              {:role :tool :tool-call-id \"c2\" :content \"2\"}
              {:role :assistant :content \"b\"}]",
        );
        for (most, expected) in [
            (6, "user assistant tool assistant tool assistant"),
            (5, "user assistant tool assistant"),
            (4, "user assistant tool assistant"),
            (3, "user assistant"),
            (2, "user assistant"),
        ] {
            let block = Block::new("r/a", None, said.iter(), most).expect("a block");
            assert_eq!(roles(&block), expected, "{most}");
        }
    }

    #[test]
    fn a_summary_replaces_what_its_run_had_read() {
        let block = |id: &str, until: Option<&str>| Block {
            id: id.to_owned(),
            summary: until.map(Value::from),
            until: until.map(str::to_owned),
            messages: Vec::new(),
        };
        let blocks = vec![
            block("a", None),
            block("b", None),
            // It ended while `d` was at work.
            block("c", None),
            block("d", Some("b")),
            block("e", None),
        ];
        let ids = |blocks: Vec<Block>| {
            let ids = blocks.into_iter().map(|block| block.id);
            ids.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ids(visible(blocks.clone(), "x")), "d c e");
        // A step that is executed again sees what was before it.
        assert_eq!(ids(visible(blocks, "c")), "a b");
    }
}
