//! The table of actions: names, permissions, and what arguments cannot set.

use super::*;

#[test]
fn actions_are_sorted_and_named_after_their_permissions() {
    for list in [ACTIONS, knowledge::ACTIONS, tags::ACTIONS] {
        let names: Vec<&str> = list.iter().map(|it| it.name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
    for action in all() {
        let (_, operation) = action.permission.split_once(':').expect("a module");
        let mut name = String::new();
        for char in operation.chars() {
            if char.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(char.to_ascii_lowercase());
        }
        assert_eq!(name, action.name);
    }
}

#[test]
fn arguments_set_neither_project_nor_boundary_nor_identity() {
    for action in all() {
        let schema = action.schema();
        for name in NOT_OF_ACTIONS {
            assert!(schema["properties"].get(*name).is_none(), "{}", action.name);
        }
        assert!(
            action
                .given("proj_a", &json!({"project_id": "proj_b"}))
                .is_err()
        );
    }
}
