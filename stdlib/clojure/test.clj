(ns clojure.test
  "Tests: functions with assertions, which are counted and reported."
  (:require [clojure.string :as string]
            [clojure.template :as template]))

(def ^:dynamic *load-tests*
  "Whether deftest and with-test define tests."
  true)

(def ^:dynamic *stack-trace-depth*
  "Maximum number of frames of an error to report; nil for all."
  nil)

(def ^:dynamic *report-counters*
  "An atom with the counts of the run, or nil outside of one."
  nil)

(def ^:dynamic *initial-report-counters*
  "The initial counts of a run."
  {:test 0 :pass 0 :fail 0 :error 0})

(def ^:dynamic *testing-vars*
  "The running tests, innermost first."
  ())

(def ^:dynamic *testing-contexts*
  "The strings of the active testing forms, innermost first."
  ())

(def ^:dynamic *test-out*
  "The writer to which reports are printed."
  *out*)

(defmacro with-test-out
  "Evaluates the body with its output sent to *test-out*, as part of the report."
  [& body]
  `(binding [*out* *test-out*]
     ~@body))

(def ^:dynamic *assertion-place*
  "The :file and :line of the current assertion, for reports without a place."
  nil)

;; Contents of reports

(defn testing-vars-str
  "Returns the names of the running tests, and the file and line of a report."
  [m]
  (let [{:keys [file line]} m]
    (str (reverse (map #(:name (meta %)) *testing-vars*))
         " (" file ":" line ")")))

(defn testing-contexts-str
  "Returns the strings of the active testing forms."
  {:examples '[[(binding [*testing-contexts* '("b" "a")] (testing-contexts-str)) "a b"]]}
  []
  (string/join " " (reverse *testing-contexts*)))

(defn file-position
  "Returns the file and the line of the running test. Reports know their own place: this is for code that calls it."
  {:examples '[[(file-position 1) [nil nil]]]}
  [_n]
  (let [{:keys [file line]} (meta (first *testing-vars*))]
    [file line]))

(defn inc-report-counter
  "Adds 1 to a count of the run."
  [k]
  (when *report-counters*
    (swap! *report-counters* update k (fnil inc 0))))

(defmulti ^:dynamic report
  "Reports an event of a run: a map whose :type is its kind. Add methods for other outputs."
  :type)

(defmethod report :default [m]
  (with-test-out (prn m)))

(defmethod report :pass [_]
  (with-test-out (inc-report-counter :pass)))

(defn- print-head
  "Prints a failed assertion with its test and place."
  [what m]
  (println (str "\n" what " in") (testing-vars-str m))
  (when (seq *testing-contexts*) (println (testing-contexts-str)))
  (when-let [message (:message m)] (println message))
  (println "expected:" (pr-str (:expected m)))
  (print "  actual: "))

(defmethod report :fail [m]
  (with-test-out
    (inc-report-counter :fail)
    (print-head "FAIL" m)
    (prn (:actual m))))

(defn- print-exception
  "Prints class, message and data of an exception, the calls that led to it, and its causes."
  [ex]
  (println (str (pr-str (class ex)) ": " (ex-message ex)))
  (when-let [data (ex-data ex)] (prn data))
  (let [frames (map first (:trace (Throwable->map ex)))
        own? #(string/starts-with? (str %) "clojure.test/")
        shown (take-while (complement own?) frames)]
    (doseq [[idx frame] (map-indexed vector (if *stack-trace-depth* (take *stack-trace-depth* shown) shown))]
      (println (if (zero? idx) " at" "   ") (str frame))))
  (when-let [cause (ex-cause ex)]
    (print "Caused by: ")
    (print-exception cause)))

(defmethod report :error [m]
  (with-test-out
    (inc-report-counter :error)
    (print-head "ERROR" m)
    (let [actual (:actual m)]
      (if (instance? Throwable actual)
        (print-exception actual)
        (prn actual)))))

(defmethod report :summary [m]
  (with-test-out
    (println "\nRan" (:test m) "tests containing"
             (+ (:pass m) (:fail m) (:error m)) "assertions.")
    (println (:fail m) "failures," (:error m) "errors.")))

(defmethod report :begin-test-ns [m]
  (with-test-out
    (println "\nTesting" (ns-name (:ns m)))))

(defmethod report :end-test-ns [_])

(defmethod report :begin-test-var [_])

(defmethod report :end-test-var [_])

(defmethod report :begin-test-run [_])

(defmethod report :end-test-run [_])

(defn do-report
  "Reports an event; a failure or an error gets the place of the running test."
  [m]
  (report
    (if (#{:fail :error} (:type m))
      (merge (or *assertion-place* (select-keys (meta (first *testing-vars*)) [:file :line])) m)
      m)))

;; Assertions

(defn get-possibly-unbound-var
  "Returns the value of a var, or nil if it has none."
  [v]
  (when (bound? v) @v))

(defn function?
  "Tells whether x is a function, or a symbol that names one."
  {:examples '[[(function? inc) true]
               [(function? 'inc) true]
               [(function? 'when) false]]}
  [x]
  (if (symbol? x)
    (when-let [v (resolve x)]
      (and (var? v)
           (not (:macro (meta v)))
           (fn? (get-possibly-unbound-var v))))
    (fn? x)))

(defn assert-predicate
  "Returns the code of an assertion that is a function call: a failure shows the arguments' values."
  [msg form]
  (let [[pred & args] form]
    `(let [values# (list ~@args)
           result# (apply ~pred values#)]
       (if result#
         (do-report {:type :pass :message ~msg :expected '~form
                     :actual (cons '~pred values#)})
         (do-report (merge '~(place-of form)
                           {:type :fail :message ~msg :expected '~form
                            :actual (list '~'not (cons '~pred values#))})))
       result#)))

(defn assert-any
  "Returns the code of an assertion that is any other expression."
  [msg form]
  `(let [value# ~form]
     (if value#
       (do-report {:type :pass :message ~msg :expected '~form :actual value#})
       (do-report (merge '~(place-of form)
                         {:type :fail :message ~msg :expected '~form :actual value#})))
     value#))

(defmulti assert-expr
  "Returns the code of an assertion, by the first symbol of the expression. Add methods for other kinds."
  (fn [_msg form]
    (cond
      (nil? form) :always-fail
      (seq? form) (first form)
      :else :default)))

(defmethod assert-expr :always-fail [msg _form]
  `(do-report {:type :fail :message ~msg}))

(defmethod assert-expr :default [msg form]
  (if (and (sequential? form) (function? (first form)))
    (assert-predicate msg form)
    (assert-any msg form)))

(defmethod assert-expr 'instance? [msg form]
  (let [[_ c x] form]
    `(let [class# ~c
           object# ~x
           result# (instance? class# object#)]
       (if result#
         (do-report {:type :pass :message ~msg :expected '~form :actual (class object#)})
         (do-report (merge '~(place-of form)
                           {:type :fail :message ~msg :expected '~form :actual (class object#)})))
       result#)))

(defn- with-class
  "Returns the class and the body of a thrown? form. Suites for several dialects leave the class out where a reader
  conditional has no branch for this dialect: then any exception is accepted."
  [[_ c & body]]
  (if (or (symbol? c) (keyword? c))
    (cons c body)
    (list* 'Throwable c body)))

(defmethod assert-expr 'thrown? [msg form]
  (let [[c & body] (with-class form)]
    `(try
       ~@body
       (do-report (merge '~(place-of form)
                         {:type :fail :message ~msg :expected '~form :actual nil}))
       nil
       (catch ~c e#
         (do-report {:type :pass :message ~msg :expected '~form :actual e#})
         e#))))

(defmethod assert-expr 'thrown-with-msg? [msg form]
  (let [[_ c re & body] form]
    `(try
       ~@body
       (do-report (merge '~(place-of form)
                         {:type :fail :message ~msg :expected '~form :actual nil}))
       nil
       (catch ~c e#
         (if (re-find ~re (str (ex-message e#)))
           (do-report {:type :pass :message ~msg :expected '~form :actual e#})
           (do-report (merge '~(place-of form)
                             {:type :fail :message ~msg :expected '~form :actual e#})))
         e#))))

(def ^:private places-itself
  "The kinds of assertion whose code contains its place."
  #{:default 'instance? 'thrown? 'thrown-with-msg?})

(defn- assertion-code
  "Returns the code of an assertion; methods that do not know their place receive it at run time."
  [msg form place]
  (let [code (assert-expr msg form)
        head (when (seq? form) (first form))
        known? (and (some? form)
                    (or (contains? places-itself head)
                        (not (contains? (methods assert-expr) head))))]
    (if (and place (not known?))
      `(binding [*assertion-place* '~place] ~code)
      code)))

(def ^:dynamic ^:private *outer-place*
  "The place of the surrounding form while an assertion is expanded."
  nil)

(defn- place-of
  "Returns the file and line of a form, or else those of the surrounding form."
  [form]
  (select-keys (or (form-place form) *outer-place*) [:file :line]))

(defmacro try-expr
  "Evaluates an assertion; an exception in it is reported as an error."
  [msg form]
  (binding [*outer-place* (form-place &form)]
    (let [place (place-of form)]
      `(try
         ~(assertion-code msg form place)
         (catch Throwable t#
           (do-report (merge '~place
                             {:type :error :message ~msg :expected '~form :actual t#}))
           nil)))))

(defmacro is
  "Asserts that form is true, and reports it if not. (thrown? Class body), (thrown-with-msg? Class regex body) and
  (instance? Class x) have their own reports."
  ([form] `(is ~form nil))
  ([form msg] `(try-expr ~msg ~form)))

(defmacro are
  "Asserts expr for each group of values, one value per symbol of argv, in its place."
  [argv expr & args]
  (if (or (and (empty? argv) (empty? args))
          (and (pos? (count argv)) (pos? (count args))
               (zero? (mod (count args) (count argv)))))
    `(template/do-template ~argv (is ~expr) ~@args)
    (throw (IllegalArgumentException. "The number of args doesn't match are's argv."))))

(defmacro testing
  "Evaluates the body with a string that describes in reports what is being tested."
  [string & body]
  `(binding [*testing-contexts* (conj *testing-contexts* ~string)]
     ~@body))

;; Defining tests

(defmacro deftest
  "Defines a test: a function without arguments whose body makes assertions."
  [name & body]
  (when *load-tests*
    `(def ~(vary-meta name assoc :test `(fn [] ~@body))
       (fn [] (test-var (var ~name))))))

(defmacro deftest-
  "Defines a test that is private to its namespace."
  [name & body]
  (when *load-tests*
    `(def ~(vary-meta name assoc :test `(fn [] ~@body) :private true)
       (fn [] (test-var (var ~name))))))

(defmacro with-test
  "Evaluates a definition, and makes the body its test."
  [definition & body]
  (if *load-tests*
    `(doto ~definition (alter-meta! assoc :test (fn [] ~@body)))
    definition))

(defmacro set-test
  "Makes the body the test of an existing var."
  [name & body]
  (when *load-tests*
    `(alter-meta! (var ~name) assoc :test (fn [] ~@body))))

;; Fixtures

(def ^:private fixtures
  "The :once and :each fixtures of namespaces, by name."
  (atom {}))

(defn use-fixtures
  "Registers functions that run around the tests of this namespace: around :each, or :once around all. A fixture takes a
  function without arguments, and calls it."
  [kind & fns]
  (assert (#{:once :each} kind))
  (swap! fixtures assoc-in [(ns-name *ns*) kind] fns)
  nil)

(defn compose-fixtures
  "Returns a fixture that runs f1 around f2."
  [f1 f2]
  (fn [body] (f1 (fn [] (f2 body)))))

(defn join-fixtures
  "Returns a fixture that runs each of fixtures around the next."
  {:examples '[[((join-fixtures [(fn [f] (inc (f))) (fn [f] (* 2 (f)))]) (fn [] 5)) 11]]}
  [fixtures]
  (reduce compose-fixtures (fn [body] (body)) fixtures))

;; Running tests

(defn test-var
  "Runs the test of a var, if it has one."
  [v]
  (when-let [test (:test (meta v))]
    (binding [*testing-vars* (conj *testing-vars* v)]
      (do-report {:type :begin-test-var :var v})
      (inc-report-counter :test)
      (try
        (test)
        (catch Throwable e
          (do-report {:type :error
                      :message "Uncaught exception, not in assertion."
                      :expected nil
                      :actual e})))
      (do-report {:type :end-test-var :var v}))))

(defn test-vars
  "Runs the tests of vars, with the fixtures of their namespaces."
  [vars]
  (doseq [[namespace vars] (group-by (comp :ns meta) vars)]
    (let [{:keys [once each]} (get @fixtures (ns-name namespace))
          around-all (join-fixtures once)
          around-each (join-fixtures each)]
      (around-all
        (fn []
          (doseq [v vars]
            (when (:test (meta v))
              (around-each (fn [] (test-var v))))))))))

(defn- in-order
  "Sorts vars by the places of their definitions."
  [vars]
  (sort-by (fn [v] [(or (:line (meta v)) 0) (str (:name (meta v)))]) vars))

(defn test-all-vars
  "Runs the tests of all vars of a namespace."
  [namespace]
  (test-vars (in-order (vals (ns-interns namespace)))))

(defn test-ns
  "Runs the tests of a namespace, or its test-ns-hook, and returns the counts."
  [namespace]
  (binding [*report-counters* (atom *initial-report-counters*)]
    (let [namespace (the-ns namespace)]
      (do-report {:type :begin-test-ns :ns namespace})
      (if-let [hook (ns-resolve namespace 'test-ns-hook)]
        (if (= (ns-name namespace) (ns-name (:ns (meta hook))))
          (hook)
          (test-all-vars namespace))
        (test-all-vars namespace))
      (do-report {:type :end-test-ns :ns namespace}))
    @*report-counters*))

(defn run-tests
  "Runs the tests of namespaces (the current one), reports them, and returns the counts."
  ([] (run-tests *ns*))
  ([& namespaces]
   (let [summary (assoc (apply merge-with + *initial-report-counters* (map test-ns namespaces))
                        :type :summary)]
     (do-report summary)
     summary)))

(defn run-all-tests
  "Runs the tests of all namespaces, or of those whose name a regular expression matches."
  ([] (apply run-tests (filter #(some :test (map meta (vals (ns-interns %)))) (all-ns))))
  ([re] (apply run-tests (filter #(re-matches re (name (ns-name %))) (all-ns)))))

(defn run-test-var
  "Runs the test of one var, with its fixtures, reports it, and returns the counts."
  [v]
  (binding [*report-counters* (atom *initial-report-counters*)]
    (let [namespace (:ns (meta v))]
      (do-report {:type :begin-test-ns :ns namespace})
      (test-vars [v])
      (do-report {:type :end-test-ns :ns namespace}))
    (let [summary (assoc @*report-counters* :type :summary)]
      (do-report summary)
      summary)))

(defmacro run-test
  "Runs one test, by its name, with its fixtures."
  [test-symbol]
  (let [v (resolve test-symbol)
        problem (cond
                  (nil? v) (str "Unable to resolve " test-symbol " to a test function.")
                  (not (:test (meta v))) (str test-symbol " is not a test."))]
    (if problem
      `(binding [*out* *err*] (println ~problem))
      `(run-test-var ~v))))

(defn successful?
  "Tells whether the counts of a run have no failures and no errors."
  {:examples '[[(successful? {:fail 0 :error 0}) true]]}
  [summary]
  (and (zero? (:fail summary 0))
       (zero? (:error summary 0))))
