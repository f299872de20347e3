//! The rows of `tests/coverage/agent.tsv` about images: what an agent's model sees of them.

use flowstone_engine::resources::Upload;
use serde_json::{Value as Json, json};

use super::llm_images::png;
use crate::agent::{Bench, calls, says};

const DEFINITIONS: &str = r#"
 :templates [{:id :look :type :llm-prompt :system "You look." :prompt "{{objective}} {{json input-summary}}"}]
 :functions [{:id :shoot :code (fn [{:keys [uri]}] {:shot {:type :resource-ref :uri uri :content-type "image/png"} :title "Home"})}]
 :steps [{:id :page/shoot :type :function :description "Takes a picture of a page." :input-schema [:map [:uri :string]] :defaults {:ref :shoot}}]
"#;

/// Stores a picture and returns its name.
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

/// Runs an agent with these fields beside its objective.
fn look(bench: &Bench, more: &str) -> String {
    bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Review it.\" {more}}}))"
    ))
}

/// The addresses of the images of a message.
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
    assert_eq!(look(&bench, &inputs), "\"ok\"");
    let asked = &bench.asked()[0];
    let message = &asked["messages"][1];
    let found = images(message);
    assert_eq!(found.len(), 2, "{message}");
    assert!(found.iter().any(|url| url.starts_with(PNG)), "{message}");
    let again = message["content"].as_array().into_iter().flatten();
    let mut again = again.filter(|part| part["image_url"]["detail"] == "high");
    let url = again.next().expect("it is shown")["image_url"]["url"].as_str();
    assert!(url.is_some_and(|url| url.starts_with("data:image/jpeg;base64,")));
    // The summary names both, and none of their bytes.
    let text = message["content"][0]["text"].as_str().expect("text");
    assert_eq!(text.matches("\"kind\":\"image\"").count(), 2, "{text}");
    assert!(text.contains(&uri) && !text.contains("iVBOR"), "{text}");
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
        assert_eq!(look(&bench, &more), "\"ok\"");
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
    // A model of text has the reference, as any result.
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
    assert_eq!(look(&bench, &more), "\"ok\"");
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
    let found = look(&bench, &more);
    assert!(
        found.contains("E0821") && found.contains("`gpt-3.5-turbo` of `:openai` takes no images"),
        "{found}"
    );
    assert!(bench.asked().is_empty());
}
