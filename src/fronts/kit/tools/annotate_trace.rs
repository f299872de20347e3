//! `annotate_trace`: what an evaluator says about the trace of the caller, or of the session's last test.

use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_model::token::Scope;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::schema::{object, text};
use crate::kit::spans::root_span;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::rows::Rows;

/// Annotations by run and id.
const ANNOTATIONS: Rows = Rows("flowstone_kit_annotations");
/// Maximum number of annotations of a run.
const MOST: usize = 100;
/// Maximum number of bytes of the outputs of an annotation.
const OUTPUTS_MAX: usize = 100_000;

pub const TOOL: Tool = Tool {
    name: "annotate_trace",
    description: "Records what an evaluator says about your own trace, such as a score with its reason: in a run the trace of the run, \
                  elsewhere that of your last test run. It becomes an event `annotation` of the trace's root span. No other \
                  trace can be annotated.",
    input,
    output,
    bound: &[Bound::Flow, Bound::Trace, Bound::Span],
    wrapper: Some("annotation"),
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Run,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Refused,
    check: Some(|cx, arguments| Box::pin(check(cx, arguments))),
    call: |cx, arguments| Box::pin(annotate(cx, arguments)),
};

fn input() -> Json {
    let evaluator = object(
        json!({"slug": text("The name of who or what judged, such as `self-check`.")}),
        &["slug"],
    );
    object(
        json!({
            "references": object(json!({"evaluator": evaluator}), &["evaluator"]),
            "data": object(
                json!({"outputs": {
                    "type": "object",
                    "description": "What was found, such as {\"score\": 0.8, \"reason\": \"...\"}.",
                    "additionalProperties": true,
                }}),
                &["outputs"],
            ),
        }),
        &["references", "data"],
    )
}

fn output() -> Json {
    let members = json!({
        "id": {"type": "string"},
        "trace_id": {"type": "string"},
        "span_id": {"type": "string"},
        "references": {"type": "object"},
        "data": {"type": "object"},
        "created_at": {"type": "string"},
    });
    let names = [
        "id",
        "trace_id",
        "span_id",
        "references",
        "data",
        "created_at",
    ];
    object(
        json!({"annotation": object(members, &names)}),
        &["annotation"],
    )
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    let bound = cx.trace().await?;
    check_room(cx, &bound.run, &arguments["data"]).await
}

async fn check_room(cx: &KitCall<'_>, run: &RunId, data: &Json) -> Result<(), KitError> {
    let bytes = data.to_string().len();
    if bytes > OUTPUTS_MAX {
        return Err(KitError::invalid(
            "/data/outputs",
            format!("at most {OUTPUTS_MAX} bytes"),
            format!("the outputs have {bytes} bytes, and at most {OUTPUTS_MAX} are stored"),
        ));
    }
    let before = ANNOTATIONS.list_under(cx.engine, &prefix(run)).await?;
    match before.len() < MOST {
        true => Ok(()),
        false => Err(KitError::full(
            format!("the trace has {MOST} annotations already"),
            "annotate the trace of another run: annotations are not removed",
        )),
    }
}

async fn annotate(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let bound = cx.trace().await?;
    let (references, data) = (&arguments["references"], &arguments["data"]);
    check_room(cx, &bound.run, data).await?;
    let id = cx.engine.new_record_id();
    let annotation = json!({
        "id": format!("ann_{id}"),
        "trace_id": bound.trace.to_string(),
        "span_id": root_span(&bound.run).to_string(),
        "references": references,
        "data": data,
        "created_at": instant(cx.engine.now_ms()),
    });
    let key = format!("{}{id}", prefix(&bound.run));
    let stored = json!({"annotation": annotation, "by": cx.token.attributed_to()});
    ANNOTATIONS.put(cx.engine, &key, &stored).await?;
    Ok(json!({"annotation": annotation}))
}

fn prefix(run: &RunId) -> String {
    format!("{run}/")
}

/// Returns the annotations of a run as events of its root span, oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn events(cx: &KitCall<'_>, run: &RunId) -> Result<Vec<Json>, KitError> {
    let rows = ANNOTATIONS.list_under(cx.engine, &prefix(run)).await?;
    let events = rows.into_iter().map(|mut row| {
        let annotation = row["annotation"].take();
        json!({
            "name": "annotation",
            "timestamp": annotation["created_at"],
            "attributes": {
                "id": annotation["id"],
                "references": annotation["references"],
                "data": annotation["data"],
                "by": row["by"],
            },
        })
    });
    Ok(events.collect())
}
