//! The code of each kind of node.

use serde_json::{Value as Json, json};

use super::expression::{self, edn_key, edn_text, is_computed};
use super::names::kebab;
use super::{Branching, Writer, conditions, indented, text};

/// Units of waiting times, with their seconds.
const UNITS: &[(&str, f64)] = &[
    ("seconds", 1.0),
    ("minutes", 60.0),
    ("hours", 3600.0),
    ("days", 86_400.0),
];

impl Writer<'_> {
    /// Returns the code of a node, whose input is the value of a symbol.
    pub(super) fn node(&mut self, idx: usize, input: &str) -> String {
        let node = &self.workflow.nodes[idx];
        if node.is_disabled {
            self.remark(
                idx,
                "it is disabled in the workflow, so it passes its input on",
            );
            return input.to_owned();
        }
        match node.kind() {
            "webhook" => "{:body input :headers {} :params {} :query {}}".to_owned(),
            _ if node.is_trigger() => "input".to_owned(),
            "httpRequest" => self.request(idx, input),
            "if" => self.condition_node(idx, input, Branching::Condition),
            "filter" => self.condition_node(idx, input, Branching::Condition),
            "switch" => self.switch(idx, input),
            "set" => self.set(idx, input),
            "code" | "function" | "functionItem" => self.script(idx, input),
            "wait" => self.wait(idx, input),
            "noOp" | "merge" => input.to_owned(),
            "executeWorkflow" => self.call(idx, input),
            "respondToWebhook" => self.answer(idx, input),
            "stopAndError" => {
                let message = node
                    .parameters
                    .get("errorMessage")
                    .cloned()
                    .unwrap_or(json!("stopped by the workflow"));
                let message = self.value(idx, input, &message);
                format!("(throw (ex-info {message} {{:kind :n8n-import/stopped}}))")
            }
            _ => self.unsupported(idx, input),
        }
    }

    /// Returns a parameter as code.
    pub(super) fn value(&mut self, idx: usize, input: &str, value: &Json) -> String {
        let mut refused = Vec::new();
        let nodes = &self.workflow.nodes;
        let before: Vec<(String, String)> = self
            .order
            .iter()
            .take_while(|node| **node != idx)
            .map(|node| (nodes[*node].name.clone(), self.names[node].clone()))
            .collect();
        let mut data = |node: Option<&str>| match node {
            None => Some(input.to_owned()),
            Some(name) => before
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, symbol)| symbol.clone()),
        };
        let code = expression::code(value, &mut data, &mut refused);
        for part in refused {
            self.remark(
                idx,
                format!("the expression `{part}` is kept as text: write it in Clojure"),
            );
        }
        code
    }

    fn unsupported(&mut self, idx: usize, input: &str) -> String {
        let node = &self.workflow.nodes[idx];
        let (name, type_) = (node.name.clone(), node.type_.clone());
        self.remark(
            idx,
            format!("nodes of type `{type_}` are not imported: it passes its input on"),
        );
        self.comment(&format!("TODO: {name} ({type_})"));
        identity(&self.names[&idx], input)
    }

    fn script(&mut self, idx: usize, input: &str) -> String {
        let parameters = &self.workflow.nodes[idx].parameters;
        let code = ["/jsCode", "/functionCode", "/pythonCode"]
            .iter()
            .find_map(|at| text(parameters, at));
        let code = code.unwrap_or_default().to_owned();
        self.remark(
            idx,
            "its code is kept as a comment, and it passes its input on: write it in Clojure",
        );
        let name = self.workflow.nodes[idx].name.clone();
        self.comment(&format!("TODO: the code of {name}:"));
        for line in code.lines() {
            self.comment(&format!("  {line}"));
        }
        identity(&self.names[&idx], input)
    }

    fn condition_node(&mut self, idx: usize, input: &str, branching: Branching) -> String {
        let parameters = self.workflow.nodes[idx].parameters.clone();
        let condition = self.tested(idx, input, parameters.get("conditions"), &parameters);
        self.branching.insert(idx, branching);
        let name = &self.names[&idx];
        branch(name, input, &condition)
    }

    /// Returns the code of conditions.
    fn tested(
        &mut self,
        idx: usize,
        input: &str,
        conditions: Option<&Json>,
        parameters: &Json,
    ) -> String {
        let mut value = |value: &Json| self.value(idx, input, value);
        let (code, wrong) =
            conditions::code(conditions.unwrap_or(&Json::Null), parameters, &mut value);
        for wrong in wrong {
            self.remark(idx, format!("{wrong}: the condition is taken to be false"));
        }
        code
    }

    fn switch(&mut self, idx: usize, input: &str) -> String {
        let parameters = self.workflow.nodes[idx].parameters.clone();
        self.branching.insert(idx, Branching::Number);
        let name = self.names[&idx].clone();
        let mut clauses = Vec::new();
        if let Some(number) = parameters
            .get("output")
            .filter(|_| text(&parameters, "/mode") == Some("expression"))
        {
            let number = self.value(idx, input, number);
            return branch(&name, input, &number);
        }
        if let Some(rules) = parameters.pointer("/rules/values").and_then(Json::as_array) {
            for (output, rule) in rules.iter().enumerate() {
                let test = self.tested(idx, input, rule.get("conditions"), &Json::Null);
                clauses.push(format!("{test} {output}"));
            }
            if parameters
                .pointer("/options/fallbackOutput")
                .is_some_and(|it| it == "extra")
            {
                clauses.push(format!(":else {}", rules.len()));
            }
        } else if let Some(rules) = parameters.pointer("/rules/rules").and_then(Json::as_array) {
            let type_ = text(&parameters, "/dataType")
                .unwrap_or("number")
                .to_owned();
            let tested = parameters.get("value1").cloned().unwrap_or(Json::Null);
            for (at, rule) in rules.iter().enumerate() {
                let mut rule = rule.clone();
                rule["value1"] = tested.clone();
                let key = type_.clone();
                let rules = json!({key: [rule]});
                let test = self.tested(idx, input, Some(&rules), &Json::Null);
                let output = rule
                    .get("output")
                    .and_then(Json::as_u64)
                    .unwrap_or(at as u64);
                clauses.push(format!("{test} {output}"));
            }
            if let Some(output) = parameters
                .get("fallbackOutput")
                .and_then(Json::as_i64)
                .filter(|it| *it >= 0)
            {
                clauses.push(format!(":else {output}"));
            }
        } else {
            self.remark(idx, "it has no rules that can be read: no output is chosen");
        }
        branch(
            &name,
            input,
            &format!("(cond {})", clauses.join("\n      ")),
        )
    }

    fn set(&mut self, idx: usize, input: &str) -> String {
        let node = &self.workflow.nodes[idx];
        let (parameters, version) = (node.parameters.clone(), node.version);
        if let Some(text) =
            text(&parameters, "/jsonOutput").filter(|_| text(&parameters, "/mode") == Some("raw"))
        {
            let text = text.to_owned();
            return match serde_json::from_str::<Json>(text.trim_start_matches('=')) {
                Ok(json) => self.data(idx, input, &json),
                Err(_) => {
                    self.remark(
                        idx,
                        "its JSON has expressions that are not imported: it passes its input on",
                    );
                    input.to_owned()
                }
            };
        }
        let mut fields: Vec<(String, Json)> = Vec::new();
        let lists = ["/assignments/assignments", "/fields/values"];
        let newer = lists
            .iter()
            .filter_map(|at| parameters.pointer(at)?.as_array())
            .flatten();
        let older = parameters.get("values").and_then(Json::as_object);
        let older = older
            .into_iter()
            .flat_map(|it| it.values())
            .filter_map(Json::as_array)
            .flatten();
        for field in newer.chain(older) {
            let value = [
                "value",
                "stringValue",
                "numberValue",
                "booleanValue",
                "arrayValue",
                "objectValue",
            ];
            let value = value
                .iter()
                .find_map(|key| field.get(*key))
                .cloned()
                .unwrap_or(Json::Null);
            if let Some(name) = field.get("name").and_then(Json::as_str) {
                fields.push((name.to_owned(), value));
            }
        }
        let keeps_others = match version < 3.0 {
            true => parameters.get("keepOnlySet").and_then(Json::as_bool) != Some(true),
            false => {
                let included = parameters.get("includeOtherFields").and_then(Json::as_bool);
                included.unwrap_or_else(|| parameters.get("include").is_some_and(|it| it == "all"))
            }
        };
        let mut code = match keeps_others {
            true => input.to_owned(),
            false => "{}".to_owned(),
        };
        let has_paths = parameters
            .pointer("/options/dotNotation")
            .and_then(Json::as_bool)
            != Some(false);
        for (name, value) in fields {
            let value = self.value(idx, input, &value);
            code = match name.contains('.') && has_paths {
                true => {
                    let path: Vec<String> = name.split('.').map(edn_key).collect();
                    format!("(assoc-in {code} [{}] {value})", path.join(" "))
                }
                false => format!("(assoc {code} {} {value})", edn_key(&name)),
            };
        }
        code
    }

    /// Returns JSON as data with keywords, as flows see it.
    fn data(&mut self, idx: usize, input: &str, json: &Json) -> String {
        match json {
            Json::Object(members) => {
                let entries: Vec<String> = members
                    .iter()
                    .map(|(key, value)| {
                        format!("{} {}", edn_key(key), self.data(idx, input, value))
                    })
                    .collect();
                format!("{{{}}}", entries.join(" "))
            }
            Json::Array(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| self.data(idx, input, item))
                    .collect();
                format!("[{}]", items.join(" "))
            }
            plain => self.value(idx, input, plain),
        }
    }

    fn wait(&mut self, idx: usize, input: &str) -> String {
        let parameters = &self.workflow.nodes[idx].parameters;
        let resume = text(parameters, "/resume")
            .unwrap_or("timeInterval")
            .to_owned();
        let unit = text(parameters, "/unit").unwrap_or("hours");
        let seconds = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, seconds)| *seconds);
        let amount = parameters.get("amount").map_or(Some(1.0), Json::as_f64);
        let name = self.names[&idx].clone();
        let timeout = amount
            .zip(seconds)
            .map(|(amount, seconds)| (amount * seconds).ceil());
        match (&*resume, timeout.filter(|it| it.is_finite() && *it >= 0.0)) {
            ("timeInterval", Some(seconds)) => {
                format!(
                    "(do (flow/step :wait :{name} {{:timeout \"{seconds}s\" :on-timeout :continue}})\n    {input})"
                )
            }
            ("timeInterval", None) => {
                self.remark(idx, "its time is computed: it waits for an hour");
                format!(
                    "(do (flow/step :wait :{name} {{:timeout \"1h\" :on-timeout :continue}})\n    {input})"
                )
            }
            (other, _) => {
                let text = format!(
                    "it waits for `{other}`: the flow waits until it is answered, with `flowstone waits complete` or over HTTP, for a day at most"
                );
                self.remark(idx, text);
                format!(
                    "(merge {input} (flow/step :wait :{name} {{:timeout \"24h\" :on-timeout :continue :default-value {{}}}}))"
                )
            }
        }
    }

    fn call(&mut self, idx: usize, input: &str) -> String {
        let parameters = &self.workflow.nodes[idx].parameters;
        let name = [
            "/workflowId/cachedResultName",
            "/workflowId/value",
            "/workflowId",
        ];
        let name = name
            .iter()
            .find_map(|at| text(parameters, at))
            .filter(|it| !it.starts_with('='));
        let Some(name) = name else {
            self.remark(
                idx,
                "which workflow it calls is computed: it passes its input on",
            );
            return input.to_owned();
        };
        let slug = kebab(name);
        self.remark(
            idx,
            format!("it calls the flow `{slug}`: import that workflow, too, with `--slug {slug}`"),
        );
        format!("(flow/call-flow :{slug} {input})")
    }

    fn answer(&mut self, idx: usize, input: &str) -> String {
        let parameters = self.workflow.nodes[idx].parameters.clone();
        let status = parameters
            .pointer("/options/responseCode")
            .and_then(Json::as_i64)
            .unwrap_or(200);
        let body = match text(&parameters, "/respondWith").unwrap_or("firstIncomingItem") {
            "noData" => "nil".to_owned(),
            "text" => self.value(
                idx,
                input,
                parameters.get("responseBody").unwrap_or(&Json::Null),
            ),
            "json" => match text(&parameters, "/responseBody").map(str::to_owned) {
                Some(body) => match serde_json::from_str::<Json>(body.trim_start_matches('=')) {
                    Ok(json) if !is_computed(&json) || !body.starts_with('=') => {
                        self.data(idx, input, &json)
                    }
                    _ => self.value(idx, input, &Json::String(body)),
                },
                None => input.to_owned(),
            },
            "firstIncomingItem" | "allIncomingItems" => input.to_owned(),
            other => {
                self.remark(
                    idx,
                    format!(
                        "it responds with `{other}`: the flow responds with the input of the node"
                    ),
                );
                input.to_owned()
            }
        };
        format!("{{:status {status}\n :body {}}}", indented(&body, 7))
    }

    /// A request: with a slot for its server, and a template if nothing of it is computed.
    fn request(&mut self, idx: usize, input: &str) -> String {
        let parameters = self.workflow.nodes[idx].parameters.clone();
        let name = self.names[&idx].clone();
        let mut config: Vec<String> = Vec::new();
        let method = ["/method", "/requestMethod"]
            .iter()
            .find_map(|at| text(&parameters, at))
            .unwrap_or("GET");
        let url = text(&parameters, "/url").unwrap_or_default().to_owned();
        let method = match method.to_ascii_lowercase() {
            known if matches!(&*known, "get" | "post" | "put" | "patch" | "delete") => known,
            other => {
                self.remark(idx, format!("its method is `{other}`: the flow sends GET"));
                "get".to_owned()
            }
        };
        config.push(format!(":method :{method}"));
        let mut outside = self.address(idx, input, &url, &mut config);
        for (key, lists) in [
            (
                "query",
                [
                    "/queryParameters/parameters",
                    "/queryParametersUi/parameter",
                ],
            ),
            (
                "headers",
                [
                    "/headerParameters/parameters",
                    "/headerParametersUi/parameter",
                ],
            ),
        ] {
            if let Some(pairs) = self.pairs(idx, input, &parameters, &lists) {
                config.push(format!(":{key} {pairs}"));
            }
        }
        self.body(idx, input, &parameters, &mut config);
        if text(&parameters, "/options/response/response/responseFormat") == Some("file") {
            outside.push(":response-as :bytes :persist {:type :blob}".to_owned());
        }
        if let Some(timeout) = parameters
            .pointer("/options/timeout")
            .and_then(Json::as_f64)
        {
            outside.push(format!(":timeout {}", (timeout / 1000.0).ceil().max(1.0)));
        }
        for option in ["pagination", "batching", "proxy", "allowUnauthorizedCerts"] {
            if parameters.pointer(&format!("/options/{option}")).is_some() {
                self.remark(idx, format!("its option `{option}` is left out"));
            }
        }
        self.request_step(&name, outside, &config, is_computed(&parameters))
    }

    /// Returns the code of a request. What is not computed is put into a template.
    fn request_step(
        &mut self,
        name: &str,
        mut outside: Vec<String>,
        config: &[String],
        is_computed: bool,
    ) -> String {
        let step = match is_computed {
            false => {
                let id = format!("{name}-request");
                let request = indented(&config.join("\n "), 12);
                self.templates.push(format!(
                    "{{:id :{id} :type :http-request\n  :request {{{request}}}}}"
                ));
                outside.insert(0, format!(":template :{id}"));
                format!("(flow/step :http :{name} {{{}}})", outside.join(" "))
            }
            true => {
                outside.extend(config.iter().cloned());
                format!("(flow/step :http :{name}\n  {{{}}})", outside.join("\n   "))
            }
        };
        // Nodes that follow see the body, or what is beside it if it was stored.
        match step.contains(":persist") {
            true => step,
            false => format!(
                "(let [body (:body {})]\n  (if (map? body) body {{:items body}}))",
                indented(&step, 18)
            ),
        }
    }

    /// Adds the address of a request; returns the options that are not part of a template.
    fn address(
        &mut self,
        idx: usize,
        input: &str,
        url: &str,
        config: &mut Vec<String>,
    ) -> Vec<String> {
        let Some((base, rest)) = server_of(url) else {
            let parameters = &self.workflow.nodes[idx].parameters;
            if text(parameters, "/authentication").is_some_and(|it| it != "none") {
                self.remark(
                    idx,
                    "its address is computed, so its credentials are left out",
                );
            }
            let url = self.value(idx, input, &Json::String(url.to_owned()));
            config.push(format!(":url {url}"));
            return Vec::new();
        };
        let slot = self.slot(idx, base);
        let rest = match url.starts_with('=') {
            true => format!("={rest}"),
            false => rest.to_owned(),
        };
        let path = self.value(idx, input, &Json::String(rest));
        config.push(format!(":path {path}"));
        vec![format!(":connection :{slot}")]
    }

    /// Returns named parameters as a map.
    fn pairs(
        &mut self,
        idx: usize,
        input: &str,
        parameters: &Json,
        lists: &[&str],
    ) -> Option<String> {
        let list = lists
            .iter()
            .find_map(|at| parameters.pointer(at)?.as_array())?;
        let mut entries = Vec::new();
        for pair in list {
            let name = pair.get("name").and_then(Json::as_str).unwrap_or_default();
            if !name.is_empty() {
                let value = self.value(idx, input, pair.get("value").unwrap_or(&Json::Null));
                entries.push(format!("{} {value}", edn_text(name)));
            }
        }
        (!entries.is_empty()).then(|| format!("{{{}}}", entries.join(" ")))
    }

    fn body(&mut self, idx: usize, input: &str, parameters: &Json, config: &mut Vec<String>) {
        let type_ = ["/contentType", "/bodyContentType"]
            .iter()
            .find_map(|at| text(parameters, at))
            .unwrap_or("json");
        let lists = ["/bodyParameters/parameters", "/bodyParametersUi/parameter"];
        let raw = ["/jsonBody", "/bodyParametersJson"]
            .iter()
            .find_map(|at| text(parameters, at));
        match (type_, raw) {
            ("json", Some(raw)) => {
                match serde_json::from_str::<Json>(raw.trim_start_matches('=')) {
                    Ok(json) => {
                        let json = match raw.starts_with('=') {
                            true => templated(&json),
                            false => json,
                        };
                        let code = self.value(idx, input, &json);
                        config.push(format!(":json {code}"));
                    }
                    Err(_) => {
                        let code = self.value(idx, input, &Json::String(raw.to_owned()));
                        config.push(format!(":body {code}\n :content-type \"application/json\""));
                    }
                }
            }
            ("json" | "form-urlencoded", _) => {
                let key = if type_ == "json" { "json" } else { "form" };
                if let Some(pairs) = self.pairs(idx, input, parameters, &lists) {
                    config.push(format!(":{key} {pairs}"));
                }
            }
            ("raw", _) => {
                let body = parameters.get("body").cloned().unwrap_or(Json::Null);
                let body = self.value(idx, input, &body);
                let type_ = text(parameters, "/rawContentType").unwrap_or("text/plain");
                config.push(format!(":body {body}\n :content-type {}", edn_text(type_)));
            }
            (other, _) => self.remark(idx, format!("its body of type `{other}` is left out")),
        }
    }

    /// Returns the slot for the server of a request.
    fn slot(&mut self, idx: usize, base: &str) -> String {
        let node = &self.workflow.nodes[idx];
        let parameters = &node.parameters;
        let kind = match text(parameters, "/authentication") {
            None | Some("none") => None,
            Some("genericCredentialType") => text(parameters, "/genericAuthType"),
            Some("predefinedCredentialType") => text(parameters, "/nodeCredentialType"),
            Some(older) => Some(older),
        };
        let host = base.split("://").nth(1).unwrap_or(base);
        let plain = kebab(host);
        let Some(kind) = kind.map(str::to_owned) else {
            self.slots.entry(plain.clone()).or_insert_with(|| {
                format!(
                    "{{:slot :{plain} :type :http-api :label {} :base-url {}}}",
                    edn_text(host),
                    edn_text(base)
                )
            });
            return plain;
        };
        let slot = kebab(&format!("{host} {kind}"));
        let auth = match &*kind {
            "httpBasicAuth" | "basicAuth" => {
                format!("{{:type :basic :username \"me\" :secret-ref :{slot}}}")
            }
            "httpHeaderAuth" | "headerAuth" => format!("{{:type :api-key :secret-ref :{slot}}}"),
            "httpQueryAuth" | "queryAuth" => {
                format!("{{:type :api-key :query \"api_key\" :secret-ref :{slot}}}")
            }
            _ => format!("{{:type :bearer :secret-ref :{slot}}}"),
        };
        self.remark(
            idx,
            format!("its credentials are not in the export: see `:auth` of the slot `:{slot}`, which is for `{kind}`, and set the secret"),
        );
        self.slots.entry(slot.clone()).or_insert_with(|| {
            format!(
                "{{:slot :{slot} :type :http-api :label {}\n  :base-url {} :auth {auth}}}",
                edn_text(host),
                edn_text(base)
            )
        });
        slot
    }
}

/// Returns JSON in whose texts templates are evaluated.
fn templated(json: &Json) -> Json {
    match json {
        Json::String(text) if text.contains("{{") => Json::String(format!("={text}")),
        Json::Array(items) => items.iter().map(templated).collect(),
        Json::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), templated(value)));
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Splits an address into its server and the rest, if the server is written out.
fn server_of(url: &str) -> Option<(&str, &str)> {
    let url = url.strip_prefix('=').unwrap_or(url);
    let start = ["https://", "http://"]
        .iter()
        .find(|start| url.starts_with(**start))?
        .len();
    let end = url[start..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| start + at);
    let (base, rest) = url.split_at(end);
    let is_host = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | ':');
    let is_plain = end > start && base[start..].chars().all(is_host);
    is_plain.then_some((base, if rest.is_empty() { "/" } else { rest }))
}

fn identity(name: &str, input: &str) -> String {
    format!(
        "(flow/step :function :{name} {{:input {input} :code '(fn [input] (dissoc input :step/ctx :flow/ctx))}})"
    )
}

/// Returns the code of a node that chooses an output.
fn branch(name: &str, input: &str, chosen: &str) -> String {
    let chosen = indented(chosen, 24);
    format!(
        "(flow/step :function :{name}\n  {{:input (assoc {input} :branch {chosen})\n   :code '(fn [input] (dissoc input :step/ctx :flow/ctx))}})"
    )
}
