(ns PersistentArrayMap
  "`clojure.lang.PersistentArrayMap/...`: maps from other collections.")

(defn createAsIfByAssoc
  "Returns a map of the keys and values in an array."
  {:examples '[[(clojure.lang.PersistentArrayMap/createAsIfByAssoc (object-array [:a 1])) {:a 1}]]}
  [keyvals]
  (apply array-map keyvals))
