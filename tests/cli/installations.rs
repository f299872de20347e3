//! Installations: what their runs use, what each side sees, upgrades, and packages.

use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::{Ran, Scratch};

pub(super) fn ok(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran.out.trim().to_owned()
}

fn refused(ran: &Ran, code: &str) -> String {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(code), "{}", ran.err);
    ran.err.clone()
}

/// A flow with a slot and a setup value.
fn needy(more: &str, body: &str) -> String {
    format!(
        "{{:slug :report\n :concurrency {{:type :singleton :on-new-version :coexist}}\n \
         :requires [{{:slot :crm :type :http-api :base-url \"https://crm.example.com\"}}\n            \
         {{:kind :form :fields [{{:key :region :field-type :text :required true}}]}}{more}]\n \
         :flow '{body}}}\n"
    )
}

const REGION: &str = "(:region (:activation (flow/input)))";

const SETTINGS: &str = r#"{:connections {:own {:base-url "https://crm.example.com"}
               :acme-crm {:base-url "https://crm.example.com" :workspace :acme}}
 :bindings {:crm {:conn :own}}
 :setup {:report {:region "the author's"}}}"#;

fn released(text: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    release(&scratch, text);
    scratch
}

fn release(scratch: &Scratch, text: &str) {
    scratch.write("flows/report.edn", text);
    ok(&scratch.run(&["flows", "push", "report", "--force"]));
    ok(&scratch.run(&["flows", "release", "report"]));
}

#[test]
fn an_installation_runs_with_its_own_connections_and_values() {
    let scratch = released(&needy("", REGION));
    ok(&scratch.run(&[
        "flows",
        "install",
        "report",
        "--workspace",
        "acme",
        "--as",
        "main",
    ]));
    let install = [
        "flows",
        "install",
        "report",
        "--workspace",
        "acme",
        "--as",
        "main",
    ];
    // The same command once more, as after a crash, finds what it made.
    assert_eq!(
        ok(&scratch.run(&install)),
        "report@1 is installed as acme/main"
    );
    refused(
        &scratch.run(&["flows", "install", "report", "--as", "a/b"]),
        "E1442",
    );
    let run = ["run", "report", "--installation", "acme/main"];
    // What the project binds and sets is the author's.
    let words = refused(&scratch.run(&run), "E1443");
    assert!(!words.contains("the author's"), "{words}");
    let configure =
        |more: &[&str]| scratch.run(&[&["flows", "configure", "acme/main"], more].concat());
    refused(&configure(&["--check"]), "E1443");
    refused(&configure(&["--set", "crm.conn=own"]), "E1447");
    refused(&configure(&["--set", "cmr.conn=acme-crm"]), "E1446");
    refused(&configure(&["--setup", "{:regoin 1}"]), "E1446");
    ok(&configure(&["--setup", "{:region \"EU\"}"]));
    refused(&scratch.run(&run), "E1444");
    ok(&configure(&[
        "--set",
        "crm.conn=acme-crm",
        "--setup",
        "{:region nil}",
    ]));
    refused(&scratch.run(&run), "E1445");
    let file = "{:profile {:autoUpgrade true} :bindings {:crm {:conn \"acme-crm\"}} :activation {:region \"US\"}}";
    scratch.write("bindings.edn", file);
    let shown = ok(&configure(&["--file", "bindings.edn"]));
    assert_eq!(shown, "acme/main ready");
    refused(&scratch.run(&install), "E1441");
    ok(&configure(&["--check"]));
    assert_eq!(ok(&scratch.run(&run)), "US");
    // The author's own runs have the author's.
    assert_eq!(ok(&scratch.run(&["run", "report"])), "the author's");
    refused(
        &scratch.run(&["run", "other", "--installation", "acme/main"]),
        "E1455",
    );
    refused(
        &scratch.run(&["run", "report", "--installation", "main"]),
        "E1440",
    );
    let listed = scratch.json_of(&["flows", "installations"]);
    let only = &listed["installations"][0];
    assert_eq!(only["status"], "ready", "{listed}");
    assert_eq!(only["flow"], "report@acme/main");
    assert_eq!(only["autoUpgrade"], true);
    ok(&scratch.run(&["flows", "uninstall", "acme/main"]));
    refused(&scratch.run(&run), "E1440");
}

#[test]
fn an_author_provides_a_connection_that_nobody_else_binds() {
    let more = "\n {:slot :mail :type :http-api :provided-by :author}";
    let scratch = released(&needy(more, REGION));
    ok(&scratch.run(&["flows", "install", "report"]));
    let give = [
        "flows",
        "configure",
        "report",
        "--set",
        "crm.conn=own",
        "--setup",
        "{:region \"EU\"}",
    ];
    ok(&scratch.run(&give));
    let run = ["run", "report", "--installation", "report"];
    refused(&scratch.run(&run), "E1448");
    refused(
        &scratch.run(&["flows", "configure", "report", "--set", "mail.conn=own"]),
        "E1448",
    );
    let with_mail = SETTINGS.replace(":bindings {", ":bindings {:mail {:conn :own} ");
    scratch.write("flowstone.edn", with_mail);
    ok(&scratch.run(&run));
}

#[test]
fn secret_setup_values_are_neither_stored_in_the_clear_nor_shown() {
    let text = needy("", "(count (:token (:activation (flow/input))))").replace(
        ":key :region :field-type :text",
        ":key :token :field-type :secret",
    );
    let scratch = released(&text);
    ok(&scratch.run(&["flows", "install", "report"]));
    let secret = "tk-5f0e9c7a1b3d";
    let setup = format!("{{:token \"{secret}\"}}");
    let give = [
        "flows",
        "configure",
        "report",
        "--set",
        "crm.conn=own",
        "--setup",
        &setup,
    ];
    let told = scratch.run(&give);
    assert!(
        !format!("{}{}", told.out, told.err).contains(secret),
        "{told:?}"
    );
    ok(&told);
    let run = ["run", "report", "--installation", "report", "--new"];
    assert_eq!(ok(&scratch.run(&run)), secret.len().to_string());
    ok(&scratch.run(&["key", "rotate"]));
    assert_eq!(ok(&scratch.run(&run)), secret.len().to_string());
    for file in std::fs::read_dir(scratch.path().join(".flowstone")).expect("a folder") {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let is_there = bytes
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!is_there, "{}", path.display());
    }
}

const COUNTING: &str = r#"{:slug :count
 :concurrency {:type :singleton :on-new-version :coexist}
 :flow '(let [kept (flow/step :kv :up {:operation :increment :key "seen"})
              rows (flow/step :table :add {:op :insert :table "rows" :rows [{:n (:value kept)}]})
              all (flow/step :table :all {:op :query :table "rows"})
              keys (flow/step :kv :keys {:operation :list-keys})]
          [(:value kept) (count (:rows all)) (:keys keys)])}"#;

#[test]
fn each_installation_has_tables_and_keys_of_its_own() {
    let scratch = Scratch::new();
    scratch.write("flows/count.edn", COUNTING);
    ok(&scratch.run(&["flows", "push", "count"]));
    ok(&scratch.run(&["flows", "release", "count"]));
    for name in ["one", "two"] {
        ok(&scratch.run(&["flows", "install", "count", "--as", name]));
    }
    let run = |name: &str| {
        ok(&scratch.run(&["run", "count", "--installation", name, "--new", "--quiet"]))
    };
    assert_eq!(run("one"), "[1 1 [\"seen\"]]");
    assert_eq!(run("one"), "[2 2 [\"seen\"]]");
    assert_eq!(run("two"), "[1 1 [\"seen\"]]");
    let own = scratch.run(&["run", "count", "--new", "--quiet"]);
    assert_eq!(ok(&own), "[1 1 [\"seen\"]]");
    // Neither the project nor another installation reaches them by their stored names.
    for (body, code) in [
        (
            "(flow/step :table :a {:op :query :table \"installation/default/one/rows\"})",
            "E0620",
        ),
        (
            "(flow/step :kv :a {:operation :increment :key \"installation:default:one:seen\"})",
            "E1457",
        ),
    ] {
        let text = format!(
            "{{:slug :spy\n :concurrency {{:type :singleton :on-new-version :coexist}}\n :flow '{body}}}"
        );
        scratch.write("flows/spy.edn", &text);
        refused(&scratch.run(&["run", "flows/spy.edn", "--new"]), code);
        ok(&scratch.run(&["flows", "push", "spy", "--force"]));
        ok(&scratch.run(&["flows", "release", "spy"]));
        let name = code.to_lowercase();
        ok(&scratch.run(&["flows", "install", "spy", "--as", &name]));
        let ran = scratch.run(&["run", "spy", "--installation", &name, "--new", "--quiet"]);
        match code {
            "E0620" => drop(refused(&ran, code)),
            // It has a key of this name of its own.
            _ => assert!(ok(&ran).contains(":value 1"), "{ran:?}"),
        }
    }
    let get =
        "(:value (flow/step :kv :a {:operation :get :key \"installation:default:one:seen\"}))";
    scratch.write(
        "flows/spy.edn",
        format!("{{:slug :spy\n :concurrency {{:type :singleton :on-new-version :coexist}}\n :flow '{get}}}"),
    );
    assert_eq!(ok(&scratch.run(&["run", "flows/spy.edn", "--new"])), "nil");
    assert_eq!(run("one"), "[3 3 [\"seen\"]]");
}

#[test]
fn an_installed_flow_reaches_no_files_of_the_project_and_no_workspace() {
    let scratch = Scratch::new();
    scratch.write("secret.txt", "the author's");
    for (slug, body, code) in [
        (
            "peek",
            "(flow/step :files :a {:op :resolve-source :source {:type :local :path \"..\"}})",
            "E0960",
        ),
        (
            "lists",
            "(flow/step :workspace :a {:op :runs/list})",
            "E1456",
        ),
    ] {
        let text = format!(
            "{{:slug :{slug}\n :concurrency {{:type :singleton :on-new-version :coexist}}\n :flow '{body}}}"
        );
        scratch.write(&format!("flows/{slug}.edn"), text);
        ok(&scratch.run(&["flows", "push", slug]));
        ok(&scratch.run(&["flows", "release", slug]));
        ok(&scratch.run(&["flows", "install", slug]));
        let ran = scratch.run(&["run", slug, "--installation", slug]);
        let words = refused(&ran, "E");
        assert!(words.contains(code) || code == "E0960", "{words}");
    }
}

#[test]
fn an_upgrade_stops_where_needs_grew() {
    let scratch = released(&needy("", "1"));
    ok(&scratch.run(&["flows", "install", "report"]));
    let give = [
        "flows",
        "configure",
        "report",
        "--set",
        "crm.conn=own",
        "--setup",
        "{:region \"EU\"}",
    ];
    ok(&scratch.run(&give));
    let run = || {
        ok(&scratch.run(&[
            "run",
            "report",
            "--installation",
            "report",
            "--new",
            "--quiet",
        ]))
    };
    let shown = || scratch.json_of(&["flows", "installations"])["installations"][0].clone();
    // Pinned: a release changes nothing.
    release(&scratch, &needy("", "2"));
    assert_eq!(run(), "1");
    assert_eq!(
        shown()["upgrade"],
        json!({"version": 2, "status": "ready", "needs": []})
    );
    ok(&scratch.run(&["flows", "configure", "report", "--auto-upgrade", "on"]));
    assert_eq!(run(), "2");
    assert_eq!(shown()["upgrade"], Value::Null);
    // One more slot: it keeps its version until somebody agrees.
    release(&scratch, &needy("\n {:slot :mail :type :http-api}", "3"));
    assert_eq!(run(), "2");
    let upgrade = shown()["upgrade"].clone();
    assert_eq!(upgrade["status"], "needs_input", "{upgrade}");
    assert_eq!(
        upgrade["needs"],
        json!(["connection mail (:type :http-api)"])
    );
    ok(&scratch.run(&["flows", "configure", "report", "--upgrade"]));
    refused(
        &scratch.run(&["run", "report", "--installation", "report", "--new"]),
        "E1444",
    );
    ok(&scratch.run(&["flows", "configure", "report", "--set", "mail.conn=own"]));
    assert_eq!(run(), "3");
    // Another address of a slot is something else to agree to.
    let moved =
        needy("\n {:slot :mail :type :http-api}", "4").replace("crm.example", "evil.example");
    release(&scratch, &moved);
    assert_eq!(run(), "3");
    // An upgrade that needs less does not stop, and an archived flow still runs where it is installed.
    release(&scratch, &needy("", "5"));
    assert_eq!(run(), "5");
    ok(&scratch.run(&["flows", "archive", "report"]));
    assert_eq!(run(), "5");
}

#[test]
fn a_package_has_the_version_and_nothing_else() {
    let scratch = released(&needy("", REGION));
    scratch.write(".env", "ACME_KEY=tk-5f0e9c7a1b3d\n");
    let packed = scratch.json_of(&["flows", "pack", "report", "--to", "a.tar.gz"]);
    let digest = packed["sha256"].as_str().expect("a digest").to_owned();
    ok(&scratch.run(&["flows", "pack", "report@1", "--to", "b.tar.gz"]));
    let bytes = |name: &str| std::fs::read(scratch.path().join(name)).expect("a file");
    assert_eq!(bytes("a.tar.gz"), bytes("b.tar.gz"));
    let listed = Command::new("tar")
        .arg("-tzf")
        .arg(scratch.path().join("a.tar.gz"))
        .output();
    let listed = listed.expect("tar runs");
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "flow.edn\n");
    // On another machine.
    let far = Scratch::new();
    far.write("a.tar.gz", bytes("a.tar.gz"));
    far.write(
        "flows/report.edn",
        "{:slug :report :flow '\"the other one\"}",
    );
    let wrong = "0".repeat(64);
    refused(
        &far.run(&["flows", "install", "a.tar.gz", "--digest", &wrong]),
        "E1452",
    );
    let none = far.json_of(&["flows", "installations"]);
    assert_eq!(none["installations"], json!([]));
    let told = far.json_of(&["flows", "install", "a.tar.gz", "--digest", &digest]);
    assert!(
        told["author"]
            .as_str()
            .is_some_and(|it| it.starts_with("pkg-")),
        "{told}"
    );
    refused(
        &far.run(&["run", "report", "--installation", "report"]),
        "E1443",
    );
    far.write(
        "flowstone.edn",
        "{:connections {:own {:base-url \"https://crm.example.com\"}}}",
    );
    ok(&far.run(&[
        "flows",
        "configure",
        "report",
        "--set",
        "crm.conn=own",
        "--setup",
        "{:region \"far\"}",
    ]));
    assert_eq!(
        ok(&far.run(&["run", "report", "--installation", "report"])),
        "far"
    );
    // A flow of the project with the same slug is another one.
    let registered = far.json_of(&["flows", "list", "--registry"]);
    assert_eq!(registered["flows"], json!([]));
    assert_eq!(ok(&far.run(&["run", "report"])), "the other one");
    refused(&far.run(&["flows", "install", "a.tar.gz"]), "E1441");
    ok(&far.run(&["flows", "install", "a.tar.gz", "--as", "again"]));
}

#[test]
fn a_packaged_flow_calls_no_flow_of_the_project() {
    let scratch = Scratch::new();
    scratch.write("flows/own.edn", "{:slug :own :flow '\"the project's\"}");
    scratch.write(
        "calls.edn",
        "{:slug :calls\n :concurrency {:type :singleton :on-new-version :coexist}\n :flow '(flow/call-flow :own {})}",
    );
    ok(&scratch.run(&["flows", "install", "calls.edn"]));
    refused(
        &scratch.run(&["run", "calls", "--installation", "calls"]),
        "E0545",
    );
}

#[test]
fn hostile_packages_are_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let tar = |name: &str, script: &str| {
        let folder = scratch.path().join(format!("{name}-files"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("flow.edn"), "{:slug :a :flow '1}").expect("a file");
        let file = scratch.path().join(format!("{name}.tar.gz"));
        let script = format!("cd {} && {script}", folder.display());
        let script = script.replace("OUT", &file.display().to_string());
        let done = Command::new("sh")
            .args(["-c", &script])
            .status()
            .expect("it runs");
        assert!(done.success(), "{name}");
        format!("{name}.tar.gz")
    };
    let all = [
        tar(
            "link",
            "ln -s /etc/passwd x.edn && tar -czf OUT flow.edn x.edn",
        ),
        tar("hard", "ln flow.edn x.edn && tar -czf OUT flow.edn x.edn"),
        tar("absolute", "tar -czPf OUT flow.edn /etc/hostname"),
        tar(
            "above",
            "echo 1 > ../above.edn && tar -czPf OUT flow.edn ../above.edn",
        ),
        tar("pipe", "mkfifo x.edn && tar -czf OUT flow.edn x.edn"),
        tar(
            "bomb",
            "truncate -s 1G x.edn && tar -czf OUT flow.edn x.edn && rm x.edn",
        ),
        tar(
            "sparse",
            "truncate -s 1G x.edn && tar -S -czf OUT flow.edn x.edn && rm x.edn",
        ),
        tar("empty", "tar -czf OUT --files-from /dev/null"),
        tar(
            "slug",
            "echo '{:slug :a/b :flow 1}' > flow.edn && tar -czf OUT flow.edn",
        ),
    ];
    for package in &all {
        let words = refused(&scratch.run(&["flows", "install", package]), "E1");
        assert!(
            words.contains("E1451") || package == "slug.tar.gz",
            "{package}: {words}"
        );
    }
    scratch.write("text.tar.gz", "not a package");
    refused(&scratch.run(&["flows", "install", "text.tar.gz"]), "E1451");
    let listed = scratch.json_of(&["flows", "installations"]);
    assert_eq!(listed["installations"], json!([]));
    for url in [
        "http://127.0.0.1:1/a.tar.gz",
        "https://127.0.0.1:1/a.tar.gz",
    ] {
        refused(&scratch.run(&["flows", "install", url]), "E1454");
    }
    let url = format!("https://127.0.0.1:1/a.tar.gz#sha256={}", "0".repeat(64));
    refused(&scratch.run(&["flows", "install", &url]), "E1453");
}

#[test]
fn a_flow_is_installed_from_a_revision_of_a_repository() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("repo");
    std::fs::create_dir_all(&folder).expect("a folder");
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(args)
            .current_dir(&folder)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "."]);
    let text = "{:slug :a\n :concurrency {:type :singleton :on-new-version :coexist}\n :flow '1}";
    std::fs::write(folder.join("flow.edn"), text).expect("a file");
    let hook = folder.join(".git/hooks/post-checkout");
    let mut file = std::fs::File::create(&hook).expect("a file");
    writeln!(file, "#!/bin/sh\ntouch {}/hooked", scratch.path().display()).expect("written");
    git(&["add", "."]);
    git(&["commit", "-qm", "1"]);
    git(&["tag", "v1"]);
    std::os::unix::fs::symlink("/etc/passwd", folder.join("x.edn")).expect("a link");
    git(&["add", "."]);
    git(&["commit", "-qm", "2"]);
    let of = |revision: &str| format!("git+{}@{revision}", folder.display());
    ok(&scratch.run(&["flows", "install", &of("v1")]));
    assert_eq!(ok(&scratch.run(&["run", "a", "--installation", "a"])), "1");
    refused(
        &scratch.run(&["flows", "install", &of("main"), "--as", "b"]),
        "E1451",
    );
    refused(
        &scratch.run(&["flows", "install", &of("nothing"), "--as", "b"]),
        "E1453",
    );
    refused(
        &scratch.run(&["flows", "install", &format!("git+{}", folder.display())]),
        "E1454",
    );
    assert!(!scratch.path().join("hooked").exists());
}

#[test]
fn a_server_installs_configures_and_runs_as_the_command_line_does() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let text =
        needy("", REGION).replace(" :concurrency", " :discover {:public true}\n :concurrency");
    release(&scratch, &text);
    let token = ok(&scratch.run(&[
        "tokens",
        "create",
        "--name",
        "acme",
        "--scope",
        "edit",
        "--scope",
        "run",
        "--scope",
        "read",
        "--workspace",
        "acme",
    ]));
    let api = Api::serve(&scratch);
    let away = Scratch::new();
    away.write("token", &token);
    let server = format!("http://{}", api.address);
    let far =
        |args: &[&str]| away.run(&[&["--server", &server, "--token-file", "token"], args].concat());
    ok(&far(&["flows", "install", "report", "--as", "main"]));
    refused(&far(&["flows", "configure", "main", "--check"]), "E1443");
    refused(
        &far(&["flows", "configure", "main", "--set", "crm.conn=own"]),
        "E1447",
    );
    let give = [
        "flows",
        "configure",
        "main",
        "--set",
        "crm.conn=acme-crm",
        "--setup",
        "{:region \"EU\"}",
    ];
    assert_eq!(ok(&far(&give)), "acme/main ready");
    ok(&far(&["flows", "configure", "main", "--check"]));
    assert_eq!(ok(&far(&["run", "report", "--installation", "main"])), "EU");
    let listed = far(&["flows", "installations", "--json"]).json();
    assert_eq!(listed["installations"][0]["name"], "main", "{listed}");
    ok(&far(&["flows", "uninstall", "main"]));
    let listed = far(&["flows", "installations", "--json"]).json();
    assert_eq!(listed["installations"], json!([]));
}

/// A flow whose agent notes its secret, and answers.
const AGENT: &str = r#"{:slug :helper
 :concurrency {:type :singleton :on-new-version :coexist}
 :requires [{:slot :ai :type :llm-provider}]
 :invocations {:default {:inputs [{:name :word :type :text :required true}]}}
 :flow '(let [done (flow/step :agent :work {:connection :ai :objective (:word (flow/input))
                     :memory {:table "helper-memory" :auto-summarize true}
                     :cost {:budget {:max-tokens-total 60}}})]
          (:content done))}"#;

const MODELS: &str = r#"{:connections
 {:own {:backend :scripted :script {:turns [{:content "Hi" :usage {:prompt-tokens 7 :completion-tokens 3}}]}}
  :one {:workspace :acme :backend :scripted :script {:turns [
         {:tool-calls [{:name "memory_record" :arguments {:type "observation" :content "zebra of acme"}}]
          :usage {:prompt-tokens 7 :completion-tokens 3}}
         {:content "noted" :usage {:prompt-tokens 7 :completion-tokens 3}}]}}
  :two {:workspace :beta :backend :scripted :script {:turns [{:content "Hi" :usage {:prompt-tokens 7 :completion-tokens 3}}]}}}}"#;

#[test]
fn memory_and_cost_are_the_authors_and_budgets_hold() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", MODELS);
    scratch.write("flows/helper.edn", AGENT);
    ok(&scratch.run(&["flows", "push", "helper"]));
    ok(&scratch.run(&["flows", "release", "helper"]));
    for (workspace, connection) in [("acme", "one"), ("beta", "two")] {
        ok(&scratch.run(&[
            "flows",
            "install",
            "helper",
            "--workspace",
            workspace,
            "--as",
            "main",
        ]));
        let name = format!("{workspace}/main");
        let set = format!("ai.conn={connection}");
        ok(&scratch.run(&["flows", "configure", &name, "--set", &set]));
    }
    let run = |name: &str| {
        scratch.run(&[
            "run",
            "helper",
            "--installation",
            name,
            "--new",
            "--quiet",
            "--input",
            "{:word \"w\"}",
        ])
    };
    assert_eq!(ok(&run("acme/main")), "noted");
    assert_eq!(ok(&run("beta/main")), "Hi");
    // The rows are in the author's table, each with its installation.
    let rows = scratch.json_of(&["resources", "table", "query", "helper-memory"]);
    let rows = rows["rows"].as_array().expect("rows").clone();
    let of = |content: &str| {
        let row = rows.iter().find(|row| {
            row["content"]
                .as_str()
                .is_some_and(|it| it.contains(content))
        });
        row.map(|row| row["flow"].clone())
    };
    assert_eq!(of("zebra"), Some(json!("helper@acme/main")), "{rows:?}");
    // What one installer's agent noted is not told to another's.
    let runs = scratch.json_of(&["runs", "list"]);
    let newest = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let journal = scratch.run(&["runs", "events", &newest, "--json"]);
    assert!(!journal.out.contains("zebra"), "{}", journal.out);
    assert_eq!(ok(&run("acme/main")), "noted");
    let runs = scratch.json_of(&["runs", "list"]);
    let newest = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let journal = scratch.run(&["runs", "events", &newest, "--json"]);
    assert!(journal.out.contains("zebra of acme"), "{}", journal.out);
    // One budget for all: 20 + 10 + 20 tokens are used, and 10 more are all that is left.
    assert_eq!(ok(&run("beta/main")), "Hi");
    let words = refused(&run("beta/main"), "E0852");
    assert!(
        words.contains("budget used up") && !words.contains("60"),
        "{words}"
    );
}

#[test]
fn the_tokens_of_an_installation_are_limited() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", MODELS);
    scratch.write(
        "flows/helper.edn",
        AGENT.replace(":max-tokens-total 60", ":max-tokens-total 6000"),
    );
    ok(&scratch.run(&["flows", "push", "helper"]));
    ok(&scratch.run(&["flows", "release", "helper"]));
    ok(&scratch.run(&["flows", "install", "helper"]));
    let give = [
        "flows",
        "configure",
        "helper",
        "--set",
        "ai.conn=own",
        "--max-tokens",
        "20",
    ];
    ok(&scratch.run(&give));
    let run = || {
        scratch.run(&[
            "run",
            "helper",
            "--installation",
            "helper",
            "--new",
            "--quiet",
            "--input",
            "{:word \"w\"}",
        ])
    };
    assert_eq!(ok(&run()), "Hi");
    assert_eq!(ok(&run()), "Hi");
    let words = refused(&run(), "E0852");
    assert!(words.contains("--max-tokens"), "{words}");
    ok(&scratch.run(&["flows", "configure", "helper", "--max-tokens", "30"]));
    assert_eq!(ok(&run()), "Hi");
    refused(&run(), "E0852");
    ok(&scratch.run(&["flows", "configure", "helper", "--max-tokens", "0"]));
    assert_eq!(ok(&run()), "Hi");
}

#[test]
fn a_package_whose_author_provides_a_connection_says_that_it_cannot_run() {
    let more = "\n {:slot :mail :type :http-api :provided-by :author}";
    let scratch = released(&needy(more, REGION));
    ok(&scratch.run(&["flows", "pack", "report", "--to", "a.tar.gz"]));
    let far = Scratch::new();
    std::fs::copy(scratch.path().join("a.tar.gz"), far.path().join("a.tar.gz")).expect("a copy");
    let told = far.run(&["flows", "install", "a.tar.gz", "--as", "packed"]);
    ok(&told);
    assert!(
        told.err
            .contains("a package has no connections of its author"),
        "{}",
        told.err
    );
    assert!(told.err.contains("ask the author"), "{}", told.err);
    let check = far.run(&["flows", "configure", "packed", "--check"]);
    let shown = refused(&check, "E1448");
    assert!(shown.contains("ask the author"), "{shown}");
}
