//! Tree files: the dialects, references, and everything that is wrong with one.

use flowstone_fronts::tree::{Dialect, Node, TreeError, check};

use super::project::Project;

const BARE: &str = r#"{"type": "sequence", "name": "Root", "state": {"var": {"a": 1}, "const": {"b": 2}},
  "children": [{"type": "action", "name": "A", "steps": [{"instruct": "  do a  "}], "state": {"var": {"c": 3}}}]}"#;

/// Checks `tree.yaml` of a project with these files, and returns its problems.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let project = Project::with(files);
    match check(project.folder.path(), files[0].0.as_ref()) {
        Ok(checked) => panic!("it has no problem: {checked:?}"),
        Err(TreeError::BadTree { problems, .. }) => problems,
        Err(other) => vec![other.to_string()],
    }
}

fn of(text: &str) -> Vec<String> {
    problems(&[("tree.yaml", text)])
}

#[test]
fn three_dialects_are_read() {
    let wrapper = |state: &str| {
        format!(
            "name: My Tree!\nversion: 1.0.0\ntree: {{type: action, name: A, steps: [{{evaluate: x}}]}}\nstate: {state}"
        )
    };
    let project = Project::with(&[
        ("bare.json", BARE),
        ("new.yaml", &wrapper("{var: {a: 1}, const: {b: 2}}")),
        ("old.yml", &wrapper("{local: {a: 1}, global: {b: 2}}")),
    ]);
    for (name, dialect, slug) in [
        ("bare.json", Dialect::Bare, "root"),
        ("new.yaml", Dialect::Wrapper, "my-tree"),
        ("old.yml", Dialect::LocalGlobal, "my-tree"),
    ] {
        let tree = check(project.folder.path(), name.as_ref())
            .expect(name)
            .tree;
        assert_eq!((tree.dialect, &*tree.slug()), (dialect, slug));
        assert_eq!(tree.var["a"], 1, "{name}");
        assert_eq!(tree.constants["b"], 2, "{name}");
        assert!(
            !tree.var.contains_key("c"),
            "only the state of the root counts"
        );
    }
}

#[test]
fn retries_are_whole_numbers_in_any_spelling() {
    let text = |retries: &str| {
        format!("{{type: action, name: A, retries: {retries}, steps: [{{instruct: x}}]}}")
    };
    for (given, expected) in [("2", 2), ("2.0", 2), ("1e1", 10), ("0x3", 3)] {
        let project = Project::with(&[("tree.yaml", &text(given))]);
        let tree = check(project.folder.path(), "tree.yaml".as_ref()).expect(given);
        let Node::Action { retries, .. } = tree.tree.root else {
            panic!("{given}");
        };
        assert_eq!(retries, expected, "{given}");
    }
    for wrong in [
        "1.5", "-1", "0", "10001", "1e300", "null", "true", "'2'", "[1]",
    ] {
        let found = of(&text(wrong));
        let expected = "retries: must be a whole number from 1 to 10000";
        assert!(found[0].starts_with(expected), "{wrong}: {found:?}");
    }
}

#[test]
fn every_problem_is_reported_with_its_path() {
    let found = of(r#"
name: ""
version: 2
state: {var: [1], other: {}}
tree:
  type: sequence
  name: S
  retries: 0
  children:
    - {type: action, name: A, steps: []}
    - {type: loop, name: B, children: []}
    - {type: selector, name: C, children: []}
    - {type: action, name: D, steps: [{evaluate: a, instruct: b}, {}, {instruct: "  "}]}
    - {type: action, steps: [{instruct: x}]}
    - 17
"#);
    let expected = [
        "name: must not be empty",
        "version: must be a text, such as \"1.0.0\"",
        "state.other: is not a store; the stores are `var` and `const`",
        "state.var: must be a map",
        "tree.retries: must be a whole number from 1 to 10000, got `0`",
        "tree.children.0.steps: must be a list of at least one step",
        "tree.children.1.type: `loop` is not a type of node; expected action, parallel, selector or sequence",
        "tree.children.2.children: must be a list of at least one node",
        "tree.children.3.steps.0: has both `evaluate` and `instruct`; a step has exactly one",
        "tree.children.3.steps.1: has neither `evaluate` nor `instruct`; a step has exactly one",
        "tree.children.3.steps.2.instruct: must not be empty",
        "tree.children.4.name: is missing",
        "tree.children.5: must be a node: a map with `type`, or with `$ref`",
    ];
    assert_eq!(found, expected);
}

#[test]
fn names_of_the_bare_dialect_have_no_slash_and_no_at() {
    let found = of(
        "{type: sequence, name: a/b, children: [{type: action, name: c@d, steps: [{instruct: x}]}]}",
    );
    let expected = [
        "children.0.name: must not contain `/` or `@`",
        "name: must not contain `/` or `@`",
    ];
    let mut found = found;
    found.sort();
    assert_eq!(found, expected);
    let found = of("{$ref: x.yaml}");
    assert!(
        found[0].starts_with("$ref: `x.yaml` cannot be used: "),
        "{found:?}"
    );
}

#[test]
fn the_root_of_a_file_may_be_a_reference() {
    let project = Project::with(&[
        ("main.yaml", "{$ref: part.yaml, state: {var: {a: 1}}}"),
        (
            "part.yaml",
            "{type: action, name: P, state: {var: {b: 2}}, steps: [{instruct: x}]}",
        ),
        ("self.yaml", "{$ref: '#'}"),
    ]);
    let checked = check(project.folder.path(), "main.yaml".as_ref()).expect("a tree");
    let tree = checked.tree;
    assert_eq!((tree.dialect, &*tree.name), (Dialect::Bare, "P"));
    assert_eq!(
        serde_json::Value::from(tree.var),
        serde_json::json!({"a": 1})
    );
    let unused = &checked.warnings[0];
    assert!(
        unused.starts_with("part.yaml#state: is not used"),
        "{unused}"
    );
    let circle = check(project.folder.path(), "self.yaml".as_ref()).expect("a tree");
    assert!(matches!(circle.tree.root, Node::Cycle { .. }));
}

#[test]
fn references_are_replaced() {
    let project = Project::with(&[
        (
            "trees/main.yaml",
            "name: m\nversion: 1.0.0\ntree:\n  type: sequence\n  name: S\n  children:\n    - $ref: ./parts/a.yaml\n    - $ref: parts/w.yaml\n    - $ref: 'parts/a.yaml#/steps-of/0'\n    - $ref: '#/tree/children/0'\n",
        ),
        (
            "trees/parts/a.yaml",
            "type: action\nname: A\nsteps: [{instruct: x}]\nsteps-of: [{type: action, name: Inner, steps: [{evaluate: y}]}]\n",
        ),
        (
            "trees/parts/w.yaml",
            "name: w\nversion: 1.0.0\ntree: {$ref: a.yaml}\n",
        ),
    ]);
    let tree = check(project.folder.path(), "trees/main.yaml".as_ref())
        .expect("a tree")
        .tree;
    let Node::Composite { children, .. } = &tree.root else {
        panic!("{tree:?}");
    };
    let names: Vec<&str> = children.iter().map(Node::name).collect();
    assert_eq!(names, ["A", "A", "Inner", "A"]);
}

#[test]
fn members_beside_a_reference_and_cycles_are_warned_about() {
    let tree = "name: l\nversion: 1.0.0\ntree: {type: sequence, name: S, children: [{$ref: '#/tree'}, {$ref: other.yaml, retries: 3}]}\n";
    let action = "{type: action, name: O, steps: [{instruct: x}]}";
    let project = Project::with(&[("tree.yaml", tree), ("other.yaml", action)]);
    let checked = check(project.folder.path(), "tree.yaml".as_ref()).expect("a tree");
    assert_eq!(
        checked.warnings,
        [
            "tree.children.0.$ref: leads back to a node around it: the tree fails when it gets here",
            "tree.children.1.retries: is not used",
        ]
    );
}

#[test]
fn a_cycle_stays_as_a_marker() {
    let loops = "name: l\nversion: 1.0.0\ntree: {type: sequence, name: S, children: [{$ref: '#/tree'}, {$ref: other.yaml}]}\n";
    let project = Project::with(&[
        ("tree.yaml", loops),
        (
            "other.yaml",
            "type: sequence\nname: O\nchildren: [{$ref: tree.yaml}]\n",
        ),
        (
            "around.yaml",
            "{type: sequence, name: A, children: [{$ref: 'ring.yaml#/a'}]}",
        ),
        (
            "ring.yaml",
            "{type: action, name: R, steps: [{instruct: x}], a: {$ref: '#/b'}, b: {$ref: '#/a'}}",
        ),
    ]);
    let root = check(project.folder.path(), "tree.yaml".as_ref())
        .expect("a tree")
        .tree
        .root;
    let Node::Composite { children, .. } = &root else {
        panic!("{root:?}");
    };
    assert!(matches!(&children[0], Node::Cycle { reference } if reference == "#/tree"));
    let Node::Composite { children, .. } = &children[1] else {
        panic!("{root:?}");
    };
    assert!(matches!(&children[0], Node::Cycle { .. }));
    let root = check(project.folder.path(), "around.yaml".as_ref())
        .expect("a tree")
        .tree
        .root;
    let Node::Composite { children, .. } = &root else {
        panic!("{root:?}");
    };
    assert!(matches!(&children[0], Node::Cycle { .. }));
}

#[test]
fn references_stay_in_the_project() {
    let outside = tempfile::tempdir().expect("a folder");
    let secret = outside.path().join("secret.yaml");
    std::fs::write(
        &secret,
        "{type: action, name: Secret, steps: [{instruct: x}]}",
    )
    .expect("written");
    let reference = |to: &str| format!("{{type: sequence, name: S, children: [{{$ref: '{to}'}}]}}");
    let absolute = secret.display().to_string();
    for to in [
        "../../secret.yaml",
        "a/../../x.yaml",
        absolute.as_str(),
        "file:///etc/passwd.yaml",
    ] {
        let found = of(&reference(to));
        assert!(
            found[0].contains("is outside the project's folder"),
            "{to}: {found:?}"
        );
    }
    for to in ["https://example.com/tree.yaml", "s3://bucket/tree.yaml"] {
        assert!(of(&reference(to))[0].contains("are off"), "{to}");
    }
    #[cfg(unix)]
    {
        let project = Project::with(&[("tree.yaml", &reference("link.yaml"))]);
        std::os::unix::fs::symlink(&secret, project.path("link.yaml")).expect("a link");
        let error = check(project.folder.path(), "tree.yaml".as_ref()).expect_err("it leads out");
        assert!(
            error
                .to_string()
                .contains("leads outside the project's folder"),
            "{error}"
        );
    }
}

#[test]
fn hostile_files_are_refused_in_time() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for idx in 1..9 {
        let before = format!("*a{},", idx - 1).repeat(10);
        bomb.push_str(&format!("a{idx}: &a{idx} [{before}]\n"));
    }
    assert!(
        of(&bomb)[0].contains("its aliases come to too much"),
        "{:?}",
        of(&bomb)
    );
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(
        of(&deep)[0].contains("recursion limit exceeded"),
        "{:?}",
        of(&deep)
    );
    let large = format!("# {}\n", "x".repeat(2 << 20));
    assert!(of(&large)[0].contains("more than 1048576 bytes"));
    // References that double at each level.
    let mut parts = vec![("tree.yaml".to_owned(), String::new())];
    for idx in 0..20 {
        let next = match idx {
            19 => "{type: action, name: A, steps: [{instruct: x}]}".to_owned(),
            idx => format!(
                "{{type: sequence, name: S, children: [{{$ref: p{0}.yaml}}, {{$ref: p{0}.yaml}}]}}",
                idx + 1
            ),
        };
        let name = if idx == 0 {
            "tree.yaml".to_owned()
        } else {
            format!("p{idx}.yaml")
        };
        match idx {
            0 => parts[0].1 = next,
            _ => parts.push((name, next)),
        }
    }
    let parts: Vec<(&str, &str)> = parts
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert!(problems(&parts)[0].contains("more than 10000 nodes"));
    assert!(of("a: 1\n---\nb: 2\n")[0].contains("several documents"));
    assert!(of("{a: 1, a: 2}")[0].contains("same key twice"));
    let refused =
        "{type: action, name: A, steps: [{instruct: x}], state: {var: {a: {__proto__: 1}}}}";
    assert!(of(refused)[0].contains("has the key `__proto__`, which is refused"));
}

#[test]
fn a_file_that_is_no_tree_file_is_named() {
    let project = Project::with(&[("a.txt", "x")]);
    let error = |path: &str| {
        let checked = check(project.folder.path(), path.as_ref());
        checked.expect_err("it is refused").to_string()
    };
    assert_eq!(
        error("missing.yaml"),
        "Could not load tree at missing.yaml: there is no such file"
    );
    assert_eq!(
        error("a.txt"),
        "Could not load tree at a.txt: the name of a tree file ends in .yaml, .yml or .json"
    );
}

#[test]
fn the_problems_below_a_node_of_an_unknown_type_are_listed() {
    let text = "{type: loop, name: Root, retries: 0, children: [{type: action, name: A, steps: []}, {name: B}], steps: []}";
    let found = of(text);
    for expected in [
        "retries: must be",
        "type: `loop` is not a type of node",
        "children.0.steps: must be a list",
        "children.1.type: is missing",
    ] {
        assert!(
            found.iter().any(|it| it.starts_with(expected)),
            "{expected}: {found:?}"
        );
    }
    let wrapper = of("{tree: {$ref: none.yaml}, state: {vars: {}}}");
    for expected in [
        "name: is missing",
        "version: must be",
        "state.vars: is not a store",
        "tree.$ref: ",
    ] {
        assert!(
            wrapper.iter().any(|it| it.starts_with(expected)),
            "{expected}: {wrapper:?}"
        );
    }
    let reference = of("{$ref: other.yaml, state: {vars: {}}}");
    assert_eq!(reference.len(), 2, "{reference:?}");
}

#[test]
fn the_stores_of_a_root_node_have_both_pairs_of_names() {
    let action = "type: action\nname: A\nsteps: [{evaluate: x}]\n";
    let project = Project::with(&[
        (
            "old.yaml",
            &format!("{action}state: {{local: {{a: 1}}, global: {{b: 2}}}}"),
        ),
        (
            "mixed.yaml",
            &format!("{action}state: {{local: {{a: 1}}, const: {{b: 2}}}}"),
        ),
    ]);
    let tree = check(project.folder.path(), "old.yaml".as_ref())
        .expect("a tree")
        .tree;
    assert_eq!(
        (tree.dialect, &tree.var["a"], &tree.constants["b"]),
        (Dialect::Bare, &1.into(), &2.into())
    );
    let mixed = check(project.folder.path(), "mixed.yaml".as_ref());
    assert!(mixed.is_err_and(|error| error.to_string().contains("not both")));
}

#[test]
fn stores_of_parts_are_warned_about() {
    let part = "name: part\nversion: 1.0.0\nstate: {const: {x: 1}}\ntree: {type: action, name: A, steps: [{evaluate: x}]}\n";
    let node = "type: action\nname: B\nstate: {var: {x: 1}}\nsteps: [{evaluate: x}]\n";
    let project = Project::with(&[
        (
            "tree.yaml",
            "{type: sequence, name: R, state: {var: {a: 1}}, children: [{$ref: part.yaml}, {$ref: node.yaml}]}",
        ),
        ("part.yaml", part),
        ("node.yaml", node),
    ]);
    let checked = check(project.folder.path(), "tree.yaml".as_ref()).expect("a tree");
    assert_eq!(checked.tree.var["a"], 1);
    let places: Vec<&str> = checked
        .warnings
        .iter()
        .filter_map(|it| it.split(": ").next())
        .collect();
    assert_eq!(
        places,
        ["part.yaml#state", "node.yaml#state"],
        "{:?}",
        checked.warnings
    );
}

#[test]
fn members_twice_and_long_integers_are_refused_in_both_formats() {
    let json = r#"{"type": "action", "name": "A", "name": "B", "steps": [{"instruct": "x"}]}"#;
    let json = problems(&[("tree.json", json)]).join("");
    assert!(
        json.contains(
            "the member `name` is there twice: at line 1, column 20 and at line 1, column 33"
        ),
        "{json}"
    );
    let action = "type: action\nname: A\nsteps: [{instruct: x}]\n";
    let yaml = of(&format!("{action}name: B\n")).join("");
    assert!(yaml.contains("line 4"), "{yaml}");
    for (name, text) in [
        ("tree.yaml", format!("{action}state: {{var: {{l: [{{n: 123456789012345678901}}]}}}}")),
        ("tree.json", r#"{"type": "action", "name": "A", "steps": [{"instruct": "x"}], "state": {"var": {"n": 123456789012345678901}}}"#.to_owned()),
    ] {
        let found = problems(&[(name, &text)]).join("");
        assert!(found.contains("123456789012345678901"), "{found}");
    }
}

#[test]
fn an_index_of_a_reference_has_no_leading_zero() {
    let tree = |pointer: &str| {
        format!("{{type: sequence, name: S, children: [{{$ref: 'parts.yaml#/x/{pointer}'}}]}}")
    };
    let parts = "x: [{type: action, name: A, steps: [{instruct: x}]}]\n";
    for (pointer, is_found) in [("0", true), ("00", false), ("+0", false), ("1", false)] {
        let project = Project::with(&[("t.yaml", &tree(pointer)), ("parts.yaml", parts)]);
        let checked = check(project.folder.path(), "t.yaml".as_ref());
        assert_eq!(checked.is_ok(), is_found, "{pointer}: {:?}", checked.err());
    }
}

/// Each level is a file of its own, and so is each reference in the chain in front of the first.
#[test]
fn references_are_not_levels_of_a_tree() {
    let levels = |count: usize, links: usize| {
        let mut files: Vec<(String, String)> = (1..count)
            .map(|level| {
                let text = format!(
                    "{{type: sequence, name: L{level}, children: [{{$ref: n{}.yaml}}]}}",
                    level + 1
                );
                (format!("n{level}.yaml"), text)
            })
            .collect();
        files.push((
            format!("n{count}.yaml"),
            "{type: action, name: End, steps: [{instruct: x}]}".to_owned(),
        ));
        files.extend((1..=links).map(|link| {
            let next = if link == links {
                "n1.yaml".to_owned()
            } else {
                format!("r{}.yaml", link + 1)
            };
            (format!("r{link}.yaml"), format!("{{$ref: {next}}}"))
        }));
        let first = if links == 0 { "n1.yaml" } else { "r1.yaml" };
        files.push((
            "tree.yaml".to_owned(),
            format!("{{name: t, version: '1', tree: {{$ref: {first}}}}}"),
        ));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        let project = Project::with(&files);
        check(project.folder.path(), "tree.yaml".as_ref())
            .err()
            .map(|it| it.to_string())
    };
    assert_eq!(levels(48, 0), None);
    assert_eq!(levels(48, 50), None);
    let deep = levels(49, 0).expect("too deep");
    assert!(
        deep.contains("n48.yaml#children.0: is deeper than 48 nodes"),
        "{deep}"
    );
    let long = levels(2, 130).expect("too many references");
    assert!(
        long.contains("is behind more than 128 references"),
        "{long}"
    );
}

#[test]
fn a_reference_in_place_of_other_values_is_explained() {
    let hint = "; a `$ref` can only be in place of a node, so write the value here";
    let found = of("name: {$ref: a.yaml}
version: {$ref: a.yaml}
description: {$ref: a.yaml}
state: {$ref: a.yaml}
tree: {type: action, name: A, retries: {$ref: a.yaml}, steps: [{$ref: a.yaml}]}
");
    for place in [
        "name",
        "version",
        "description",
        "state",
        "tree.retries",
        "tree.steps.0",
    ] {
        let begin = format!("{place}: ");
        assert!(
            found
                .iter()
                .any(|it| it.starts_with(&begin) && it.ends_with(hint)),
            "{place}: {found:#?}"
        );
    }
    assert_eq!(found.len(), 6, "{found:#?}");
}
