//! The rows of `tests/coverage/agent.tsv` about images that reach an agent's model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::resources::Upload;
use serde_json::{Value as Json, json};

use super::llm_images::png;
use crate::agent::{Bench, calls, says};
use crate::server::Say;

const DEFINITIONS: &str = r#"
 :templates [{:id :look :type :llm-prompt :system "You look." :prompt "{{objective}} {{json input-summary}}"}]
 :functions [{:id :shoot :code (fn [{:keys [uri]}] {:shot {:type :resource-ref :uri uri :content-type "image/png"} :title "Home"})}]
 :steps [{:id :page/shoot :type :function :description "Takes a picture of a page." :input-schema [:map [:uri :string]] :defaults {:ref :shoot}}]
"#;

/// Stores a picture, and returns its name.
fn picture(bench: &Bench, name: &str) -> String {
    let upload = Upload {
        name: name.to_owned(),
        content_type: Some("image/png".to_owned()),
        ..Upload::default()
    };
    let bytes = png(4, 2);
    let row = bench.project.engine.upload(&upload, bytes.as_slice());
    bench.project.block_on(row).expect("stored").uri
}

/// Runs an agent with these fields besides its objective.
fn run_agent(bench: &Bench, more: &str) -> String {
    bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Review it.\" {more}}}))"
    ))
}

/// Returns the addresses of the images of a message.
fn images(message: &Json) -> Vec<&str> {
    let parts = message["content"].as_array();
    let parts = parts.into_iter().flatten();
    parts
        .filter_map(|part| part["image_url"]["url"].as_str())
        .collect()
}

const PNG: &str = "data:image/png;base64,iVBORw0KGgo";

#[test]
fn input_image() {
    let bench = Bench::new(vec![says("ok")]);
    let uri = picture(&bench, "a.png");
    let reference = format!("{{:type :resource-ref :uri \"{uri}\" :content-type \"image/png\"}}");
    let explicit = format!(
        "{{:type :image-resource :resource \"{uri}\" :detail :high :processing {{:format :jpeg}}}}"
    );
    let inputs = format!(":inputs {{:shot {reference} :more [{{:shot {explicit}}}] :n 1}}");
    assert_eq!(run_agent(&bench, &inputs), "\"ok\"");
    let asked = &bench.asked()[0];
    let message = &asked["messages"][1];
    let found = images(message);
    assert_eq!(found.len(), 2, "{message}");
    assert!(found.iter().any(|url| url.starts_with(PNG)), "{message}");
    let again = message["content"].as_array().into_iter().flatten();
    let mut again = again.filter(|part| part["image_url"]["detail"] == "high");
    let url = again.next().expect("it is shown")["image_url"]["url"].as_str();
    assert!(url.is_some_and(|url| url.starts_with("data:image/jpeg;base64,")));
    // The summary names both images, without their bytes.
    let text = message["content"][0]["text"].as_str().expect("text");
    assert_eq!(text.matches("\"kind\":\"image\"").count(), 2, "{text}");
    assert!(text.contains(&uri) && !text.contains("iVBOR"), "{text}");
}

/// The type of a reference that is only a name comes from the store. A reference to a deleted image is sent as its
/// name.
#[test]
fn input_image_of_unknown_type() {
    for reference in [
        "\"URI\"",
        "{:uri \"URI\"}",
        "{:type :resource-ref :uri \"URI\"}",
    ] {
        let bench = Bench::new(vec![says("ok")]);
        let uri = picture(&bench, "a.png");
        let reference = reference.replace("URI", &uri);
        let gone = "res://v1/ws/local/file/gone.png";
        let inputs = format!(":inputs {{:more [{reference}] :gone \"{gone}\" :n 1}}");
        assert_eq!(run_agent(&bench, &inputs), "\"ok\"");
        let message = &bench.asked()[0]["messages"][1];
        let found = images(message);
        assert!(
            found.len() == 1 && found[0].starts_with(PNG),
            "{reference} {message}"
        );
        let text = message["content"][0]["text"].as_str().expect("text");
        assert!(text.contains("image/png") && text.contains(gone), "{text}");
        // The bench replays each run at its end; the look-up of the image is journaled.
    }
}

#[test]
fn image_of_a_tool() {
    let turns = || {
        let bench = Bench::with(DEFINITIONS, Vec::new());
        let uri = picture(&bench, "a.png");
        (bench, uri)
    };
    let (_, uri) = turns();
    let shoots = || calls(&[("c1", "page_shoot", &json!({"uri": uri}).to_string())]);
    let asked = |model: &str| {
        let bench = Bench::with(DEFINITIONS, vec![shoots(), says("ok")]);
        assert_eq!(
            picture(&bench, "a.png"),
            uri,
            "names follow from what is stored"
        );
        let more = format!(":model \"{model}\" :tools {{:steps [:page/shoot]}}");
        assert_eq!(run_agent(&bench, &more), "\"ok\"");
        bench.asked().remove(1)
    };
    let body = asked("gpt-4o");
    let messages = body["messages"].as_array().expect("messages");
    let result = &messages[messages.len() - 2];
    assert_eq!(result["role"], "tool");
    let shown = &messages[messages.len() - 1];
    assert_eq!(shown["role"], "user");
    let found = images(shown);
    assert!(found.len() == 1 && found[0].starts_with(PNG), "{shown}");
    // A model without vision receives the reference, like any other result.
    let body = asked("gpt-3.5-turbo");
    let text = body.to_string();
    assert!(text.contains(&uri), "{text}");
    assert!(
        !text.contains("image_url") && !text.contains("iVBOR"),
        "{text}"
    );
}

#[test]
fn image_with_a_template() {
    let bench = Bench::with(DEFINITIONS, vec![says("ok")]);
    let uri = picture(&bench, "a.png");
    let more = format!(
        ":template :look :inputs {{:shot {{:type :resource-ref :uri \"{uri}\" :content-type \"image/png\"}}}}"
    );
    assert_eq!(run_agent(&bench, &more), "\"ok\"");
    let asked = &bench.asked()[0];
    let text = asked["messages"].to_string();
    assert!(text.contains(&uri), "{text}");
    assert!(
        !text.contains("image_url") && !text.contains("iVBOR"),
        "{text}"
    );
}

#[test]
fn image_for_a_model_of_text() {
    let bench = Bench::new(vec![says("ok")]);
    let uri = picture(&bench, "a.png");
    let more = format!(
        ":model \"gpt-3.5-turbo\" :inputs {{:shot {{:type :resource-ref :uri \"{uri}\" :content-type \"image/png\"}}}}"
    );
    let found = run_agent(&bench, &more);
    assert!(
        found.contains("E0821")
            && found.contains("`gpt-3.5-turbo` of `:openai` does not accept images"),
        "{found}"
    );
    assert!(bench.asked().is_empty());
}

/// Steps that return images as data: a small one, one that is wider than providers accept, and invalid bytes.
fn painting() -> String {
    let address = |bytes: &[u8]| format!("data:image/png;base64,{}", STANDARD.encode(bytes));
    let (small, wide) = (address(&png(4, 2)), address(&png(9_000, 4)));
    format!(
        r#":functions [{{:id :paint :code (fn [{{:keys [what]}}]
             {{:title "Home" :picture {{:type :image :url (case what "wide" "{wide}" "none" "data:image/png;base64,aGk=" "{small}")}}}})}}]
           :steps [{{:id :page/paint :type :function :description "Paints." :input-schema [:map [:what :string]] :defaults {{:ref :paint}}}}]"#
    )
}

fn paints(what: &str) -> Say {
    calls(&[("c1", "page_paint", &json!({"what": what}).to_string())])
}

#[test]
fn image_data_of_a_tool() {
    let asked = |what: &str| {
        let bench = Bench::with(&painting(), vec![paints(what), says("ok")]);
        assert_eq!(
            run_agent(&bench, ":model \"gpt-4o\" :tools {:steps [:page/paint]}"),
            "\"ok\""
        );
        let body = bench.asked().remove(1);
        let messages = body["messages"].as_array().cloned().expect("messages");
        let result = messages.iter().find(|it| it["role"] == "tool");
        let text = result.expect("a result")["content"].as_str().expect("text");
        assert!(!text.contains("base64,"), "{text}");
        (
            text.to_owned(),
            messages.last().cloned().expect("a message"),
        )
    };
    let (text, shown) = asked("small");
    let bytes = png(4, 2).len();
    assert_eq!(
        text,
        format!(
            r#"{{"title":"Home","picture":{{"type":"text","text":"[image 1: image/png, {bytes} bytes]"}}}}"#
        )
    );
    let found = images(&shown);
    assert!(found.len() == 1 && found[0].starts_with(PNG), "{shown}");
    // An image that is too large for some providers is scaled down.
    let (_, shown) = asked("wide");
    let bytes = STANDARD.decode(&images(&shown)[0][22..]).expect("Base64");
    let width = u32::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
    assert_eq!(width, 2_048);
    let (text, _) = asked("none");
    assert!(text.contains("}\n[an image is not shown: "), "{text}");
}

#[test]
fn images_of_many_turns() {
    let mut turns: Vec<Say> = (0..21).map(|_| paints("small")).collect();
    turns.push(says("ok"));
    let bench = Bench::with(&painting(), turns);
    let more = ":model \"gpt-4o\" :max-iterations 30 :tools {:steps [:page/paint]}";
    assert_eq!(run_agent(&bench, more), "\"ok\"");
    let counts = [19, 20, 21].map(|turn| {
        let text = bench.asked()[turn].to_string();
        (
            text.matches("data:image/png").count(),
            text.matches("an earlier image, which is no longer shown")
                .count(),
        )
    });
    assert_eq!(counts, [(19, 0), (20, 0), (10, 11)]);
}
