//! Repositories that try to run programs, through their configuration, their hooks, or missing objects.
//!
//! Each of these programs would leave a file in the folder `ran`.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::git::{bare, git};
use crate::project::Project;

const FILES: &[(&str, &str)] = &[
    ("README.md", "# Title\n"),
    ("src/main.rs", "fn main() {}\n"),
];

/// Every hook that git knows.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Settings of a repository that name a program; `RUN` stands for the program.
const SETTINGS: &[(&str, &str)] = &[
    ("core.alternateRefsCommand", "RUN"),
    ("core.askPass", "RUN"),
    ("core.editor", "RUN"),
    ("core.fsmonitor", "RUN"),
    ("core.gitProxy", "RUN"),
    ("core.hooksPath", "HOOKS"),
    ("core.pager", "RUN"),
    ("core.sshCommand", "RUN"),
    ("credential.helper", "!RUN"),
    ("diff.external", "RUN"),
    ("diff.evil.textconv", "RUN"),
    ("filter.evil.clean", "RUN"),
    ("filter.evil.process", "RUN"),
    ("filter.evil.smudge", "RUN"),
    ("gpg.program", "RUN"),
    ("log.showSignature", "true"),
    ("merge.evil.driver", "RUN"),
    ("receive.procReceiveRefs", "refs/for"),
    ("remote.origin.receivepack", "RUN"),
    ("remote.origin.uploadpack", "RUN"),
    ("sequence.editor", "RUN"),
    ("ssh.variant", "simple"),
    ("uploadpack.packObjectsHook", "RUN"),
];

/// Creates a program that records that it ran, under a name.
fn program(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("program-{name}"));
    let ran = folder.join("ran");
    fs::create_dir_all(&ran).expect("a folder");
    let text = format!("#!/bin/sh\ntouch '{}/{name}'\n", ran.display());
    fs::write(&path, text).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path.display().to_string()
}

/// Adds all hostile settings and hooks to a repository whose git directory is `inside`.
fn poison(folder: &Path, repository: &Path, inside: &Path) {
    let hooks = inside.join("hooks");
    fs::create_dir_all(&hooks).expect("a folder");
    for hook in HOOKS {
        let program = program(folder, hook);
        fs::copy(program, hooks.join(hook)).expect("a hook");
    }
    for (key, value) in SETTINGS {
        let value = match value.contains("RUN") {
            true => value.replace("RUN", &program(folder, &key.replace('.', "-"))),
            false => value.replace("HOOKS", &hooks.display().to_string()),
        };
        git(repository, &["config", key, &value]);
    }
    let attributes = inside.join("info");
    fs::create_dir_all(&attributes).expect("a folder");
    fs::write(
        attributes.join("attributes"),
        "* filter=evil diff=evil merge=evil\n",
    )
    .expect("a file");
}

fn what_ran(folder: &Path) -> Vec<String> {
    let ran = fs::read_dir(folder.join("ran")).expect("a folder");
    let mut names: Vec<String> = ran
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Performs all operations of flows on a repository.
fn use_it(project: &Project, source: &str) -> String {
    project.eval(&format!(
        r##"(let [source {source}
                  tree (flow/step :files :tree {{:op :resolve-source :source source}})
                  listed (flow/step :files :list {{:op :list :source source}})
                  read (flow/step :files :read {{:op :read :source source :paths ["README.md"]}})
                  found (flow/step :files :search {{:op :search :source source :query "main"}})
                  commits (flow/step :files :history {{:op :history :source source}})
                  draft (flow/step :files :draft {{:op :init-changeset :source tree}})]
              (flow/step :files :write {{:op :write-file :changeset draft :path "README.md" :content "# New\n"}})
              (flow/step :files :publish {{:op :publish :changeset draft :branch "bot/readme" :message "docs: a title"}})
              (flow/step :files :again {{:op :publish :changeset draft :branch "bot/other" :message "docs: a title"}})
              [(count (:entries listed)) (:content (first (:files read))) (count (:matches found)) (count (:commits commits))])"##
    ))
}

#[test]
fn a_bare_repository_runs_nothing() {
    let project = Project::new();
    let remotes = project.path().join("remotes");
    let bare = bare(&remotes, "app", FILES);
    poison(&remotes, &bare, &bare);
    let shown = use_it(
        &project,
        &format!("{{:type :git :repo \"file://{}\"}}", bare.display()),
    );
    assert_eq!(shown, r##"[2 "# Title\n" 1 1]"##);
    assert!(git(&bare, &["branch", "--list", "bot/readme"]).contains("bot/readme"));
    assert_eq!(what_ran(&remotes), Vec::<String>::new());
}

#[test]
fn a_working_copy_runs_nothing() {
    let project = Project::new();
    let remotes = project.path().join("remotes");
    let bare = bare(&remotes, "app", FILES);
    let copy = remotes.join("copy");
    git(
        &remotes,
        &[
            "clone",
            "--quiet",
            &bare.display().to_string(),
            &copy.display().to_string(),
        ],
    );
    poison(&remotes, &copy, &copy.join(".git"));
    poison(&remotes, &bare, &bare);
    let sources = [
        "{:type :git :repo \"remotes/copy\"}".to_owned(),
        "{:type :dir :path \"remotes/copy\"}".to_owned(),
    ];
    for source in sources {
        let shown = use_it(&project, &source);
        assert!(!shown.contains("E06"), "{source}: {shown}");
        assert_eq!(
            what_ran(&remotes),
            Vec::<String>::new(),
            "{source}: {shown}"
        );
    }
}

#[test]
fn a_missing_object_is_not_fetched_by_a_program_of_the_repository() {
    let project = Project::new();
    let remotes = project.path().join("remotes");
    let bare = bare(&remotes, "app", FILES);
    git(&bare, &["config", "uploadpack.allowFilter", "true"]);
    let copy = remotes.join("copy");
    git(
        &remotes,
        &[
            "clone",
            "--quiet",
            "--no-checkout",
            "--filter=blob:none",
            &format!("file://{}", bare.display()),
            &copy.display().to_string(),
        ],
    );
    let upload = program(&remotes, "uploadpack");
    git(&copy, &["config", "remote.origin.uploadpack", &upload]);
    let shown = project.eval(
        r#"(flow/step :files :read {:op :read :source {:type :git :repo "remotes/copy"} :paths ["README.md"]})"#,
    );
    assert!(shown.contains("E07"), "{shown}");
    assert_eq!(what_ran(&remotes), Vec::<String>::new(), "{shown}");
}
