(ns MapEntry
  "`clojure.lang.MapEntry/...`: entries of maps.")

(defn create
  "Returns the map entry of a key and a value."
  {:examples '[[(key (clojure.lang.MapEntry/create :a 1)) :a]]}
  [k v]
  (first {k v}))

(defn new
  "Returns the map entry of a key and a value."
  {:examples '[[(val (clojure.lang.MapEntry. :a 1)) 1]]}
  [k v]
  (first {k v}))
