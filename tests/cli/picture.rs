//! Pictures of flows: what is in them, and that other programs read them.

use crate::program::Scratch;
use crate::tidy::{files, root};

const FLOW: &str = r#"{:slug :desk :name "The <desk>"
 :flow '(let [ask (fn [who] (flow/step :wait :approval {:timeout "1d" :message who}))
              page (flow/step :http :fetch {:url "https://example.com"})
              found (flow/pmap (fn [row] (flow/step :kv :look {:operation :get :key (str row)})) [1 2 3])]
          (if (> (count found) 2)
            (ask "Ann")
            (flow/step :kv :small {:operation :set :key "a" :value 1}))
          (case (:kind page)
            :a (flow/step :kv :one {:operation :set :key "b" :value 1})
            :b 2
            3)
          (try (flow/step :http :pay {:url "https://example.com/pay" :method :post})
               (catch Exception e (flow/step :kv :failed {:operation :set :key "c" :value 1})))
          (flow/all {:left (fn [] (flow/step :kv :l {:operation :set :key "d" :value 1}))
                     :right (fn [] (flow/step :kv :r {:operation :set :key "e" :value 1}))})
          (comment (flow/step :kv :never {}))
          (flow/step :agent :write {:objective "x" :tools [:files {:name "search"}]}))}"#;

#[test]
fn a_picture_has_steps_branches_and_repetitions() {
    let scratch = Scratch::new();
    scratch.write("flows/desk.edn", FLOW);
    let ran = scratch.run(&["graph", "picture", "desk", "--format", "mermaid"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for told in [
        "title: \"The <desk>\"",
        "[\"fetch :http\"]",
        "subgraph f0 [\"flow/pmap\"]",
        "{\"(#62; (count found) 2)\"}",
        "|\"yes\"|",
        "[\"approval :wait\"]",
        "{\"(:kind page)\"}",
        "|\":a\"|",
        "|\"else\"|",
        "{\"catch\"}",
        "|\"left\"|",
        "[\"write :agent<br/>tools: files, search\"]",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
    assert!(!ran.out.contains("never"), "{}", ran.out);
    let ran = scratch.run(&["graph", "picture", "desk", "--format", "dot"]);
    assert!(
        ran.out.starts_with("digraph flow {")
            && ran.out.contains("label=\"approval :wait\"")
            && ran.out.ends_with("}\n"),
        "{ran:?}"
    );
    let ran = scratch.run(&["graph", "picture", "desk", "--to", "desk.svg"]);
    assert!(ran.code == Some(0) && ran.out.is_empty(), "{ran:?}");
    let svg = scratch.read("desk.svg");
    assert!(
        svg.starts_with("<svg ") && svg.contains("The &lt;desk&gt;"),
        "{svg}"
    );
    // Drawing needs no data of the project.
    assert_eq!(scratch.run(&["graph", "picture", "nothing"]).code, Some(1));
}

#[test]
fn a_picture_of_a_run_shows_its_path_with_times() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/small.edn",
        "{:slug :small :flow '(let [n (:n (flow/input))]
            (dotimes [i 3] (flow/step :kv :count {:operation :increment :key \"n\"}))
            (if (> n 5) (flow/step :wait :large {}) (flow/step :kv :done {:operation :set :key \"x\" :value n})))}",
    );
    scratch.write("flows/other.edn", "{:slug :other :flow '1}");
    let run = |n: u32, code: i32| {
        let ran = scratch.run(&[
            "run",
            "small",
            "--json",
            "--input",
            &format!("{{\"n\": {n}}}"),
        ]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        ran.json()["run"].as_str().expect("an id").to_owned()
    };
    let (done, waits) = (run(1, 0), run(9, 3));
    let picture = |id: &str| {
        let ran = scratch.run(&[
            "graph", "picture", "small", "--run", id, "--format", "mermaid",
        ]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    let text = picture(&done);
    assert!(
        text.contains("<br/>3 times, done, ") && text.contains("done :kv<br/>done, "),
        "{text}"
    );
    assert!(
        text.contains("\"large :wait\"") && text.contains("classDef done"),
        "{text}"
    );
    let text = picture(&waits);
    assert!(
        text.contains("large :wait<br/>open, ") && text.contains("\"done :kv\""),
        "{text}"
    );
    let ran = scratch.run(&["graph", "picture", "other", "--run", &done]);
    assert!(ran.code == Some(1) && ran.err.contains("E1592"), "{ran:?}");
    let ran = scratch.run(&["graph", "picture", "small", "--run", "01ZZZ"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

/// Each flow of the repository has a picture that is well-formed XML, with a box for each step of its text.
#[test]
fn every_flow_has_a_picture() {
    let scratch = Scratch::new();
    let mut count = 0;
    for file in files("flows", &[".edn"]) {
        scratch.write(
            &file.display().to_string(),
            std::fs::read(root().join(&file)).expect("it is listed"),
        );
    }
    for file in files("flows", &[".edn"]) {
        if file.components().count() != 2 {
            continue;
        }
        let ran = scratch.run(&["graph", "picture", &file.display().to_string()]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", file.display());
        for tag in ["svg", "text", "marker", "defs"] {
            let (open, close) = (
                ran.out.matches(&format!("<{tag} ")).count()
                    + ran.out.matches(&format!("<{tag}>")).count(),
                ran.out.matches(&format!("</{tag}>")).count(),
            );
            assert_eq!(open, close, "{tag} of {}", file.display());
        }
        let text = std::fs::read_to_string(root().join(&file)).expect("it is listed");
        let step = text
            .split("(flow/step :")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().nth(1));
        if let Some(id) = step.and_then(|id| id.strip_prefix(':')) {
            assert!(
                ran.out.contains(&format!(">{id} :")),
                "{id} of {}: {}",
                file.display(),
                ran.out
            );
        }
        count += 1;
    }
    assert!(count >= 8);
}
