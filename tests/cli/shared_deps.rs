//! Shared code from outside a project: a folder, and a revision of a git repository.

use std::path::Path;
use std::process::Command;

use crate::program::{Ran, Scratch};

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
        .args(args)
        .output()
        .expect("git is there");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with a namespace, and the hash of its commit.
fn repository(scratch: &Scratch, rate: u32) -> String {
    let folder = scratch.path().join("repo");
    scratch.write(
        "repo/src/shop/money.clj",
        format!("(ns shop.money) (defn cents [x] (* x {rate}))"),
    );
    scratch.write("repo/README.md", "Not code.");
    if !folder.join(".git").exists() {
        git(&folder, &["init", "--quiet"]);
        // A hook that must not run.
        scratch.write(
            "repo/.git/hooks/post-checkout",
            "#!/bin/sh\ntouch ../hooked\n",
        );
    }
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "-m", "rate"]);
    git(&folder, &["rev-parse", "HEAD"])
}

fn settings(scratch: &Scratch, rest: &str) {
    let text = format!("{{:deps {{shop/money {{:git \"repo\" :root \"src\" {rest}}}}}}}");
    scratch.write("flowstone.edn", text);
}

const FLOW: &str = "{:slug :invoice :namespaces [[shop.money :as money]] :flow '(money/cents 3)}";

/// Returns the digest that a report hints at.
fn digest(ran: &Ran) -> String {
    let (_, rest) = ran.err.split_once(":digest \"").expect("a hint");
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn a_revision_is_used_if_it_has_its_digest() {
    let scratch = Scratch::new();
    let commit = repository(&scratch, 100);
    scratch.write("invoice.edn", FLOW);
    settings(&scratch, &format!(":rev \"{commit}\""));
    let ran = scratch.run(&["check", "invoice.edn"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("`flowstone deps` fetches it"),
        "{ran:?}"
    );
    let ran = scratch.run(&["deps"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1621"), "{ran:?}");
    let right = digest(&ran);
    let pinned = format!(":rev \"{commit}\" :digest \"{right}\"");
    settings(&scratch, &pinned);
    let ran = scratch.run(&["deps"]);
    assert!(
        ran.code == Some(0) && ran.out.contains("fetched") && ran.out.contains("shop.money"),
        "{ran:?}"
    );
    assert_eq!(scratch.run(&["run", "invoice.edn"]).ok().trim(), "300");
    assert!(!scratch.path().join("hooked").exists());
    // Another revision has another digest, and is not used.
    let newer = repository(&scratch, 7);
    settings(&scratch, &format!(":rev \"{newer}\" :digest \"{right}\""));
    std::fs::remove_dir_all(scratch.path().join(".flowstone/deps")).expect("it is there");
    let ran = scratch.run(&["deps", "--json"]);
    let told = ran.json();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        told["dependencies"][0]["error"]["code"], "E1621",
        "{told:#}"
    );
    assert_eq!(scratch.run(&["check", "invoice.edn"]).code, Some(1));
    // What was changed in the kept folder is fetched again.
    settings(&scratch, &pinned);
    scratch.run(&["deps"]).ok();
    let kept = format!(
        ".flowstone/deps/{}/shop/money.clj",
        right.trim_start_matches("sha256:")
    );
    scratch.write(&kept, "(ns shop.money) (defn cents [x] 0)");
    assert!(scratch.run(&["deps"]).ok().contains("fetched"));
    assert!(scratch.run(&["deps"]).ok().contains("kept"));
    // The repository is not needed any more.
    std::fs::remove_dir_all(scratch.path().join("repo")).expect("it is there");
    assert_eq!(scratch.run(&["run", "invoice.edn"]).ok().trim(), "300");
}

#[test]
fn a_run_keeps_the_code_of_a_dependency() {
    let scratch = Scratch::new();
    scratch.write(
        "shared/shop/money.clj",
        "(ns shop.money) (defn cents [x] (* x 100))",
    );
    scratch.write(
        "project/flowstone.edn",
        "{:deps {shop {:path \"../shared\"}}}",
    );
    scratch.write(
        "project/invoice.edn",
        "{:slug :invoice :namespaces [[shop.money :as money]]
          :flow '(do (flow/step :wait :go {}) (money/cents 3))}",
    );
    let run = |args: &[&str]| {
        let mut command = scratch.command(args);
        command.current_dir(scratch.path().join("project"));
        Ran::to_the_end(&mut command)
    };
    assert!(run(&["deps"]).ok().contains("folder"));
    let started = run(&["run", "invoice.edn", "--json"]);
    assert_eq!(started.code, Some(3), "{started:?}");
    scratch.write(
        "shared/shop/money.clj",
        "(ns shop.money) (defn cents [x] 0)",
    );
    let waits = run(&["waits", "list", "--json"]).json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
    assert_eq!(run(&["waits", "approve", &wait]).ok().trim(), "300");
}

#[test]
fn malformed_dependencies_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    for (deps, part) in [
        ("[]", "a map"),
        ("{a {:path \"x\" :rev \"1\"}}", "no key `:rev`"),
        ("{a {:git \"x\" :rev \"main\"}}", "full hash"),
    ] {
        scratch.write("flowstone.edn", format!("{{:deps {deps}}}"));
        let ran = scratch.run(&["check", "a.edn"]);
        let told = format!("{}{}", ran.out, ran.err);
        assert!(
            ran.code == Some(1) && told.contains("E0751") && told.contains(part),
            "{deps}: {ran:?}"
        );
    }
    scratch.write("flowstone.edn", "{:deps {a {:path \"nowhere\"}}}");
    let ran = scratch.run(&["deps"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1622"), "{ran:?}");
    let helper = ":git \"ext::sh -c touch% x\" :rev \"0123456789abcdef0123456789abcdef01234567\"";
    scratch.write("flowstone.edn", format!("{{:deps {{a {{{helper}}}}}}}"));
    let ran = scratch.run(&["deps"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("helper program"),
        "{ran:?}"
    );
}
