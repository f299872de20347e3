"""The flows that the conformance suite of MCP asks for: each of its tools, prompts and resources, as a flow."""

import json

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
IMAGE = f'{{:breyta.viewer/kind :image :breyta.viewer/value {{:content-type "image/png" :data "{PNG}"}}}}'
AUDIO = f'{{:breyta.viewer/kind :audio :breyta.viewer/value "data:audio/wav;base64,{WAV}"}}'


def embedded(uri, media, text):
    return (
        "{:breyta.viewer/kind :download :breyta.viewer/value"
        f" {{:uri {uri} :content-type {json.dumps(media)} :text {json.dumps(text)}}}}}"
    )


def group(*items):
    return f"{{:breyta.viewer/kind :group :breyta.viewer/items [{' '.join(items)}]}}"


def shown(text):
    return f"{{:breyta.viewer/kind :text :breyta.viewer/value {json.dumps(text)}}}"


def edn(value):
    if isinstance(value, dict):
        return "{" + " ".join(f"{json.dumps(k)} {edn(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(edn(v) for v in value) + "]"
    return json.dumps(value)


def ask(step, method, params):
    """A wait that is answered by the client that called the flow."""
    params = params if isinstance(params, str) else edn(params)
    return f'(flow/step :wait :{step} {{:data {{:mcp/request {{:method "{method}" :params {params}}}}}}})'


def elicit(step, message, **properties):
    fields = {name: {"type": kind} for name, kind in properties.items()}
    schema = {"type": "object", "properties": fields, "required": list(properties)}
    return ask(step, "elicitation/create", {"message": message, "requestedSchema": schema})


def sample(step, text, tokens=100):
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return ask(step, "sampling/createMessage", {"messages": [message], "maxTokens": tokens})


ROOTS = ask("client_roots", "roots/list", {})
PROMPTED = (
    '{:messages [{:role "user" :content {:type "text" :text (:prompt (flow/input))}}] :maxTokens 100}'
    .replace('{:role "user" :content {:type "text" :text (:prompt (flow/input))}}',
             '{"role" "user" "content" {"type" "text" "text" (:prompt (flow/input))}}')
    .replace(":messages", '"messages"').replace(":maxTokens", '"maxTokens"')
)
PERSON = (
    '{"message" (:message (flow/input)) "requestedSchema" {"type" "object" "properties"'
    ' {"username" {"type" "string" "description" "The name"} "email" {"type" "string" "description" "The address"}}'
    ' "required" ["username" "email"]}}'
)
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(["First", "Second", "Third"], 1)]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                   "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [
        {"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(["First", "Second", "Third"], 1)]}},
}
LOG = """(do (flow/log :info "Tool execution started") (flow/step :sleep :a {:duration "50ms"})
 (flow/log :info "Tool processing data") (flow/step :sleep :b {:duration "50ms"})
 (flow/log :info "Tool execution completed") "logged")"""
PROGRESS = """(do (flow/emit :progress {:progress 0 :total 100}) (flow/step :sleep :a {:duration "50ms"})
 (flow/emit :progress {:progress 50 :total 100}) (flow/step :sleep :b {:duration "50ms"})
 (flow/emit :progress {:progress 100 :total 100}) "done")"""
# The features of JSON Schema that a server has to pass on.
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def two(first, second):
    return f"(flow/all [#(do {first}) #(do {second})])"


# Each flow: its name, its body, its inputs, and further keys of its interface.
FLOWS = [
    ("test_simple_text", '"This is a simple text response for testing."', [], ""),
    ("test_image_content", IMAGE, [], ""),
    ("test_audio_content", AUDIO, [], ""),
    ("test_embedded_resource",
     embedded('"test://embedded-resource"', "text/plain", "This is an embedded resource content."), [], ""),
    ("test_multiple_content_types",
     group(shown("Multiple content types test:"), IMAGE,
           embedded('"test://mixed-content-resource"', "application/json", '{"test":"data","value":123}')), [], ""),
    ("test_tool_with_logging", LOG, [], ""),
    ("test_logging_tool", LOG, [], ""),
    ("test_error_handling", '(throw (ex-info "This tool intentionally returns an error for testing" {}))', [], ""),
    ("test_tool_with_progress", PROGRESS, [], ""),
    ("test_sampling", f'(str "LLM response: " {ask("answer", "sampling/createMessage", PROMPTED)})', ["prompt"], ""),
    ("test_missing_capability", sample("answer", "Hello"), [], ""),
    ("test_elicitation", f'(str "User response: " {ask("person", "elicitation/create", PERSON)})', ["message"], ""),
    ("test_streaming_elicitation", elicit("answer", "What is your name?", name="string"), [], ""),
    ("test_elicitation_sep1034_defaults",
     ask("form", "elicitation/create",
         {"message": "Please review", "requestedSchema": {"type": "object", "properties": DEFAULTS}}), [], ""),
    ("test_elicitation_sep1330_enums",
     ask("form", "elicitation/create",
         {"message": "Please choose", "requestedSchema": {"type": "object", "properties": ENUMS}}), [], ""),
    ("json_schema_2020_12_tool", "(flow/input)", [], f":input-schema {edn(SCHEMA)}"),
    ("test_input_required_result_elicitation",
     # A wait with a schema becomes a form by itself.
     '(str "Hello, " (:name (flow/step :wait :user_name {:message "What is your name?"'
     ' :validation [:map [:name :string]]})) "!")', [], ""),
    ("test_input_required_result_sampling",
     f'(str {sample("capital_question", "What is the capital of France?")})', [], ""),
    ("test_input_required_result_list_roots", f"(str {ROOTS})", [], ""),
    ("test_input_required_result_request_state",
     f'(do {elicit("confirm", "Please confirm", ok="boolean")} "state-ok")', [], ""),
    ("test_input_required_result_tampered_state",
     f'(do {elicit("confirm", "Please confirm", ok="boolean")} "state-ok")', [], ""),
    ("test_input_required_result_multiple_inputs",
     f'(str (flow/all [#(do {elicit("user_name", "What is your name?", name="string")})'
     f' #(do {sample("greeting", "Generate a greeting", 50)}) #(do {ROOTS})]))', [], ""),
    ("test_input_required_result_multi_round",
     f'(str {elicit("step1", "Step 1: What is your name?", name="string")}'
     f' {elicit("step2", "Step 2: What is your favorite color?", color="string")})', [], ""),
    ("test_input_required_result_capabilities",
     f'(str {two(elicit("name", "What is your name?", name="string"), sample("answer", "Hello"))})', [], ""),
    ("test_input_required_result_prompt",
     f'(str "Context: " {elicit("user_context", "What context should the prompt use?", context="string")})',
     [], ":kind :prompt"),
    ("test_simple_prompt", '"This is a simple prompt for testing."', [], ":kind :prompt"),
    ("test_prompt_with_arguments",
     "(let [{:keys [arg1 arg2]} (flow/input)] (str \"Prompt with arguments: arg1='\" arg1 \"', arg2='\" arg2 \"'\"))",
     ["arg1", "arg2"], ":kind :prompt"),
    ("test_prompt_with_embedded_resource",
     "[" + embedded("(:resourceUri (flow/input))", "text/plain", "Embedded resource content for testing.")
     + ' "Please process the embedded resource above."]', ["resourceUri"], ":kind :prompt"),
    ("test_prompt_with_image", f'[{IMAGE} "Please analyze the image above."]', [], ":kind :prompt"),
    ("static-text", '"This is the content of the static text resource."', [],
     ':kind :resource :uri "test://static-text" :mime-type "text/plain"'),
    ("static-binary", IMAGE, [], ':kind :resource :uri "test://static-binary" :mime-type "image/png"'),
    ("watched-resource", '"watched"', [], ':kind :resource :uri "test://watched-resource"'),
    # Tools whose calls become tasks.
    ("greet", '(str "Hello, " (:name (flow/input)) "!")', ["name"], ""),
    ("slow_compute", '(do (flow/step :sleep :compute {:duration (str (:seconds (flow/input)) "s")})'
     ' (str "computed " (:label (flow/input))))', ["seconds:number", "label:text?"], ":task :at-once"),
    ("failing_job", '(do (flow/step :sleep :work {:duration "1s"}) (throw (ex-info "The job failed" {})))', [],
     ":task :at-once :task-required true"),
    # The client has no roots, so a call of it has no result.
    ("protocol_error_job", f"(str {ROOTS})", [], ":task :at-once"),
    ("confirm_delete", f'(str "deleted: " {elicit("confirm", "Delete the file?", confirm="boolean")})', ["filename"],
     ":task :at-once"),
    ("multi_input", f'(str {two(elicit("first", "First?", name="string"), elicit("second", "Second?", name="string"))})',
     [], ":task :at-once"),
    ("test_tool_with_task", '(str "Hello, " (:name (flow/step :wait :user_name {:message "What is your name?"'
     ' :validation [:map [:name :string]]})))', [], ":task :after-input :task-required true"),
    # An argument that clients repeat in a header.
    ("test_x_mcp_header", "(flow/input)", ["region:text?"],
     f':input-schema {edn({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})}'),
    ("template", '{:id (:id (flow/input)) :templateTest true :data (str "Data for ID: " (:id (flow/input)))}',
     ["id"], ':kind :resource :uri "test://template/{id}/data"'),
]


def declaration(text):
    """An input: its name, and perhaps `:type` and `?` where it may be left out."""
    name, _, kind = text.partition(":")
    required = "false" if kind.endswith("?") else "true"
    return f"{{:name :{name} :type :{kind.rstrip('?') or 'text'} :required {required}}}"


def write(folder):
    """Writes the flows to a folder."""
    folder.mkdir(parents=True)
    for name, body, inputs, more in FLOWS:
        declared = " ".join(map(declaration, inputs))
        slug = name.replace("_", "-")
        (folder / f"{slug}.edn").write_text(
            f"{{:slug :{slug}\n"
            f" :invocations {{:default {{:inputs [{declared}]}}}}\n"
            f' :interfaces {{:mcp [{{:tool-name "{name}" :invocation :default'
            f' :description "For the conformance suite." {more}}}]}}\n'
            f" :flow '{body}}}\n"
        )
