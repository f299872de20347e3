//! Pages that people open by a link: deciding a wait, and looking at a run.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const REFUND: &str = r#"{:slug :refund
  :invocations {:default {:inputs [{:name :order :type :text} {:name :pin :type :password}]}}
  :flow '(flow/step :wait :ok {:key (str "refund-" (:order (flow/input)))
    :title "Refund"
    :message "Pay back <b>20</b>? \u001b[31m\u202e<script>alert(1)</script>"
    :data {:order (:order (flow/input)) :html "<img src=x onerror=alert(2)>" :connection :bank-connection}
    :approval {:actions [:approve :reject]}
    :webhook {:path "refund" :auth {:type :bearer :secret-ref :hook-secret}}
    :validation [:map [:granted [:int {:min 1}]] [:kind [:enum :card :voucher]] [:sure {:optional true} :boolean]]
    :timeout "1h"})}"#;
const PLAIN: &str = r#"{:slug :plain
  :flow '(flow/step :wait :ok {:key "plain" :title "Go on?" :approval {} :timeout "1h"})}"#;
const SHORT: &str = r#"{:slug :short
  :flow '(flow/step :wait :ok {:key "short" :approval {} :timeout "1s" :on-timeout :continue :default-value {:action :reject}})}"#;
const ROLES: &str = r#"{:slug :pay :flow '(flow/step :wait :ok {:key "pay" :approval {} :roles [:finance] :timeout "1h"})}"#;
const FORM: &str = "content-type: application/x-www-form-urlencoded";

fn project() -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in [
        ("refund", REFUND),
        ("plain", PLAIN),
        ("short", SHORT),
        ("pay", ROLES),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    scratch
}

/// A wait that a run opened.
struct Link {
    run: String,
    wait: String,
    token: String,
    digest: String,
}

impl Link {
    fn open(scratch: &Scratch, api: &Api, flow: &str, key: &str, input: &Value) -> Link {
        let path = format!("/api/v1/flows/{flow}/runs");
        let started = api.post(&path, &json!({"wait": "60s", "input": input}));
        assert_eq!(started.status, 202, "{started:?}");
        let shown = scratch.json_of(&["waits", "show", key, "--role", "finance"]);
        let text = |name: &str| shown[name].as_str().expect("text").to_owned();
        let link = Link {
            run: text("run"),
            wait: text("id"),
            token: text("token"),
            digest: text("digest"),
        };
        let address = format!(
            "http://{}/local/waits/{}/approve?token={}",
            api.address, link.wait, link.token
        );
        assert_eq!(shown["links"]["approve"], json!(address));
        link
    }

    fn address(&self, action: &str) -> String {
        format!("/local/waits/{}/{action}", self.wait)
    }

    fn look(&self, api: &Api, action: &str) -> Reply {
        let address = format!("{}?token={}", self.address(action), self.token);
        browse(api, &address)
    }

    /// The fields of a form that decides.
    fn form(&self, more: &str) -> String {
        format!("token={}&digest={}{more}", self.token, self.digest)
    }

    fn decide(&self, api: &Api, more: &str) -> Reply {
        send(api, &self.address("approve"), &self.form(more))
    }
}

/// Gets a page as a browser does.
fn browse(api: &Api, address: &str) -> Reply {
    let accept = "accept: text/html,application/xhtml+xml,*/*;q=0.8";
    api.request(&format!("GET {address}"), &[accept], "")
}

/// Sends a form as a browser does.
fn send(api: &Api, address: &str, form: &str) -> Reply {
    let origin = format!("origin: http://{}", api.address);
    let headers = [FORM, &*origin, "sec-fetch-site: same-origin"];
    api.request(&format!("POST {address}"), &headers, form)
}

fn state(api: &Api, link: &Link) -> String {
    let wait = api.get(&format!("/api/v1/waits/{}", link.wait)).json();
    wait["state"].as_str().unwrap_or_default().to_owned()
}

fn result(scratch: &Scratch, api: &Api, link: &Link) -> Value {
    scratch.run(&["runs", "watch", &link.run]);
    let run = api.get(&format!("/api/v1/runs/{}", link.run)).json();
    run["result"].clone()
}

#[test]
fn a_link_shows_what_is_asked() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let input = json!({"order": "o-1", "pin": "not to be seen"});
    let link = Link::open(&scratch, &api, "refund", "refund-o-1", &input);

    let page = link.look(&api, "reject");
    assert_eq!(page.status, 200, "{page:?}");
    for (name, value) in [
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("x-robots-tag", "noindex"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(page.header(name), Some(value), "{page:?}");
    }
    for shown in [
        "Refund",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "\\x1b[31m\\u202e",
        "o-1",
        &*link.digest,
        &*link.run,
        "api:owner",
        "value=\"reject\" checked",
        "name=\"granted\"",
        "<option value=\"voucher\">",
        "name=\"sure\"",
    ] {
        assert!(page.body.contains(shown), "no {shown} in {}", page.body);
    }
    for hidden in [
        "<script",
        "<img",
        "<b>",
        "\u{1b}",
        "\u{202e}",
        "hook-secret",
        "bank-connection",
        "not to be seen",
        "bearer",
    ] {
        assert!(!page.body.contains(hidden), "{hidden} in {}", page.body);
    }
    let style = api.request("GET /assets/pages.css", &[], "");
    assert_eq!(style.status, 200);
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
}

#[test]
fn a_form_is_checked_and_decides_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let input = json!({"order": "o-1"});
    let link = Link::open(&scratch, &api, "refund", "refund-o-1", &input);

    // What is wrong is shown beside its field, with what was typed.
    let wrong = link.decide(
        &api,
        "&action=approve&granted=many&kind=card&comment=hello+there",
    );
    assert_eq!(wrong.status, 422, "{wrong:?}");
    for shown in [
        "expected a whole number, got `many`",
        "value=\"many\"",
        "hello there",
        "<option value=\"card\" selected>",
    ] {
        assert!(wrong.body.contains(shown), "no {shown} in {}", wrong.body);
    }
    let small = link.decide(&api, "&action=approve&granted=0&kind=card");
    assert_eq!(small.status, 422, "{small:?}");
    let other = link.decide(&api, "&action=burn&granted=1&kind=card");
    assert_eq!(other.status, 422, "{other:?}");
    assert_eq!(state(&api, &link), "open");

    let decided = link.decide(
        &api,
        "&action=approve&granted=12&kind=voucher&sure=on&comment=fine",
    );
    assert_eq!(decided.status, 303, "{decided:?}");
    let location = decided.header("location").expect("a place").to_owned();
    assert!(
        location.starts_with(&format!("/local/waits/{}/done?", link.wait)),
        "{location}"
    );
    assert!(!location.contains(&link.token), "{location}");
    let done = browse(&api, &location);
    assert!(
        done.status == 200 && done.body.contains("Approve"),
        "{done:?}"
    );
    let forged = browse(
        &api,
        &location.replace("action=approve", "action=everything"),
    );
    assert!(
        !forged.body.to_lowercase().contains("everything"),
        "{forged:?}"
    );
    assert_eq!(
        result(&scratch, &api, &link),
        json!({"action": "approve", "granted": 12, "kind": "voucher", "sure": true, "comment": "fine", "by": "link"})
    );

    for again in [
        link.look(&api, "approve"),
        link.decide(&api, "&action=reject&granted=1&kind=card"),
    ] {
        assert_eq!(again.status, 409, "{again:?}");
        assert!(again.body.contains("`:approve` by link at"), "{again:?}");
    }
}

#[test]
fn looking_decides_nothing() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    let address = format!("{}?token={}", link.address("approve"), link.token);
    let bots = [
        "user-agent: Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "user-agent: facebookexternalhit/1.1",
        "purpose: prefetch",
    ];
    for bot in bots {
        for method in ["GET", "HEAD"] {
            let reply = api.request(&format!("{method} {address}&utm_source=mail"), &[bot], "");
            assert_eq!(reply.status, 200, "{method} {bot}: {reply:?}");
        }
    }
    // A decision in the address is not a decision.
    let eager = format!("GET {address}&action=approve&digest={}", link.digest);
    assert_eq!(api.request(&eager, &[], "").status, 200);
    for method in ["PUT", "DELETE", "PATCH"] {
        let reply = api.request(&format!("{method} {address}"), &[], "");
        assert_eq!(reply.problem(), "405 E1015", "{method}");
    }
    assert_eq!(state(&api, &link), "open");
    // A person comes by a link on another site; a page of another site sends no form.
    let opened = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"];
    let reply = api.request(&format!("GET {address}"), &opened, "");
    assert_eq!(reply.status, 200, "{reply:?}");
    for origin in [
        "origin: http://evil.example",
        "origin: null",
        "sec-fetch-site: cross-site",
    ] {
        let what = format!("POST {}", link.address("approve"));
        let reply = api.request(&what, &[FORM, origin], &link.form("&action=approve"));
        assert_eq!(reply.problem(), "403 E1013", "{origin}");
    }
    assert_eq!(state(&api, &link), "open");
    assert_eq!(link.decide(&api, "&action=reject&comment=no").status, 303);
    assert_eq!(
        result(&scratch, &api, &link),
        json!({"action": "reject", "reason": "no", "by": "link"})
    );
}

#[test]
fn wrong_links_are_all_alike_and_counted_and_a_right_one_passes() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let one = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    let other = Link::open(
        &scratch,
        &api,
        "refund",
        "refund-o-2",
        &json!({"order": "o-2"}),
    );
    let wrong = [
        format!("/local/waits/{}/approve?token={}", one.wait, other.token),
        format!("/local/waits/{}/approve?token={}", other.wait, one.token),
        format!("/local/waits/w0000000000000000/approve?token={}", one.token),
        format!("/local/waits/{}/approve?token=", one.wait),
        format!("/local/waits/{}/approve", one.wait),
        format!(
            "/local/waits/{}/approve?token={}",
            &one.wait[..8],
            one.token
        ),
        format!("/local/waits/plain/approve?token={}", one.token),
        format!("/acme/waits/{}/approve?token={}", one.wait, one.token),
    ];
    for address in &wrong {
        let reply = api.request(&format!("GET {address}"), &[], "");
        assert_eq!(reply.problem(), "404 E1100", "{address}");
    }
    let page = browse(&api, &wrong[0]);
    assert!(
        page.status == 404 && page.body.contains("<!DOCTYPE html>"),
        "{page:?}"
    );
    let mut statuses = Vec::new();
    for number in 0..1_000 {
        let form = format!("token={number:032x}&digest={}&action=approve", one.digest);
        let reply = send(&api, &one.address("approve"), &form);
        statuses.push(reply.status);
    }
    assert!(
        statuses.iter().all(|status| [404, 429].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(statuses.last(), Some(&429));
    let limited = send(&api, &one.address("approve"), "token=x");
    assert!(limited.header("retry-after").is_some(), "{limited:?}");
    assert_eq!(state(&api, &one), "open");
    assert_eq!(one.look(&api, "approve").status, 200);
    assert_eq!(one.decide(&api, "&action=approve").status, 303);
}

#[test]
fn of_two_decisions_at_once_one_counts() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    let start = Barrier::new(8);
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (start, api, link) = (&start, &api, &link);
                scope.spawn(move || {
                    start.wait();
                    let action = if number % 2 == 0 { "approve" } else { "reject" };
                    link.decide(api, &format!("&action={action}")).status
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().expect("an answer"))
            .collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409, 409, 409, 409, 409, 409, 409]);
}

#[test]
fn malformed_forms_are_refused() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    let what = format!("POST {}", link.address("approve"));
    let good = link.form("&action=approve");
    let large = format!("{good}&comment={}", "x".repeat(70 << 10));
    let stale = good.replace(&link.digest, &"0".repeat(32));
    for (headers, body, expected) in [
        (&[FORM][..], &*large, "413 E1018"),
        (&["content-type: application/json"], "{}", "415 E1017"),
        (
            &["content-type: multipart/form-data; boundary=x"],
            "x",
            "415 E1017",
        ),
        (&[], &*good, "415 E1017"),
        (&[FORM], "token=%zz", "400 E1016"),
        (&[FORM], "token=%ff", "400 E1016"),
        (&[FORM], &format!("{good}&action=reject"), "400 E1016"),
        (
            &[FORM],
            &format!("token={}&action=approve", link.token),
            "400 E1016",
        ),
        (&[FORM], "", "404 E1100"),
    ] {
        let reply = api.request(&what, headers, body);
        assert_eq!(reply.problem(), expected, "{}", &body[..body.len().min(80)]);
    }
    // Another digest: the page comes again as the request is now.
    let reply = send(&api, &link.address("approve"), &stale);
    assert_eq!(reply.status, 409, "{reply:?}");
    assert!(
        reply.body.contains("has changed") && reply.body.contains(&link.digest),
        "{reply:?}"
    );
    assert_eq!(state(&api, &link), "open");
}

#[test]
fn a_link_ends_with_its_wait() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "short", "short", &json!({}));
    scratch.run(&["runs", "watch", &link.run]);
    for reply in [
        link.look(&api, "approve"),
        link.decide(&api, "&action=approve"),
    ] {
        assert_eq!(reply.status, 410, "{reply:?}");
    }
    let cancelled = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    api.post(
        &format!("/api/v1/runs/{}/cancel", cancelled.run),
        &json!({}),
    );
    scratch.run(&["runs", "watch", &cancelled.run]);
    let reply = cancelled.look(&api, "approve");
    assert_eq!(reply.status, 410, "{reply:?}");
}

#[test]
fn where_roles_are_needed_the_link_alone_does_not_decide() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "pay", "pay", &json!({}));
    let page = link.look(&api, "approve");
    assert!(
        page.body.contains("name=\"access-token\"") && page.body.contains("finance"),
        "{page:?}"
    );
    let token = |name: &str, options: &[&str]| {
        let args = [&["tokens", "create", "--name", name], options].concat();
        scratch.run(&args).ok().trim_end().to_owned()
    };
    let without_role = token("ann", &["--scope", "approve"]);
    let without_scope = token("bea", &["--scope", "read", "--role", "finance"]);
    let elsewhere = token(
        "cat",
        &["--scope", "approve", "--role", "finance", "--flow", "other"],
    );
    let right = token("dot", &["--scope", "approve", "--role", "finance"]);
    for given in ["", &without_role, &without_scope, &elsewhere, "fst_0_x"] {
        let reply = link.decide(&api, &format!("&action=approve&access-token={given}"));
        assert_eq!(reply.status, 403, "{given}: {reply:?}");
        assert!(given.is_empty() || !reply.body.contains(given), "{reply:?}");
    }
    assert_eq!(state(&api, &link), "open");
    let reply = link.decide(&api, &format!("&action=approve&access-token={right}"));
    assert_eq!(reply.status, 303, "{reply:?}");
    assert_eq!(
        result(&scratch, &api, &link),
        json!({"action": "approve", "by": "dot"})
    );
}

const REPORT: &str = r##"{:slug :report
  :invocations {:default {:inputs [{:name :month :type :text} {:name :pin :type :password}]}}
  :flow '(let [rows (flow/step :table :rows {:op :insert :table "sales" :rows [{:region "North" :sum 1200}]})]
    {:breyta.viewer/kind :group
     :breyta.viewer/items
     [{:breyta.viewer/kind :markdown :breyta.viewer/options {:title "Summary <i>"}
       :breyta.viewer/value (str "# May\n\n**up** <script>alert(1)</script> [a](javascript:alert(2)) [b](https://b.test/x)\n\n"
                                 "![pixel](https://evil.example/p.png)\n\n```breyta-resource\n{:uri \"" (:uri rows) "\" :view :chart}\n```\n")}
      {:breyta.viewer/kind :table :breyta.viewer/value [{:name "\u001b[2Jx" :amount 3}]}
      {:url "https://elsewhere.example/c.png" :content-type "image/png"}
      {:breyta.viewer/kind :image :breyta.viewer/value "res://v1/ws/local/file/pic" :breyta.viewer/options {:alt "A \"picture\""}}
      {:breyta.viewer/kind :image :breyta.viewer/value "res://v1/ws/local/file/drawing"}
      {:breyta.viewer/kind :later :breyta.viewer/value {:kept [1 2]}}]})}"##;

/// Uploads a file under a name that stays.
fn upload(api: &Api, name: &str, kind: &str, bytes: &str) -> String {
    let what = format!("POST /api/v1/resources?filename={name}&folder=shown");
    let headers = [
        &*format!("authorization: Bearer {}", api.token),
        &*format!("content-type: {kind}"),
    ];
    let made = api.request(&what, &headers, bytes).json();
    made["uri"].as_str().expect("a name").to_owned()
}

/// A run with a result for people, and the address of a link to its page.
fn report(scratch: &Scratch, api: &Api) -> (String, String) {
    let picture = upload(api, "pic.png", "image/png", "not really a picture");
    let drawing = upload(
        api,
        "drawing.svg",
        "image/svg+xml",
        "<svg onload='alert(1)'/>",
    );
    let flow = REPORT
        .replace("res://v1/ws/local/file/pic", &picture)
        .replace("res://v1/ws/local/file/drawing", &drawing);
    scratch.write("flows/report.edn", flow);
    let input = json!({"month": "<May>", "pin": "never to be seen"});
    scratch.run(&[
        "run",
        "flows/report.edn",
        "--input",
        &input.to_string(),
        "--json",
    ]);
    let runs = scratch.json_of(&["runs", "list", "--flow", "report"]);
    let run = runs["runs"][0]["id"].as_str().expect("a run").to_owned();
    let url = scratch.run(&["runs", "url", &run]).ok();
    let url = url.trim_end();
    let address = url.split_once(&api.address).expect("its address").1;
    (run, address.to_owned())
}

#[test]
fn a_result_is_shown_as_its_viewers_say() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (_, address) = report(&scratch, &api);
    let page = browse(&api, &address);
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(
        page.header("content-security-policy"),
        Some(
            "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
        )
    );
    for shown in [
        "Summary &lt;i&gt;",
        "<h3>May</h3>",
        "<strong>up</strong>",
        "<a href=\"https://b.test/x\" rel=\"noopener noreferrer nofollow\">b</a>",
        "[picture: pixel]",
        "<td><span class=\"text\">North</span></td>",
        "\\x1b[2Jx",
        "<a href=\"https://elsewhere.example/c.png\"",
        "alt=\"A &quot;picture&quot;\"",
        "<dt>kept</dt>",
        "&lt;May&gt;",
        "[secret]",
        "The whole result",
    ] {
        assert!(page.body.contains(shown), "no {shown} in {}", page.body);
    }
    for hidden in [
        "<script",
        "javascript:",
        "src=\"https:",
        "src=\"http:",
        "\u{1b}",
        "never to be seen",
    ] {
        assert!(!page.body.contains(hidden), "{hidden} in {}", page.body);
    }
    // Pictures of the project are loaded by links of their own; drawings, which may hold scripts, are stored.
    assert_eq!(page.body.matches("<img").count(), 1, "{}", page.body);
    let (_, source) = page.body.split_once("<img src=\"..").expect("a picture");
    let source = source
        .split('"')
        .next()
        .expect("an address")
        .replace("&amp;", "&");
    let loaded = api.request(&format!("GET {source}"), &[], "");
    assert_eq!(
        (loaded.status, &*loaded.body),
        (200, "not really a picture")
    );
}

#[test]
fn a_run_is_shown_to_holders_of_its_link_and_of_tokens() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (run, address) = report(&scratch, &api);
    let plain = format!("/runs/{run}");
    for (address, expected) in [
        (plain.clone(), "401 E1010"),
        (address.replace("signature=", "signature=0000"), "403 E1101"),
        (address.replace("expires=1", "expires=9"), "403 E1101"),
        (
            address.replace(&run, &run.replace(&run[..1], "x")),
            "403 E1101",
        ),
        (format!("{address}&more=1"), "400 E1016"),
    ] {
        let reply = api.request(&format!("GET {address}"), &[], "");
        assert_eq!(reply.problem(), expected, "{address}");
    }
    let post = api.request(&format!("POST {address}"), &[], "");
    assert_eq!(post.problem(), "405 E1015");
    assert_eq!(api.get(&plain).status, 200);
    let token = |scope: &str| {
        let args = ["tokens", "create", "--name", scope, "--scope", scope];
        scratch.run(&args).ok().trim_end().to_owned()
    };
    assert_eq!(api.get_as(&token("work"), &plain).problem(), "403 E1011");
    assert_eq!(api.get_as(&token("read"), &plain).status, 200);

    let made = api
        .post(&format!("/api/v1/runs/{run}/url"), &json!({"ttl": 60}))
        .json();
    let made = made["url"].as_str().expect("a link").to_owned();
    assert!(
        made.starts_with(&format!("http://{}/runs/{run}?expires=", api.address)),
        "{made}"
    );
    let wrong = api.post(&format!("/api/v1/runs/{run}/url"), &json!({"ttl": 5}));
    assert_eq!(wrong.problem(), "400 E1016");
    let remote = [
        "--server",
        &format!("http://{}", api.address),
        "runs",
        "url",
        &run,
    ];
    assert!(scratch.run(&remote).ok().contains("&signature="));
}

#[test]
fn the_page_of_a_run_names_its_waits_and_does_not_decide_them() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let link = Link::open(&scratch, &api, "plain", "plain", &json!({}));
    let url = scratch.run(&["runs", "url", &link.run]).ok();
    let address = url
        .trim_end()
        .split_once(&api.address)
        .expect("its address")
        .1
        .to_owned();
    let page = browse(&api, &address);
    assert!(
        page.body.contains("Go on?") && page.body.contains(&link.wait),
        "{page:?}"
    );
    assert!(
        !page.body.contains(&link.token) && !page.body.contains("<form"),
        "{page:?}"
    );

    scratch.write(
        "flows/large.edn",
        r#"{:slug :large :flow '(vec (range 20000))}"#,
    );
    scratch.run(&["run", "flows/large.edn", "--quiet"]);
    let runs = scratch.json_of(&["runs", "list", "--flow", "large"]);
    let run = runs["runs"][0]["id"].as_str().expect("a run").to_owned();
    let page = api.get(&format!("/runs/{run}"));
    assert!(
        page.body.contains("longer than this page") && page.body.contains("The whole result"),
        "{}",
        page.body.len()
    );
    assert!(page.body.len() < 1 << 20, "{}", page.body.len());
}
