(ns Runtime
  "`Runtime/...`: properties of the machine for a program, which runs on one thread.")

(deftype ^{:package "java.lang"} Runtime []
  java.lang.Object
  (availableProcessors [this] 1)
  (gc [this] nil))

(defn getRuntime
  "Returns the machine as seen by a program."
  {:examples '[[(.availableProcessors (Runtime/getRuntime)) 1]]}
  []
  (->Runtime))
