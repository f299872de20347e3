(ns IdentityHashMap
  "`java.util.IdentityHashMap`: mutable maps whose keys are compared by identity.")

(defn- place-of
  "Returns the index of the entry with a key; nil if the map does not contain it."
  [entries k]
  (first (keep-indexed (fn [idx entry] (when (identical? k (first entry)) idx)) entries)))

(deftype ^{:package "java.util"} IdentityHashMap [^:unsynchronized-mutable entries]
  java.util.Map
  (clear [this] (set! entries []) nil)
  (containsKey [this k] (some? (place-of entries k)))
  (count [this] (count entries))
  (get [this k] (when-let [idx (place-of entries k)] (second (nth entries idx))))
  (isEmpty [this] (empty? entries))
  (keySet [this] (set (map first entries)))
  (put [this k v]
    (let [idx (place-of entries k)
          old (when idx (second (nth entries idx)))]
      (set! entries (if idx (assoc entries idx [k v]) (conj entries [k v])))
      old))
  (remove [this k]
    (let [idx (place-of entries k)
          old (when idx (second (nth entries idx)))]
      (when idx (set! entries (host.mutable/without entries idx)))
      old))
  (seq [this] (seq (map (fn [[k v]] (clojure.lang.MapEntry/create k v)) entries)))
  (size [this] (count entries))
  (toString [this] (host.mutable/map-text entries))
  (valAt [this k] (.get this k))
  (values [this] (map second entries)))

(defn new
  "Returns a new map without entries, optionally with room for a number of them."
  {:examples '[[(.get (doto (java.util.IdentityHashMap.) (.put :a 1)) :a) 1]]}
  ([] (->IdentityHashMap []))
  ([_size] (->IdentityHashMap [])))
