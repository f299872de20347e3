(ns HashMap
  "`java.util.HashMap`: mutable maps."
  (:require [host.mutable :refer [defmap]]))

(defmap ^{:package "java.util"} HashMap)

(defn new
  "Returns a new map: empty, with room for a number of entries, or with the entries of another map."
  {:examples '[[(.get (doto (java.util.HashMap. {:a 1}) (.put :b 2)) :b) 2]]}
  ([] (->HashMap {} (sorted-map)))
  ([x] (doto (->HashMap {} (sorted-map)) (.putAll (if (int? x) {} x))))
  ([_size _load] (->HashMap {} (sorted-map)))
  ([_size _load _more] (->HashMap {} (sorted-map))))
