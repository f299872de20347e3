(ns PersistentHashSet
  "`clojure.lang.PersistentHashSet/...`: sets from other collections.")

(defn create
  "Returns a set of the items of a collection."
  {:examples '[[(clojure.lang.PersistentHashSet/create [1 1]) #{1}]]}
  [items]
  (set items))

(defn createWithCheck
  "Returns a set of the items of a collection; throws if two are equal."
  {:examples '[[(clojure.lang.PersistentHashSet/createWithCheck [1]) #{1}]]}
  [items]
  (reduce (fn [found x]
            (if (contains? found x)
              (throw (IllegalArgumentException. (str "Duplicate key: " x)))
              (conj found x)))
          #{}
          items))
