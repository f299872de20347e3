//! Installations: what their runs use, what each side sees, upgrades, and packages.

use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::{Ran, Scratch};

fn ok(ran: &Ran) -> String {
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
    refused(
        &scratch.run(&[
            "flows",
            "install",
            "report",
            "--workspace",
            "acme",
            "--as",
            "main",
        ]),
        "E1441",
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
    // Less is no reason to stop, and an archived flow still runs where it is installed.
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

const NOTE: &str = r#"{:slug :note
 :discover {:public true}
 :concurrency {:type :singleton :on-new-version :coexist}
 :invocations {:default {:inputs [{:name :word :type :text :required true}]}}
 :flow '(let [word (:word (flow/input))]
          (flow/step :kv :keep {:operation :set :key "last" :value word})
          (flow/step :table :row {:op :insert :table "notes" :rows [{:word word}]})
          (flow/step :wait :go {:key (str "go-" word) :approval {:actions [:approve :reject]} :timeout "1h"})
          {:said word})}"#;

/// An author and two installers in one home.
struct Home {
    api: Api,
    author: String,
    acme: String,
    beta: String,
}

impl Home {
    fn open(scratch: &Scratch) -> Home {
        scratch.write("flows/note.edn", NOTE);
        ok(&scratch.run(&["flows", "push", "note"]));
        ok(&scratch.run(&["flows", "release", "note"]));
        let token = |name: &str, more: &[&str]| {
            let scopes = ["read", "run", "edit", "approve"]
                .map(|it| ["--scope", it])
                .concat();
            let args = [&["tokens", "create", "--name", name], &*scopes, more].concat();
            ok(&scratch.run(&args))
        };
        let home = Home {
            author: token("author", &[]),
            acme: token("acme", &["--workspace", "acme"]),
            beta: token("beta", &["--workspace", "beta"]),
            api: Api::serve(scratch),
        };
        for token in [&home.acme, &home.beta] {
            let new = json!({"slug": "note", "name": "main"});
            let made = home.api.post_as(token, "/api/v1/installations", &new);
            assert_eq!(made.status, 201, "{made:?}");
        }
        home
    }

    /// Starts a run of an installation, and returns its id once it waits.
    fn start(&self, token: &str, word: &str) -> String {
        let body = json!({"installation": "main", "input": {"word": word}, "wait": "60s"});
        let started = self.api.post_as(token, "/api/v1/flows/note/runs", &body);
        assert_eq!(started.json()["status"], "waiting", "{started:?}");
        started.json()["id"].as_str().expect("an id").to_owned()
    }

    fn get(&self, token: &str, path: &str) -> Reply {
        self.api.get_as(token, path)
    }
}

fn items(reply: &Reply, name: &str) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()[name].as_array().expect("a list").clone()
}

#[test]
fn each_side_sees_what_is_its_own_and_nothing_else() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    let run = home.start(&home.acme, "zebra");
    let at = |rest: &str| format!("/api/v1/runs/{run}{rest}");
    // The record of the run.
    let own = home.get(&home.acme, &at("")).json();
    assert_eq!(own["input"]["word"], "zebra", "{own}");
    assert_eq!(own["flow"], "note@acme/main");
    let known = home.get(&home.author, &at("")).json();
    assert_eq!(known["status"], "waiting", "{known}");
    assert_eq!(known["version"], 1);
    assert_eq!(
        (&known["input"], &known["waitReason"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(home.get(&home.beta, &at("")).status, 404);
    // Steps, journal and spans.
    assert_eq!(home.get(&home.author, &at("/journal")).status, 200);
    assert_eq!(home.get(&home.author, &at("?step=keep")).status, 200);
    for token in [&home.acme, &home.beta] {
        assert_eq!(home.get(token, &at("/journal")).status, 404);
        assert_eq!(home.get(token, &at("?step=keep")).status, 404);
    }
    assert_eq!(home.get(&home.beta, &at("/spans")).status, 404);
    let spans = items(&home.get(&home.acme, &at("/spans")), "spans");
    assert!(spans.len() <= 1, "{spans:?}");
    // Feeds, exports and comparisons are for those who see both sides.
    for path in ["/feed", "/export", "/events"] {
        for token in [&home.author, &home.acme, &home.beta] {
            assert_eq!(home.get(token, &at(path)).status, 404, "{path}");
        }
        assert_eq!(home.api.get(&at("/feed")).status, 200);
    }
    // Lists.
    for (token, count) in [(&home.author, 1), (&home.acme, 1), (&home.beta, 0)] {
        assert_eq!(items(&home.get(token, "/api/v1/runs"), "runs").len(), count);
        let full = items(&home.get(token, "/api/v1/runs?full=true"), "runs");
        let has_input = full.iter().any(|run| run.to_string().contains("zebra"));
        assert_eq!(has_input, *token == home.acme, "{full:?}");
    }
    for (token, count) in [(&home.author, 0), (&home.acme, 1), (&home.beta, 0)] {
        let found = items(&home.get(token, "/api/v1/runs?text=zebra"), "runs");
        assert_eq!(found.len(), count, "{found:?}");
        let listed = items(&home.get(token, "/api/v1/installations"), "installations");
        assert_eq!(
            listed.len(),
            usize::from(*token != home.author),
            "{listed:?}"
        );
    }
    // Waits and approvals.
    let waits = items(&home.get(&home.acme, "/api/v1/waits"), "waits");
    assert_eq!(waits.len(), 1, "{waits:?}");
    let wait = waits[0]["id"].as_str().expect("an id").to_owned();
    for token in [&home.author, &home.beta] {
        assert_eq!(items(&home.get(token, "/api/v1/waits"), "waits").len(), 0);
        assert_eq!(
            home.get(token, &format!("/api/v1/waits/{wait}")).status,
            404
        );
        let approve = format!("/api/v1/waits/{wait}/approve");
        assert_eq!(home.api.post_as(token, &approve, &json!({})).status, 404);
        let cancel = home.api.post_as(token, &at("/cancel"), &json!({}));
        assert_eq!(cancel.status, 404, "{cancel:?}");
    }
    let approve = format!("/api/v1/waits/{wait}/approve");
    assert_eq!(
        home.api.post_as(&home.acme, &approve, &json!({})).status,
        200
    );
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while home.get(&home.acme, &at("")).json()["status"] != "completed" {
        assert!(std::time::Instant::now() < end, "it does not end");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        home.get(&home.acme, &at("")).json()["result"]["said"],
        "zebra"
    );
    assert_eq!(
        home.get(&home.author, &at("")).json()["result"],
        Value::Null
    );
}

#[test]
fn tables_keys_and_search_of_an_installation_are_the_installers() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    home.start(&home.acme, "zebra");
    home.start(&home.beta, "yak");
    let key =
        "/api/v1/resources/content?uri=res://v1/ws/local/result/kv/installation:acme:main:last";
    let own = home.get(&home.acme, key);
    assert_eq!(own.status, 200, "{own:?}");
    assert!(own.body.contains("zebra"), "{own:?}");
    for token in [&home.author, &home.beta] {
        let other = home.get(token, key);
        assert_eq!(other.status, 404, "{other:?}");
    }
    // A table by its number: its installer sees it, and nobody else.
    let rows = |token: &str, number: i32| {
        let found = home.get(token, &format!("/api/v1/tables/{number}/rows"));
        (found.status, found.body)
    };
    let mut of_acme = (1..=4).filter(|number| rows(&home.acme, *number).1.contains("zebra"));
    let number = of_acme.next().expect("the table of the installation");
    for token in [&home.author, &home.beta] {
        assert_eq!(rows(token, number).0, 404);
    }
    for (token, own) in [
        (&home.author, ""),
        (&home.acme, "zebra"),
        (&home.beta, "yak"),
    ] {
        for path in [
            "/api/v1/resources",
            "/api/v1/search?q=zebra&hydrate=true",
            "/api/v1/search?q=yak&hydrate=true",
            "/api/v1/search?q=notes",
        ] {
            let found = home.get(token, path);
            assert_eq!(found.status, 200, "{path}: {found:?}");
            // The query itself is part of an answer.
            let hits = found.json();
            let hits = hits.get("hits").or(hits.get("resources")).cloned();
            let text = hits.unwrap_or_default().to_string();
            for word in ["zebra", "yak", "installation/acme", "installation/beta"] {
                let of = match word {
                    "installation/acme" => "zebra",
                    "installation/beta" => "yak",
                    word => word,
                };
                assert!(of == own || !text.contains(word), "{path} {word}: {text}");
            }
        }
    }
}

#[test]
fn flows_connections_and_other_installations_are_not_there_for_an_installer() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    for path in [
        "/api/v1/flows/note",
        "/api/v1/registry/note",
        "/api/v1/connections",
    ] {
        assert_eq!(home.get(&home.acme, path).status, 404, "{path}");
    }
    assert_eq!(
        items(&home.get(&home.acme, "/api/v1/flows"), "flows").len(),
        0
    );
    assert_eq!(
        items(&home.get(&home.acme, "/api/v1/registry"), "flows").len(),
        0
    );
    let plain = json!({"input": {"word": "ox"}});
    let started = home
        .api
        .post_as(&home.acme, "/api/v1/flows/note/runs", &plain);
    assert_eq!(started.status, 404, "{started:?}");
    for name in ["other", "beta/main"] {
        let body = json!({"installation": name, "input": {"word": "ox"}});
        let started = home
            .api
            .post_as(&home.acme, "/api/v1/flows/note/runs", &body);
        assert_eq!(started.problem(), "404 E1440", "{started:?}");
    }
    let path = "/api/v1/installations/main";
    assert_eq!(home.get(&home.author, path).problem(), "404 E1440");
    let wide = home.get(&home.acme, "/api/v1/installations/main?workspace=beta");
    assert_eq!(wide.problem(), "404 E1440");
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
