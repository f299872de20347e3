//! The installer of releases, on archives of a fake program; completions and manual pages of the real one.

use std::process::Command;

use crate::program::Scratch;
use crate::tidy::root;

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Makes a release with a program that prints its version.
fn release(scratch: &Scratch, version: &str) {
    let name = format!("flowstone-{version}-{TARGET}");
    let script = format!("#!/bin/sh\necho flowstone {version}\n");
    scratch.write(&format!("{name}/bin/flowstone"), script);
    scratch.write(
        &format!("{name}/share/man/man1/flowstone.1"),
        ".TH flowstone 1\n",
    );
    let script = format!(
        "set -e; chmod 755 {name}/bin/flowstone; mkdir -p dist; tar -czf dist/{name}.tar.gz {name}; \
         cd dist; sha256sum *.tar.gz > SHA256SUMS"
    );
    let made = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(scratch.path())
        .status();
    assert!(made.expect("a shell").success());
}

/// Runs the installer, and returns its exit code and output.
fn install(scratch: &Scratch, args: &[&str]) -> (Option<i32>, String) {
    let ran = Command::new("sh")
        .arg(root().join("packaging/install.sh"))
        .args(args)
        .args(["--target", TARGET])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .output()
        .expect("a shell");
    let text = [ran.stdout, ran.stderr].concat();
    (
        ran.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_release_is_installed_and_updated() {
    let scratch = Scratch::new();
    release(&scratch, "0.1.0");
    let (code, told) = install(&scratch, &["--from", "dist", "--prefix", "there"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("installed flowstone 0.1.0 in there/bin/flowstone")
            && told.contains("add there/bin to your PATH"),
        "{told}"
    );
    assert_eq!(
        scratch.read("there/share/man/man1/flowstone.1"),
        ".TH flowstone 1\n"
    );
    // Without a folder, into that of the user.
    let (code, told) = install(&scratch, &["--from", "dist"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(scratch.path().join(".local/bin/flowstone").is_file());
    let _ = std::fs::remove_dir_all(scratch.path().join("dist"));
    release(&scratch, "0.2.0");
    let (code, told) = install(&scratch, &["--from", "dist", "--prefix", "there"]);
    assert!(
        code == Some(0) && told.contains("flowstone 0.2.0"),
        "{told}"
    );
}

#[test]
fn a_release_that_was_changed_is_not_installed() {
    let scratch = Scratch::new();
    release(&scratch, "0.1.0");
    let sums = scratch.read("dist/SHA256SUMS");
    let other = format!("{}{}", "0".repeat(64), &sums[64..]);
    for (changed, expected) in [
        (other.as_str(), "SHA256SUMS says"),
        ("", "the release has no archive for"),
        (
            &format!("{sums}{}", sums.replace("0.1.0", "0.0.9")),
            "several archives",
        ),
        (
            &sums.replace("flowstone-0.1.0", "../../flowstone-0.1.0"),
            "no archive for",
        ),
    ] {
        scratch.write("dist/SHA256SUMS", changed);
        let (code, told) = install(&scratch, &["--from", "dist", "--prefix", "there"]);
        assert!(
            code == Some(1) && told.contains(expected),
            "{expected}: {told}"
        );
    }
    for from in ["http://downloads.example.com/flowstone", "nowhere"] {
        let (code, told) = install(&scratch, &["--from", from, "--prefix", "there"]);
        assert_eq!(code, Some(1), "{told}");
    }
    assert_eq!(install(&scratch, &["--prefix", "there"]).0, Some(2));
    assert_eq!(install(&scratch, &["--no-such"]).0, Some(2));
    assert!(!scratch.path().join("there").exists());
}

/// The values that a shell offers for the last word of a line.
fn completed(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let mut command = scratch.command(&["--", "flowstone"]);
    let last = words.len().to_string();
    command
        .args(words)
        .env("FLOWSTONE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", last)
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n");
    let ran = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_what_the_project_has() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:connections {:desk {:type :http-api :base-url \"https://example.com\"}}}",
    );
    scratch.write(
        "flows/refund.edn",
        "{:slug :refund :flow '(flow/step :wait :approval {})}",
    );
    scratch.write("flows/report.edn", "{:slug :report :flow '1}");
    let ran = scratch.run(&["run", "flows/refund.edn", "--quiet"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let has = |words: &[&str], value: &str| {
        let found = completed(&scratch, words);
        assert!(
            found.iter().any(|it| it.trim() == value),
            "{words:?}: {found:?}"
        );
    };
    has(&["ru"], "runs");
    has(&["run", "ref"], "refund");
    has(&["check", "flows/ref"], "flows/refund.edn");
    has(&["run", "flows/re"], "flows/report.edn");
    has(&["flows", "show", "rep"], "report");
    has(&["steps", "show", "htt"], "http");
    has(&["explain", "E060"], "E0603");
    has(&["connections", "test", "de"], "desk");
    has(&["docs", "show", "guide/inst"], "guide/installing");
    let run = &scratch.run(&["runs", "list", "--json"]).json()["runs"][0]["id"];
    has(&["runs", "show", ""], run.as_str().expect("an id"));
    let waits = completed(&scratch, &["waits", "approve", ""]);
    assert_eq!(
        waits.iter().filter(|it| !it.starts_with('-')).count(),
        1,
        "{waits:?}"
    );
    // A project without data has nothing to offer, and none is made.
    let empty = Scratch::new();
    completed(&empty, &["runs", "show", ""]);
    assert!(!empty.path().join(".flowstone").exists());
}

#[test]
fn each_shell_has_a_script_and_each_command_a_manual_page() {
    let scratch = Scratch::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = scratch.run(&["completions", shell]);
        assert!(
            ran.code == Some(0) && ran.out.contains("FLOWSTONE_COMPLETE"),
            "{shell}: {ran:?}"
        );
    }
    let ran = scratch.run(&["docs", "man", "--to", "man"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (page, told) in [
        ("flowstone.1", ".TH flowstone 1"),
        ("flowstone-runs-fork.1", "Examples"),
        ("flowstone-test.1", "junit"),
    ] {
        let text = scratch.read(&format!("man/{page}"));
        assert!(text.contains(told), "{page}: {text}");
    }
    assert!(!scratch.path().join("man/flowstone-reference.1").exists());
    let ran = scratch.run(&["docs", "man", "runs", "show"]);
    assert_eq!(ran.out, scratch.read("man/flowstone-runs-show.1"));
    let ran = scratch.run(&["docs", "man", "runs", "no-such"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1591"), "{ran:?}");
}
