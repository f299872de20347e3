(ns RT
  "`clojure.lang.RT/...`: functions of Clojure's runtime that libraries use.")

(def checkSpecAsserts "Whether asserts of specs are checked." false)

(def ^:private ids (atom 0))

(defn baseLoader
  "Returns nil: there are no class loaders."
  {:examples '[[(clojure.lang.RT/baseLoader) nil]]}
  []
  nil)

(defn classForName
  "Returns the class with a full name, or throws."
  {:examples '[[(.getName (clojure.lang.RT/classForName "java.lang.String")) "java.lang.String"]]}
  ([full-name] (Class/forName full-name))
  ([full-name _initialize _loader] (Class/forName full-name)))

(defn conj
  "Returns a collection with an item added."
  {:examples '[[(clojure.lang.RT/conj [1] 2) [1 2]]]}
  [coll x]
  (clojure.core/conj coll x))

(defn count
  "Returns the number of items of a collection."
  {:examples '[[(clojure.lang.RT/count [1 2]) 2]]}
  [coll]
  (clojure.core/count coll))

(defn first
  "Returns the first item of a collection."
  {:examples '[[(clojure.lang.RT/first [1 2]) 1]]}
  [coll]
  (clojure.core/first coll))

(defn get
  "Returns the value of a collection at a key."
  {:examples '[[(clojure.lang.RT/get {:a 1} :a) 1]]}
  ([coll k] (clojure.core/get coll k))
  ([coll k default] (clojure.core/get coll k default)))

(defn iter
  "Returns an iterator over the items of a collection."
  {:examples '[[(.next (clojure.lang.RT/iter [1 2])) 1]]}
  [coll]
  (clojure.lang.SeqIterator. coll))

(defn map
  "Returns a map of the keys and values in an array."
  {:examples '[[(clojure.lang.RT/map (object-array [:a 1])) {:a 1}]]}
  [keyvals]
  (apply hash-map keyvals))

(defn nextID
  "Returns a number that was not returned before."
  {:examples '[[(int? (clojure.lang.RT/nextID)) true]]}
  []
  (swap! ids inc))

(defn nth
  "Returns the item of a collection at an index."
  {:examples '[[(clojure.lang.RT/nth [1 2] 1) 2]]}
  ([coll idx] (clojure.core/nth coll idx))
  ([coll idx default] (clojure.core/nth coll idx default)))

(defn seq
  "Returns a collection as a sequence, or nil."
  {:examples '[[(clojure.lang.RT/seq [1]) (1)]]}
  [coll]
  (clojure.core/seq coll))

(defn toArray
  "Returns the items of a collection as an array."
  {:examples '[[(vec (clojure.lang.RT/toArray [1 2])) [1 2]]]}
  [coll]
  (to-array coll))
