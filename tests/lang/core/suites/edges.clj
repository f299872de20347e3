;; Edge cases of functions from the test suites of other dialects.
(ns edges.suite
  (:require [clojure.instant :as instant]
            [clojure.string :as string]
            [clojure.test :refer [are deftest is testing]]))

(deftest a-wrong-number-of-arguments-can-be-caught
  (is (thrown? clojure.lang.ArityException (-)))
  (is (thrown? Exception (some-fn)))
  (is (= :caught (try (inc 1 2 3) (catch Exception _ :caught)))))

(deftest thrown-without-a-class-takes-any-exception
  (is (thrown? #?(:clj Exception) (/ 1 0)))
  (is (thrown? (assert false))))

(deftest mapcat-checks-its-arguments-at-once
  (are [call] (thrown? Exception call)
    (mapcat identity 5)
    (mapcat 42 [1 2])
    (mapcat nil [1]))
  (is (= [] (mapcat identity nil))))

(deftest max-key-and-min-key-handle-keys-without-order
  (testing "NaN: the second argument is compared with <, the further ones with <="
    (is (= ##-Inf (min-key identity ##-Inf 1 ##NaN)))
    (is (NaN? (min-key identity ##-Inf ##NaN 1)))
    (is (NaN? (max-key identity 1 ##NaN)))
    (is (= 2 (max-key identity 1 2 ##NaN))))
  (testing "the last of equal ones"
    (is (= "c" (min-key count "a" "bb" "c")))
    (is (= [2 :b] (max-key first [1 :a] [2 :a] [2 :b]))))
  (are [f items] (thrown? ClassCastException (apply f identity items))
    min-key ["x" "y"]
    max-key [[1] [2]])
  (is (= "x" (min-key identity "x"))))

(deftest positions-may-be-of-any-number-type
  (is (= [2] (subvec [0 1 2] 2.7 3.9)))
  (is (= [0 1] (subvec [0 1 2] 1/2 5/2)))
  (is (= [] (subvec [0 1 2] ##NaN ##NaN)))
  (are [start end] (thrown? Exception (subvec [0 1 2] start end))
    ##-Inf 1, 0 ##Inf, :a 2, nil 1)
  (is (= [:a :a :a] (repeat 3.99 :a)))
  (is (= [] (repeat -1 :a)))
  (is (nil? (nthnext nil nil)))
  (is (thrown? Exception (nthnext [1] nil))))

(deftest select-keys-looks-up-only-the-given-keys
  (is (= {} (select-keys #{1} [])))
  (is (thrown? Exception (select-keys #{1} [1])))
  (is (thrown? Exception (select-keys "a" [0]))))

(deftest shuffle-accepts-collections-other-than-maps
  (are [x] (thrown? Exception (shuffle x)) nil "abc" {} 1)
  (is (= #{1 2 3} (set (shuffle '(1 2 3))))))

(deftest symbols-of-two-parts-need-strings
  (is (= 'abc (symbol nil "abc")))
  (are [ns name] (thrown? ClassCastException (symbol ns name))
    'a "b", "a" 'b, :a "b", "a" :b))

(deftest transients-are-called-like-their-collection
  (is (= 2 (nth (transient [1 2]) 1)))
  (is (= :none (nth (transient [1 2]) 5 :none)))
  (is (= 2 ((transient [1 2]) 1)))
  (is (= 1 ((transient {:a 1}) :a)))
  (is (= :none ((transient {:a 1}) :b :none)))
  (is (= :a ((transient #{:a}) :a)))
  (is (= :none ((transient #{:a}) :b :none)))
  (are [t] (thrown? Exception (transient t)) (sorted-map 1 2) (sorted-set 1) '(1))
  (let [t (transient [1])]
    (persistent! t)
    (is (thrown? IllegalAccessError (nth t 0)))
    (is (thrown? IllegalAccessError (t 0)))))

(deftest underive-needs-a-hierarchy
  (are [h] (thrown? Exception (underive h :a/b :a/c)) nil {} [] 42 :z)
  (is (= (make-hierarchy) (underive (make-hierarchy) :a/b :a/c))))

(deftest the-mode-unnecessary-refuses-rounding
  (is (= 2M (with-precision 1 :rounding UNNECESSARY (* 2M 1M))))
  (are [form] (thrown-with-msg? ArithmeticException #"Rounding necessary" form)
    (with-precision 1 :rounding UNNECESSARY (* 1.5M 1M))
    (with-precision 2 :rounding UNNECESSARY (+ 100M 11M))
    (with-precision 2 :rounding UNNECESSARY (/ 1M 3))))

(deftest realized-needs-a-pending-value
  (are [x] (thrown? Exception (realized? x)) '() '(1) [] {} nil 1 :a)
  (is (not (realized? (map inc [1]))))
  (is (realized? (doall (map inc [1])))))

(deftest string-functions-accept-any-value
  (are [expected actual] (= expected actual)
    "1" (string/capitalize 1)
    ":a/b" (string/capitalize :A/B)
    "ABC" (string/upper-case 'abc)
    ":abc" (string/lower-case :ABC)
    ":bar" (string/replace :foo "foo" "bar")
    "[:bar]" (string/replace [:foo] #"f.." "bar")
    ":bar" (string/replace-first :foo "foo" "bar"))
  (are [f] (thrown? NullPointerException (f nil))
    string/capitalize string/upper-case string/lower-case #(string/replace % "a" "b")))

(deftest instants-are-parsed-from-text
  (is (= #inst "2020-01-02" (instant/read-instant-date "2020-01-02")))
  (is (= 482196050520 (.getTime (instant/read-instant-date "1985-04-12T23:20:50.52Z"))))
  (is (thrown? Exception (instant/read-instant-date "never"))))

(deftest special-forms-are-symbols
  (is (special-symbol? 'deftype*))
  (is (not (special-symbol? 'defn))))

(deftest edn-data-is-read-as-the-format-defines
  (are [expected text] (= expected (clojure.edn/read-string text))
    '% "%"
    3 ";to the end of the line\r3\n5"
    nil "#_ #unknown 0")
  (is (nil? (clojure.edn/read-string " ")))
  (is (= :end (clojure.edn/read-string {:eof :end} " ")))
  (is (thrown? Exception (clojure.edn/read-string {} ";nothing\n")))
  (is (thrown-with-msg? Exception #"No reader function for tag unknown" (clojure.edn/read-string "#unknown 0")))
  (is (= ['unknown 0] (clojure.edn/read-string {:default vector} "#unknown 0"))))
