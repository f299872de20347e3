(ns ConcurrentHashMap
  "`java.util.concurrent.ConcurrentHashMap`: mutable maps."
  (:require [host.mutable :refer [defmap]]))

(defmap ^{:package "java.util.concurrent"} ConcurrentHashMap)

(defn new
  "Returns a new map: empty, with room for a number of entries, or with the entries of another map."
  {:examples '[[(.get (doto (java.util.concurrent.ConcurrentHashMap. {:a 1}) (.put :b 2)) :b) 2]]}
  ([] (->ConcurrentHashMap {} (sorted-map)))
  ([x] (doto (->ConcurrentHashMap {} (sorted-map)) (.putAll (if (int? x) {} x))))
  ([_size _load] (->ConcurrentHashMap {} (sorted-map)))
  ([_size _load _more] (->ConcurrentHashMap {} (sorted-map))))
