//! Rows of installations, and the tokens of their runs.

use std::collections::BTreeMap;

use flowstone_engine::ids::RunId;
use flowstone_engine::installation::{InstallationName, InstallationRow};
use flowstone_engine::registry::FlowName;

use super::STORE;
use crate::bench::{Bench, block_on};

fn row(workspace: &str, name: &str) -> InstallationRow {
    InstallationRow {
        at: InstallationName {
            workspace: workspace.to_owned(),
            name: name.to_owned(),
        },
        flow: FlowName::local("report"),
        version: 3,
        content: "c".to_owned(),
        auto_upgrade: true,
        is_readable: false,
        is_configured: true,
        set: BTreeMap::from([("ai".to_owned(), "acme-openai".to_owned())]),
        setup: "{:activation {:region \"EU\"}}".to_owned(),
        accepted: "[\"connection ai\"]".to_owned(),
        max_tokens: Some(500),
        created_ms: 1,
        updated_ms: 2,
        changes: 0,
    }
}

#[test]
fn a_name_is_taken_once_in_each_workspace() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    let installations = &stores.installations;
    let (one, other) = (row("acme", "main"), row("beta", "main"));
    assert!(block_on(installations.install(one.clone())).expect("written"));
    assert!(block_on(installations.install(other.clone())).expect("written"));
    let again = InstallationRow {
        version: 9,
        ..one.clone()
    };
    assert!(!block_on(installations.install(again)).expect("read"));
    // What is there is there for the next process, too.
    let stores = bench.stores();
    let installations = &stores.installations;
    assert_eq!(
        block_on(installations.installation(&one.at)).expect("read"),
        Some(one.clone())
    );
    let acme = block_on(installations.installations(Some("acme"))).expect("read");
    assert_eq!(acme, std::slice::from_ref(&one));
    let all = block_on(installations.installations(None)).expect("read");
    assert_eq!(all, [one.clone(), other]);
    assert!(block_on(installations.uninstall(&one.at)).expect("written"));
    assert!(!block_on(installations.uninstall(&one.at)).expect("read"));
    assert_eq!(
        block_on(installations.installation(&one.at)).expect("read"),
        None
    );
}

#[test]
fn of_two_changes_of_one_row_the_second_is_refused() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    let installations = &stores.installations;
    let first = row("acme", "main");
    block_on(installations.install(first.clone())).expect("written");
    let changed = |version: i64| InstallationRow {
        version,
        changes: 1,
        max_tokens: None,
        ..first.clone()
    };
    assert!(block_on(installations.change_installation(changed(4))).expect("written"));
    assert!(!block_on(installations.change_installation(changed(5))).expect("read"));
    let found = block_on(installations.installation(&first.at)).expect("read");
    assert_eq!(found, Some(changed(4)));
    let missing = row("acme", "other");
    assert!(!block_on(installations.change_installation(missing)).expect("read"));
}

#[test]
fn tokens_of_a_run_are_counted_once_however_often_it_is_noted() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    let installations = &stores.installations;
    let at = row("acme", "main").at;
    let other = row("beta", "main").at;
    let run = |id: &str| RunId::from_text(id.to_owned());
    for (at, id, tokens) in [
        (&at, "a", 10),
        (&at, "b", 5),
        (&at, "a", 30),
        (&other, "c", 7),
    ] {
        block_on(installations.note_tokens(at, &run(id), tokens)).expect("written");
    }
    let used =
        |at, except: &str| block_on(installations.tokens_used(at, &run(except))).expect("read");
    assert_eq!(used(&at, "none"), 35);
    assert_eq!(used(&at, "a"), 5);
    assert_eq!(used(&other, "none"), 7);
}
