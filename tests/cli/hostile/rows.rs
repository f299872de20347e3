//! The table of requests that a server refuses. Names in angle brackets stand for what the test fills in.

pub const BODY: &str = r#"{"order":"o-1"}"#;
pub const JSON: &str = "content-type: application/json";
pub const FORM: &str = "content-type: application/x-www-form-urlencoded";
const EVIL: &str = "origin: http://evil.example";
const START: &str = "POST /api/v1/flows/greet/runs";
const HELLO: &str = r#"{"input":{"who":"x"}}"#;
const INIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"who":"x"}}}"#;

/// A request, and the status and the code of its answer.
pub type Row = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
);

/// Names and pages that are not ours.
pub const ELSEWHERE: &[Row] = &[
    (
        START,
        &["<OWNER>", JSON, "host: evil.example"],
        HELLO,
        "403 E1012",
    ),
    (
        START,
        &["<OWNER>", JSON, "host: 127.0.0.1"],
        HELLO,
        "403 E1012",
    ),
    (
        START,
        &["<OWNER>", JSON, "host: 127.0.0.1:1@evil.example"],
        HELLO,
        "403 E1012",
    ),
    (
        "POST /api/flows/paid/interfaces/live/github",
        &["<SIGNED>", JSON, "host: evil.example"],
        BODY,
        "403 E1012",
    ),
    (
        "POST /local/waits/<WAIT>/approve",
        &[FORM, "host: evil.example"],
        DECIDE,
        "403 E1012",
    ),
    (
        "POST /mcp",
        &["<OWNER>", JSON, "host: evil.example"],
        INIT,
        "403 E1012",
    ),
    (START, &["<OWNER>", JSON, EVIL], HELLO, "403 E1013"),
    (
        START,
        &["<OWNER>", JSON, "origin: null"],
        HELLO,
        "403 E1013",
    ),
    (
        "POST /api/flows/paid/interfaces/live/github",
        &["<SIGNED>", JSON, EVIL],
        BODY,
        "403 E1013",
    ),
    ("POST /local/events/done", &[JSON, EVIL], BODY, "403 E1013"),
    (
        "POST /local/waits/<WAIT>/approve",
        &[FORM, EVIL],
        DECIDE,
        "403 E1013",
    ),
    (
        "POST /api/v1/tokens",
        &["<OWNER>", JSON, EVIL],
        r#"{"name":"x","scopes":["admin"]}"#,
        "403 E1013",
    ),
    ("POST /mcp", &["<OWNER>", JSON, EVIL], INIT, "403 E1013"),
    (
        "POST /http/greet/x",
        &["<OWNER>", JSON, "sec-fetch-site: cross-site"],
        "",
        "403 E1013",
    ),
];
pub const DECIDE: &str = "token=<TICKET>&digest=<DIGEST>&action=approve";

/// Requests that can be read in two ways.
pub const TWO_WAYS: &[Row] = &[
    (START, &["<OWNER>", "<OWNER>", JSON], HELLO, "400 E1016"),
    (
        START,
        &["<OWNER>", JSON, "content-type: text/plain"],
        HELLO,
        "400 E1016",
    ),
    (
        START,
        &["<OWNER>", JSON, "idempotency-key: a", "idempotency-key: b"],
        HELLO,
        "400 E1016",
    ),
    (
        START,
        &["<OWNER>", JSON, "host: 127.0.0.1:1", "host: 127.0.0.1:2"],
        HELLO,
        "400 E1016",
    ),
    (START, &["<OWNER>", JSON, "content-length: 2"], HELLO, "400"),
    (
        START,
        &["<OWNER>", JSON, "transfer-encoding: identity"],
        HELLO,
        "400",
    ),
    (
        START,
        &["<OWNER>", JSON, "transfer-encoding: xchunked"],
        HELLO,
        "400",
    ),
    (
        "POST http://evil.example/api/v1/flows/greet/runs",
        &["<OWNER>", JSON],
        HELLO,
        "403 E1012",
    ),
    ("CONNECT evil.example:80", &["<OWNER>"], "", "403 E1012"),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id: 1", "last-event-id: 2"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id: +1"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id: -1"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id: 1,2"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id:"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OWNER>", "last-event-id: 99999999999999999999"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/events?since_seq=1e3",
        &["<OWNER>"],
        "",
        "400 E1016",
    ),
];

/// Tokens that are missing, over, or of others.
pub const TOKENS: &[Row] = &[
    (START, &[JSON], HELLO, "401 E1010"),
    (START, &["<EXPIRED>", JSON], HELLO, "401 E1010"),
    (START, &["<REVOKED>", JSON], HELLO, "401 E1010"),
    ("POST /http/greet/x", &[], "", "401 E1010"),
    ("POST /http/greet/x", &["<EXPIRED>"], "", "401 E1010"),
    ("POST /mcp", &["<REVOKED>", JSON], INIT, "401 E1010"),
    ("POST /mcp", &[JSON], INIT, "401 E1010"),
    (
        "POST /api/v1/resources?filename=a",
        &["<EXPIRED>"],
        "x",
        "401 E1010",
    ),
    (
        "POST /api/v1/waits/<WAIT>/approve",
        &["<EXPIRED>", JSON],
        "{}",
        "401 E1010",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<EXPIRED>"],
        "",
        "401 E1010",
    ),
    (
        "GET /api/v1/runs/<RUN>/events?token=fss_x",
        &[],
        "",
        "401 E1010",
    ),
    // A token of another flow sees nothing here.
    (START, &["<OTHER_RUN>", JSON], HELLO, "404 E1014"),
    (
        "POST /api/v1/runs",
        &["<OTHER_RUN>", JSON],
        r#"{"flow":"greet","inputs":[{"who":"x"}]}"#,
        "422 E0542",
    ),
    ("POST /http/greet/x", &["<OTHER_RUN>"], "", "404 E1014"),
    (
        "POST /api/v1/runs/<RUN>/cancel",
        &["<OTHER_RUN>", JSON],
        "{}",
        "404 E0502",
    ),
    (
        "POST /api/v1/runs/<RUN>/fork",
        &["<OTHER_ALL>", JSON],
        "{}",
        "404 E0502",
    ),
    (
        "POST /api/v1/runs/<RUN>/url",
        &["<OTHER_ALL>", JSON],
        "{}",
        "404 E0502",
    ),
    (
        "POST /api/v1/stream-tokens",
        &["<OTHER_ALL>", JSON],
        r#"{"run":"<RUN>"}"#,
        "404 E0502",
    ),
    (
        "GET /api/v1/runs/<RUN>/events",
        &["<OTHER_ALL>"],
        "",
        "404 E0502",
    ),
    (
        "POST /api/v1/waits/<WAIT>/approve",
        &["<OTHER_ALL>", JSON],
        "{}",
        "404 E0514",
    ),
    ("GET /runs/<RUN>", &["<OTHER_ALL>"], "", "404 E0502"),
    // A token without the right.
    (START, &["<READER>", JSON], HELLO, "403 E1011"),
    (
        "POST /api/v1/waits/<WAIT>/approve",
        &["<READER>", JSON],
        "{}",
        "403 E1011",
    ),
    (
        "POST /api/v1/tokens",
        &["<OTHER_ALL>", JSON],
        r#"{"name":"x","scopes":["admin"]}"#,
        "403 E1011",
    ),
    (
        "POST /api/v1/jobs/claim",
        &["<READER>", JSON],
        r#"{"types":["a"],"worker":"w"}"#,
        "403 E1011",
    ),
];

/// Proofs that are wrong, and decisions where none is taken.
pub const PROOFS: &[Row] = &[
    (
        "POST /api/flows/paid/interfaces/live/github",
        &["<FLIPPED>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /api/flows/paid/interfaces/live/github",
        &["<SIGNED>", JSON],
        r#"{"order":"o-0"}"#,
        "401 E1044",
    ),
    (
        "POST /api/flows/billed/interfaces/live/stripe",
        &["<STRIPE_OLD>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /api/flows/billed/interfaces/live/stripe",
        &["<STRIPE_FLIPPED>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /api/flows/billed/interfaces/live/stripe",
        &["<SIGNED>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /local/events/done",
        &[JSON, "x-signature: AAAA"],
        BODY,
        "401 E1044",
    ),
    (
        "POST /local/events/done",
        &["<OWNER>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /local/events/call",
        &["<OWNER>", JSON],
        BODY,
        "401 E1044",
    ),
    (
        "POST /local/events/ask",
        &["<OWNER>", JSON],
        r#"{"action":"approve"}"#,
        "404 E1014",
    ),
    (
        "POST /api/v1/signals",
        &["<OTHER_ALL>", JSON],
        r#"{"key":"ask","value":{"action":"approve"}}"#,
        "404 E1014",
    ),
    (
        "GET /api/v1/waits/<WAIT>/approve",
        &["<OWNER>"],
        "",
        "405 E1015",
    ),
    ("HEAD /api/v1/waits/<WAIT>/approve", &["<OWNER>"], "", "405"),
    (
        "PUT /local/waits/<WAIT>/approve",
        &[FORM],
        DECIDE,
        "405 E1015",
    ),
    ("GET /local/events/done", &[], "", "405 E1015"),
    (
        "GET /api/flows/paid/interfaces/live/github",
        &["<SIGNED>"],
        "",
        "405 E1015",
    ),
    (
        "POST /local/waits/<WAIT>/approve",
        &[FORM],
        "token=x&digest=<DIGEST>&action=approve",
        "404 E1100",
    ),
    (
        "POST /local/waits/<WAIT>/approve",
        &[FORM],
        "token=<TICKET>&action=approve",
        "400 E1016",
    ),
];

/// Paths that lead elsewhere.
pub const PATHS: &[Row] = &[
    ("GET /..%2f..%2fsecret.txt", &["<OWNER>"], "", "400 E1016"),
    ("GET /../secret.txt", &["<OWNER>"], "", "400 E1016"),
    (
        "GET /docs/errors/..%2f..%2fsecret.txt",
        &["<OWNER>"],
        "",
        "400 E1016",
    ),
    ("POST /http/greet/..%2Fx", &["<OWNER>"], "", "400 E1016"),
    ("POST /http/greet/%2e%2e", &["<OWNER>"], "", "400 E1016"),
    (
        "POST /http/../api/v1/flows/greet/runs",
        &["<OWNER>", JSON],
        HELLO,
        "400 E1016",
    ),
    ("POST /http/greet/x%00", &["<OWNER>"], "", "400 E1016"),
    (
        "POST /local/events/..%2f..%2fdone",
        &["<OWNER>", JSON],
        BODY,
        "404 E1014",
    ),
    (
        "GET /local/waits/..%2fx/approve?token=<TICKET>",
        &[],
        "",
        "400 E1016",
    ),
    (
        "GET /runs/..%2f..%2fsecret.txt",
        &["<OWNER>"],
        "",
        "400 E1016",
    ),
    (
        "GET /api/v1/resources/content?uri=res:%2F%2Fv1%2Fws%2Flocal%2F..%2F..%2Fsecret.txt",
        &["<OWNER>"],
        "",
        "404 E0936",
    ),
    (
        "POST /api/v1/resources?filename=..%2f..%2fsecret.txt&replace=true",
        &["<OWNER>"],
        "x",
        "422 E0941",
    ),
    (
        "POST /api/v1/resources?filename=x&folder=..%2Fa",
        &["<OWNER>"],
        "x",
        "422 E0941",
    ),
    (
        "GET /api/v1/tables/..%2fsecret/rows",
        &["<OWNER>"],
        "",
        "400 E1016",
    ),
];
