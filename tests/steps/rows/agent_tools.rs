//! The rows of `tests/coverage/agent.tsv` about the tools of agents: steps, named agents, the workspace.

use expect_test::expect;
use flowstone_engine::codec::encode;
use flowstone_lang::value::Value;

use crate::project::{Project, shown};

const INVOICE: &str = "{:slug :invoice :name \"Invoices\" :description \"Writes one.\"
 :concurrency {:type :singleton :on-new-version :coexist}
 :invocations {:default {:inputs [{:name :id :type :number :required true}]}}
 :steps [{:id :a/b :type :function :description \"Doubles.\" :defaults {:code '(fn [i] {:n (:n i)})}}]
 :flow '(let [input (flow/input)] (flow/step :a/b {:n (:id input)}) {:paid (:id input)})}";

fn project() -> Project {
    let project = Project::new();
    project.write("flows/invoice.edn", INVOICE.as_bytes());
    project.write(
        "flows/mail.edn",
        b"{:slug :mail :flow '(flow/step :function :greet {:code '(fn [_] \"hi\") :input {}})}",
    );
    project
}

/// Returns the result of a `:workspace` step.
fn ask(project: &Project, config: &str) -> String {
    project.eval(&format!("(flow/step :workspace :ask {config})"))
}

#[track_caller]
fn each(project: &Project, cases: &[(&str, &str)]) {
    let found: Vec<String> = cases
        .iter()
        .map(|(config, _)| ask(project, config))
        .collect();
    for ((config, expected), found) in cases.iter().zip(found) {
        assert_eq!(found, *expected, "{config}");
    }
}

#[test]
fn breyta_allow() {
    each(
        &project(),
        &[
            (
                "{:op :flows/list :allow [:runs/list :runs/show]}",
                "E0838 `:flows/list` is not allowed here | allowed are `:runs/list`, `:runs/show`",
            ),
            (
                "{:op :runs/list :allow [\"runs/list\"] :args {:flow-slug :none}}",
                "{:runs []}",
            ),
            (
                "{:op :runs/list :allow [:runs/lst]}",
                "E0838 `:allow` names `:runs/lst`, and the workspace has no such operation | did you mean `:runs/list`?",
            ),
        ],
    );
}

#[test]
fn breyta_mutations() {
    let project = project();
    let run = "{:op :flows/run :args {:flow-slug :invoice :input {:id 7}} :mutations";
    let send = "{:op :feedback/send :args {:message \"x\"} :mutations";
    for (config, is_allowed) in [
        (format!("{run} :none}}"), false),
        (format!("{run} :draft-only}}"), false),
        (format!("{run} :run-only}}"), true),
        (format!("{run} :write}}"), true),
        (format!("{send} :none}}"), false),
        (format!("{send} :run-only}}"), false),
        (format!("{send} :draft-only}}"), true),
        (format!("{send} :write}}"), true),
    ] {
        let found = ask(&project, &config);
        assert_eq!(!found.starts_with("E0838"), is_allowed, "{config}: {found}");
    }
    assert_eq!(
        project.check("{:slug :x :flow '(flow/step :workspace :run {:op :flows/run :args {}})}"),
        "E0838 `:flows/run` changes something, and `:mutations` is `:none` | it needs `:mutations :run-only`, or `:write`"
    );
}

#[test]
fn breyta_flows_list() {
    let project = project();
    each(
        &project,
        &[
            (
                "{:op :flows/list}",
                "{:flows [{:slug \"invoice\" :name \"Invoices\" :description \"Writes one.\" :file \"flows/invoice.edn\"} {:slug \"mail\" :file \"flows/mail.edn\"}]}",
            ),
            (
                "{:op :flows/list :args {:limit 1}}",
                "{:flows [{:slug \"invoice\" :name \"Invoices\" :description \"Writes one.\" :file \"flows/invoice.edn\"}] :next-cursor \"invoice\"}",
            ),
            (
                "{:op :flows/list :args {:cursor \"invoice\" :include-archived true}}",
                "{:flows [{:slug \"mail\" :file \"flows/mail.edn\"}]}",
            ),
            ("{:op :flows/list :args {:archived true}}", "{:flows []}"),
            (
                "{:op :flows/list :args {:limit 101}}",
                "E0839 `limit` of `flows/list` is a whole number from 1 to 100, not 101",
            ),
            (
                "{:op :flows/list :args {:limt 5}}",
                "E0839 `flows/list` takes no `limt` | did you mean `limit`?",
            ),
        ],
    );
}

#[test]
fn breyta_flows_show() {
    let project = project();
    let found = ask(&project, "{:op :flows/show :args {:flow_slug \"invoice\"}}");
    let found = found.replace(&version(&project, "invoice"), "HASH");
    expect![[r#"{:slug "invoice" :source :active :file "flows/invoice.edn" :version "HASH" :definition {:name "Invoices" :description "Writes one." :inputs [{:name "id" :type :number :required true}] :steps [{:id :a/b :type :function :description "Doubles."}]}}"#]].assert_eq(&found);
    let with = ask(
        &project,
        "{:op :flows/show :args {:flow-slug :mail :include-flow-literal true}}",
    );
    assert!(with.contains(":flow-literal \"{:slug :mail"), "{with}");
    each(
        &project,
        &[
            (
                "{:op :flows/show :args {:flow-slug :invioce}}",
                "E0839 the project has no flow `invioce` | did you mean `invoice`?",
            ),
            ("{:op :flows/show}", "E0839 `flows/show` needs `flow-slug`"),
            (
                "{:op :flows/show :args {:flow-slug :mail :source :draft}}",
                "E0839 there is no draft of `mail` | `:flows/push-draft` makes one",
            ),
            (
                "{:op :flows/show :args {:flow-slug :mail :source :newest}}",
                "E0839 `source` is active, live, draft or latest, not `newest`",
            ),
        ],
    );
}

fn version(project: &Project, slug: &str) -> String {
    project
        .eval(&format!(
            "(:version (flow/step :workspace :v {{:op :flows/pull :args {{:flow-slug :{slug}}}}}))"
        ))
        .trim_matches('"')
        .to_owned()
}

#[test]
fn breyta_flows_pull() {
    let project = project();
    let pulled = |args: &str| {
        project.eval(&format!(
            "(:flow-literal (flow/step :workspace :pull {{:op :flows/pull :args {args}}}))"
        ))
    };
    assert_eq!(
        pulled("{:flow-slug :invoice}"),
        encode(&Value::from(INVOICE)).unwrap()
    );
    // The version that a run was started with stays available after the file has changed.
    ask(
        &project,
        "{:op :flows/run :mutations :write :args {:flow-slug :mail}}",
    );
    let before = version(&project, "mail");
    project.write("flows/mail.edn", b"{:slug :mail :flow '2}");
    assert_eq!(pulled("{:flow-slug :mail}"), "\"{:slug :mail :flow '2}\"");
    let old = pulled(&format!("{{:flow-slug :mail :version \"{before}\"}}"));
    assert!(old.contains("greet"), "{old}");
    assert_eq!(
        ask(
            &project,
            "{:op :flows/pull :args {:flow-slug :mail :version \"beef\"}}"
        ),
        "E0839 no run of `mail` was started with the version `beef` | `:runs/show` has the version that a run has"
    );
}

#[test]
fn breyta_flows_push_draft() {
    let project = project();
    let push = |text: &str| {
        let literal = encode(&Value::from(text)).unwrap();
        let found = ask(
            &project,
            &format!(
                "{{:op :flows/push-draft :mutations :draft-only :args {{:flow-literal {literal}}}}}"
            ),
        );
        found
            .split(" :version")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let draft =
        "{:slug :mail :flow '(flow/step :function :greet {:code '(fn [_] \"hello\") :input {}})}";
    assert_eq!(
        push(draft),
        "{:slug \"mail\" :source :draft :status :committed"
    );
    // A step that is repeated adds no second version.
    assert_eq!(
        push(draft),
        "{:slug \"mail\" :source :draft :status :no-change"
    );
    // The flow is unchanged, and the draft is available.
    let text = std::fs::read_to_string(project.path().join("flows/mail.edn")).unwrap();
    assert!(text.contains("\"hi\""));
    for (source, has) in [("active", "hi"), ("draft", "hello"), ("latest", "hello")] {
        let found = project.eval(&format!(
            "(:flow-literal (flow/step :workspace :pull {{:op :flows/pull :args {{:flow-slug :mail :source :{source}}}}}))"
        ));
        assert!(found.contains(has), "{source}: {found}");
    }
    assert_eq!(
        push("{:slug :mail :flow '(flow/step :functon :greet {})}"),
        "E0839 the draft was not kept: 1:32 E0431 unknown step type `:functon` (did you mean `:function`?) | \
         correct it and push it again: the whole text of the flow"
    );
    assert_eq!(
        push("(+ 1 2)"),
        "E0839 the draft was not kept: a flow is a map with `:slug` and `:flow`"
    );
    assert_eq!(
        push("{:slug \"../../x\" :flow '1}"),
        "E0839 the draft was not kept: 1:8 E0405 this cannot be a slug (a slug is a keyword or string of letters, digits, \
         `-` and `_` that starts with a letter) | correct it and push it again: the whole text of the flow"
    );
}

/// Drafts are versions of the registry: with a base, an author, and a conflict if somebody else was faster.
#[test]
fn breyta_drafts_are_versions_of_the_registry() {
    let project = project();
    let push = |body: &str, more: &str| {
        let literal = encode(&Value::from(format!("{{:slug :mail :flow '{body}}}"))).unwrap();
        ask(
            &project,
            &format!(
                "{{:op :flows/push-draft :mutations :draft-only :args {{:flow-literal {literal} {more}}}}}"
            ),
        )
    };
    let shown = |args: &str| {
        project.eval(&format!(
            "(let [f (flow/step :workspace :f {{:op :flows/pull :args {{:flow-slug :mail {args}}}}})]
               [(:source f) (:version f) (:flow-literal f)])"
        ))
    };
    let text = |body: &str| encode(&Value::from(format!("{{:slug :mail :flow '{body}}}"))).unwrap();
    assert!(push("1", ":message \"One\"").contains(":version 1"));
    let unbased = push("2", "");
    assert!(unbased.starts_with("E1403 "), "{unbased}");
    assert!(unbased.contains("`:base 1`"), "{unbased}");
    assert!(push("2", ":base 1").contains(":version 2"));
    let stale = push("3", ":base 1");
    assert!(stale.starts_with("E1402 "), "{stale}");
    let kind = project.eval(
        "(try (flow/step :workspace :push {:op :flows/push-draft :mutations :write
                :args {:flow-literal \"{:slug :mail :flow '3}\" :base 1}})
              (catch Exception e (select-keys (ex-data e) [:kind :current-version :changed])))",
    );
    assert_eq!(
        kind,
        "{:kind :revision_conflict :current-version 2 :changed [\"flow.edn\"]}"
    );
    // What a run has pushed is the base of what it pushes next.
    let twice = project.eval(
        "(let [push (fn [text more] (:version (flow/step :workspace :push
                      {:op :flows/push-draft :mutations :write :args (merge {:flow-literal text} more)})))]
           [(push \"{:slug :mail :flow '3}\" {:base 2}) (push \"{:slug :mail :flow '4}\" {})])",
    );
    assert_eq!(twice, "[3 4]");
    let author = project.eval(
        "(let [f (flow/step :workspace :f {:op :flows/show :args {:flow-slug :mail :version 4}})]
           [(re-matches #\"run .*, step push.*\" (:author f)) (:message f)])",
    );
    assert!(
        author.contains("run ") && !author.contains("nil"),
        "{author}"
    );
    for (args, expected) in [
        (":source :draft", format!("[:draft 4 {}]", text("4"))),
        (":source :latest", format!("[:latest 4 {}]", text("4"))),
        (":version 1", format!("[:version 1 {}]", text("1"))),
        (":version \"2\"", format!("[:version 2 {}]", text("2"))),
        (":version 0", format!("[:draft 4 {}]", text("4"))),
        (":version :draft", format!("[:draft 4 {}]", text("4"))),
    ] {
        assert_eq!(shown(args), expected, "{args}");
    }
    assert!(shown(":source :live").starts_with("E1409 "));
    assert!(shown(":version 9").starts_with("E1401 "));
    assert!(shown(":source :draft :version 1").starts_with("E0839 "));
    let listed = ask(&project, "{:op :flows/list :args {:cursor \"invoice\"}}");
    assert_eq!(
        listed,
        "{:flows [{:slug \"mail\" :file \"flows/mail.edn\" :draft 4 :has-draft true}]}"
    );
    let run = |args: &str| {
        ask(
            &project,
            &format!("{{:op :flows/run :mutations :run-only :args {{:flow-slug :mail {args}}}}}"),
        )
    };
    for (args, expected) in [
        ("", "\"hi\""),
        (":target :draft", "4"),
        (":version 2", "2"),
        (":version \"3\"", "3"),
    ] {
        assert_eq!(run(args), expected, "{args}");
    }
    for args in [":target :draft :version 1", ":target :newest"] {
        assert!(run(args).starts_with("E0839 "), "{args}");
    }
}

#[test]
fn breyta_flows_run() {
    let project = project();
    each(
        &project,
        &[
            (
                "{:op :flows/run :mutations :run-only :args {:flow-slug :invoice :input {:id 7}}}",
                "{:paid 7}",
            ),
            (
                "{:op :flows/run :mutations :run-only :args {:flow-slug :invoce :input {:id 7}}}",
                "E0545 the project has no flow `invoce` | did you mean `invoice`?",
            ),
            (
                "{:op :flows/run :mutations :run-only :args {:flow-slug :invoice :input 7}}",
                "E0839 `input` of `flows/run` is a map, not an integer",
            ),
        ],
    );
    let child = project.eval(
        "(let [r (first (:runs (flow/step :workspace :runs {:op :runs/list :args {:flow-slug :invoice}})))] [(:status r) (:started-by r) (string? (:parent r))])",
    );
    assert_eq!(child, "[:completed \"call\" true]");
}

#[test]
fn breyta_runs_list() {
    let project = project();
    for id in 1..4 {
        ask(
            &project,
            &format!(
                "{{:op :flows/run :mutations :run-only :args {{:flow-slug :invoice :input {{:id {id}}}}}}}"
            ),
        );
    }
    let list = |args: &str| {
        project.eval(&format!(
            "(let [page (flow/step :workspace :runs {{:op :runs/list :args {args}}})]
               [(count (:runs page)) (distinct (map :flow-slug (:runs page))) (distinct (map :status (:runs page))) (some? (:next-cursor page))])"
        ))
    };
    assert_eq!(
        list("{:flow-slug :invoice}"),
        "[3 (\"invoice\") (:completed) false]"
    );
    assert_eq!(
        list("{:flow-slug :invoice :limit 2}"),
        "[2 (\"invoice\") (:completed) true]"
    );
    assert_eq!(list("{:status [:failed]}"), "[0 () () false]");
    assert_eq!(
        project.eval(
            "(let [one (flow/step :workspace :one {:op :runs/list :args {:flow-slug :invoice :limit 2}})
                   two (flow/step :workspace :two {:op :runs/list :args {:flow-slug :invoice :cursor (:next-cursor one)}})]
               [(count (:runs two)) (count (distinct (map :id (concat (:runs one) (:runs two)))))])"
        ),
        "[1 3]"
    );
    each(
        &project,
        &[(
            "{:op :runs/list :args {:status \"done\"}}",
            "E0839 there is no status `done` | there are cancelled, completed, failed, failed-compensating, queued, running, terminated, timed-out, waiting",
        )],
    );
}

#[test]
fn breyta_runs_show() {
    let project = project();
    let found = project.eval(
        "(do (flow/step :workspace :run {:op :flows/run :mutations :run-only :args {:flow-slug :invoice :input {:id 7}}})
             (let [id (:id (first (:runs (flow/step :workspace :runs {:op :runs/list :args {:flow-slug :invoice}}))))
                   run (flow/step :workspace :show {:op :runs/show :args {:run-id id}})]
               [(select-keys run [:flow-slug :status :input :result])
                (map #(select-keys % [:path :type :packaged :status :attempts :result]) (:steps run))]))",
    );
    expect![[r#"[{:flow-slug "invoice" :status :completed :input {:id 7} :result {:paid 7}} ({:path "b" :type :function :packaged ":a/b" :status :done :attempts 1 :result {:n 7}})]"#]].assert_eq(&found);
    assert_eq!(
        ask(&project, "{:op :runs/show :args {:run-id \"nope\"}}"),
        "E0502 there is no run `nope` | `flowstone runs list` shows the runs"
    );
}

#[test]
fn breyta_resources_list() {
    let project = project();
    project.eval("(flow/step :kv :set {:operation :set :key \"color\" :value \"red\"})");
    project.eval("(flow/step :function :f {:code '(fn [_] \"a report\") :input {} :persist {:type :blob :name \"report.txt\"}})");
    let list = |args: &str| {
        project.eval(&format!(
            "(map (juxt :type :name) (:resources (flow/step :workspace :list {{:op :resources/list :args {args}}})))"
        ))
    };
    assert_eq!(list("{:type :kv}"), "([:kv \"color\"])");
    assert_eq!(list("{:query \"report\"}"), "([:blob \"report.txt\"])");
    assert_eq!(list("{:limit 1}").matches('[').count(), 1);
    each(
        &project,
        &[(
            "{:op :resources/list :args {:type :blobs}}",
            "E0839 there is no type `blobs` of resources | there are blob, changeset, file, flow-output, kv, step-output, table, tree",
        )],
    );
}

#[test]
fn breyta_resources_read() {
    let project = project();
    let read = |make: &str, args: &str| {
        project.eval(&format!(
            "(let [it {make}] (dissoc (flow/step :workspace :read {{:op :resources/read :args (merge {{:uri it}} {args})}}) :resource))"
        ))
    };
    let text = "(flow/step :function :f {:code '(fn [_] \"0123456789\") :input {} :persist {:type :blob}})";
    assert_eq!(read(text, "{}"), "{:value \"0123456789\" :total 10}");
    assert_eq!(
        read(text, "{:max-chars 4}"),
        "{:value \"0123\" :total 10 :next-offset 4}"
    );
    assert_eq!(
        read(text, "{:max_chars 4 :offset 8}"),
        "{:value \"89\" :total 10}"
    );
    let table = "(do (flow/step :table :w {:op :insert :table \"t\" :rows [{:n 1} {:n 2} {:n 3}]}) \"res://v1/ws/local/result/table/t\")";
    let found = read(table, "{:limit 2}");
    assert!(
        found.contains(":n 1") && found.contains(":next-offset 2") && !found.contains(":n 3"),
        "{found}"
    );
    assert_eq!(
        read("\"kv/nothing\"", "{}"),
        "E0761 there is no key `res://v1/ws/local/kv/nothing` | it belongs to another project, or was removed when nothing mentioned it any more: `flowstone resources list` shows what there is"
    );
}

#[test]
fn breyta_docs_find() {
    let project = project();
    let first = |query: &str| {
        project.eval(&format!(
            "(let [hit (first (:results (flow/step :workspace :find {{:op :docs/find :args {{:query {query:?} :limit 3}}}})))] (:page hit))"
        ))
    };
    assert_eq!(
        first("packaged steps with prepare and project-result"),
        "\"guide/packaged-steps\""
    );
    assert_eq!(first("E0204"), "\"errors/E0204\"");
    assert_eq!(first("zzqqxx"), "nil");
    each(
        &project,
        &[("{:op :docs/find}", "E0839 `docs/find` needs `query`")],
    );
}

#[test]
fn breyta_docs_show() {
    let project = project();
    let page = |args: &str| {
        project.eval(&format!(
            "(let [page (flow/step :workspace :show {{:op :docs/show :args {args}}})] [(:page page) (:title page) (:section page) (subs (:content page) 0 12)])"
        ))
    };
    assert_eq!(
        page("{:page \"E0838\"}"),
        "[\"errors/E0838\" \"E0838: the workspace operation is not allowed\" nil \"# E0838: the\"]"
    );
    assert!(page("{:page \"docs/guide/steps.md\"}").starts_with("[\"guide/steps\""));
    each(
        &project,
        &[(
            "{:op :docs/show :args {:page \"guide/step\"}}",
            "E0839 there is no page `guide/step` | did you mean `guide/steps`?",
        )],
    );
}

#[test]
fn breyta_feedback_send() {
    let project = project();
    ask(
        &project,
        "{:op :feedback/send :mutations :draft-only :args {:message \"The page of :wait is good.\" :title \"Docs\"}}",
    );
    let rows = project.eval(
        "(map #(select-keys % [:title :message :flow]) (:rows (flow/step :table :rows {:op :query :table \"feedback\"})))",
    );
    assert_eq!(
        rows,
        "({:title \"Docs\" :message \"The page of :wait is good.\" :flow \"flow\"})"
    );
    each(
        &project,
        &[(
            "{:op :feedback/send :mutations :write :args {:message \" \"}}",
            "E0839 `message` of `feedback/send` is a text, not \" \"",
        )],
    );
}

#[test]
fn breyta_stripped_args() {
    let project = project();
    let found = ask(
        &project,
        "{:op :flows/run :args {:flow-slug :invoice :input {:id 1} :mutations :write :allow [:flows/run] :token \"t\" :auth {} :actor \"a\" :api-url \"u\" :workspace-id \"w\"}}",
    );
    assert!(found.starts_with("E0838"), "{found}");
    assert_eq!(
        ask(
            &project,
            "{:op :flows/run :mutations :run-only :args {:flow-slug :invoice :input {:id 1} :token \"t\" :workspace_id \"w\"}}"
        ),
        "{:paid 1}"
    );
    let kept = project.everything_kept();
    assert!(!shown(project.run("1")).is_empty() && kept.contains("invoice"));
}
