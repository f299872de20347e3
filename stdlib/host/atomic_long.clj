(ns AtomicLong
  "`java.util.concurrent.atomic.AtomicLong`: a mutable number."
  (:require [host.mutable :refer [defcounter]]))

(defcounter ^{:package "java.util.concurrent.atomic"} AtomicLong)

(defn new
  "Returns a new number, 0 if none is given."
  {:examples '[[(.incrementAndGet (java.util.concurrent.atomic.AtomicLong. 1)) 2]]}
  ([] (->AtomicLong 0))
  ([x] (->AtomicLong x)))
