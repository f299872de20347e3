//! The rows of `tests/coverage/limits.tsv`: limits of a hosted product that do not exist here.

use crate::net::Net;
use crate::project::Project;
use crate::server::reply;

#[test]
fn large_flows() {
    // More than 150 KB, more than 50 steps, and a function of more than 1 MB.
    let steps = "(flow/step :function :f {:ref :f})\n".repeat(60);
    let code = format!("(fn [_] 1) ; {}", "x".repeat(1 << 20));
    let text = format!(
        "{{:slug :a :functions [{{:id :f :code \"{code}\"}}] :description \"{}\" :flow '(do {steps})}}",
        "d".repeat(200_000)
    );
    let project = Project::new();
    assert_eq!(project.errors(&text), "");
    assert_eq!(project.eval(&text), "1");
}

#[test]
fn many_requests() {
    let net = Net::new(vec![reply("204 No Content", &[], "")]);
    let body = "(count (mapv (fn [_] (flow/step :http :get {:url \"URL\"})) (range 60)))";
    assert_eq!(net.eval(body), "60");
    assert_eq!(net.server.requests().len(), 60);
}

#[test]
fn many_children() {
    let project = Project::new();
    project.write("flows/one.edn", b"{:slug :one :flow '1}");
    let item = "{:type :call-flow :flow-slug :one}";
    let body = format!(
        "(count (flow/step :fanout :all {{:max-concurrency 8 :items (vec (repeat 30 {item}))}}))"
    );
    assert_eq!(project.eval(&body), "30");
}

#[test]
fn many_steps() {
    let body = "(count (flow/pmap (fn [_] (flow/step :sleep :nap {:millis 0})) (range 10001)))";
    assert_eq!(Project::new().eval(body), "10001");
}
