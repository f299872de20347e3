(ns Runtime
  "`Runtime/...`: what the machine offers to a program, which runs on one thread.")

(deftype ^{:package "java.lang"} Runtime []
  java.lang.Object
  (availableProcessors [this] 1)
  (gc [this] nil))

(defn getRuntime
  "Returns the machine as a program sees it."
  {:examples '[[(.availableProcessors (Runtime/getRuntime)) 1]]}
  []
  (->Runtime))
