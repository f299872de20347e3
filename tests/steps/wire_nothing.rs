//! Responses without an answer, or with something other than text: in every family they are errors that are retried,
//! and never an empty final answer.

use crate::wire::{events, stream, whole};

/// Complete responses, by provider.
const WHOLE: &[(&str, &str)] = &[
    (
        "deepseek",
        r#"{"choices":[{"message":null,"finish_reason":"stop"}]}"#,
    ),
    ("deepseek", r#"{"choices":[{"finish_reason":"stop"}]}"#),
    (
        "deepseek",
        r#"{"choices":[{"message":"Hi","finish_reason":"stop"}]}"#,
    ),
    (
        "deepseek",
        r#"{"choices":[{"message":{"content":{"a":1}},"finish_reason":"stop"}]}"#,
    ),
    (
        "deepseek",
        r#"{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}"#,
    ),
    (
        "deepseek",
        r#"{"choices":[{"message":{"content":[{"type":"image_url","image_url":{"url":"x"}}]},"finish_reason":"stop"}]}"#,
    ),
    (
        "deepseek",
        r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":["stop"]}]}"#,
    ),
    ("anthropic", r#"{"content":null,"stop_reason":"end_turn"}"#),
    ("anthropic", r#"{"content":[],"stop_reason":null}"#),
    (
        "anthropic",
        r#"{"content":[{"type":"text","text":null}],"stop_reason":"end_turn"}"#,
    ),
    (
        "anthropic",
        r#"{"content":[{"type":"text","text":"Hi"}],"stop_reason":{"a":1}}"#,
    ),
    ("google", r#"{"candidates":[{"finishReason":"STOP"}]}"#),
    (
        "google",
        r#"{"candidates":[{"content":null,"finishReason":"STOP"}]}"#,
    ),
    (
        "google",
        r#"{"candidates":[{"content":"Hi","finishReason":"STOP"}]}"#,
    ),
    (
        "google",
        r#"{"candidates":[{"content":{"parts":"Hi"},"finishReason":"STOP"}]}"#,
    ),
    (
        "google",
        r#"{"candidates":[{"content":{"parts":[{"text":1}]},"finishReason":"STOP"}]}"#,
    ),
    (
        "google",
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":1}]}"#,
    ),
    ("openai", r#"{"status":"completed","output":[]}"#),
    (
        "openai",
        r#"{"status":"completed","output":[{"type":"message","content":null}]}"#,
    ),
    (
        "openai",
        r#"{"status":"completed","output":[{"type":"message","content":"Hi"}]}"#,
    ),
    (
        "openai",
        r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":null}]}]}"#,
    ),
    ("openai", r#"{"status":7,"output":[]}"#),
    (
        "bedrock",
        r#"{"output":{"message":null},"stopReason":"end_turn"}"#,
    ),
    (
        "bedrock",
        r#"{"output":{"message":{"content":[{"text":1}]}},"stopReason":"end_turn"}"#,
    ),
    (
        "bedrock",
        r#"{"output":{"message":{"content":[{"text":"Hi"}]}},"stopReason":[1]}"#,
    ),
];

/// Streamed responses, by provider.
const STREAMS: &[(&str, &[&str])] = &[
    (
        "deepseek",
        &[
            r#"{"choices":[{"delta":null,"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
    ),
    ("deepseek", &["[DONE]"]),
    (
        "deepseek",
        &[
            r#"{"choices":[{"delta":{"content":{"a":1}}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        ],
    ),
    (
        "deepseek",
        &[
            r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":{"a":1}}]}"#,
            "[DONE]",
        ],
    ),
    (
        "anthropic",
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":null}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    ),
    (
        "anthropic",
        &[
            r#"{"type":"message_delta","delta":{"stop_reason":7}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    ),
    ("google", &[r#"{"candidates":[{"finishReason":"STOP"}]}"#]),
    (
        "openai",
        &[r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#],
    ),
];

#[test]
fn streamed_text_of_an_unknown_item_is_not_lost() {
    let data = [
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"memo"}]}}"#,
    ];
    let shown = stream("openai", &events(&data));
    assert!(
        shown.starts_with("E0808") && shown.contains("an item with text is not a message"),
        "{shown}"
    );
}

#[test]
fn an_answer_without_text_is_not_a_finished_answer() {
    for (provider, body) in WHOLE {
        let shown = whole(provider, body);
        assert!(
            shown.starts_with("E0808") && shown.ends_with("(Later)"),
            "{provider} {body}: {shown}"
        );
    }
    for (provider, data) in STREAMS {
        let shown = stream(provider, &events(data));
        assert!(
            shown.starts_with("E0808") && shown.ends_with("(Later)"),
            "{provider} {data:?}: {shown}"
        );
    }
}

/// An answer may be empty if the server says so in the format.
#[test]
fn an_empty_text_is_an_answer() {
    for (provider, body) in [
        (
            "deepseek",
            r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#,
        ),
        (
            "deepseek",
            r#"{"choices":[{"message":{"content":null},"finish_reason":"length"}]}"#,
        ),
        ("anthropic", r#"{"content":[],"stop_reason":"end_turn"}"#),
        (
            "google",
            r#"{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}]}"#,
        ),
        (
            "google",
            r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#,
        ),
        (
            "openai",
            r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":""}]}]}"#,
        ),
        (
            "bedrock",
            r#"{"output":{"message":{"content":[]}},"stopReason":"end_turn"}"#,
        ),
    ] {
        let shown = whole(provider, body);
        assert!(!shown.starts_with('E'), "{provider} {body}: {shown}");
    }
}
