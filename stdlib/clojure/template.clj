(ns clojure.template
  "Expressions with placeholders."
  (:require [clojure.walk :as walk]))

(defn apply-template
  "Returns expr with each symbol of argv replaced by the value at the same position."
  {:examples '[[(apply-template '[x y] '(+ x y) [1 2]) (+ 1 2)]]}
  [argv expr values]
  (assert (vector? argv))
  (assert (every? symbol? argv))
  (walk/postwalk-replace (zipmap argv values) expr))

(defmacro do-template
  "Evaluates expr for each group of values, one value per symbol of argv, in its place."
  {:examples '[[(do-template [x] (inc x) 1 2) 3]]}
  [argv expr & values]
  (let [size (count argv)]
    `(do ~@(map (fn [group] (apply-template argv expr group))
                (partition size values)))))
