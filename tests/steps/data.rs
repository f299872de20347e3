//! The libraries that function code may call: `flow.util`, `breyta.sandbox`, `json`.

use crate::project::Project;

#[test]
fn functions_of_function_code() {
    let project = Project::new();
    for (code, expected) in [
        (
            r#"(json/parse "{\"a b\": [1, 2.5, null, true]}")"#,
            r#"{#flowstone/keyword "a b" [1 2.5 nil true]}"#,
        ),
        (r#"(json/parse "{\"a\": 1}" {:keys :string})"#, r#"{"a" 1}"#),
        (
            r#"(json/parse "{\"a\": }")"#,
            "E0740 this is not JSON: expected value (line 1, column 7)",
        ),
        (
            r#"(json/parse "")"#,
            "E0740 this is not JSON: EOF while parsing a value (line 1, column 0) | the text is empty",
        ),
        (
            r#"(json/write-str {:a [1 :b nil] "c" (map inc [1])})"#,
            r#""{\"a\":[1,\"b\",null],\"c\":[2]}""#,
        ),
        (
            r#"(json/write-str inc)"#,
            "E0740 a function cannot be written as JSON",
        ),
        (
            r#"(flow.util/parse-csv "id,name\n1,Ada\n2,\"Bo, B\"\n")"#,
            r#"[{:id "1" :name "Ada"} {:id "2" :name "Bo, B"}]"#,
        ),
        (
            r#"(flow.util/parse-csv "1;2" {:header false :separator ";"})"#,
            r#"[["1" "2"]]"#,
        ),
        (
            r#"(flow.util/parse-csv "id,name\n1,Ada\n2\n")"#,
            "E0741 row 3 (line 3) has 1 field, and the first row has 2: 2 | a separator or a quote is missing there, or there is one too many",
        ),
        (
            r#"(flow.util/parse-csv "id,name\n1,\"Ada\n2,Bo\n")"#,
            "E0741 the quote that is opened on line 2 is never closed | close it, or write a quote inside a quoted field twice: \"\"",
        ),
        (
            r#"(flow.util/parse-csv "id,id\n1,2")"#,
            "E0741 the header row has the name `id` twice | rename one, or use `:header false`",
        ),
        (
            r#"(flow.util/parse-csv "a" {:seperator ";"})"#,
            "E0741 there is no option :seperator; there are :header :keys :separator :trim | did you mean `:separator`?",
        ),
        (
            r#"(flow.util/write-csv [{:id 1 :n "a,b"} {:id 2 :x :k}])"#,
            r#""id,n,x\n1,\"a,b\",\n2,,k\n""#,
        ),
        (r#"(breyta.sandbox/base64-encode "hi")"#, r#""aGk=""#),
        (r#"(flow.util/base64-decode "aGk")"#, r#""hi""#),
        (
            r#"(flow.util/base64-decode "a*")"#,
            "E0742 this is not Base64: Invalid symbol 42, offset 1.",
        ),
        (
            r#"(flow.util/hex-decode (flow.util/hex-encode "h\u00e9"))"#,
            "\"h\u{e9}\"",
        ),
        (
            r#"(flow.util/hmac-sha256-hex "key" "The quick brown fox jumps over the lazy dog")"#,
            r#""f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8""#,
        ),
        (
            r#"(flow.util/sha256-hex "")"#,
            r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#,
        ),
        (
            r#"(flow.util/url-decode (flow.util/url-encode "a b&c/\u00e9"))"#,
            "\"a b&c/\u{e9}\"",
        ),
        (
            r#"(str (flow.util/uuid-from "hello"))"#,
            r#""5d41402a-bc4b-3a76-b971-9d911017c592""#,
        ),
        (
            r#"(flow.util/instant->epoch-ms (flow.util/parse-instant "1970-01-01T01:00:00+01:00"))"#,
            "0",
        ),
        (
            r#"(flow.util/parse-instant "yesterday")"#,
            "E0743 `yesterday` is not an instant | write it as in `2026-01-31T09:30:00Z`",
        ),
        (
            r#"(flow.util/format-instant-pattern 0 "EEEE, d MMM yyyy 'at' h:mm a")"#,
            r#""Thursday, 1 Jan 1970 at 12:00 AM""#,
        ),
        (
            r#"(flow.util/format-instant (flow.util/instant-plus (flow.util/epoch-ms->instant 1500) 2 :days))"#,
            r#""1970-01-03T00:00:01.500Z""#,
        ),
        (
            r#"(flow.util/format-instant (flow.util/truncate-instant "2026-01-31T09:30:12Z" :hours))"#,
            r#""2026-01-31T09:00:00Z""#,
        ),
        (r#"(flow.util/duration-between 0 7200000 :hours)"#, "2"),
        (
            r#"(flow.util/truncate-instant 0 :hour)"#,
            "#inst \"1970-01-01T00:00:00.000Z\"",
        ),
    ] {
        let body = format!("(let [r (flow/step :function :it {{:code '(fn [_] {code})}})] r)");
        assert_eq!(project.eval(&body), expected, "{code}");
    }
}

/// Functions under the names of other libraries behave as they do there.
#[test]
fn functions_of_other_libraries_behave_as_there() {
    let project = Project::new();
    for (code, expected) in [
        (
            r#"(clojure.data.json/read-str "{\"a\": {\"b\": 1.5}} junk" :key-fn keyword)"#,
            "{:a {:b 1.5}}",
        ),
        (
            r#"(clojure.data.json/read-str "{\"a\": 1}" {:key-fn symbol})"#,
            "{a 1}",
        ),
        (
            r#"(clojure.data.json/read-str "{\"a\": \"1\"}" :key-fn keyword :value-fn (fn [k v] (if (= k :a) (parse-long v) v)))"#,
            "{:a 1}",
        ),
        (
            r#"(clojure.data.json/read-str "" :eof-error? false :eof-value :end)"#,
            ":end",
        ),
        (
            r#"(clojure.data.json/read-str "")"#,
            "E0740 expected JSON, got an empty text | `:eof-error? false` gives nil, or `:eof-value`",
        ),
        (
            r#"(clojure.data.json/read-str "[1, 1.50, 1e400, 9223372036854775808]")"#,
            "[1 1.5 ##Inf 9223372036854775808N]",
        ),
        (
            r#"(clojure.data.json/read-str "[1, 1.50, 1e400]" :bigdec true)"#,
            "[1 150E-2M 1E400M]",
        ),
        (
            "(clojure.data.json/write-str [1e10 1.5M 1E+400M 9223372036854775808 1/3])",
            r#""[1.0E10,1.5,1E+400,9223372036854775808,0.3333333333333333]""#,
        ),
        (
            "(cheshire.core/generate-string [1e10 1.50M 9223372036854775808 1/3])",
            r#""[1.0E10,1.50,9223372036854775808,0.3333333333333333]""#,
        ),
        (
            r#"(cheshire.core/parse-string "[1e400, 9223372036854775808]")"#,
            "[##Inf 9223372036854775808N]",
        ),
        (
            "(json/write-str {:n [1.50M 9223372036854775808N]})",
            r#""{\"n\":[1.50,9223372036854775808]}""#,
        ),
        (
            r#"(clojure.data.json/read-str "1" :bigdecimals true)"#,
            "E0741 there is no option :bigdecimals; there are :bigdec :eof-error? :eof-value :key-fn :value-fn",
        ),
        (
            r#"(clojure.data.json/write-str {"é/" 'a/b :k [#{1} nil 1/2]})"#,
            r#""{\"\\u00e9\\/\":\"b\",\"k\":[[1],null,0.5]}""#,
        ),
        (
            r#"(clojure.data.json/write-str {:a 1 :b 2} :value-fn (fn f [k v] (if (= k :a) f (inc v))))"#,
            r#""{\"b\":3}""#,
        ),
        (
            r#"(clojure.data.json/write-str {:a [1 {}] :b []} :indent true)"#,
            r#""{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}""#,
        ),
        (
            r#"(clojure.data.json/write-str {nil 1})"#,
            "E0740 a key of an object cannot be nil",
        ),
        (
            r#"(clojure.data.json/write-str {:f inc})"#,
            "E0740 a function cannot be written as JSON",
        ),
        (r#"(cheshire.core/parse-string nil)"#, "nil"),
        (r#"(cheshire.core/parse-string "")"#, "nil"),
        (
            r#"(cheshire.core/parse-string "{\"a b\": 1}" (fn [k] (keyword (clojure.string/replace k " " "-"))))"#,
            "{:a-b 1}",
        ),
        (
            r#"(cheshire.core/generate-string {:a/b :c/d "x" "é/"})"#,
            r#""{\"a/b\":\"c/d\",\"x\":\"é/\"}""#,
        ),
        (
            r#"(cheshire.core/generate-string {:a [{:b {}} []] :c nil} {:pretty true})"#,
            r#""{\n  \"a\" : [ {\n    \"b\" : { }\n  }, [ ] ],\n  \"c\" : null\n}""#,
        ),
        (
            r#"(cheshire.core/generate-string {:a 1} {:key-fn (fn [k] (clojure.string/upper-case (name k)))})"#,
            r#""{\"A\":1}""#,
        ),
        (
            r#"(cheshire.core/generate-string {:a 1} {:prety true})"#,
            "E0741 there is no option :prety; there are :escape-non-ascii :key-fn :pretty | did you mean `:pretty`?",
        ),
        (
            r#"(clojure.data.csv/read-csv "a,b\n\"x \"\"y\"\"\",\r\n\n1,\"2\n3\"")"#,
            r#"(["a" "b"] ["x \"y\"" ""] [""] ["1" "2\n3"])"#,
        ),
        (
            r#"(clojure.data.csv/read-csv "a;'b;c'\n" :separator \; :quote \')"#,
            r#"(["a" "b;c"])"#,
        ),
        (r#"(clojure.data.csv/read-csv "")"#, "()"),
        (
            r#"(clojure.data.csv/read-csv "a,\"b")"#,
            "E0741 the quote that is opened on line 1 is never closed",
        ),
        (
            r#"(clojure.data.csv/read-csv "\"a\"b")"#,
            "E0741 line 1: `b` follows a closing quote",
        ),
        (
            r#"(with-out-str (clojure.data.csv/write-csv *out* [["a,b" 1 :k nil] ["\"" "x\ny"]] :newline :cr+lf))"#,
            r#""\"a,b\",1,:k,\r\n\"\"\"\",\"x\ny\"\r\n""#,
        ),
        (
            r#"(with-out-str (clojure.data.csv/write-csv *out* [["a" "b"]] :separator \; :quote? string?))"#,
            r#""\"a\";\"b\"\n""#,
        ),
    ] {
        let body = format!("(let [r (flow/step :function :it {{:code '(fn [_] {code})}})] r)");
        assert_eq!(project.eval(&body), expected, "{code}");
    }
}

#[test]
fn examples_hold() {
    let project = Project::new();
    let session = project.engine.session();
    let mut vm = session.vm(Box::new(flowstone_lang::vm::NoHost::default()));
    for (namespace, tables) in flowstone_steps::sandbox::NAMESPACES {
        for native in tables.iter().copied().flatten() {
            for (call, expected) in native.examples {
                let test = format!("(= {call} {expected})");
                let holds = session.eval_text(&mut vm, "example", &test);
                let holds = holds.unwrap_or_else(|signal| panic!("{test}: {signal:?}"));
                assert!(holds.is_truthy(), "{namespace}: {test}");
            }
        }
    }
}
