(ns clojure.data
  "The differences between two values and their common parts."
  (:require [clojure.set :as set]))

(declare diff)

(defn- atom-diff
  [a b]
  (if (= a b) [nil nil a] [a b nil]))

(defn- vectorize
  "Returns a vector with the values of a map at the indexes that are its keys."
  [m]
  (when (seq m)
    (reduce (fn [result [idx value]] (assoc result idx value))
            (vec (repeat (apply max (keys m)) nil))
            m)))

(defn- diff-key
  [a b k]
  (let [[only-a only-b both] (diff (get a k) (get b k))
        in-a (contains? a k)
        in-b (contains? b k)
        same (and in-a in-b
                  (or (some? both)
                      (and (nil? (get a k)) (nil? (get b k)))))]
    [(when (and in-a (or (some? only-a) (not same))) {k only-a})
     (when (and in-b (or (some? only-b) (not same))) {k only-b})
     (when same {k both})]))

(defn- diff-maps
  ([a b]
   (let [[few many] (sort-by count [(keys a) (keys b)])
         [few many] (if (= (count few) (count many)) [(keys b) (keys a)] [few many])]
     (diff-maps a b (distinct (reduce conj (or many ()) few)))))
  ([a b ks]
   (reduce (fn [sums parts] (doall (map merge sums parts)))
           [nil nil nil]
           (map (partial diff-key a b) ks))))

(defn- diff-sequences
  [a b]
  (mapv vectorize
        (diff-maps (if (vector? a) a (vec a))
                   (if (vector? b) b (vec b))
                   (range (max (count a) (count b))))))

(defn- diff-sets
  [a b]
  [(not-empty (set/difference a b))
   (not-empty (set/difference b a))
   (not-empty (set/intersection a b))])

(defn- kind
  [x]
  (cond
    (set? x) :set
    (map? x) :map
    (sequential? x) :sequential
    :else :atom))

(defn diff
  "Returns a vector of the parts only in a, those only in b, and those in both, for nested collections."
  {:examples '[[(diff {:a 1 :b 2} {:a 1 :b 3}) [{:b 2} {:b 3} {:a 1}]]
               [(diff [1 2] [1 5 6]) [[nil 2] [nil 5 6] [1]]]
               [(diff #{1 2} #{2 3}) [#{1} #{3} #{2}]]]}
  [a b]
  (cond
    (= a b) [nil nil a]
    (not= (kind a) (kind b)) (atom-diff a b)
    :else (case (kind a)
            :set (diff-sets a b)
            :map (diff-maps a b)
            :sequential (diff-sequences a b)
            :atom (atom-diff a b))))
