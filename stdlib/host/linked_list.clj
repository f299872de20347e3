(ns LinkedList
  "`java.util.LinkedList`: mutable lists that can be changed at both ends."
  (:require [host.mutable :refer [deflist]]))

(deflist ^{:package "java.util"} LinkedList host.mutable/deque-methods)

(defn new
  "Returns a new list: empty, with room for a number of items, or with the items of a collection."
  {:examples '[[(vec (doto (java.util.LinkedList. [1]) (.add 2))) [1 2]]]}
  ([] (->LinkedList []))
  ([x] (->LinkedList (if (int? x) [] (vec x)))))
