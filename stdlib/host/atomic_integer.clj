(ns AtomicInteger
  "`java.util.concurrent.atomic.AtomicInteger`: a mutable number."
  (:require [host.mutable :refer [defcounter]]))

(defcounter ^{:package "java.util.concurrent.atomic"} AtomicInteger)

(defn new
  "Returns a new number, 0 if none is given."
  {:examples '[[(.incrementAndGet (java.util.concurrent.atomic.AtomicInteger. 1)) 2]]}
  ([] (->AtomicInteger 0))
  ([x] (->AtomicInteger x)))
