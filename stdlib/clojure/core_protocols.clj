(ns clojure.core.protocols
  "Protocols by which types of a program answer reduce, reduce-kv, datafy and nav.")

(defprotocol CollReduce
  "How a collection is reduced. Types of the program may implement it; reduce asks them."
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
  "How a sequence is reduced."
  (internal-reduce [items f init]
    "Reduces a sequence with f from init on."))

(extend-protocol InternalReduce
  nil
  (internal-reduce [_ _ init] init)
  Object
  (internal-reduce [items f init] (reduce f init items)))

(defprotocol IKVReduce
  "How a map is reduced with its keys and values. Types of the program may implement it; reduce-kv asks them."
  (kv-reduce [amap f init]
    "Reduces amap with f of the result, a key and its value, from init on."))

(extend-protocol IKVReduce
  nil
  (kv-reduce [_ _ init] init)
  Object
  (kv-reduce [amap f init] (reduce-kv f init amap)))

(defprotocol Datafiable
  "How a value is shown as data."
  :extend-via-metadata true
  (datafy [o] "Returns a value as data."))

(extend-protocol Datafiable
  nil
  (datafy [_] nil)
  Object
  (datafy [o] o))

(defprotocol Navigable
  "Where the parts of a value lead."
  :extend-via-metadata true
  (nav [coll k v] "Returns what the value v of coll at k refers to."))

(extend-protocol Navigable
  Object
  (nav [_ _ v] v))
