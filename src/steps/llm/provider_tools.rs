//! `:provider-tools`: tools that the provider itself runs, such as a web search.
//!
//! One name for what the formats call differently. The format says whether it has the tool, and which of its options.

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_lang::value::Value;

use super::provider::Endpoint;
use super::provider_tool::{ProviderTool, ProviderToolKind};
use crate::fields::{Fields, listed};
use crate::json::items;

/// The code of a provider's tool that cannot be used.
const CODE: &str = "E1311";

/// The keys of an entry.
const ENTRY: &[Field] = &[
    Field::optional(
        "allowed-domains",
        FieldType::List(&FieldType::Text),
        "The only domains of a web tool.",
    ),
    Field::optional(
        "blocked-domains",
        FieldType::List(&FieldType::Text),
        "Domains that a web tool leaves out.",
    ),
    Field::optional(
        "max-uses",
        FieldType::IntIn(1, 100),
        "Maximum number of uses in one request to the model.",
    ),
    Field::required(
        "type",
        FieldType::Name,
        "`:web-search`, `:web-fetch` or `:code-execution`.",
    ),
];

/// The field of steps that call models.
pub(crate) const FIELD: Field = Field::optional(
    "provider-tools",
    FieldType::List(&FieldType::Either(&[
        FieldType::Name,
        FieldType::Keys(ENTRY),
    ])),
    "Tools that the provider runs itself: `[:web-search :code-execution]`, or `{:type :web-search :max-uses 3 :allowed-domains [\"clojure.org\"]}`. Sources are in the result, under `:citations`.",
);

/// Reads the tools, and checks them against the format of the provider.
pub(super) fn read(
    fields: Fields<'_>,
    endpoint: &Endpoint,
) -> Result<Vec<ProviderTool>, StepError> {
    let Some(given) = fields.get("provider-tools") else {
        return Ok(Vec::new());
    };
    let entries = items(given).ok_or_else(|| unfit("`:provider-tools` takes a vector of tools"))?;
    let mut tools: Vec<ProviderTool> = Vec::new();
    for entry in &entries {
        let tool = tool(entry)?;
        let name = tool.kind.name();
        if tools.iter().any(|it| it.kind == tool.kind) {
            return Err(unfit(format!("`:provider-tools` names `:{name}` twice")));
        }
        offered(&tool, endpoint)?;
        tools.push(tool);
    }
    Ok(tools)
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config(CODE, message)
}

fn tool(entry: &Value) -> Result<ProviderTool, StepError> {
    let nothing = Value::map([]);
    let map = entry.as_map().map_or(&nothing, |_| entry);
    let fields = Fields::nested("an entry of :provider-tools", map)?;
    fields.only(&["allowed-domains", "blocked-domains", "max-uses", "type"])?;
    let name = name_of(entry).map_or_else(|| fields.name("type"), |name| Ok(Some(name)))?;
    let name = name.ok_or_else(|| unfit("an entry of `:provider-tools` needs a `:type`"))?;
    let kind = ProviderToolKind::ALL.iter().find(|it| it.name() == &*name);
    let names: Vec<&str> = ProviderToolKind::ALL.iter().map(|it| it.name()).collect();
    let kind = kind.ok_or_else(|| {
        unfit(format!("there is no provider tool `:{name}`"))
            .hint(format!("there are {}", listed(&names)))
            .hint("other tools of a provider are given in its own form: `:provider-opts {:anthropic {:tools [...]}}`")
    })?;
    Ok(ProviderTool {
        kind: *kind,
        max_uses: fields.int("max-uses", 1, 100)?,
        allowed_domains: fields.texts("allowed-domains")?,
        blocked_domains: fields.texts("blocked-domains")?,
    })
}

/// Rejects a tool or an option that the provider does not have.
fn offered(tool: &ProviderTool, endpoint: &Endpoint) -> Result<(), StepError> {
    let family = endpoint.dialect.family;
    let (name, provider) = (tool.kind.name(), &endpoint.provider);
    let Some(options) = family.provider_tool_options(tool.kind) else {
        return Err(unfit(format!("`:{provider}` has no tool `:{name}`"))
            .hint("providers with tools of their own are `:anthropic`, `:openai` and `:google`")
            .hint("or give the model a tool of the project, under `:tools`"));
    };
    let lacking: Vec<&str> = tool.options();
    let lacking: Vec<&str> = lacking
        .into_iter()
        .filter(|it| !options.contains(it))
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(unfit(format!(
            "the tool `:{name}` of `:{provider}` does not take {}",
            listed(&lacking)
        ))
        .hint("leave it out")),
    }
}
