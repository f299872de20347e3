(ns PersistentHashMap
  "`clojure.lang.PersistentHashMap/...`: maps from other collections.")

(defn create
  "Returns a map of the entries of another, or of keys and values."
  {:examples '[[(clojure.lang.PersistentHashMap/create [:a 1]) {:a 1}]]}
  ([entries] (if (map? entries) (into {} entries) (apply hash-map entries)))
  ([k v & more] (apply hash-map k v more)))
