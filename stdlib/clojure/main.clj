(ns clojure.main
  "What programs use of the entry point of Clojure: causes of exceptions and names of functions.")

(defn demunge
  "Returns the name in the language for the name of a class of a function."
  {:examples '[[(clojure.main/demunge "a.b$c_QMARK_") "a.b/c?"]]}
  [fn-name]
  (clojure.lang.Compiler/demunge fn-name))

(defn root-cause
  "Returns the first of the exceptions that led to one."
  {:examples '[[(ex-message (clojure.main/root-cause (ex-info "a" {} (ex-info "b" {})))) "b"]]}
  [ex]
  (if-let [cause (ex-cause ex)] (recur cause) ex))

(defn repl-exception
  "Returns what to tell a person about an exception: the first cause."
  {:examples '[[(ex-message (clojure.main/repl-exception (ex-info "a" {}))) "a"]]}
  [ex]
  (root-cause ex))
