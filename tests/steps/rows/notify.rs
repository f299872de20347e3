//! The rows of `tests/coverage/notify.tsv`.

use crate::net::{Net, contains};
use crate::server::{Say, reply};

const SETTINGS: &str =
    "{:connections {:chat {:base-url \"URL/v1\" :auth {:type :bearer :secret-ref :chat-token}}}}";

fn net(answers: Vec<Say>) -> Net {
    Net::with(
        answers,
        &[
            ("flowstone.edn", SETTINGS),
            (".env", "CHAT_TOKEN=s3cr3t-chat\n"),
        ],
    )
}

fn taken() -> Net {
    net(vec![reply("202 Accepted", &[], "")])
}

fn tell(net: &Net, config: &str) -> String {
    net.eval(&format!("(let [r (flow/step :notify :tell {config})] r)"))
}

/// Returns the result of a message over this channel.
fn by(net: &Net, http: &str) -> String {
    tell(net, &format!("{{:channels {{:http {http}}}}}"))
}

#[test]
fn channels() {
    contains(
        &by(
            &taken(),
            "{:connection :chat :path \"/m\" :json {:text \"hi\"}}",
        ),
        ":sent? true",
    );
    contains(
        &tell(&taken(), "{}"),
        "E0716 a message needs `:channels` or a `:template`",
    );
    contains(
        &tell(&taken(), "{:channels {}}"),
        "`:channels` holds no channel",
    );
    contains(
        &tell(&taken(), "{:channels {:sms {}}}"),
        "there is no channel `:sms`",
    );
}

#[test]
fn http_connection() {
    let net = taken();
    by(&net, "{:connection :chat :path \"/m\" :json {}}");
    contains(
        &net.server.requests()[0],
        "authorization: Bearer s3cr3t-chat",
    );
    contains(
        &by(&net, "{:path \"/m\"}"),
        "`:channels :http` needs a `:connection`",
    );
    contains(&by(&net, "{:connection :chatt}"), "did you mean `:chat`?");
    contains(
        &by(&net, "{:connection :chat :url \"http://x\"}"),
        "takes no `:url`",
    );
    contains(
        &by(&net, "{:connection :chat :auth {}}"),
        "takes no `:auth`",
    );
    assert!(!net.project.everything_kept().contains("s3cr3t"));
}

#[test]
fn http_path() {
    let net = taken();
    by(
        &net,
        "{:connection :chat :path \"/rooms/7\" :query {:a 1} :headers {:x-a \"b\"} :json {}}",
    );
    contains(&net.server.requests()[0], "POST /v1/rooms/7?a=1 HTTP/1.1\n");
    contains(&net.server.requests()[0], "x-a: b\n");
}

#[test]
fn http_method() {
    let net = taken();
    by(&net, "{:connection :chat :json {}}");
    by(&net, "{:connection :chat :method :put :json {}}");
    contains(&net.server.requests()[0], "POST /v1 ");
    contains(&net.server.requests()[1], "PUT /v1 ");
}

#[test]
fn http_json() {
    let net = taken();
    by(
        &net,
        "{:connection :chat :json {:text \"a\" :n [1 {:b true}]}}",
    );
    assert_eq!(
        net.server.body(0),
        serde_json::json!({"text": "a", "n": [1, {"b": true}]})
    );
    contains(&by(&net, "{:connection :chat :body \"x\"}"), ":body");
}

#[test]
fn channel_ui() {
    contains(
        &tell(&taken(), "{:channels {:ui {:title \"x\"}}}"),
        "E0716 there is no channel `:ui` | messages go by `:http` or `:email`, through a connection",
    );
}

#[test]
fn data() {
    let net = taken();
    tell(
        &net,
        "{:data {:order {:id 7} :items [\"a\" \"b\"]} :channels {:http {:connection :chat :json {:text \"{{order.id}}: {{join items}}\"}}}}",
    );
    assert_eq!(net.server.body(0)["text"], "7: a, b");
    contains(
        &tell(
            &net,
            "{:data {:f inc} :channels {:http {:connection :chat :json {}}}}",
        ),
        "cannot be used in a message",
    );
}

#[test]
fn template() {
    let net = taken();
    let flow = |config: &str| {
        net.eval(&format!(
            "{{:slug :s :concurrency {{:type :singleton :on-new-version :supersede}}
              :templates [{{:id :paid :type :notification :channels {{:http {{:connection :chat :path \"/m\" :json {{:text \"{{{{n}}}} paid\"}}}}}}}}
                          {{:id :req :type :http-request :request {{:path \"/\"}}}}]
              :flow '(let [r (flow/step :notify :tell {config})] r)}}"
        ))
    };
    contains(&flow("{:template :paid :data {:n 7}}"), ":sent? true");
    assert_eq!(net.server.body(0)["text"], "7 paid");
    contains(&flow("{:template :pad :data {}}"), "did you mean `:paid`?");
    contains(
        &flow("{:template :req :data {}}"),
        "the template `:req` is of type `:http-request`",
    );
    contains(
        &flow("{:template :paid :channels {:http {:connection :chat}}}"),
        "not both",
    );
}

#[test]
fn common_options() {
    let busy = net(vec![
        reply("503 Service Unavailable", &[], ""),
        reply("202 Accepted", &[], ""),
    ]);
    let message = ":channels {:http {:connection :chat :json {:text \"x\"}}}";
    contains(
        &tell(
            &busy,
            &format!("{{:retry {{:max-attempts 2 :backoff-ms 0}} {message}}}"),
        ),
        ":sent? true",
    );
    assert_eq!(busy.server.requests().len(), 2);
    let gone = net(vec![reply("404 Not Found", &[], "")]);
    contains(
        &tell(&gone, &format!("{{:on-error :fail {message}}}")),
        "E0734 HOST answered 404 Not Found",
    );
    assert_eq!(
        tell(&gone, &format!("{{:on-error :skip {message}}}")),
        "nil"
    );
}

#[test]
fn result() {
    assert_eq!(
        by(&taken(), "{:connection :chat :json {}}"),
        "{:sent? true :channels {:http {:sent? true :status 202}}}"
    );
}

#[test]
fn failure() {
    let refused = by(
        &net(vec![reply("403 Forbidden", &[], "no")]),
        "{:connection :chat :json {}}",
    );
    contains(
        &refused,
        "{:sent? false :channels {:http {:sent? false}} :errors [{:channel :http",
    );
    contains(&refused, ":status 403");
    contains(&refused, ":kind :denied");
    let silent = by(
        &net(vec![Say::Raw(Vec::new())]),
        "{:connection :chat :json {}}",
    );
    contains(&silent, ":sent? false");
    contains(&silent, ":code \"E0735\"");
}

#[test]
fn idempotency_key() {
    let net = net(vec![
        reply("503 Service Unavailable", &[], ""),
        reply("202 Accepted", &[], ""),
    ]);
    tell(
        &net,
        "{:retry {:max-attempts 2 :backoff-ms 0} :channels {:http {:connection :chat :json {}}}}",
    );
    let keys: Vec<String> = net
        .server
        .requests()
        .iter()
        .filter_map(|request| {
            request
                .lines()
                .find(|line| line.starts_with("idempotency-key: "))
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    contains(&keys[0], "/tell");
}
