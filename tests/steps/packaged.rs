//! Packaged steps in runs that stop, wait for an answer and resume.

use flowstone_engine::codec::decode;
use flowstone_engine::ports::WaitFilter;
use flowstone_lang::value::Value;

use crate::project::Project;

/// Returns a flow with a packaged step with these keys, and a body.
fn flow(keys: &str, body: &str) -> String {
    format!(
        "{{:slug :packed :concurrency {{:type :singleton :on-new-version :coexist}}
          :functions [{{:id :total :code \"(fn [result] {{:total (:n result)}})\"}}]
          :steps [{{:id :math/add :type :function {keys}}}]
          :flow '{body}}}"
    )
}

/// Answers the only open question.
fn answer_first(project: &Project, payload: &Value) -> String {
    let waits = project.block_on(project.engine.list_waits(WaitFilter::default()));
    let waits = waits.expect("waits");
    project.answer(&waits[0].id, payload)
}

const ADD: &str = ":defaults {:code '(fn [{:keys [n]}] {:n (inc n)})} :project-result :total";

#[test]
fn a_replay_after_a_wait_returns_the_same() {
    let project = Project::new();
    let body = "(let [a (flow/step :math/add {:n 1})
                      b (flow/step :math/add :named {:n 10})
                      w (flow/step :wait :pause {:key \"k\"})
                      c (flow/step :math/add {:n 2})]
                  [a b w c])";
    assert_eq!(
        project.eval(&flow(ADD, body)),
        "waiting: `pause` waits for an answer 1"
    );
    let project = project.reopen();
    assert_eq!(
        project.answer("k", &decode(":go").expect("EDN")),
        "[{:total 2} {:total 11} :go {:total 3}]"
    );
}

#[test]
fn skipped_and_given_values_are_not_projected() {
    let fails = ":defaults {:code '(fn [_] (throw (ex-info \"no\" {}))) :on-error :checkpoint}
                 :project-result :total :output-schema [:map [:total :int]]";
    let body = "(let [v (flow/step :math/add {:n 1})
                      w (flow/step :wait :pause {:key \"k\"})]
                  [v w])";
    let cases = [
        ("{:action :skip}", "[nil :go]"),
        ("{:action :use :value {:total 9}}", "[{:total 9} :go]"),
        // An invalid answer is asked for again.
        (
            "{:action :use :value {:n 9}}",
            "waiting: `add` waits for an answer 1",
        ),
    ];
    for (answer, expected) in cases {
        let project = Project::new();
        let asked = project.eval(&flow(fails, body));
        assert_eq!(asked, "waiting: `add` waits for an answer 1");
        let found = answer_first(&project, &decode(answer).expect("EDN"));
        let found = match found.contains("pause") {
            true => {
                // A replay returns the same.
                let project = project.reopen();
                project.answer("k", &decode(":go").expect("EDN"))
            }
            false => found,
        };
        assert_eq!(found, expected, "{answer}");
    }
}

#[test]
fn a_reviewed_value_is_projected() {
    let reviewed =
        ":defaults {:code '(fn [{:keys [n]}] {:n n}) :review true} :project-result :total";
    let project = Project::new();
    let body = "(flow/step :math/add {:n 1})";
    assert_eq!(
        project.eval(&flow(reviewed, body)),
        "waiting: `add` waits for an answer 1"
    );
    let edit = decode("{:action :edit :value {:n 5}}").expect("EDN");
    assert_eq!(answer_first(&project, &edit), "{:total 5}");
}

#[test]
fn errors_compensation_and_races_work_as_for_other_steps() {
    let project = Project::new();
    let cases = [
        (
            ":defaults {:code '(fn [_] (throw (ex-info \"no\" {:why 1}))) :retry {:max-attempts 2}}",
            "(try (flow/step :math/add {:n 1}) (catch Exception e (select-keys (ex-data e) [:packaged :why :path])))",
            "{:packaged :math/add :why 1 :path \"add\"}",
        ),
        (
            ADD,
            "(try (do (flow/compensate (flow/step :math/add {:n 1})
                        (fn [v] (flow/step :kv :undone {:operation :set :key \"u\" :value v})))
                      :fine)
               (catch Exception e nil))",
            ":fine",
        ),
        (
            ADD,
            "(flow/race {:a (fn [] (flow/step :math/add {:n 1})) :b (fn [] (flow/step :sleep :long {:duration \"1h\"}))})",
            "[:a {:total 2}]",
        ),
        (
            ADD,
            "(flow/pmap {:on-error :collect} (fn [n] (:total (flow/step :math/add {:n n}))) [1 2])",
            "[2 3]",
        ),
    ];
    for (keys, body, expected) in cases {
        assert_eq!(project.eval(&flow(keys, body)), expected, "{body}");
    }
}
