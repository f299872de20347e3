//! What a flow may touch, as a person sees it: refused by default, allowed by `flowstone.edn` or an option.

use crate::program::Scratch;
use crate::server::{Answer, Server};

/// A flow that performs one step.
pub(super) fn flow(step: &str) -> String {
    format!("{{:slug :probe :flow '{step}}}")
}

pub(super) fn http(url: &str, more: &str) -> String {
    flow(&format!(
        "(:body (flow/step :http :ask {{:url {url:?} :retry {{:max-attempts 1}} {more}}}))"
    ))
}

fn folder(path: &str) -> String {
    flow(&format!(
        "(count (:entries (flow/step :files :list {{:op :list :source {{:type :dir :path {path:?}}}}})))"
    ))
}

fn repository(repo: &str) -> String {
    flow(&format!(
        "(flow/step :files :list {{:op :list :source {{:type :git :repo {repo:?}}}}})"
    ))
}

/// Each row: what is tried, the settings, the flow, and the row that is missing.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn every_port_is_refused_by_default() {
    let scratch = Scratch::new();
    let server = Server::start(|_, _| Answer::Json("{\"ok\": true}".to_owned()));
    let url = server.url("/");
    let host = url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    scratch.write(
        ".env",
        "CRM_TOKEN=s3cret-of-the-crm\nOPENAI_API_KEY=s3cret-of-openai\n",
    );
    scratch.write(".flowstone/secret.txt", "x");
    let bearer = |name: &str| format!(":auth {{:type :bearer :secret-ref {name}}}");
    let elsewhere = "{:connections {:crm {:base-url \"https://crm.example.com\" :auth {:type :bearer :secret-ref :crm-token}}}}";
    let local = format!("{{:allow {{:net [{host:?}]}}}}");
    let model = |base: &str| {
        flow(&format!(
            "(flow/step :llm :ask {{:provider :openai :base-url {base:?} :model \"m\" :prompt \"hi\" :retry {{:max-attempts 1}}}})"
        ))
    };
    let both = format!("{{:allow {{:net [{host:?}]}} {}", &elsewhere[1..]);
    let slot = format!(
        "{{:slug :probe :requires [{{:slot :own :type :http-api :base-url {url:?} :auth {{:type :bearer :secret-ref :crm-token}}}}]
          :flow '(flow/step :http :ask {{:connection :own :path \"/\" :retry {{:max-attempts 1}}}})}}"
    );
    let program = "{:connections {:notes {:backend :mcp :command [\"/bin/cat\"]}} :flows {:probe {:allow {:defaults false}}}}";
    let adapter = "{:slug :probe :mcp [{:id :f/all :connection :notes :transport :stdio}]
          :flow '(flow/step :mcp :ask {:op :list-tools :adapter :f/all})}";
    let rows = [
        (
            "a folder of the system",
            "{}",
            folder("/etc"),
            ":read [\"/etc\"]",
        ),
        ("the folder above", "{}", folder(".."), ":read"),
        (
            "Flowstone's own data",
            "{}",
            folder(".flowstone"),
            ":read [\".flowstone\"]",
        ),
        (
            "a process's environment",
            "{}",
            folder("/proc/self"),
            ":read [\"/proc/",
        ),
        (
            "a place outside of the project",
            "{}",
            flow(
                "(flow/step :files :out {:op :write-out :path \"../escaped.txt\" :content \"x\"})",
            ),
            ":write [",
        ),
        (
            "the file of secrets",
            "{}",
            flow(
                "(flow/step :files :out {:op :write-out :path \".env\" :content \"x\" :overwrite? true})",
            ),
            ":write [\".env\"]",
        ),
        (
            "a server of this machine",
            "{}",
            http(&url, ""),
            ":net [\"127.0.0.1",
        ),
        (
            "it by name",
            "{}",
            http(&url.replace("127.0.0.1", "localhost"), ""),
            ":net [\"localhost",
        ),
        (
            "a secret of another host",
            &both,
            http(&url, &bearer(":crm-token")),
            ":secrets {:crm-token [\"127.0.0.1",
        ),
        (
            "a variable as a secret",
            &local,
            http(&url, &bearer("\"HOME\"")),
            ":secrets {:HOME [\"127.0.0.1",
        ),
        (
            "a slot with its own address",
            &both,
            slot,
            ":secrets {:crm-token [\"127.0.0.1",
        ),
        (
            "a model's key",
            &local,
            model(&url),
            ":secrets {:OPENAI_API_KEY [\"127.0.0.1",
        ),
        (
            "a proxy of the flow",
            "{}",
            http(
                "http://192.0.2.1/",
                &format!(":client-opts {{:proxy {:?}}}", url.trim_end_matches('/')),
            ),
            ":net [\"127.0.0.1",
        ),
        (
            "a repository of this machine",
            "{}",
            repository(&format!("{url}x.git")),
            ":net [\"127.0.0.1",
        ),
        (
            "a repository over SSH",
            "{}",
            repository("git@127.0.0.1:x.git"),
            ":net [\"127.0.0.1:22\"]",
        ),
        (
            "a repository outside of the project",
            "{}",
            repository("/etc"),
            ":read [\"/etc\"]",
        ),
        (
            "a program",
            program,
            adapter.to_owned(),
            ":programs [\"/bin/cat\"]",
        ),
    ];
    for (what, settings, text, missing) in rows {
        scratch.write("flowstone.edn", settings);
        scratch.write("probe.edn", &text);
        let ran = scratch.run(&["run", "probe.edn", "--new"]);
        assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
        assert!(ran.err.contains("E0960"), "{what}: {}", ran.err);
        assert!(
            ran.err.contains(&format!(":allow {{{missing}")),
            "{what}: {}",
            ran.err
        );
        assert!(!ran.err.contains("s3cret"), "{what}: {}", ran.err);
    }
    assert_eq!(server.requests().len(), 0, "nothing was sent");
    assert!(!scratch.path().join("../escaped.txt").exists());
}

/// What the error says to add is enough, in the file as on the command line.
#[test]
fn the_line_and_the_option_of_the_error_allow_it() {
    let scratch = Scratch::new();
    let server = Server::start(|_, _| Answer::Json("{\"ok\": true}".to_owned()));
    scratch.write(".env", "CRM_TOKEN=s3cret-of-the-crm\n");
    let text = http(
        &server.url("/"),
        ":auth {:type :bearer :secret-ref :crm-token}",
    );
    scratch.write("probe.edn", &text);
    let mut options: Vec<String> = Vec::new();
    for _ in 0..2 {
        let ran = run_with(&scratch, &options);
        let (_, flag) = ran.err.split_once("for one command: ").expect("an option");
        let flag = flag.lines().next().unwrap_or_default();
        options.extend(flag.split(' ').map(str::to_owned));
    }
    assert!(
        run_with(&scratch, &options).ok().contains("ok"),
        "{options:?}"
    );
    let mut rows = Vec::new();
    for _ in 0..2 {
        scratch.write(
            "flowstone.edn",
            format!("{{:allow {{{}}}}}", rows.join(" ")),
        );
        let ran = run_with(&scratch, &[]);
        let (_, line) = ran.err.split_once(":allow {").expect("a line");
        let line = line.lines().next().unwrap_or_default();
        rows.push(
            line.strip_suffix('}')
                .expect("the end of the row")
                .to_owned(),
        );
    }
    scratch.write(
        "flowstone.edn",
        format!("{{:allow {{{}}}}}", rows.join(" ")),
    );
    assert!(run_with(&scratch, &[]).ok().contains("ok"), "{rows:?}");
}

fn run_with(scratch: &Scratch, options: &[String]) -> crate::program::Ran {
    let args = ["run", "probe.edn", "--new"].into_iter();
    let args: Vec<&str> = args.chain(options.iter().map(String::as_str)).collect();
    scratch.run(&args)
}

#[test]
fn a_flow_writes_where_it_may() {
    let scratch = Scratch::new();
    scratch.write("project/flowstone.edn", "{:allow {:write [\"../out\"]}}");
    std::fs::create_dir(scratch.path().join("out")).expect("a folder");
    let write = |path: &str| {
        flow(&format!(
            "(flow/step :files :out {{:op :write-out :path {path:?} :content \"x\"}})"
        ))
    };
    scratch.write("project/in.edn", write("../out/a/b.txt"));
    scratch.write("project/above.edn", write("../other/b.txt"));
    scratch.write("project/back.edn", write("../out/../b.txt"));
    let run = |file: &str| {
        let mut command = scratch.command(&["run", file]);
        command.current_dir(scratch.path().join("project"));
        crate::program::Ran::to_the_end(&mut command)
    };
    run("in.edn").ok();
    assert_eq!(scratch.read("out/a/b.txt"), "x");
    for file in ["above.edn", "back.edn"] {
        let ran = run(file);
        assert!(ran.err.contains("E0960"), "{file}: {}", ran.err);
    }
    assert!(!scratch.path().join("b.txt").exists() && !scratch.path().join("other").exists());
}

#[test]
fn the_options_are_checked_as_they_are_typed() {
    let scratch = Scratch::new();
    scratch.write("probe.edn", flow("1"));
    let refused = |option: &str, value: &str| {
        let ran = scratch.run(&["run", "probe.edn", option, value]);
        assert_eq!(ran.code, Some(2), "{option} {value}: {ran:?}");
        ran.err
    };
    assert!(refused("--allow-net", "http://a").contains("expected a host"));
    assert!(refused("--allow-secret", "token").contains("NAME=HOST"));
    assert!(refused("--allow-secret", "token=a b").contains("not a host"));
    scratch.write("flowstone.edn", "{:limits {}\n :allow {:raed [\"a\"]}}");
    let ran = scratch.run(&["run", "probe.edn"]);
    let expected = "`:allow` has no key `:raed`; did you mean `:read`?";
    assert!(ran.err.contains(expected), "{}", ran.err);
    scratch.write("flowstone.edn", "{:flows {:probe {:alow {}}}}");
    let ran = scratch.run(&["run", "probe.edn"]);
    assert!(
        ran.err.contains("`:flows :probe` has no key `:alow`"),
        "{}",
        ran.err
    );
}

/// A flow can only narrow what the project allows.
#[test]
fn what_a_flow_says_of_addresses_allows_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(|_, _| Answer::Json("{\"ok\": true}".to_owned()));
    let url = server.url("/");
    let slot = |more: &str| {
        format!(
            "{{:slug :probe :requires [{{:slot :crm :type :http-api :base-url {url:?} {more}}}]
              :flow '(flow/step :http :ask {{:connection :crm :url {url:?} :retry {{:max-attempts 1}}}})}}"
        )
    };
    scratch.write("probe.edn", slot(":allow-hosts [\"127.0.0.0/8\"]"));
    let ran = scratch.run(&["run", "probe.edn", "--new"]);
    assert!(ran.err.contains("E0960"), "{}", ran.err);
    assert_eq!(server.requests().len(), 0);
    scratch
        .run(&["run", "probe.edn", "--new", "--allow-net", "127.0.0.1"])
        .ok();
    let other =
        slot(":allow-hosts [\"files.example.com\"]").replacen(&url, "https://crm.example.com", 1);
    scratch.write("probe.edn", other);
    let ran = scratch.run(&["run", "probe.edn", "--new", "--allow-net", "127.0.0.1"]);
    assert!(
        ran.err.contains("E0731") && ran.err.contains(":allow-hosts"),
        "{}",
        ran.err
    );
    assert_eq!(server.requests().len(), 1);
}

/// A flow whose file is outside of the project starts with nothing, until a person trusts it.
#[test]
fn a_flow_from_elsewhere_is_trusted_first() {
    let scratch = Scratch::new();
    scratch.write("project/flowstone.edn", "{}");
    scratch.write("project/notes.md", "x");
    let file = "../elsewhere/count.edn";
    let count = |id: &str| {
        format!(
            "{{:slug :count :flow '(count (:entries (flow/step :files :{id} {{:op :list :source {{:type :dir :path \".\"}}}})))}}"
        )
    };
    scratch.write("elsewhere/count.edn", count("one"));
    let run = |args: &[&str]| {
        let mut command = scratch.command(args);
        command.current_dir(scratch.path().join("project"));
        crate::program::Ran::to_the_end(&mut command)
    };
    let refused = run(&["run", file, "--new"]);
    assert!(refused.err.contains("E0960"), "{}", refused.err);
    run(&["run", file, "--new", "--allow-read", "."]).ok();
    // Without a terminal nobody agrees.
    assert_eq!(run(&["flows", "trust", file]).code, Some(1));
    let trusted = run(&["flows", "trust", file, "--yes"]);
    assert!(trusted.err.contains("read ."), "{}", trusted.err);
    run(&["run", file, "--new"]).ok();
    assert!(
        run(&["flows", "trusted"])
            .ok()
            .contains("count\t{:read [\".\"]}")
    );
    // One that needs more asks again.
    scratch.write(
        "elsewhere/count.edn",
        count("two").replace(":path \".\"", ":path \"/etc\""),
    );
    let refused = run(&["run", file, "--new"]);
    assert!(refused.err.contains("E0960"), "{}", refused.err);
    let again = run(&["flows", "trust", file]);
    assert!(
        again.err.contains("has changed since") && again.err.contains("  read /etc  (new)"),
        "{}",
        again.err
    );
    run(&["flows", "untrust", "count"]).ok();
    scratch.write("elsewhere/count.edn", count("one"));
    assert!(run(&["run", file, "--new"]).err.contains("E0960"));
    assert_eq!(run(&["flows", "untrust", "count"]).code, Some(1));
}

/// What is written out in a flow is known before it runs.
#[test]
fn check_says_what_a_flow_needs() {
    let scratch = Scratch::new();
    scratch.write(
        "probe.edn",
        flow(
            "(let [there \"x\"]
               (flow/step :files :a {:op :list :source {:type :dir :path \"/etc\"}})
               (flow/step :files :b {:op :list :source {:type :dir :path (str there)}})
               (flow/step :files :c {:op :write-out :path \"out.txt\" :content \"x\"})
               (flow/step :http :d {:url \"http://127.0.0.1:8080/\" :auth {:type :bearer :secret-ref :crm-token}}))",
        ),
    );
    let ran = scratch.run(&["check", "probe.edn"]);
    for line in [
        "the flow `probe` needs:",
        "  read /etc",
        "  read: decided at run time",
        "  write out.txt",
        "  connect to 127.0.0.1:8080",
        "  send the secret `crm-token` to 127.0.0.1:8080",
        "missing in flowstone.edn:",
        "  :allow {:read [\"/etc\"] :net [\"127.0.0.1:8080\"] :secrets {:crm-token [\"127.0.0.1:8080\"]}}",
    ] {
        assert!(ran.err.lines().any(|it| it == line), "{line}\n{}", ran.err);
    }
    assert!(!ran.err.contains(":write"), "{}", ran.err);
    // What is missing of several flows can be pasted as it is.
    scratch.write(
        "other.edn",
        flow("(flow/step :files :a {:op :list :source {:type :dir :path \"/usr\"}})")
            .replacen(":probe", ":other", 1),
    );
    let both = scratch.run(&["check", "probe.edn", "other.edn"]);
    let pasted = both.err.lines().skip_while(|it| !it.starts_with("missing"));
    let pasted: Vec<&str> = pasted
        .skip(1)
        .take_while(|it| it.starts_with(' '))
        .collect();
    assert!(!pasted.is_empty(), "{both:?}");
    scratch.write("flowstone.edn", format!("{{{}}}", pasted.join("\n")));
    let granted = scratch.run(&["check", "probe.edn", "other.edn"]);
    assert!(!granted.err.contains("missing"), "{granted:?}");
    assert_eq!(granted.code, Some(0), "{granted:?}");
    scratch.write("flowstone.edn", "{}");
    let json = scratch.json_of(&["check", "probe.edn"]);
    assert_eq!(json["needs"][0]["needs"].as_array().map(Vec::len), Some(5));
    assert_eq!(
        json["needs"][0]["missing"].as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn a_tree_is_not_a_way_around_protected_files() {
    let scratch = Scratch::new();
    let settings = "{:flows {:other {:allow {:read [\"/tmp\"]}}}}";
    scratch.write("flowstone.edn", settings);
    for path in [".env", ".env.local", "sub/.env"] {
        scratch.write(path, "TOKEN=s3cret-of-the-crm");
    }
    let all = "{:type :dir :path \".\" :ignored? true}";
    let listed = flow(&format!(
        "(mapv :path (:entries (flow/step :files :l {{:op :list :source {all}}})))"
    ));
    scratch.write("list.edn", listed);
    let paths = scratch.run(&["run", "list.edn"]).ok();
    assert!(!paths.contains(".env"), "{paths}");
    for change in [
        "{:op :write-file :changeset d :path \"flowstone.edn\" :content \"{:allow {:read [\\\"/\\\"]}}\"}",
        "{:op :write-file :changeset d :path \".env\" :content \"A=b\"}",
        "{:op :delete-file :changeset d :path \"flowstone.edn\"}",
    ] {
        let body = format!(
            "(let [d (flow/step :files :d {{:op :init-changeset :source {all}}})]
               (flow/step :files :w {change})
               (flow/step :files :m {{:op :materialize :changeset d :to \".\" :overwrite? true}}))"
        );
        scratch.write("write.edn", flow(&body));
        let ran = scratch.run(&["run", "write.edn", "--new"]);
        assert!(ran.err.contains("E0960"), "{change}: {ran:?}");
        assert_eq!(scratch.read("flowstone.edn"), settings, "{change}");
        assert_eq!(scratch.read(".env"), "TOKEN=s3cret-of-the-crm", "{change}");
    }
    let direct = "{:op :write-out :path \"flowstone.edn\" :overwrite? true :content \"{}\"}";
    scratch.write(
        "direct.edn",
        flow(&format!("(flow/step :files :w {direct})")),
    );
    let ran = scratch.run(&["run", "direct.edn"]);
    assert!(ran.err.contains("E0960"), "{ran:?}");
}

#[test]
fn settings_that_hold_for_nothing_are_named() {
    let scratch = Scratch::new();
    scratch.write("report.edn", "{:slug :report :flow '1}");
    let refused = |settings: &str| {
        scratch.write("flowstone.edn", settings);
        let ran = scratch.run(&["run", "report.edn", "--new"]);
        assert_eq!(ran.code, Some(1), "{settings}: {ran:?}");
        assert!(!ran.err.contains(":durability"), "{settings}: {}", ran.err);
        ran.err
    };
    for (settings, expected) in [
        (
            "{:allow {:read [\"\"]}}",
            "`:allow :read` contains an empty string; it takes paths such as \"data\"; the project's folder is \".\"",
        ),
        (
            "{:allow {:net [\" \"]}}",
            "`:allow :net` contains an empty string; it takes hosts such as \"api.internal:8443\"",
        ),
        (
            "{:allow {:programs [nil]}}",
            "`:allow :programs` contains nil; it takes programs such as \"node\"",
        ),
        (
            "{:allow {:reed [\"a\"]}}",
            "`:allow` has no key `:reed`; did you mean `:read`?",
        ),
        (
            "{:allow {:everything [\"a\"]}}",
            "`:allow` has no key `:everything`; it takes `:defaults`, `:env`",
        ),
        (
            "{:limits {:memry \"1GB\"}}",
            "`:limits` has no key `:memry`; did you mean `:memory`?",
        ),
    ] {
        let err = refused(settings);
        assert!(err.contains(expected), "{settings}: {err}");
        assert_eq!(err.matches("E0751").count(), 1, "{err}");
    }
    scratch.write(
        "flowstone.edn",
        "{:flows {:raport {:allow {:read [\"/etc\"]}}}}",
    );
    let ran = scratch.run(&["check", "report.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for expected in [
        "E0963",
        "`:flows` of flowstone.edn has permissions for `raport`, and no flow has this slug",
        "did you mean `report`?",
    ] {
        assert!(ran.err.contains(expected), "{expected}\n{}", ran.err);
    }
}

/// The permission is checked before the form of a secret, so that a refused flow learns nothing about the secret.
#[test]
fn a_secret_is_judged_after_the_permission() {
    let scratch = Scratch::new();
    let server = Server::start(|_, _| Answer::Json("{\"ok\": true}".to_owned()));
    scratch.write(".env", "CRM_TOKEN=abc\n");
    let text = http(
        &server.url("/"),
        ":auth {:type :bearer :secret-ref :crm-token}",
    );
    scratch.write("probe.edn", text);
    let net = ["run", "probe.edn", "--new", "--allow-net", "127.0.0.1"];
    let ran = scratch.run(&net);
    assert!(
        ran.err.contains("E0960") && !ran.err.contains("E0980"),
        "{}",
        ran.err
    );
    let both = [&net[..], &["--allow-secret", "crm-token=127.0.0.1"]].concat();
    let ran = scratch.run(&both);
    assert!(ran.err.contains("E0980"), "{}", ran.err);
}

/// What messages and the tools of agents need is known before the flow runs, as requests are.
#[test]
fn check_knows_what_messages_and_servers_of_tools_need() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:connections {:notes {:backend :mcp :command [\"node\" \"server.js\"]}}}",
    );
    scratch.write(
        "probe.edn",
        "{:slug :probe
          :mcp [{:id :notes/all :connection :notes :transport :stdio}
                {:id :far/all :connection :far}
                {:id :unused/all :connection :unused}]
          :requires [{:slot :chat :type :http-api :base-url \"http://127.0.0.1:8081\"}
                     {:slot :far :type :http-api :backend :mcp :base-url \"http://127.0.0.1:8082\"}
                     {:slot :unused :type :http-api :backend :mcp :base-url \"http://127.0.0.1:8083\"}]
          :templates [{:id :done :type :notification :channels {:http {:connection :chat :path \"/m\"}}}]
          :flow '(do (flow/step :notify :tell {:template :done})
                     (flow/step :wait :ask {:notify {:channels {:http {:url \"http://127.0.0.1:8084/\"}}} :timeout \"1h\"})
                     (flow/step :mcp :list {:adapter :notes/all :op :list-tools})
                     (flow/step :agent :work {:provider :scripted :objective \"x\" :tools {:mcp [:far/all]}}))}",
    );
    let json = scratch.json_of(&["check", "probe.edn"]);
    let needs = json["needs"][0]["needs"].to_string();
    for expected in [
        "127.0.0.1:8081",
        "127.0.0.1:8082",
        "127.0.0.1:8084",
        "start the program node",
    ] {
        assert!(needs.contains(expected), "{expected}: {needs}");
    }
    assert!(!needs.contains("8083"), "{needs}");
}

/// One mistake is one error.
#[test]
fn a_misspelt_limit_of_a_flow_is_one_error() {
    let scratch = Scratch::new();
    scratch.write(
        "probe.edn",
        "{:slug :probe :limits {:memry \"1GB\"} :flow '1}",
    );
    let json = scratch.json_of(&["check", "probe.edn"]);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(1), "{json}");
}

/// A fifo that nobody writes to is not waited for.
#[cfg(unix)]
#[test]
fn an_input_is_read_from_files_only() {
    let scratch = Scratch::new();
    scratch.write("probe.edn", flow("(flow/input)"));
    let made = std::process::Command::new("mkfifo")
        .arg(scratch.path().join("fifo"))
        .status();
    assert!(made.expect("mkfifo is there").success());
    for file in ["fifo", "/dev/zero", "/dev/tty"] {
        for args in [
            vec!["run", "probe.edn", "--input", &format!("@{file}")],
            vec!["resources", "upload", file],
            vec!["runs", "import", file],
        ] {
            let ran = scratch.run(&args);
            assert!(matches!(ran.code, Some(1 | 2)), "{args:?}: {ran:?}");
            assert!(ran.err.contains("E0905"), "{args:?}: {ran:?}");
        }
    }
}
