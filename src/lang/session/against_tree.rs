//! Compares the machine with the plain evaluator: the same programs must give the same values, exceptions and output.

use proptest::prelude::*;

use crate::session::Session;
use crate::value::{PrintOptions, Result, Signal, Value};
use crate::vm::{NoHost, Vm};

/// The evaluator that runs a program.
#[derive(Clone, Copy)]
enum Runs {
    Machine,
    Tree,
}

struct Side {
    session: Session,
    vm: Vm,
    runs: Runs,
}

impl Side {
    fn new(runs: Runs) -> Side {
        let session = Session::new();
        let vm = session.vm(Box::new(NoHost::default()));
        Side { session, vm, runs }
    }

    /// Returns the observable outcome of a program: its output, and its value or exception.
    fn outcome(&mut self, program: &str) -> String {
        match self.run(program) {
            Ok(shown) => shown,
            Err(Signal::Throw(exception)) => {
                format!("! {} {}", exception.class.0.name, exception.code)
            }
            Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
        }
    }

    fn run(&mut self, program: &str) -> Result<String> {
        let text = format!(
            "(let [value (atom nil)
                   printed (with-out-str (reset! value (try [{program}] (catch Throwable e [:threw (class e)]))))]
               (binding [*print-length* 100] (pr-str @value printed)))"
        );
        let mut last = Value::Nil;
        for form in self.session.read("<test>", &text)? {
            last = match self.runs {
                Runs::Machine => self.session.eval(&mut self.vm, &form)?,
                Runs::Tree => crate::compiler::tree::eval(&mut self.vm, &form)?,
            };
        }
        self.vm.print(&last, PrintOptions::READABLE)
    }
}

fn agree(machine: &mut Side, tree: &mut Side, program: &str) -> std::result::Result<(), String> {
    let (one, other) = (machine.outcome(program), tree.outcome(program));
    // A function is printed with a name and an identity.
    let has_function = |shown: &str| shown.contains("#function") || shown.contains("#object");
    if one == other || has_function(&one) {
        return Ok(());
    }
    Err(format!("{program}\n  machine {one}\n  tree    {other}"))
}

macro_rules! stored {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../tests/lang/expectations/stored/", $name, ".tsv"))),*]
    };
}

/// Expressions that are also compared with Clojure; each is the first column of a line.
const STORED: &[&str] = stored!("random-destructuring" "random-exceptions" "random-numbers" "random-sequences" "sequences");

#[test]
fn stored_expressions_agree() {
    let (mut machine, mut tree) = (Side::new(Runs::Machine), Side::new(Runs::Tree));
    let mut problems = Vec::new();
    let lines = STORED.iter().flat_map(|text| text.lines());
    let programs: Vec<&str> = lines.filter_map(|line| line.split('\t').next()).collect();
    let mut compiled = 0;
    for program in programs.iter().copied() {
        compiled += usize::from(!tree.outcome(program).starts_with('!'));
        if let Err(problem) = agree(&mut machine, &mut tree, program) {
            problems.push(problem);
        }
    }
    assert!(compiled * 10 > programs.len() * 9, "{compiled} run at all");
    assert!(
        problems.is_empty(),
        "{} differ\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Operations on a collection that may be shared. `x` is the collection, `k` a small number.
const CHANGES: &[&str] = &[
    "(conj x k)",
    "(assoc x k :new)",
    "(dissoc x k)",
    "(disj x k)",
    "(update x k str)",
    "(pop x)",
    "(into x [[k k]])",
    "(merge x {k 0})",
    "(assoc-in x [k :deep] 1)",
    "(update-in x [k] (fn [_] x))",
    "(persistent! (conj! (transient x) [k k]))",
    "(reduce conj x [[1 2] [3 4]])",
    "(with-meta x {:k k})",
    "(vec (cons k x))",
    "(loop [y x i 3] (if (pos? i) (recur (conj y [i i]) (dec i)) y))",
    "((fn [y] (conj y [k k])) x)",
    "(let [y x] (conj y [k k]))",
    "(if (seq x) (conj x [0 0]) x)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every version of a collection is kept under its own name, and checked after all changes.
    #[test]
    fn changes_in_place_are_not_observable(
        start in prop::sample::select(vec!["[1 2 3]", "{0 :a 1 :b}", "#{[0 1]}", "(list 1 2)", "(vec (range 40))", "(zipmap (range 12) (range))"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4), 1..8),
    ) {
        let mut text = format!("(let [v0 {start}");
        for (idx, (change, from, k)) in changes.iter().enumerate() {
            let change = CHANGES[change.index(CHANGES.len())];
            let from = from.index(idx + 1);
            text.push_str(&format!(
                "\n v{} (let [x v{from} k {k}] (try {change} (catch Exception e x)))", idx + 1
            ));
        }
        let names: Vec<String> = (0..=changes.len()).map(|idx| format!("v{idx}")).collect();
        text.push_str(&format!("]\n [{}])", names.join(" ")));
        let (mut machine, mut tree) = (Side::new(Runs::Machine), Side::new(Runs::Tree));
        prop_assert_eq!(agree(&mut machine, &mut tree, &text), Ok(()));
    }
}
