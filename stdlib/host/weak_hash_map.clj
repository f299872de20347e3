(ns WeakHashMap
  "`java.util.WeakHashMap`: mutable maps; their keys and values live as long as they do."
  (:require [host.mutable :refer [defmap]]))

(defmap ^{:package "java.util"} WeakHashMap)

(defn new
  "Returns a new map: empty, with room for a number of entries, or with the entries of another map."
  {:examples '[[(.get (doto (java.util.WeakHashMap. {:a 1}) (.put :b 2)) :b) 2]]}
  ([] (->WeakHashMap {} (sorted-map)))
  ([x] (doto (->WeakHashMap {} (sorted-map)) (.putAll (if (int? x) {} x))))
  ([_size _load] (->WeakHashMap {} (sorted-map)))
  ([_size _load _more] (->WeakHashMap {} (sorted-map))))
