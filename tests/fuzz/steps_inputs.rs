//! What each fuzzing target of the steps does with an input: answers of models and tools, addresses, patches, templates,
//! tables of text, markup, and whole flow files. Any input may be refused; none may panic, hang, or break what is asserted
//! here. Nothing is sent anywhere.

#![allow(dead_code, reason = "each target uses one of these")]

use std::cell::RefCell;
use std::net::IpAddr;
use std::str::from_utf8;

use flowstone_engine::disk;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_lang::vm::{NoHost, Vm};
use flowstone_steps::files::patch;
use flowstone_steps::guard::{Guard, Pattern, Zone, is_refused, literal, zone};
use flowstone_steps::http::{shown, xml, yaml};
use flowstone_steps::llm::PROVIDERS;
use flowstone_steps::llm::call::{Call, Delta, Message, Reply, Role};
use flowstone_steps::llm::dialect::Dialect;
use flowstone_steps::llm::error::LlmError;
use flowstone_steps::{mcp, sse, template};
use reqwest::Url;
use serde_json::json;

/// Does something with an input.
pub type Target = fn(&[u8]);

/// The targets, each named after its folder in the corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("address", address),
    ("flow", flow_file),
    ("markup", markup),
    ("mcp", mcp_messages),
    ("patch", patch_of_file),
    ("table", table),
    ("template", template_of_prompt),
    ("wire", wire),
];

/// Judges an address, the first line, by a pattern, the second: an address inside another is judged as the inner one, and
/// no password is shown.
pub fn address(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let (first, second) = text.split_once('\n').unwrap_or((text, ""));
    let pattern = Pattern::read(second);
    let Ok(url) = Url::parse(first) else {
        return;
    };
    let strict = Guard {
        deny_private: true,
        ..Guard::default()
    };
    let verdict = strict.check_url(&url, Zone::Loopback);
    if let Some(found) = literal(&url) {
        assert!(
            verdict.is_err() || (zone(found) == Zone::Public && !is_refused(found)),
            "{url} is let through"
        );
        if let IpAddr::V4(inner) = found {
            for outer in [
                inner.to_ipv6_mapped().into(),
                IpAddr::V6(format!("64:ff9b::{inner}").parse().expect("NAT64")),
            ] {
                assert_eq!(zone(outer), zone(found), "{outer}");
                assert_eq!(is_refused(outer), is_refused(found), "{outer}");
            }
        }
        let only = Guard {
            allow: std::sync::Arc::new(pattern.into_iter().collect()),
            ..Guard::default()
        };
        let _ = only.check(url.host_str().unwrap_or_default(), found, Zone::Loopback);
    }
    let shown = shown::url(&url);
    if let Ok(shown) = Url::parse(&shown) {
        let is_bare = shown.username().is_empty() && shown.password().is_none();
        assert!(is_bare || !shown.has_host(), "{shown} shows who asks");
    }
}

/// Reads and checks a flow file with every step type; each finding has a place in a text.
pub fn flow_file(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("flow.edn");
    std::fs::write(&path, input).expect("a file");
    let session = Session::new();
    flowstone_flow::natives::install(&session);
    flowstone_steps::sandbox::register(&session);
    let checked = disk::check(&session, &path, "flow.edn", &flowstone_project::all_steps());
    let sources = session.world().sources.borrow();
    for finding in &checked.findings {
        if let Some(source) = sources.get(finding.span.source) {
            let place = source
                .text
                .get(finding.span.start as usize..finding.span.end as usize);
            assert!(place.is_some(), "{finding:?} lies outside of the text");
        }
        assert!(!finding.message.is_empty() && finding.code.starts_with('E'));
    }
    assert!(checked.loaded.is_some() || checked.has_errors());
}

/// Reads XML and YAML.
pub fn markup(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let _ = xml::read(text);
    let _ = yaml::read(text);
}

/// Reads what a server of MCP sends: a tool's answer, and the description of a tool with arguments for it.
pub fn mcp_messages(input: &[u8]) {
    let (first, rest) = match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &b"{}"[..]),
    };
    let _ = mcp::answer_of(first);
    let _ = mcp::misfits(first, rest);
}

/// Reads a patch, and applies it to a text: the input up to a line `====`. A patch that applies can be applied backwards.
pub fn patch_of_file(input: &[u8]) {
    let Ok(input) = from_utf8(input) else {
        return;
    };
    let (text, diff) = input.split_once("====\n").unwrap_or(("", input));
    let Ok(files) = patch::parse(diff) else {
        return;
    };
    for file in files {
        for name in [&file.old, &file.new].into_iter().flatten() {
            let _ = patch::unquote(name);
        }
        let Ok(after) = patch::apply(text, &file.hunks) else {
            continue;
        };
        let lines = |text: &str| text.split_inclusive('\n').count() as i64;
        let count = |mark| {
            let lines = file.hunks.iter().flat_map(|it| &it.lines);
            lines.filter(|it| it.mark == mark).count() as i64
        };
        assert_eq!(
            lines(&after) - lines(text),
            count(patch::Mark::In) - count(patch::Mark::Out),
            "{diff:?} on {text:?} gives {after:?}"
        );
    }
}

/// Reads CSV and JSON with the functions of function code. What is written of what was read is read as the same.
pub fn table(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    TABLE.with_borrow_mut(|prepared| {
        let (vm, function) = prepared.get_or_insert_with(prepare);
        let outcome = vm.call(function, &[Value::from(text)]);
        match outcome {
            Ok(found) => assert!(found == Value::keyword("same"), "{text:?}: {found:?}"),
            Err(signal) => panic!("{text:?}: {signal:?}"),
        }
    });
}

thread_local! {
    static TABLE: RefCell<Option<(Vm, Value)>> = const { RefCell::new(None) };
}

fn prepare() -> (Vm, Value) {
    let session = Session::new();
    flowstone_steps::sandbox::register(&session);
    let mut vm = session.vm(Box::new(NoHost::default()));
    let function = session
        .eval_text(
            &mut vm,
            "<fuzz>",
            "(defmacro attempt [form] `(try ~form (catch Throwable _# ::failed)))
             (defn differs [text read write]
               (let [once (attempt (read text))]
                 ;; A number that no double holds is read as an infinite one, which JSON cannot write.
                 (when-not (or (= once ::failed) (re-find #\"##-?Inf\" (pr-str once)))
                   (let [again (attempt (read (write once)))]
                     (when-not (= (pr-str once) (pr-str again)) [once again])))))
             (fn [text]
               (attempt (flow.util/parse-csv text))
               (attempt (flow.util/parse-csv text {:header false :separator \";\" :trim true}))
               (attempt (json/parse text {:keys :string}))
               (attempt (cheshire.core/parse-string text true))
               (attempt (flow.util/base64-decode-bytes text))
               (attempt (flow.util/hex-decode-bytes text))
               (attempt (flow.util/url-decode text))
               (or (differs text #(doall (clojure.data.csv/read-csv %))
                            #(with-out-str (clojure.data.csv/write-csv *out* %)))
                   (differs text #(json/parse % {:keys :string}) json/write-str)
                   (differs text clojure.data.json/read-str clojure.data.json/write-str)
                   :same))",
        )
        .unwrap_or_else(|signal| panic!("the function compiles: {signal:?}"));
    (vm, function)
}

/// Checks and renders a template, leniently and strictly. What renders passed the check.
pub fn template_of_prompt(input: &[u8]) {
    let Ok(text) = from_utf8(input) else {
        return;
    };
    let data = json!({
        "name": "Ada", "order-id": 17, "user": {"name": "Bo", "tags": ["x", "y"]}, "items": [{"n": 1}, {"n": 2}],
        "empty": [], "none": null, "yes": true, "text": "a long sentence that is cut", "ratio": 0.5,
    });
    let is_good = template::check(text).is_ok();
    let _ = template::uses(text);
    for strict in [false, true] {
        let rendered = template::render(text, &data, strict);
        assert!(is_good || rendered.is_err() || !text.contains("{{"));
    }
    let _ = template::render_all(&json!([text, {text: text}]), &data, false);
}

/// Reads an answer of a model. The first line names a provider and a form: `whole`, `bytes` of a stream, or `events`, for
/// which the frames are laid as server-sent events. A stream gives the same however it is cut.
pub fn wire(input: &[u8]) {
    let split = input.iter().position(|byte| *byte == b'\n');
    let (head, body) = match split {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (&[][..], input),
    };
    let head = String::from_utf8_lossy(head);
    let named = PROVIDERS.iter().find(|it| head.starts_with(it.id));
    let chosen = PROVIDERS[usize::from(body.first().copied().unwrap_or(0)) % PROVIDERS.len()];
    let row = named.copied().unwrap_or(chosen);
    if head.ends_with("whole") {
        send_back(row, row.family.decode(row.id, body));
    } else if head.ends_with("bytes") {
        let whole = stream(row, &[body]);
        let single: Vec<&[u8]> = body.chunks(1).collect();
        let shown = |it: &Result<Reply, LlmError>| format!("{it:?}");
        let single = stream(row, &single);
        assert_eq!(shown(&whole), shown(&single), "cut into bytes");
        send_back(row, whole);
    } else {
        let mut parser = sse::Parser::default();
        let mut events = parser.push(body);
        events.extend(parser.finish());
        let mut stream = row.family.stream(row.id);
        let mut deltas = Vec::new();
        for event in events {
            match stream.push(&event) {
                Ok(more) => deltas.extend(more),
                Err(_) => return,
            }
            let _ = (stream.is_done(), stream.chars());
        }
        let reply = stream.finish();
        agree(row, &reply, &deltas);
        send_back(row, reply);
    }
}

fn stream(row: &'static Dialect, chunks: &[&[u8]]) -> Result<Reply, LlmError> {
    let mut stream = row.family.stream(row.id);
    let mut decoder = row.family.frames().decoder();
    let mut deltas = Vec::new();
    for chunk in chunks {
        let events = decoder.push(chunk).map_err(|cause| LlmError::Malformed {
            provider: row.id.to_owned(),
            cause,
            preview: String::new(),
        })?;
        for event in events {
            deltas.extend(stream.push(&event)?);
        }
    }
    if let Some(event) = decoder.finish() {
        deltas.extend(stream.push(&event)?);
    }
    let reply = stream.finish();
    agree(row, &reply, &deltas);
    reply
}

/// What was shown while it came is what the answer says. In the Responses format the last event tells the whole answer
/// again, and that counts.
fn agree(row: &Dialect, reply: &Result<Reply, LlmError>, deltas: &[Delta]) {
    let (Ok(reply), false) = (reply, row.family.id() == "openai") else {
        return;
    };
    let texts = deltas.iter().filter_map(|it| match it {
        Delta::Text(text) => Some(text.as_str()),
        Delta::Thought(_) => None,
    });
    let text: String = texts.collect();
    assert!(
        text.is_empty() || text == reply.content,
        "{deltas:?} {reply:?}"
    );
}

/// Makes the next call of a conversation that has this answer in it, as an agent does.
fn send_back(row: &'static Dialect, reply: Result<Reply, LlmError>) {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            let (code, kind) = error.code();
            assert!(code.starts_with('E') && !kind.is_empty() && !error.to_string().is_empty());
            let _ = error.again();
            return;
        }
    };
    if let Some(usage) = reply.usage {
        assert!(
            usage.prompt >= 0 && usage.completion >= 0 && usage.total >= 0,
            "{usage:?}"
        );
    }
    let results = reply.tool_calls.iter().map(|call| Message {
        tool_call_id: Some(call.id.clone()),
        tool_name: Some(call.name.clone()),
        ..Message::text(Role::Tool, "1")
    });
    let results: Vec<Message> = results.collect();
    let mut answer = Message::text(Role::Assistant, reply.content);
    answer.tool_calls = reply.tool_calls;
    answer.opaque = reply.opaque;
    let mut call = Call {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "Go."), answer],
        ..Call::default()
    };
    call.messages.extend(results);
    let body = row.family.encode(&call, row);
    serde_json::to_string(&body).expect("a body is JSON");
}
