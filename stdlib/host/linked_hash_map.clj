(ns LinkedHashMap
  "`java.util.LinkedHashMap`: mutable maps that keep insertion order."
  (:require [host.mutable :refer [defmap]]))

(defmap ^{:package "java.util"} LinkedHashMap)

(defn new
  "Returns a new map: empty, with room for a number of entries, or with the entries of another map."
  {:examples '[[(.get (doto (java.util.LinkedHashMap. {:a 1}) (.put :b 2)) :b) 2]]}
  ([] (->LinkedHashMap {} (sorted-map)))
  ([x] (doto (->LinkedHashMap {} (sorted-map)) (.putAll (if (int? x) {} x))))
  ([_size _load] (->LinkedHashMap {} (sorted-map)))
  ([_size _load _more] (->LinkedHashMap {} (sorted-map))))
