(ns clojure.core.protocols
  "Protocols with which types of a program implement reduce, reduce-kv, datafy and nav.")

(defprotocol CollReduce
  "Reduction of a collection. Types of the program may implement it; reduce uses it."
  (coll-reduce [coll f] [coll f init]
    "Reduces coll with f, from its first item or from init on."))

(extend-protocol CollReduce
  nil
  (coll-reduce
    ([_ f] (f))
    ([_ _ init] init))
  Object
  (coll-reduce
    ([coll f] (reduce f coll))
    ([coll f init] (reduce f init coll))))

(defprotocol InternalReduce
  "Reduction of a sequence."
  (internal-reduce [items f init]
    "Reduces a sequence with f from init on."))

(extend-protocol InternalReduce
  nil
  (internal-reduce [_ _ init] init)
  Object
  (internal-reduce [items f init] (reduce f init items)))

(defprotocol IKVReduce
  "Reduction of a map with its keys and values. Types of the program may implement it; reduce-kv uses it."
  (kv-reduce [amap f init]
    "Reduces amap with f of the result, a key and its value, from init on."))

(extend-protocol IKVReduce
  nil
  (kv-reduce [_ _ init] init)
  Object
  (kv-reduce [amap f init] (reduce-kv f init amap)))

(defprotocol Datafiable
  "Conversion of a value to data."
  :extend-via-metadata true
  (datafy [o] "Returns a value as data."))

(extend-protocol Datafiable
  nil
  (datafy [_] nil)
  Object
  (datafy [o] o))

(defprotocol Navigable
  "Navigation from a value to the values that its parts refer to."
  :extend-via-metadata true
  (nav [coll k v] "Returns what the value v of coll at k refers to."))

(extend-protocol Navigable
  Object
  (nav [_ _ v] v))
