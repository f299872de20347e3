//! Confinement to a folder: files that are swapped, linked or made a fifo while they are read, and trees with hostile
//! links.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::project::Project;

const OUTSIDE: &str = "OUTSIDE-CONTENT-7f3a";

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo is there").success());
}

#[test]
fn files_swapped_during_a_read_show_nothing_from_outside() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::create_dir(outside.path().join("d")).expect("a folder");
    for idx in 0..40 {
        fs::write(outside.path().join(format!("d/{idx}.txt")), OUTSIDE).expect("a file");
    }
    let project = Project::new();
    let root = project.path().to_path_buf();
    let at = |path: String| root.join(path);
    for idx in 0..40 {
        project.write(&format!("src/d/{idx}.txt"), b"inside");
        project.write(&format!("src/f/{idx}.txt"), b"inside");
    }
    fs::create_dir(at("spare".into())).expect("a folder");
    fifo(&at("spare/fifo".into()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, aside) = (at("src/d".into()), at("spare/d".into()));
            while !stop.load(Ordering::Relaxed) {
                // A folder becomes a link to one outside; files become links and fifos.
                if fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(outside.path().join("d"), &folder);
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(&aside, &folder);
                }
                for idx in 0..40 {
                    let (file, new) = (at(format!("src/f/{idx}.txt")), at(format!("spare/{idx}")));
                    let _ = match idx % 3 {
                        0 => symlink(outside.path().join(format!("d/{idx}.txt")), &new),
                        1 => fs::hard_link(at("spare/fifo".into()), &new),
                        _ => fs::write(&new, "inside"),
                    };
                    let _ = fs::rename(&new, &file);
                }
                for idx in 0..40 {
                    let new = at(format!("spare/{idx}"));
                    let _ = fs::write(&new, "inside again");
                    let _ = fs::rename(&new, at(format!("src/f/{idx}.txt")));
                }
            }
        });
        let began = Instant::now();
        for _ in 0..12 {
            let found = project.eval(
                r#"(let [tree (flow/step :files :tree {:op :resolve-source :source {:type :dir :path "src"}})]
                     (pr-str (flow/step :files :all {:op :search :source tree :query "OUTSIDE|inside" :regex? true :limit 1000})))"#,
            );
            assert!(!found.contains(OUTSIDE), "{found}");
            assert!(began.elapsed() < Duration::from_secs(60), "it hangs");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Files that are too large to be read are listed with the names and sizes that they have in the folder.
#[test]
fn names_in_a_swapped_folder_are_not_listed() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::create_dir(outside.path().join("d")).expect("a folder");
    for idx in 0..200 {
        let leak = outside.path().join(format!("d/leak-{idx}.txt"));
        fs::write(leak, OUTSIDE).expect("a file");
    }
    let project = Project::new();
    let root = project.path().to_path_buf();
    for idx in 0..200 {
        project.write(&format!("src/d/{idx}.txt"), b"inside, and too large");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, aside) = (root.join("src/d"), root.join("spare"));
            while !stop.load(Ordering::Relaxed) {
                if fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(outside.path().join("d"), &folder);
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(&aside, &folder);
                }
            }
        });
        for _ in 0..30 {
            let found = project.eval(
                r#"(pr-str (mapv :path (:entries (flow/step :files :all {:op :list :limit 1000
                     :source {:type :dir :path "src" :max-file-bytes 4}}))))"#,
            );
            assert!(!found.contains("leak"), "{found}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// An import reads the file that was checked, or nothing.
#[test]
fn a_table_is_not_imported_through_a_swapped_link() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("rows.csv"), format!("a\n{OUTSIDE}\n")).expect("a file");
    let project = Project::new();
    let root = project.path().to_path_buf();
    project.write("data/rows.csv", b"a\ninside\n");
    fs::create_dir(root.join("spare")).expect("a folder");
    fifo(&root.join("spare/fifo"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (file, new) = (root.join("data/rows.csv"), root.join("spare/new"));
            let (folder, aside) = (root.join("data"), root.join("aside"));
            while !stop.load(Ordering::Relaxed) {
                let _ = symlink(outside.path().join("rows.csv"), &new);
                let _ = fs::rename(&new, &file);
                let _ = fs::hard_link(root.join("spare/fifo"), &new);
                let _ = fs::rename(&new, &file);
                let _ = fs::write(&new, "a\ninside\n");
                let _ = fs::rename(&new, &file);
                if fs::rename(&folder, &aside).is_ok() {
                    let _ = symlink(outside.path(), &folder);
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(&aside, &folder);
                }
            }
        });
        let began = Instant::now();
        for _ in 0..60 {
            let found = project.eval(
                r#"(try (flow/step :table :in {:op :import :table "t" :from "data/rows.csv" :write-mode :replace})
                        (pr-str (flow/step :table :out {:op :query :table "t"}))
                     (catch Throwable e (ex-message e)))"#,
            );
            assert!(!found.contains(OUTSIDE), "{found}");
            assert!(began.elapsed() < Duration::from_secs(60), "it hangs");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Links of a tree with their targets, and those that are left out.
#[expect(clippy::type_complexity, reason = "a table of files with their links")]
const TREES: &[(&[(&str, &str)], &[&str])] = &[
    (&[("near", "a/b/file")], &[]),
    (&[("a/up", "..")], &[]),
    (&[("a/b/up", "../..")], &[]),
    (&[("a/b/up", "../../..")], &["a/b/up"]),
    (&[("esc", "..")], &["esc"]),
    (&[("esc", "/etc")], &["esc"]),
    (&[("esc", "a/../..")], &["esc"]),
    (&[("a/b/l", ".."), ("esc", "a/b/l/../..")], &["esc"]),
    (&[("a/b/l", ".."), ("ok", "a/b/l/..")], &[]),
    (&[("a/b/c/l", "../../.."), ("esc", "a/b/c/l/..")], &["esc"]),
    (
        &[("a/b/c/l", "../../.."), ("esc", "a/b/c/l/../../..")],
        &["esc"],
    ),
    (&[("one", "a"), ("two", "one/../..")], &["two"]),
    (&[("one", "."), ("two", "one/..")], &["two"]),
    (&[("one", "two"), ("two", "one")], &["one", "two"]),
    (
        &[
            ("a/l", "b/m"),
            ("a/b/m", "../../a/b"),
            ("esc", "a/l/../../.."),
        ],
        &["esc"],
    ),
    (
        &[("a/b/l", ".."), ("a/b/m", "l/.."), ("esc", "a/b/m/..")],
        &["esc"],
    ),
    (&[("l", "gone/../.."), ("m", "gone/..")], &["l"]),
    (&[("deep", "a/b/c/../../../../x")], &["deep"]),
    (&[("out", "a/../../src/a")], &["out"]),
    (&[("a/git", "../.git/config")], &["a/git"]),
];

#[test]
fn written_links_stay_inside_the_tree() {
    for (links, left_out) in TREES {
        let project = Project::new();
        project.write("src/a/b/file", b"text");
        project.write("src/a/b/c/file", b"text");
        for (path, target) in *links {
            symlink(target, project.path().join("src").join(path)).expect("a link");
        }
        for to in ["out", "there"] {
            fs::create_dir_all(project.path().join("there")).expect("a folder");
            let body = format!(
                r#"(mapv :path (:skipped (flow/step :files :put {{:op :materialize :source {{:type :dir :path "src"}} :to "{to}"}})))"#
            );
            let found = project.eval(&body);
            let expected: Vec<String> = left_out.iter().map(|it| format!("{it:?}")).collect();
            assert_eq!(
                found,
                format!("[{}]", expected.join(" ")),
                "{links:?} to {to}"
            );
            let root = fs::canonicalize(project.path().join(to)).expect("a folder");
            for (path, _) in *links {
                let place = root.join(path);
                if let Ok(leads) = fs::canonicalize(&place) {
                    assert!(
                        leads.starts_with(&root),
                        "{links:?}: {path} leads to {}",
                        leads.display()
                    );
                }
            }
        }
    }
}

#[test]
fn existing_links_are_resolved_before_another_is_written() {
    let project = Project::new();
    project.write("src/a/file", b"text");
    symlink("x/../..", project.path().join("src/esc")).expect("a link");
    project.write("out/deep/down/file", b"text");
    symlink("deep/..", project.path().join("out/x")).expect("a link");
    let put = r#"(mapv :path (:skipped (flow/step :files :put {:op :materialize :source {:type :dir :path "src"} :to "out"})))"#;
    assert_eq!(project.eval(put), r#"["esc"]"#);
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = tempfile::tempdir().expect("a folder");
    let project = Project::new();
    symlink(outside.path(), project.path().join("out")).expect("a link");
    symlink(outside.path().join("new"), project.path().join("file")).expect("a link");
    fs::create_dir(project.path().join("real")).expect("a folder");
    symlink(outside.path(), project.path().join("real/sub")).expect("a link");
    fifo(&project.path().join("fifo"));
    for path in [
        "out/x",
        "file",
        "real/sub/x",
        "../x",
        "real/../../x",
        "/x",
        "fifo",
        ".flowstone/x",
        ".git/config",
    ] {
        let body = format!(
            r#"(flow/step :files :put {{:op :write-out :path "{path}" :content "x" :overwrite? true}})"#
        );
        let found = project.eval(&body);
        assert!(found.starts_with('E'), "{path}: {found}");
    }
    assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 0);
}

#[test]
fn dotenv_files_are_not_part_of_a_tree() {
    let project = Project::new();
    for name in [
        ".env",
        ".env.local",
        "sub/.ENV",
        ".env.example",
        "env",
        ".environment",
        "sub/app.env",
    ] {
        project.write(&format!("src/{name}"), b"KEY=s3cret-value\n");
    }
    let list = |options: &str| {
        project.eval(&format!(
            r#"(mapv :path (:entries (flow/step :files :l {{:op :list :source {{:type :dir :path "src"{options}}}}})))"#
        ))
    };
    assert_eq!(
        list(""),
        r#"[".env.example" ".environment" "env" "sub/app.env"]"#
    );
    // `:ignored?` does not list them either: only a permission that names `.env` does.
    assert_eq!(list(" :ignored? true"), list(""));
}

#[test]
fn fifos_and_devices_are_neither_read_nor_waited_for() {
    let project = Project::new();
    project.write("src/a.txt", b"text");
    fifo(&project.path().join("src/fifo.txt"));
    symlink("/dev/zero", project.path().join("src/zero")).expect("a link");
    let list = r#"(mapv (juxt :path :kind) (:entries (flow/step :files :l {:op :list :source {:type :dir :path "src"}})))"#;
    assert!(project.eval(list).contains("a.txt"));
    // A folder whose ignore rules cannot be read is left out as a whole.
    project.write("src/sub/b.txt", b"text");
    fifo(&project.path().join("src/sub/.gitignore"));
    let found = project.eval(list);
    assert!(
        found.contains("a.txt") && !found.contains("b.txt"),
        "{found}"
    );
    fifo(&project.path().join("src/.gitignore"));
    assert!(
        project.eval(list).starts_with("E07"),
        "{}",
        project.eval(list)
    );
    // Files that a flow includes.
    fifo(&project.path().join("part.edn"));
    symlink("/dev/zero", project.path().join("zero.edn")).expect("a link");
    symlink("/etc/hostname", project.path().join("host.edn")).expect("a link");
    for name in ["part.edn", "zero.edn", "host.edn"] {
        let text = format!("{{:slug :f :flow #flow/include \"{name}\"}}");
        let found = project.errors(&text);
        assert!(found.starts_with("E0119 "), "{name}: {found}");
    }
}

#[test]
fn only_the_owner_can_read_the_data_of_a_project() {
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    let project = Project::new();
    let home = project.path().join(".flowstone");
    let big = "x".repeat(200_000);
    project.write("src/a.txt", big.as_bytes());
    let body = format!(
        r#"(do (flow/step :files :tree {{:op :resolve-source :source {{:type :dir :path "src"}}}}) (flow/step :kv :k {{:operation :set :key "k" :value "{}"}}))"#,
        "y".repeat(100_000)
    );
    project.eval(&body);
    assert_eq!(mode(&home), 0o700);
    let mut open = vec![home.clone()];
    let mut files = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            files += 1;
            // Lock files are empty.
            let is_empty = fs::metadata(&path).is_ok_and(|about| about.len() == 0);
            assert!(
                is_empty || mode(&path) & 0o077 == 0,
                "{}: {:o}",
                path.display(),
                mode(&path)
            );
        }
    }
    assert!(files > 3);
    // A database that an earlier version created gets closed permissions when it is opened.
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).expect("changed");
    fs::set_permissions(home.join("flowstone.db"), fs::Permissions::from_mode(0o644))
        .expect("changed");
    let project = project.reopen();
    project.eval("1");
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("flowstone.db")), 0o600);
}
