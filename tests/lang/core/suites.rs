//! Test suites written in the language: each file of `suites/` runs as a program, and all of its assertions must hold.

use flowstone_lang::value::{Symbol, Value};

use super::Runner;

const SUITES: &[(&str, &str)] = &[
    ("edges.clj", include_str!("suites/edges.clj")),
    ("types.clj", include_str!("suites/types.clj")),
];

#[test]
fn suites_pass() {
    for (name, program) in SUITES {
        let mut runner = Runner::new();
        let world = runner.session.world();
        world
            .namespace(Symbol::new("user"))
            .intern(Symbol::new("program"))
            .set_root(Value::from(*program));
        let printed = runner.run(
            "(let [summary (volatile! nil)
                   printed (with-out-str
                             (binding [*ns* *ns*]
                               (load-string program)
                               (vreset! summary (clojure.test/run-tests (ns-name *ns*)))))]
               (if (clojure.test/successful? @summary) (:pass @summary) (symbol printed)))",
        );
        assert!(printed.parse::<u32>().is_ok(), "{name}:\n{printed}");
    }
}
