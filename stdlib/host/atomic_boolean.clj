(ns AtomicBoolean
  "`java.util.concurrent.atomic.AtomicBoolean`: a mutable boolean."
  (:require [host.mutable :refer [defreference]]))

(defreference ^{:package "java.util.concurrent.atomic"} AtomicBoolean)

(defn new
  "Returns a new reference."
  {:examples '[[(.get (java.util.concurrent.atomic.AtomicBoolean. true)) true]]}
  ([] (->AtomicBoolean false))
  ([x] (->AtomicBoolean x)))
