(ns HashSet
  "`java.util.HashSet`: mutable sets."
  (:require [host.mutable :refer [defset]]))

(defset ^{:package "java.util"} HashSet)

(defn new
  "Returns a new set: empty, with room for a number of items, or with the items of a collection."
  {:examples '[[(.contains (doto (java.util.HashSet. [1]) (.add 2)) 2) true]]}
  ([] (->HashSet {} (sorted-map)))
  ([x] (doto (->HashSet {} (sorted-map)) (.addAll (if (int? x) [] x))))
  ([_size _load] (->HashSet {} (sorted-map))))
