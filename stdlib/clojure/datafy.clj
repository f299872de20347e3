(ns clojure.datafy
  "Conversion of values to data, and navigation from their parts."
  (:require [clojure.core.protocols :as protocols]))

(defn datafy
  "Returns x as data: by clojure.core.protocols/Datafiable, with the value itself in the metadata where they differ."
  {:examples '[[(datafy {:a 1}) {:a 1}]]}
  [x]
  (let [data (protocols/datafy x)]
    (if (or (identical? data x) (not (instance? clojure.lang.IObj data)))
      data
      (vary-meta data assoc ::obj x ::class (-> x class .getName symbol)))))

(defn nav
  "Returns what the value v of coll at k refers to: by clojure.core.protocols/Navigable."
  {:examples '[[(nav {:a 1} :a 1) 1]]}
  [coll k v]
  (protocols/nav coll k v))
