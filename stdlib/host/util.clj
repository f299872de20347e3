(ns Util
  "`clojure.lang.Util/...`: equality and hashes.")

(defn equiv
  "Tells whether two values are equal."
  {:examples '[[(clojure.lang.Util/equiv 1 1) true]]}
  [x y]
  (= x y))

(defn hash
  "Returns the hash of a value as a host integer."
  {:examples '[[(clojure.lang.Util/hash "abc") 96354]]}
  [x]
  (.hashCode x))

(defn hasheq
  "Returns the hash of a value."
  {:examples '[[(= (clojure.lang.Util/hasheq "a") (clojure.core/hash "a")) true]]}
  [x]
  (clojure.core/hash x))

(defn identical
  "Tells whether two values are the same."
  {:examples '[[(clojure.lang.Util/identical :a :a) true]]}
  [x y]
  (identical? x y))
