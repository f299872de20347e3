//! The rows of `tests/coverage/connections.tsv`: connections, secrets, `:requires`.

use crate::net::{Net, contains};
use crate::project::Project;
use crate::server::reply;

const FLOW: &str = "{:slug :a :requires [{:slot :crm :type :http-api :label \"CRM\" :base-url \"URL/flow\" :auth {:type :bearer}}]
    :flow '(:status (flow/step :http :get {:connection :crm :path \"/x\"}))}";

fn net(settings: &str) -> Net {
    Net::with(
        vec![reply("200 OK", &[], "")],
        &[
            ("flowstone.edn", settings),
            (".env", "CRM_TOKEN=s3cr3t\nOTHER=0ther-one\n"),
        ],
    )
}

#[test]
fn slot() {
    let net = net("{}");
    assert_eq!(net.eval(FLOW), "200");
    contains(&net.server.requests()[0], "GET /flow/x ");
    contains(&net.server.requests()[0], "authorization: Bearer s3cr3t");
}

#[test]
fn binding() {
    let net = net(
        "{:connections {:other {:base-url \"URL/other\" :auth {:type :bearer :secret-ref :other}}}
                    :bindings {:crm {:conn :other}}}",
    );
    assert_eq!(net.eval(FLOW), "200");
    contains(&net.server.requests()[0], "GET /other/x ");
    contains(&net.server.requests()[0], "authorization: Bearer 0ther");
}

#[test]
fn binding_in_place() {
    let net =
        net("{:bindings {:crm {:base-url \"URL/here\" :auth {:type :bearer :secret-ref :other}}}}");
    assert_eq!(net.eval(FLOW), "200");
    contains(&net.server.requests()[0], "GET /here/x ");
    contains(&net.server.requests()[0], "authorization: Bearer 0ther");
}

#[test]
fn secrets_in_a_flow() {
    let net = net("{}");
    let text = FLOW.replace(":type :bearer}", ":type :bearer :token \"s3cr3t\"}");
    contains(&net.eval(&text), "E07");
}

#[test]
fn auth_none() {
    let net = net("{}");
    assert_eq!(net.eval(&FLOW.replace(":bearer", ":none")), "200");
    assert!(!net.server.requests()[0].contains("authorization"));
}

#[test]
fn optional() {
    let project = Project::new();
    let text = "{:slug :a :requires [{:slot :x :type :http-api :optional true}] :flow '(flow/slot-bound? :x)}";
    assert_eq!(project.eval(text), "false");
}

#[test]
fn requires_of_the_reference() {
    let text = "{:slug :a :requires
        [{:slot :crm :type :http-api :label \"CRM\" :base-url \"https://api.example.com\" :auth {:type :bearer}}
         {:slot :ai :type :http-api :label \"AI\" :backend \"openai\" :auth {:type :api-key} :optional true}
         {:slot :linear-mcp :type :http-api :label \"Linear\" :backend :mcp :base-url \"https://mcp.linear.app\" :auth {:type :bearer}}
         {:slot :webhook-secret :type :secret :secret-ref :webhook-secret :label \"Webhook secret\"}]
        :flow '1}";
    assert_eq!(Project::new().errors(text), "");
}

#[test]
fn form_for_each_run() {
    let text = "{:slug :a :requires [{:kind :form :label \"Run\" :collect :run
          :fields [{:key :region :label \"Region\" :field-type :select :options [\"EU\" \"US\"] :default \"EU\"}]}]
        :flow '(:region (flow/input))}";
    assert_eq!(Project::new().eval(text), "\"EU\"");
}

/// The older name of a connection to a model, and of the family that many providers imitate.
#[test]
fn older_names() {
    let net = Net::with(
        vec![crate::agent::says("Hi"), crate::agent::says("Hi")],
        &[(
            "flowstone.edn",
            "{:connections {:ai {:family :openai-compatible :base-url \"URL\" :model \"m\" :auth {:type :none}}}}",
        )],
    );
    let found = net.eval(
        "{:slug :a :requires [{:slot :ai :type :llm-provider}] :flow '(:content (flow/step :llm :ask {:connection :ai :prompt \"x\"}))}",
    );
    assert_eq!(found, "\"Hi\"");
    contains(&net.server.requests()[0], "POST /chat/completions ");
}

const SETUP: &str = "{:slug :a :requires [{:kind :form :collect :setup :label \"Setup\"
      :fields [{:key :region :label \"Region\" :field-type :select :options [\"EU\" \"US\"] :required true}
               {:key :limit :field-type :number :default 5}]}]
    :flow '(let [{:keys [region limit]} (:activation (flow/input))] [region limit])}";

#[test]
fn setup_form() {
    let set = Project::with("{:setup {:a {:region \"US\"}}}");
    assert_eq!(set.eval(SETUP), "[\"US\" 5]");
    let missing = Project::new().eval(SETUP);
    contains(&missing, "region");
    let wrong = Project::with("{:setup {:a {:region \"XX\"}}}").eval(SETUP);
    contains(&wrong, "EU, US");
}

#[test]
fn shapes_of_requires() {
    for (entry, error) in [
        ("{:slot :a/b :type :http-api}", "E0472"),
        ("{:slot :a :type :nonsense}", "E0472"),
        (
            "{:slot :a :type :http-api} {:slot :a :type :http-api}",
            "E0414",
        ),
        ("{:slott :a :type :http-api}", "E0472"),
    ] {
        let text = format!("{{:slug :a :requires [{entry}] :flow '1}}");
        contains(&Project::new().errors(&text), error);
    }
}
