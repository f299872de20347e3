(ns Objects
  "`java.util.Objects/...`: equality, hashes and texts of values that may be nil.")

(defn equals
  "Tells whether two values are equal."
  {:examples '[[(java.util.Objects/equals nil nil) true]]}
  [x y]
  (= x y))

(defn hash
  "Returns a combined hash of the values."
  {:examples '[[(java.util.Objects/hash 1 2) 994]]}
  [& values]
  (java.util.Arrays/hashCode (object-array values)))

(defn hashCode
  "Returns the hash of a value; 0 for nil."
  {:examples '[[(java.util.Objects/hashCode nil) 0]]}
  [x]
  (if (nil? x) 0 (.hashCode x)))

(defn isNull
  "Tells whether a value is nil."
  {:examples '[[(java.util.Objects/isNull nil) true]]}
  [x]
  (nil? x))

(defn nonNull
  "Tells whether a value is not nil."
  {:examples '[[(java.util.Objects/nonNull nil) false]]}
  [x]
  (some? x))

(defn requireNonNull
  "Returns a value; throws if it is nil."
  {:examples '[[(java.util.Objects/requireNonNull 1) 1]]}
  ([x] (if (nil? x) (throw (NullPointerException.)) x))
  ([x message] (if (nil? x) (throw (NullPointerException. message)) x)))

(defn toString
  "Returns the text of a value."
  {:examples '[[(java.util.Objects/toString nil) "null"]]}
  ([x] (host.mutable/text-of x))
  ([x default] (if (nil? x) default (str x))))
