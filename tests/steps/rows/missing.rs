//! Rows of `tests/coverage` with the status `missing`: the tests show what happens today. If one fails, the status of
//! its row has changed.

use crate::net::contains;
use crate::project::Project;

#[test]
fn options_of_child_runs_that_are_missing() {
    let call = "(flow/call-flow :nothing {} {:profile-id \"p\"})";
    contains(&Project::new().eval(call), "E0710");
}

#[test]
fn options_of_items_that_are_missing() {
    let project = Project::new();
    project.write("flows/one.edn", b"{:slug :one :flow '1}");
    for option in [":retry-policy {:max-attempts 2}", ":profile-id \"p\""] {
        let item = format!("{{:type :call-flow :flow-slug :one {option}}}");
        let body = format!("(flow/step :fanout :all {{:items [{item}]}})");
        contains(&project.eval(&body), "E0710");
    }
}
