(ns clojure.main
  "Functions of Clojure's entry point that programs use: causes of exceptions and names of functions.")

(defn demunge
  "Returns the name of a function in the language from its class name."
  {:examples '[[(clojure.main/demunge "a.b$c_QMARK_") "a.b/c?"]]}
  [fn-name]
  (clojure.lang.Compiler/demunge fn-name))

(defn root-cause
  "Returns the root cause of an exception."
  {:examples '[[(ex-message (clojure.main/root-cause (ex-info "a" {} (ex-info "b" {})))) "b"]]}
  [ex]
  (if-let [cause (ex-cause ex)] (recur cause) ex))

(defn repl-exception
  "Returns the message for a person about an exception: that of the first cause."
  {:examples '[[(ex-message (clojure.main/repl-exception (ex-info "a" {}))) "a"]]}
  [ex]
  (root-cause ex))
