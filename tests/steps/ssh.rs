//! `:ssh` without a machine: what is refused before `ssh` is started. A real server is in `tests/servers`.

use crate::net::contains;
use crate::project::Project;

fn eval(connection: &str, step: &str) -> String {
    let settings = format!("{{:connections {{:web {connection}}}}}");
    let project = Project::with_secrets(&settings, &[("deploy-key", "not-a-key-1234")]);
    let body = format!("(flow/step :ssh :it {{:connection :web {step}}})");
    let found = match project.errors(&format!("{{:slug :a :flow '{body}}}")) {
        errors if errors.is_empty() => project.eval(&body),
        errors => errors,
    };
    let kept = project.everything_kept();
    assert!(!kept.contains("not-a-key-1234"), "the key shows: {kept}");
    found
}

#[test]
fn connections_are_checked() {
    let cases = [
        ("{}", "E1475 the connection `:web` has no `:base-url`"),
        (
            "{:base-url \"https://web-1\"}",
            "E1475 the address `https://web-1` is not one of ssh",
        ),
        (
            "{:base-url \"ssh://web-1\"}",
            "E1475 the address `ssh://web-1` needs a user",
        ),
        (
            "{:base-url \"ssh://ada:pw@web-1\"}",
            "E1475 the address `ssh://web-1` holds a password itself",
        ),
        ("{:base-url \"ssh://-oProxyCommand=x@web-1\"}", "E1475"),
        ("{:base-url \"ssh://ada@-oProxyCommand=x\"}", "E1475"),
        ("{:base-url \"ssh://ada@web;id\"}", "E1475"),
        (
            "{:base-url \"ssh://ada@web-1/srv\"}",
            "E1475 the address `ssh://web-1/srv` has more",
        ),
        (
            "{:base-url \"ssh://ada@127.0.0.1\" :auth {:type :bearer :secret-ref :deploy-key}}",
            "E1475 a machine is logged in to with a key",
        ),
        (
            "{:base-url \"ssh://ada@127.0.0.1\" :known-hosts 7}",
            "E1475 `:known-hosts` is the path of a file",
        ),
        (
            "{:base-url \"ssh://ada@127.0.0.1\" :known-hosts \"/etc/passwd\"}",
            "E0960",
        ),
        (
            "{:base-url \"ssh://ada@127.0.0.1\" :auth {:type :private-key :secret-ref :nothing}}",
            "E0752",
        ),
        ("{:base-url \"ssh://ada@169.254.169.254\"}", "E0731"),
    ];
    for (connection, expected) in cases {
        contains(&eval(connection, ":command \"id\""), expected);
    }
}

#[test]
fn commands_are_checked() {
    let web = "{:base-url \"ssh://ada@127.0.0.1:1\"}";
    let cases = [
        (":command \"\"", "E1475 `:command` is empty"),
        (
            ":command \"a\\u0000b\"",
            "E1475 `:command` has the character NUL",
        ),
        (":command \"id\" :workdir \"\"", "E1475 `:workdir` is empty"),
        (":command \"id\" :env {\"A B\" 1}", "E1475 `:env` has `A B`"),
        (":command \"id\" :env {\"A=1;id;B\" 1}", "E1475"),
        (":command \"id\" :env {:1A 1}", "E1475"),
        (
            ":command \"id\" :env {:A {}}",
            "E1475 `:env` has a map under `A`",
        ),
        (
            ":command \"id\" :stdin 7",
            "E0780 `:stdin` takes text or bytes",
        ),
        (
            ":command \"id\" :ok-exit-codes [256]",
            "`:ok-exit-codes 0` of a `:ssh` step must be an integer from 0 to 255",
        ),
        (":command \"id\" :ok-exit-codes :some", "E0"),
    ];
    for (step, expected) in cases {
        contains(&eval(web, step), expected);
    }
    let found = Project::new().check(
        "{:slug :a :flow '(flow/step :ssh :it {:connection :web :command \"\" :env {:a-b 1}})}",
    );
    contains(&found, "E1475 `:command` is empty");
    contains(&found, "E1475 `:env` has `a-b`");
}

#[test]
fn a_flow_that_describes_its_own_machine_may_not_start_ssh() {
    let flow = "{:slug :a :requires [{:slot :own :type :ssh :base-url \"ssh://ada@127.0.0.1:1\"}]
      :flow '(flow/step :ssh :it {:connection :own :command \"id\"})}";
    contains(&Project::new().eval(flow), "E0960");
}
