(ns Thread
  "`Thread/...`: the one thread.")

(deftype ^{:package "java.lang"} Thread []
  java.lang.Object
  (getContextClassLoader [this] nil)
  (getId [this] 1)
  (getName [this] "main")
  (getStackTrace [this] (object-array 0))
  (interrupt [this] nil)
  (isAlive [this] true)
  (isDaemon [this] false)
  (isInterrupted [this] false)
  (toString [this] "Thread[main,5,main]"))

(def ^:private main
  "The thread that everything runs on."
  (->Thread))

(defn currentThread
  "Returns the thread that everything runs on."
  {:examples '[[(.getName (Thread/currentThread)) "main"]]}
  []
  main)

(defn interrupted
  "Returns false: nobody interrupts the one thread."
  {:examples '[[(Thread/interrupted) false]]}
  []
  false)
