//! The rows of `tests/coverage/function-code.tsv`: the names available to code of `:functions` and `:function` steps.

use crate::net::contains;
use crate::project::Project;

/// Returns the result of code in a `:function` step.
fn code(body: &str) -> String {
    Project::new().eval(&format!(
        "(flow/step :function :f {{:code '(fn [m] {body})}})"
    ))
}

#[track_caller]
fn each(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        assert_eq!(code(body), *expected, "{body}");
    }
}

#[test]
fn functions_of_a_flow() {
    let project = Project::new();
    for entry in [
        "{:id :summarize :language :clojure :code \"(fn [input] {:count (count (:rows input))})\"}",
        "{:id :summarize :code '(fn [{:keys [rows]}] {:count (count rows)})}",
    ] {
        let text = format!(
            "{{:slug :a :functions [{entry}] :flow '(flow/step :function :f {{:ref :summarize :input {{:rows [1 2]}}}})}}"
        );
        assert_eq!(project.eval(&text), "{:count 2}", "{entry}");
    }
    for (entry, error) in [
        (
            "{:id :f :language :python :code \"x\"}",
            "E0410 `:language` can only be `:clojure`",
        ),
        ("{:code '(fn [x] x)}", "E0410"),
        ("{:id :f}", "E0410"),
        ("{:id :f :code \"(fn [x] (inc x)\"}", "E0101"),
        ("{:id :f :code \"(fn [x] 1) (fn [y] 2)\"}", "E0470"),
        (
            "{:id :f :code '(fn [x] x)} {:id :f :code '(fn [x] x)}",
            "E0414",
        ),
    ] {
        let text = format!("{{:slug :a :functions [{entry}] :flow '1}}");
        contains(&project.errors(&text), error);
    }
}

#[test]
fn one_argument() {
    let project = Project::new();
    assert_eq!(
        project.eval(
            "(flow/step :function :f {:input {:a 1}
               :code '(fn [m] [(sort (map str (keys m))) (:flow-slug (:flow/ctx m))])})"
        ),
        "[(\":a\" \":flow/ctx\" \":step/ctx\") \"flow\"]"
    );
    contains(
        &project.eval("(flow/step :function :f {:code '(fn [] 1)})"),
        "E0305",
    );
}

#[test]
fn no_effects_in_functions() {
    for body in ["(System/currentTimeMillis)", "(rand)", "(flow/now-ms)"] {
        contains(&code(body), "E0707");
    }
    contains(&code("(slurp \"flow.edn\")"), "E0388");
}

#[test]
fn core_functions() {
    each(&[
        (
            "(assoc-in {} [:a :b] (get-in {:x [1]} [:x 0]))",
            "{:a {:b 1}}",
        ),
        (
            "[(dissoc {:a 1} :a) (mapv inc [1]) (filter odd? [1 2]) (reduce + [1 2])]",
            "[{} [2] (1) 3]",
        ),
        (
            "[(remove odd? [1 2]) (seq []) (apply max [1 2]) (first [1]) (second [1 2])]",
            "[(2) nil 2 1 2]",
        ),
        (
            "[(partition-all 2 [1 2 3]) (re-seq #\"\\s+\" \"a b\") (re-find (re-pattern \"b+\") \"abb\")]",
            "[((1 2) (3)) (\" \") \"bb\"]",
        ),
        (
            "(for [x [1 2] :when (odd? x)] (cond (= x 1) :one :else :other))",
            "(:one)",
        ),
        ("(some-> {:a 1} :a inc)", "2"),
    ]);
}

#[test]
fn strings() {
    each(&[(
        "[(clojure.string/upper-case \"a\") (clojure.string/split \"a,b\" #\",\")]",
        "[\"A\" [\"a\" \"b\"]]",
    )]);
}

#[test]
fn json() {
    each(&[
        (
            "(json/parse \"{\\\"firstName\\\": [1, 2.5, null]}\")",
            "{:firstName [1 2.5 nil]}",
        ),
        ("(json/write-str {:a [1 nil]})", "\"{\\\"a\\\":[1,null]}\""),
    ]);
}

#[test]
fn sandbox_encodings() {
    each(&[
        (
            "[(breyta.sandbox/base64-encode \"hi\") (breyta.sandbox/base64-decode \"aGk=\")]",
            "[\"aGk=\" \"hi\"]",
        ),
        (
            "(breyta.sandbox/base64-encode (breyta.sandbox/base64-decode-bytes \"aGk=\"))",
            "\"aGk=\"",
        ),
        (
            "[(breyta.sandbox/hex-encode \"hi\") (breyta.sandbox/hex-decode \"6869\")]",
            "[\"6869\" \"hi\"]",
        ),
        (
            "(breyta.sandbox/hex-encode (breyta.sandbox/hex-decode-bytes \"00ff\"))",
            "\"00ff\"",
        ),
        (
            "[(breyta.sandbox/url-encode \"a b&c\") (breyta.sandbox/url-decode \"a%20b%26c\")]",
            "[\"a%20b%26c\" \"a b&c\"]",
        ),
    ]);
}

#[test]
fn sandbox_digests() {
    each(&[
        (
            "(subs (breyta.sandbox/sha256-hex \"a\") 0 8)",
            "\"ca978112\"",
        ),
        (
            "(subs (breyta.sandbox/hmac-sha256-hex \"key\" \"value\") 0 8)",
            "\"90fbfcf1\"",
        ),
        (
            "(= (breyta.sandbox/uuid-from \"a\") (breyta.sandbox/uuid-from \"a\"))",
            "true",
        ),
        (
            "(= (breyta.sandbox/uuid-from \"hi\") (breyta.sandbox/uuid-from-bytes (breyta.sandbox/hex-decode-bytes \"6869\")))",
            "true",
        ),
    ]);
}

#[test]
fn sandbox_instants() {
    let at = "(breyta.sandbox/parse-instant \"2026-01-02T03:04:05Z\")";
    let shown = |body: &str| {
        code(&format!(
            "(breyta.sandbox/format-instant (breyta.sandbox/{body}))"
        ))
    };
    assert_eq!(
        code(&format!("(breyta.sandbox/format-instant {at})")),
        "\"2026-01-02T03:04:05Z\""
    );
    assert_eq!(
        code(&format!(
            "(breyta.sandbox/format-instant-pattern {at} \"dd.MM.yyyy HH:mm\")"
        )),
        "\"02.01.2026 03:04\""
    );
    assert_eq!(
        code(&format!("(breyta.sandbox/instant->epoch-ms {at})")),
        "1767323045000"
    );
    assert_eq!(shown("epoch-ms->instant 0"), "\"1970-01-01T00:00:00Z\"");
    assert_eq!(
        shown(&format!("truncate-instant {at} :hours")),
        "\"2026-01-02T03:00:00Z\""
    );
    assert_eq!(
        shown(&format!("truncate-instant {at} :days")),
        "\"2026-01-02T00:00:00Z\""
    );
    assert_eq!(
        shown(&format!("instant-plus {at} 1500 :millis")),
        "\"2026-01-02T03:04:06.500Z\""
    );
    assert_eq!(
        shown(&format!("instant-minus {at} 2 :days")),
        "\"2025-12-31T03:04:05Z\""
    );
    let between = code(&format!(
        "(str (breyta.sandbox/duration-between {at} (breyta.sandbox/instant-plus {at} 90 :seconds)))"
    ));
    contains(&between, "90");
}

#[test]
fn java_time() {
    each(&[
        (
            "(str (java.time.LocalDate/parse \"2026-01-02\"))",
            "\"2026-01-02\"",
        ),
        (
            "(.between java.time.temporal.ChronoUnit/DAYS (java.time.LocalDate/parse \"2026-01-02\") (java.time.LocalDate/parse \"2026-01-05\"))",
            "3",
        ),
        (
            "(.format (java.time.format.DateTimeFormatter/ofPattern \"dd.MM.yyyy\") (java.time.LocalDate/parse \"2026-01-02\"))",
            "\"02.01.2026\"",
        ),
        (
            "(str (.with (java.time.LocalDate/parse \"2026-01-02\") (java.time.temporal.TemporalAdjusters/lastDayOfMonth)))",
            "\"2026-01-31\"",
        ),
    ]);
}

#[test]
fn java_util_and_math() {
    each(&[
        (
            "(str (java.util.UUID/fromString \"123e4567-e89b-12d3-a456-426614174000\"))",
            "\"123e4567-e89b-12d3-a456-426614174000\"",
        ),
        (
            "(String. (.decode (java.util.Base64/getDecoder) \"aGk=\"))",
            "\"hi\"",
        ),
        (
            "[(str (BigInteger. \"15\")) (str (.setScale (java.math.BigDecimal. \"1.555\") 2 BigDecimal/ROUND_HALF_UP))]",
            "[\"15\" \"1.56\"]",
        ),
    ]);
}

#[test]
fn patterns() {
    each(&[(
        "[(re-find #\"\\s+\" \"a  b\") (java.util.regex.Pattern/quote \"a.b\")]",
        "[\"  \" \"\\\\Qa.b\\\\E\"]",
    )]);
}
