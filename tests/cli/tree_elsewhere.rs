//! Parts of a tree on other hosts and in other folders, which `:allow` has to name.

use serde_json::{Value, json};

use crate::program::Scratch;
use crate::server::{Answer, Server};

const SEQUENCE: &str = "{type: sequence, name: Root, children: [{$ref: 'REF'}]}";
const PART: &str = "type: selector\nname: Part\nchildren:\n  - $ref: ./deeper/act.json\n  - $ref: '#/children/0'\n";
const ACT: &str = r#"{"type": "action", "name": "Act", "steps": [{"instruct": "Do it."}]}"#;

/// A server of tree files.
fn parts() -> Server {
    Server::start(|request, _| match &*request.path {
        "/trees/part.yaml" => Answer::Json(PART.to_owned()),
        "/trees/deeper/act.json" => Answer::Json(ACT.to_owned()),
        "/trees/local.yaml" => Answer::Json(SEQUENCE.replace("REF", "file:///etc/hosts.yaml")),
        "/trees/large.yaml" => Answer::Json(format!("# {}", "x".repeat(2 << 20))),
        "/trees/loop.yaml" => Answer::Json(SEQUENCE.replace("REF", "../trees/loop.yaml")),
        "/trees/up.yaml" => Answer::Json(SEQUENCE.replace("REF", "../../up.yaml")),
        _ => Answer::Status(404, "nothing"),
    })
}

/// A project with a tree that refers to a place, and with settings.
fn project(reference: &str, settings: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", settings);
    scratch.write("tree.yaml", SEQUENCE.replace("REF", reference));
    scratch
}

/// Starts the tree, which is refused, and returns the problem.
fn refused(scratch: &Scratch) -> String {
    let ran = scratch.run(&["tree", "start", "tree.yaml", "r"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let text = ran.err;
    let listed = scratch.run(&["runs", "list", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["runs"], json!([]), "nothing was started");
    text
}

#[test]
fn references_to_other_hosts_are_off_without_a_row_of_the_project() {
    let server = parts();
    let url = server.url("/trees/part.yaml");
    for settings in ["{}", "{:allow {:net [\"other.example\"]}}"] {
        let text = refused(&project(&url, settings));
        let host = url.trim_start_matches("http://").split('/').next();
        let expected = format!(
            "children.0.$ref: `{url}` cannot be used: references to other hosts are off; to allow this one, add `:allow {{:net [\"{}\"]}}` to flowstone.edn",
            host.expect("a host")
        );
        assert!(text.contains(&expected), "{text}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn references_to_other_hosts_are_read_once_and_kept_by_the_run() {
    let server = parts();
    let settings = "{:allow {:net [\"127.0.0.1\"]}}";
    let scratch = project(&server.url("/trees/part.yaml"), settings);
    scratch.run(&["tree", "start", "tree.yaml", "r"]).ok();
    let export = scratch.run(&["tree", "export", "r"]).ok();
    let document: Value = serde_json::from_str(&export).expect("JSON");
    let act = json!({"type": "action", "name": "Act", "steps": [{"kind": "instruct", "instruction": "Do it."}]});
    let part = json!({"type": "selector", "name": "Part", "children": [act, act]});
    assert_eq!(document["tree"]["children"], json!([part]));
    assert_eq!(server.requests().len(), 2);
    assert!(
        scratch
            .run(&["tree", "next", "r"])
            .ok()
            .contains("instruct Act")
    );
    scratch.run(&["tree", "submit", "r", "success"]).ok();
    assert_eq!(scratch.run(&["tree", "next", "r"]).ok().trim(), "done");
    assert_eq!(server.requests().len(), 2, "the run has the whole tree");
}

#[test]
fn parts_of_other_hosts_are_checked() {
    let server = parts();
    let settings = "{:allow {:net [\"127.0.0.1\"]}}";
    for (path, expected) in [
        ("missing.yaml", "404"),
        ("large.yaml", "1048576"),
        (
            "local.yaml",
            "a part from another host cannot name files of this one",
        ),
        ("up.yaml", "it leads nowhere"),
        ("part.txt", "404"),
    ] {
        let text = refused(&project(&server.url(&format!("/trees/{path}")), settings));
        assert!(text.contains(expected), "{path}: {text}");
    }
    // A cycle is a marker: the run starts, and ticking it is a failure.
    let scratch = project(&server.url("/trees/loop.yaml"), settings);
    scratch.run(&["tree", "start", "tree.yaml", "r"]).ok();
    assert_eq!(scratch.run(&["tree", "next", "r"]).ok().trim(), "failure");
}

#[test]
fn parts_in_other_folders_need_a_row_of_the_project() {
    let other = Scratch::new();
    other.write("shared/part.yaml", PART);
    other.write("shared/deeper/act.json", ACT);
    other.write("secret.yaml", SEQUENCE.replace("REF", "x"));
    let root = std::fs::canonicalize(other.path()).expect("it is there");
    let path = root.join("shared/part.yaml").display().to_string();
    let text = refused(&project(&path, "{}"));
    let expected = format!(
        "`{path}` is outside the project's folder; to allow it, add its folder to `:allow {{:read [...]}}` in flowstone.edn"
    );
    assert!(text.contains(&expected), "{text}");
    let settings = format!(
        "{{:allow {{:read [\"{}\"]}}}}",
        root.join("shared").display()
    );
    let scratch = project(&path, &settings);
    scratch.run(&["tree", "start", "tree.yaml", "r"]).ok();
    assert!(
        scratch
            .run(&["tree", "next", "r"])
            .ok()
            .contains("instruct Act")
    );
    let escape = root.join("shared/../secret.yaml").display().to_string();
    assert!(refused(&project(&escape, &settings)).contains("is outside the project's folder"));
    std::os::unix::fs::symlink(root.join("secret.yaml"), root.join("shared/link.yaml"))
        .expect("a link");
    let link = root.join("shared/link.yaml").display().to_string();
    assert!(refused(&project(&link, &settings)).contains("is outside the project's folder"));
}

#[test]
fn a_link_in_the_project_leads_to_a_folder_that_a_row_names() {
    let other = Scratch::new();
    other.write("shared/part.yaml", PART);
    other.write("shared/deeper/act.json", ACT);
    let shared = std::fs::canonicalize(other.path().join("shared")).expect("it is there");
    let linked = |settings: &str| {
        let scratch = project("linked/part.yaml", settings);
        std::os::unix::fs::symlink(&shared, scratch.path().join("linked")).expect("a link");
        scratch
    };
    assert!(refused(&linked("{}")).contains("is outside the project's folder"));
    let scratch = linked(&format!("{{:allow {{:read [\"{}\"]}}}}", shared.display()));
    scratch.run(&["tree", "start", "tree.yaml", "r"]).ok();
    let next = scratch.run(&["tree", "next", "r"]).ok();
    assert!(next.contains("instruct Act"), "{next}");
}

/// A part of a tree is no way to the secrets of a project, also by a link.
#[test]
fn no_part_of_a_tree_is_a_protected_file() {
    for (name, text) in [
        (".env.yaml", "TOKEN=s3cret-9"),
        (".git/act.json", ACT),
        (".flowstone/act.json", ACT),
        ("link.yaml", ""),
    ] {
        let scratch = project(name, "{}");
        match text {
            "" => {
                scratch.write(".env.local", "TOKEN=s3cret-9");
                let env = scratch.path().join(".env.local");
                std::os::unix::fs::symlink(env, scratch.path().join(name)).expect("a link");
            }
            text => drop(scratch.write(name, text)),
        }
        let text = refused(&scratch);
        assert!(
            text.contains("a tree has no part in or called"),
            "{name}: {text}"
        );
        assert!(!text.contains("s3cret-9"), "{text}");
        let ran = scratch.run(&["tree", "check", name]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(!format!("{ran:?}").contains("s3cret-9"), "{ran:?}");
    }
}
