//! Changes of the published example that make it invalid.

use flowstone_fronts::graph::validate::validate;

use table::{MUTATIONS, example};

#[path = "../../mutations.rs"]
mod table;

#[test]
fn mutations_of_the_published_example_are_refused_at_their_place() {
    assert!(validate(&example()).1.is_valid());
    for (pointer, value, expected) in MUTATIONS {
        let mut spec = example();
        *spec.pointer_mut(pointer).expect(pointer) = value.parse().expect("JSON");
        let (read, report) = validate(&spec);
        let places: Vec<String> = report.issues.iter().map(|it| it.place()).collect();
        assert!(read.is_none(), "{pointer} {value}");
        assert_eq!(places, *expected, "{pointer} {value}");
    }
}
