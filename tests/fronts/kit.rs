//! The build kit: its catalogue, deltas and spans.

mod project;
mod spans;

use flowstone_fronts::kit::{InTest, Permission, catalog};

#[test]
fn the_catalogue_keeps_its_rules() {
    assert_eq!(catalog::problems(), Vec::<String>::new());
    for tool in catalog::TOOLS {
        assert_eq!(catalog::find(tool.name).map(|it| it.name), Some(tool.name));
        // What changes something changes nothing in a test.
        let is_write = !tool.read_only && tool.permission == Permission::Ask;
        assert!(
            !is_write || tool.in_test != InTest::Answered,
            "{}",
            tool.name
        );
    }
    assert!(catalog::find("find_capabilities").is_none());
}
