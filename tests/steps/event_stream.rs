//! The framing of AWS: checksums, lengths, and headers of every kind.

use flowstone_steps::llm::event_stream::Parser;

use crate::wire_bedrock::event;

/// Returns a message of AWS with text headers and a payload.
pub fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend(name.bytes());
        head.push(7);
        head.extend((value.len() as u16).to_be_bytes());
        head.extend(value.bytes());
    }
    raw(&head, payload.as_bytes())
}

fn raw(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = ((16 + head.len() + payload.len()) as u32)
        .to_be_bytes()
        .to_vec();
    bytes.extend((head.len() as u32).to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(head);
    bytes.extend(payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let good = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event("contentBlockDelta", r#"{"delta":{"text":"Hi"}}"#),
    ]
    .concat();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let mut parser = Parser::default();
        let events = parser.push(&bad);
        // A length that grew plausibly waits for more bytes, but only until its checksum is verified.
        assert!(events.is_err(), "byte {at}: {events:?}");
    }
    assert_eq!(Parser::default().push(&good).unwrap().len(), 2);
}

#[test]
fn impossible_messages_are_errors() {
    let lengths = |total: u32, head: u32| {
        let mut bytes = [total.to_be_bytes(), head.to_be_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend([0; 40]);
        bytes
    };
    for (total, head) in [
        (0, 0),
        (15, 0),
        (16, 1),
        (u32::MAX, 0),
        (16, u32::MAX),
        (u32::MAX, u32::MAX),
        (20 << 20, 0),
    ] {
        assert!(
            Parser::default().push(&lengths(total, head)).is_err(),
            "{total} {head}"
        );
    }
    // Each kind of value, and headers that end too early.
    let value = |kind: u8, count: usize| [vec![1, b'x', kind], vec![0; count]].concat();
    for (kind, count) in [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 4),
        (5, 8),
        (6, 2),
        (7, 2),
        (8, 8),
        (9, 16),
    ] {
        assert_eq!(
            Parser::default()
                .push(&raw(&value(kind, count), b""))
                .unwrap()
                .len(),
            1,
            "{kind}"
        );
        if count > 0 {
            assert!(
                Parser::default()
                    .push(&raw(&value(kind, count - 1), b""))
                    .is_err(),
                "{kind}"
            );
        }
    }
    for head in [
        &[0][..],
        &[5, b'x'],
        &[1, b'x'],
        &[1, b'x', 10],
        &[1, b'x', 7, 0xff, 0xff, 1],
    ] {
        assert!(Parser::default().push(&raw(head, b"")).is_err(), "{head:?}");
    }
}
