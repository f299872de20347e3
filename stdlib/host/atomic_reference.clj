(ns AtomicReference
  "`java.util.concurrent.atomic.AtomicReference`: a mutable reference to a value."
  (:require [host.mutable :refer [defreference]]))

(defreference ^{:package "java.util.concurrent.atomic"} AtomicReference)

(defn new
  "Returns a new reference."
  {:examples '[[(.get (java.util.concurrent.atomic.AtomicReference. :a)) :a]]}
  ([] (->AtomicReference nil))
  ([x] (->AtomicReference x)))
