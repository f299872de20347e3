(ns ArrayList
  "`java.util.ArrayList`: mutable lists."
  (:require [host.mutable :refer [deflist]]))

(deflist ^{:package "java.util"} ArrayList host.mutable/by-index)

(defn new
  "Returns a new list: empty, with room for a number of items, or with the items of a collection."
  {:examples '[[(vec (doto (java.util.ArrayList. [1]) (.add 2))) [1 2]]]}
  ([] (->ArrayList []))
  ([x] (->ArrayList (if (int? x) [] (vec x)))))
