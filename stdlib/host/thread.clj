(ns Thread
  "`Thread/...`: the only thread of a program.")

(deftype ^{:package "java.lang"} Thread []
  java.lang.Object
  (getContextClassLoader [this] nil)
  (getId [this] 1)
  (getName [this] "main")
  ;; The calls above every program.
  (getStackTrace [this]
    (into-array StackTraceElement
                [(StackTraceElement. "java.lang.Thread" "getStackTrace" "Thread.java" -1)
                 (StackTraceElement. "clojure.lang.Compiler" "eval" "Compiler.java" -1)
                 (StackTraceElement. "clojure.main" "main" nil -1)]))
  (interrupt [this] nil)
  (isAlive [this] true)
  (isDaemon [this] false)
  (isInterrupted [this] false)
  (toString [this] "Thread[main,5,main]"))

(def ^:private main
  "The thread on which everything runs."
  (->Thread))

(defn currentThread
  "Returns the thread on which everything runs."
  {:examples '[[(.getName (Thread/currentThread)) "main"]]}
  []
  main)

(defn interrupted
  "Returns false: the only thread is never interrupted."
  {:examples '[[(Thread/interrupted) false]]}
  []
  false)
