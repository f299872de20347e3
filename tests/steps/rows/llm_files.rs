//! PDF documents and sounds in messages, checked on the bytes that reached the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::resources::Upload;
use serde_json::{Value as Json, json};

use super::llm::{answers, over};
use crate::project::Project;
use crate::server::Server;

const ANTHROPIC: &str =
    "{:backend :anthropic :base-url \"URL\" :model \"claude-sonnet-4-5\" :auth {:type :none}}";
const RESPONSES: &str =
    "{:backend :openai :family :openai :base-url \"URL\" :model \"gpt-5.4\" :auth {:type :none}}";
const CHAT: &str =
    "{:backend :openai-chat :base-url \"URL\" :model \"gpt-4o-audio\" :auth {:type :none}}";
const GOOGLE: &str =
    "{:backend :google :base-url \"URL\" :model \"gemini-3-flash\" :auth {:type :none}}";
const GROQ: &str = "{:backend :groq :base-url \"URL\" :model \"m\" :auth {:type :none}}";

const PDF: &[u8] = b"%PDF-1.7 a small document";
const WAV: &[u8] = b"RIFF\x10\x00\x00\x00WAVEfmt ";

fn url(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}

/// Returns the config of a call with a file.
fn config(kind: &str, bytes: &[u8]) -> String {
    let url = url(kind, bytes);
    format!(
        "{{:connection :ai :messages [{{:role :user :content [\"Read.\" {{:type :file :name \"a b.pdf\" :url \"{url}\"}}]}}]}}"
    )
}

/// Sends a file, and returns the body.
fn sent(connection: &str, kind: &str, bytes: &[u8]) -> Json {
    over(connection, vec![answers("Hi")], &config(kind, bytes)).body()
}

#[test]
fn a_document_has_the_form_of_its_provider() {
    let kind = "application/pdf";
    let data = STANDARD.encode(PDF);
    let file = url(kind, PDF);
    assert_eq!(
        sent(ANTHROPIC, kind, PDF)["messages"][0]["content"][1],
        json!({"type": "document", "title": "a-b.pdf", "source": {"type": "base64", "media_type": kind, "data": data}})
    );
    assert_eq!(
        sent(RESPONSES, kind, PDF)["input"][0]["content"][1],
        json!({"type": "input_file", "filename": "a-b.pdf", "file_data": file})
    );
    assert_eq!(
        sent(CHAT, kind, PDF)["messages"][0]["content"][1],
        json!({"type": "file", "file": {"filename": "a-b.pdf", "file_data": file}})
    );
    assert_eq!(
        sent(GOOGLE, kind, PDF)["contents"][0]["parts"][1],
        json!({"inlineData": {"mimeType": kind, "data": data}})
    );
}

#[test]
fn a_sound_has_the_form_of_its_provider() {
    let data = STANDARD.encode(WAV);
    assert_eq!(
        sent(CHAT, "audio/x-wav", WAV)["messages"][0]["content"][1],
        json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
    );
    assert_eq!(
        sent(GOOGLE, "audio/wav", WAV)["contents"][0]["parts"][1],
        json!({"inlineData": {"mimeType": "audio/wav", "data": data}})
    );
}

#[test]
fn a_stored_document_is_sent_by_its_reference() {
    let server = Server::start(vec![answers("Hi")]);
    let connection = RESPONSES.replace("URL", &server.url);
    let project = Project::with(&format!("{{:connections {{:ai {connection}}}}}"));
    let upload = Upload {
        name: "report.pdf".to_owned(),
        content_type: Some("application/pdf".to_owned()),
        ..Upload::default()
    };
    let row = project.block_on(project.engine.upload(&upload, PDF));
    let uri = row.expect("stored").uri;
    project.eval(&format!(
        "(flow/step :llm :see {{:connection :ai :retry {{:max-attempts 1}} :messages [{{:role :user :content [\"Read.\" {{:type :file :resource \"{uri}\"}}]}}]}})"
    ));
    let part = &server.body(0)["input"][0]["content"][1];
    assert_eq!(part["file_data"], url("application/pdf", PDF));
}

#[test]
fn files_that_cannot_be_sent_are_refused() {
    for (connection, kind, bytes, problem) in [
        (
            GROQ,
            "application/pdf",
            PDF,
            "`m` of `:groq` does not accept files of type `application/pdf`",
        ),
        (
            ANTHROPIC,
            "audio/wav",
            WAV,
            "`claude-sonnet-4-5` of `:anthropic` does not accept files of type `audio/wav`",
        ),
        (
            ANTHROPIC,
            "application/zip",
            PDF,
            "`claude-sonnet-4-5` of `:anthropic` does not accept files of type `application/zip`",
        ),
        (
            ANTHROPIC,
            "application/pdf",
            WAV,
            "the bytes of `file` are not `application/pdf`",
        ),
    ] {
        let called = over(connection, vec![answers("Hi")], &config(kind, bytes));
        called.refused(&format!("E1313 bad-config: {problem}"));
    }
    let both = "{:connection :ai :messages [{:role :user :content [{:type :file}]}]}";
    over(ANTHROPIC, vec![answers("Hi")], both)
        .refused("E1313 bad-config: a file needs either a `:resource` or a `:url`");
    let web = "{:connection :ai :messages [{:role :user :content [{:type :file :url \"https://a.org/a.pdf\"}]}]}";
    over(ANTHROPIC, vec![answers("Hi")], web)
        .refused("E1313 bad-config: the `:url` of a file is a `data:` address");
    let system = config("application/pdf", PDF).replace(":user", ":assistant");
    over(ANTHROPIC, vec![answers("Hi")], &system)
        .refused("E0809 bad-config: a message of `:assistant` cannot have files");
}
