(ns clojure.core.reducers
  "Transformations of collections that are combined before anything is reduced.")

(defprotocol CollFold
  "Folding of a collection: it is reduced in parts of at most n items, whose results are combined."
  (coll-fold [coll n combinef reducef]
    "Folds coll."))

(defn- fold-vector
  "Folds a vector by splitting it in halves."
  [v n combinef reducef]
  (cond
    (empty? v) (combinef)
    (<= (count v) n) (clojure.core/reduce reducef (combinef) v)
    :else (let [half (quot (count v) 2)]
            (combinef (fold-vector (subvec v 0 half) n combinef reducef)
                      (fold-vector (subvec v half) n combinef reducef)))))

(extend-protocol CollFold
  nil
  (coll-fold [_ _ combinef _] (combinef))
  Object
  (coll-fold [coll n combinef reducef]
    (cond
      (vector? coll) (fold-vector coll n combinef reducef)
      (map? coll) (reduce-kv reducef (combinef) coll)
      :else (clojure.core/reduce reducef (combinef) coll))))

(defn reduce
  "Returns the reduction of coll with f, with (f) as the start if coll is empty; for a map over keys and values."
  {:examples '[[(clojure.core.reducers/reduce + [1 2]) 3]]}
  ([f coll] (clojure.core.reducers/reduce f (f) coll))
  ([f init coll]
   (if (map? coll)
     (reduce-kv f init coll)
     (clojure.core/reduce f init coll))))

(defn fold
  "Returns the combination of the results of reducing parts of coll, of at most n items each (512)."
  {:examples '[[(clojure.core.reducers/fold + (vec (range 1000))) 499500]]}
  ([reducef coll] (fold reducef reducef coll))
  ([combinef reducef coll] (fold 512 combinef reducef coll))
  ([n combinef reducef coll] (coll-fold coll n combinef reducef)))

(defn reducer
  "Returns a reducible of coll, whose reducing function xf transforms."
  {:examples '[[(into [] (clojure.core.reducers/reducer [1 2] (fn [f] (fn [acc x] (f acc (inc x)))))) [2 3]]]}
  [coll xf]
  (reify clojure.lang.IReduceInit
    (reduce [_ f] (clojure.core.reducers/reduce (xf f) (f) coll))
    (reduce [_ f init] (clojure.core.reducers/reduce (xf f) init coll))))

(defn folder
  "Returns a reducible and foldable of coll, whose reducing function xf transforms."
  {:examples '[[(clojure.core.reducers/fold + (clojure.core.reducers/folder [1 2] (fn [f] (fn [acc x] (f acc (inc x)))))) 5]]}
  [coll xf]
  (reify
    clojure.lang.IReduceInit
    (reduce [_ f] (clojure.core.reducers/reduce (xf f) (f) coll))
    (reduce [_ f init] (clojure.core.reducers/reduce (xf f) init coll))
    CollFold
    (coll-fold [_ n combinef reducef] (coll-fold coll n combinef (xf reducef)))))

(defn- of-entries
  "Returns a reducing function that also takes a key and a value, as an entry."
  [f]
  (fn
    ([] (f))
    ([acc x] (f acc x))
    ([acc k v] (f acc (clojure.lang.MapEntry/create k v)))))

(defn map
  "Returns a reducible of the results of f for the items of coll, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/map inc [1 2])) [2 3]]]}
  ([f] (fn [coll] (clojure.core.reducers/map f coll)))
  ([f coll]
   (folder coll (fn [f1]
                  (fn
                    ([] (f1))
                    ([acc x] (f1 acc (f x)))
                    ([acc k v] (f1 acc (f k v))))))))

(defn mapcat
  "Returns a reducible of the items of the collections that f returns for the items of coll, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/mapcat range [1 2])) [0 0 1]]]}
  ([f] (fn [coll] (clojure.core.reducers/mapcat f coll)))
  ([f coll]
   (folder coll (fn [f1]
                  (let [inner (fn
                                ([acc x] (let [acc (f1 acc x)] (if (reduced? acc) (reduced acc) acc)))
                                ([acc k v] (let [acc (f1 acc k v)] (if (reduced? acc) (reduced acc) acc))))]
                    (fn
                      ([] (f1))
                      ([acc x] (clojure.core.reducers/reduce inner acc (f x)))
                      ([acc k v] (clojure.core.reducers/reduce inner acc (f k v)))))))))

(defn filter
  "Returns a reducible of the items of coll for which pred is true, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/filter odd? [1 2 3])) [1 3]]]}
  ([pred] (fn [coll] (clojure.core.reducers/filter pred coll)))
  ([pred coll]
   (folder coll (fn [f1]
                  (fn
                    ([] (f1))
                    ([acc x] (if (pred x) (f1 acc x) acc))
                    ([acc k v] (if (pred k v) (f1 acc k v) acc)))))))

(defn remove
  "Returns a reducible of the items of coll for which pred is false, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/remove odd? [1 2 3])) [2]]]}
  ([pred] (fn [coll] (clojure.core.reducers/remove pred coll)))
  ([pred coll] (clojure.core.reducers/filter (complement pred) coll)))

(defn flatten
  "Returns a reducible of the items of nested sequential collections, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/flatten [1 [2 [3]]])) [1 2 3]]]}
  ([] (fn [coll] (clojure.core.reducers/flatten coll)))
  ([coll]
   (folder coll (fn [f1]
                  (fn
                    ([] (f1))
                    ([acc x]
                     (if (sequential? x)
                       (clojure.core/reduce f1 acc (clojure.core.reducers/flatten x))
                       (f1 acc x))))))))

(defn take-while
  "Returns a reducible of the items of coll up to the first for which pred is false, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/take-while odd? [1 3 4 5])) [1 3]]]}
  ([pred] (fn [coll] (clojure.core.reducers/take-while pred coll)))
  ([pred coll]
   (reducer coll (fn [f1]
                   (of-entries (fn
                                 ([] (f1))
                                 ([acc x] (if (pred x) (f1 acc x) (reduced acc)))))))))

(defn take
  "Returns a reducible of the first n items of coll, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/take 2 [1 2 3])) [1 2]]]}
  ([n] (fn [coll] (clojure.core.reducers/take n coll)))
  ([n coll]
   (reducer coll (fn [f1]
                   (let [left (volatile! n)]
                     (of-entries (fn
                                   ([] (f1))
                                   ([acc x] (if (neg? (vswap! left dec)) (reduced acc) (f1 acc x))))))))))

(defn drop
  "Returns a reducible of the items of coll except the first n, or a function of coll."
  {:examples '[[(into [] (clojure.core.reducers/drop 2 [1 2 3])) [3]]]}
  ([n] (fn [coll] (clojure.core.reducers/drop n coll)))
  ([n coll]
   (reducer coll (fn [f1]
                   (let [left (volatile! n)]
                     (of-entries (fn
                                   ([] (f1))
                                   ([acc x] (if (neg? (vswap! left dec)) (f1 acc x) acc)))))))))

(defn monoid
  "Returns a function of zero or two arguments: (ctor) and (op a b)."
  {:examples '[[(clojure.core.reducers/fold (clojure.core.reducers/monoid into vector) conj [1 2]) [1 2]]]}
  [op ctor]
  (fn
    ([] (ctor))
    ([a b] (op a b))))

(defn append!
  "Adds an item to a mutable list, and returns the list."
  {:examples '[[(vec (clojure.core.reducers/append! (java.util.ArrayList.) 1)) [1]]]}
  [acc x]
  (doto acc (.add x)))

(defn cat
  "Returns an empty mutable list, both collections one after another, or a function that does so with the lists of ctor."
  {:examples '[[(vec (clojure.core.reducers/cat [1] [2])) [1 2]]]}
  ([] (java.util.ArrayList.))
  ([ctor] (fn ([] (ctor)) ([left right] (cat left right))))
  ([left right]
   (cond
     (zero? (count left)) right
     (zero? (count right)) left
     :else (doto (java.util.ArrayList. (vec left)) (.addAll right)))))

(defn foldcat
  "Returns the items of coll, folded."
  {:examples '[[(vec (clojure.core.reducers/foldcat (clojure.core.reducers/map inc [1 2]))) [2 3]]]}
  [coll]
  (fold cat append! coll))
