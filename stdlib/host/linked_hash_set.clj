(ns LinkedHashSet
  "`java.util.LinkedHashSet`: mutable sets that keep insertion order."
  (:require [host.mutable :refer [defset]]))

(defset ^{:package "java.util"} LinkedHashSet)

(defn new
  "Returns a new set: empty, with room for a number of items, or with the items of a collection."
  {:examples '[[(.contains (doto (java.util.LinkedHashSet. [1]) (.add 2)) 2) true]]}
  ([] (->LinkedHashSet {} (sorted-map)))
  ([x] (doto (->LinkedHashSet {} (sorted-map)) (.addAll (if (int? x) [] x))))
  ([_size _load] (->LinkedHashSet {} (sorted-map))))
