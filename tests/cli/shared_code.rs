//! Namespaces that flows of a project share.

use crate::program::{Ran, Scratch};

const MONEY: &str = "(ns shop.money (:require [shop.text :as text]))
(def rate 2)
(defn cents [x] (* 100 x rate))
(defn saved [x] (flow/step :kv :save {:operation :set :key (text/low \"KEY\") :value x}))";

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:paths [\"lib\"]}");
    scratch.write("lib/shop/money.clj", MONEY);
    scratch.write(
        "lib/shop/text.cljc",
        "(ns shop.text (:require [clojure.string :as string])) (defn low [x] (string/lower-case x))",
    );
    scratch.write(
        "flows/invoice.edn",
        "{:slug :invoice :namespaces [[shop.money :as money] [shop.text :refer [low]]]
          :functions [{:id :double :code (fn [{:keys [x]}] (money/cents x))}]
          :flow '(do (money/saved 7)
                     (flow/step :wait :go {})
                     {:cents (money/cents 3) :low (low \"A\")
                      :called (flow/step :function :call {:ref :double :input {:x 2}})})}",
    );
    scratch
}

fn id(ran: &Ran) -> String {
    ran.json()["run"].as_str().expect("an id").to_owned()
}

#[test]
fn a_run_continues_with_the_code_that_it_began_with() {
    let scratch = project();
    let ran = scratch.run(&["check", "flows"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = scratch.run(&["run", "invoice", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let run = id(&ran);
    scratch.write("lib/shop/money.clj", MONEY.replace("rate 2", "rate 5"));
    let newer = scratch.run(&["run", "invoice", "--json"]);
    for (run, cents) in [(&run, 600), (&id(&newer), 1500)] {
        let waits = scratch.json_of(&["waits", "list"]);
        let wait = waits["waits"]
            .as_array()
            .and_then(|waits| waits.iter().find(|wait| wait["run"] == **run));
        let wait = wait.and_then(|wait| wait["id"].as_str()).expect("a wait");
        let ran = scratch.run(&["waits", "approve", wait, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let shown = scratch.run(&["runs", "show", run, "--json"]).json();
        assert!(
            shown.to_string().contains(&format!(":cents {cents}"))
                || shown.to_string().contains(&format!("\"cents\":{cents}")),
            "{shown:#}"
        );
    }
    // Two versions of one flow.
    let versions = scratch
        .run(&["flows", "versions", "invoice", "--json"])
        .json();
    assert_eq!(
        versions["versions"].as_array().map(Vec::len),
        Some(2),
        "{versions:#}"
    );
    // Without the folder, the older run still has its code.
    std::fs::remove_dir_all(scratch.path().join("lib")).expect("it is there");
    let ran = scratch.run(&["runs", "replay", &run]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn wrong_namespaces_are_reported_at_their_place() {
    let scratch = project();
    let flow = |namespaces: &str| format!("{{:slug :f :namespaces {namespaces} :flow '(do 1)}}");
    for (namespaces, told) in [
        (
            "[[shop.mony :as m]]",
            &["E1600", "did you mean `shop.money`?", "f.edn:1:24"][..],
        ),
        ("[[other.thing]]", &["E1600", "other/thing.clj"]),
        ("[7]", &["E1601"]),
        ("{}", &["E1601"]),
        ("[[shop.broken]]", &["shop/broken.clj:2:4"]),
        ("[[shop.a]]", &["E1602", "shop.a → shop.b → shop.a"]),
        ("[[shop.endless]]", &["E0901"]),
        ("[[shop.acts]]", &["shop/acts.clj"]),
        ("[[shop.money :as m :nonsense 1]]", &["E"]),
        ("[[clojure.set :as s] clojure.string]", &[]),
    ] {
        scratch.write(
            "lib/shop/broken.clj",
            "(ns shop.broken)\n  (undefined-name 1)",
        );
        scratch.write("lib/shop/a.clj", "(ns shop.a (:require [shop.b]))");
        scratch.write("lib/shop/b.clj", "(ns shop.b (:require shop.a))");
        scratch.write(
            "lib/shop/endless.clj",
            "(ns shop.endless) (loop [] (recur))",
        );
        scratch.write(
            "lib/shop/acts.clj",
            "(ns shop.acts)\n(def x (flow/step :kv :a {:operation :get :key \"a\"}))",
        );
        scratch.write("f.edn", flow(namespaces));
        let ran = scratch.run(&["check", "f.edn"]);
        let expected = if told.is_empty() { Some(0) } else { Some(1) };
        assert_eq!(ran.code, expected, "{namespaces}: {ran:?}");
        for told in told {
            assert!(ran.err.contains(told), "{namespaces}: {told}: {}", ran.err);
        }
    }
    scratch.write("flowstone.edn", "{}");
    scratch.write("f.edn", flow("[[shop.money]]"));
    let ran = scratch.run(&["check", "f.edn"]);
    assert!(ran.err.contains(":paths [\"lib\"]"), "{ran:?}");
    for paths in ["[\"../lib\"]", "[\"/tmp\"]", "\"lib\"", "[7]", "[\"\"]"] {
        scratch.write("flowstone.edn", format!("{{:paths {paths}}}"));
        let ran = scratch.run(&["check", "f.edn"]);
        assert!(
            ran.code == Some(1) && ran.err.contains(":paths"),
            "{paths}: {ran:?}"
        );
    }
}

/// A link out of the folder, and a flow from elsewhere, reach nothing.
#[cfg(unix)]
#[test]
fn shared_code_stays_in_its_folder() {
    let scratch = project();
    let outside = Scratch::new();
    outside.write("secret.clj", "(ns shop.secret) (def x 1)");
    let link = scratch.path().join("lib/shop/secret.clj");
    std::os::unix::fs::symlink(outside.path().join("secret.clj"), link).expect("a link");
    scratch.write(
        "f.edn",
        "{:slug :f :namespaces [[shop.secret :as s]] :flow 's/x}",
    );
    let ran = scratch.run(&["check", "f.edn"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1600"), "{ran:?}");
    let file = outside.write(
        "g.edn",
        "{:slug :g :namespaces [[shop.money :as m]] :flow '(m/cents 1)}",
    );
    let ran = scratch.run(&["run", &file.display().to_string(), "--quiet"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1600"), "{ran:?}");
}

#[test]
fn tests_see_shared_code() {
    let scratch = project();
    scratch.write(
        "money_test.clj",
        "(ns money-test (:require [clojure.test :refer [deftest is]] [shop.text :as text])) (deftest low (is (= \"a\" (text/low \"A\"))))",
    );
    assert_eq!(scratch.run(&["test", "money_test.clj"]).code, Some(0));
    scratch.write(
        "flows/invoice/test.edn",
        "{:answers {:go {}} :expect {:cents 600 :low \"a\" :called 400} :values {\"key\" 7}}",
    );
    let ran = scratch.run(&["test", "flows/invoice.edn", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
