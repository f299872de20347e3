(ns APersistentMap
  "`clojure.lang.APersistentMap/...`: hashes of maps.")

(defn mapEquals
  "Tells whether two maps are equal."
  {:examples '[[(clojure.lang.APersistentMap/mapEquals {:a 1} {:a 1}) true]]}
  [m other]
  (= m other))

(defn mapHash
  "Returns the hash that Java makes of a map."
  {:examples '[[(= (clojure.lang.APersistentMap/mapHash {:a 1}) (.hashCode {:a 1})) true]]}
  [m]
  (.hashCode (into {} m)))

(defn mapHasheq
  "Returns the hash of a map."
  {:examples '[[(= (clojure.lang.APersistentMap/mapHasheq {:a 1}) (hash {:a 1})) true]]}
  [m]
  (hash (into {} m)))
