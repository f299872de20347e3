//! `:search`: finds resources, flows, runs and connections of the project.
//!
//! The search itself is [`super::Seeker`], which the command line uses, too. Here are the fields of the step.

use super::{Ask, Embedder, Hydrate, Mode, SearchError, Seeker};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;
use flowstone_model::ports::SearchTarget;

use flowstone_steps::embedder;
use flowstone_steps::fields::Fields;
use flowstone_steps::json::items;

/// The `:search` step.
pub struct Search;

const SPEC: StepSpec = StepSpec {
    kind: "search",
    operations: None,
    aliases: &[],
    doc: "Finds resources, flows, runs and connections of the project.\n\n\
        The query is words, `\"phrases in quotes\"`, `-words` that must not occur, and `begin*`; nothing else in it has \
        a meaning. What has all words comes before what has some. With an embedder in `flowstone.edn`, what means the \
        same is found too. The value has `:results`, target by target, the best first, each with `:target`, `:uri` or \
        `:id`, `:title`, `:score`, `:snippet`; the first resources have their `:content`.",
    fields: FIELDS,
    examples: &[
        "(flow/step :search :find {:query \"refund policy\" :targets [:resources] :limit 5})",
        "(flow/step :search :known {:query \"\\\"late fee\\\" -draft\" :hydrate {:enabled false}})",
        "(flow/step :search :similar {:query \"customers who want their money back\" :mode :semantic})",
    ],
    effect: Effect::Read,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "hydrate",
        FieldType::Keys(HYDRATE),
        "How much of the contents of resources to bring along.",
    ),
    Field::optional(
        "limit",
        FieldType::IntIn(Ask::LIMIT.0 as i64, Ask::LIMIT.1 as i64),
        "How many results of each target at most.",
    )
    .or("12"),
    Field::optional(
        "mode",
        FieldType::OneOf(Mode::NAMES),
        "By words, by meaning, or both. Default: both where there is an embedder, else by words.",
    ),
    Field::optional(
        "path-prefix",
        FieldType::Text,
        "What the paths of resources start with, below `:storage-root`.",
    ),
    Field::required("query", FieldType::Text, "What to look for."),
    Field::optional(
        "storage-backend",
        FieldType::Name,
        "Where the resources are kept: `:local`.",
    ),
    Field::optional(
        "storage-root",
        FieldType::Text,
        "The folder of the resources, such as \"result\" or \"file\".",
    ),
    Field::optional(
        "targets",
        FieldType::List(&FieldType::OneOf(&[
            "connections",
            "flows",
            "resources",
            "runs",
        ])),
        "Where to look. Default: everywhere.",
    ),
];

const HYDRATE: &[Field] = &[
    Field::optional(
        "enabled",
        FieldType::Bool,
        "Whether to. Default true where resources are looked for.",
    ),
    Field::optional(
        "max-chars",
        FieldType::IntIn(1, Hydrate::MOST.1 as i64),
        "How much of each. Default 20000.",
    ),
    Field::optional(
        "top-k",
        FieldType::IntIn(1, Hydrate::MOST.0 as i64),
        "Of how many resources. Default 5.",
    ),
];

impl Step for Search {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let ask = ask(cx, Fields::new(&config))?;
            let embedder =
                embedder::of_step(cx).map_err(|message| StepError::config("E0709", message))?;
            let seeker = Seeker {
                stores: cx.stores()?,
                project_root: cx.project_root(),
                settings: cx.settings(),
                embedder: embedder.as_ref().map(|it| it as &dyn Embedder),
            };
            let found = seeker.find(&ask).await.map_err(of_search)?;
            Ok(Outcome::Value(found.to_value()))
        })
    }
}

fn ask(cx: &StepContext, fields: Fields<'_>) -> Result<Ask, StepError> {
    // The search may call a model for its vector.
    let query = fields.text("query")?.unwrap_or_default();
    let mut ask = Ask::new(cx.redactor().text(query.to_string()));
    if let Some(targets) = fields.get("targets").and_then(items) {
        let named =
            |target: &Value| SearchTarget::from_name(&flowstone_flow::flow::name_of(target)?);
        ask.targets = SearchTarget::ALL
            .into_iter()
            .filter(|target| targets.iter().any(|it| named(it) == Some(*target)))
            .collect();
    }
    if ask.targets.is_empty() {
        return Err(
            StepError::config("E0708", "`:targets` names nothing to look at")
                .hint("leave it out to look everywhere"),
        );
    }
    if let Some(limit) = fields.count("limit", Ask::LIMIT.0, Ask::LIMIT.1)? {
        ask.limit = limit;
    }
    ask.mode = fields.name("mode")?.and_then(|name| Mode::from_name(&name));
    ask.backend = fields.name("storage-backend")?.map(|it| it.to_string());
    ask.root = fields.text("storage-root")?.map(str::to_owned);
    ask.prefix = fields.text("path-prefix")?.map(str::to_owned);
    ask.hydrate = hydrate(fields)?;
    ask.except = Some(cx.run_id().clone());
    Ok(ask)
}

fn hydrate(fields: Fields<'_>) -> Result<Option<Hydrate>, StepError> {
    let mut hydrate = Hydrate::default();
    let Some(given) = fields.map("hydrate")? else {
        return Ok(Some(hydrate));
    };
    let given = Fields::nested(":hydrate", given)?;
    if let Some(top_k) = given.count("top-k", 1, Hydrate::MOST.0)? {
        hydrate.top_k = top_k;
    }
    if let Some(max_chars) = given.count("max-chars", 1, Hydrate::MOST.1)? {
        hydrate.max_chars = max_chars;
    }
    Ok(given.bool("enabled")?.unwrap_or(true).then_some(hydrate))
}

fn of_search(error: SearchError) -> StepError {
    if let SearchError::Store(error) = error {
        return error.into();
    }
    let step = StepError::new(error.code(), error.kind(), error.to_string());
    match error.hint() {
        Some(hint) => step.hint(hint),
        None => step,
    }
}
