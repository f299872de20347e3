(ns ArrayDeque
  "`java.util.ArrayDeque`: double-ended queues."
  (:require [host.mutable :refer [deflist]]))

(deflist ^{:package "java.util"} ArrayDeque host.mutable/deque-methods)

(defn new
  "Returns a new list: empty, with room for a number of items, or with the items of a collection."
  {:examples '[[(vec (doto (java.util.ArrayDeque. [1]) (.add 2))) [1 2]]]}
  ([] (->ArrayDeque []))
  ([x] (->ArrayDeque (if (int? x) [] (vec x)))))
