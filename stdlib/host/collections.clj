(ns Collections
  "`java.util.Collections/...`: lists, maps and sets of the host. Immutable results are persistent collections.")

(def EMPTY_LIST "An empty list." [])
(def EMPTY_MAP "An empty map." {})
(def EMPTY_SET "An empty set." #{})

(defn addAll
  "Adds items to a mutable list or set."
  {:examples '[[(vec (doto (java.util.ArrayList.) (java.util.Collections/addAll 1 2))) [1 2]]]}
  [coll & items]
  (.addAll coll items))

(defn emptyList
  "Returns an empty list."
  {:examples '[[(java.util.Collections/emptyList) []]]}
  []
  [])

(defn emptyMap
  "Returns an empty map."
  {:examples '[[(java.util.Collections/emptyMap) {}]]}
  []
  {})

(defn emptySet
  "Returns an empty set."
  {:examples '[[(java.util.Collections/emptySet) #{}]]}
  []
  #{})

(defn enumeration
  "Returns an enumeration of the items of a collection."
  {:examples '[[(.nextElement (java.util.Collections/enumeration [1 2])) 1]]}
  [coll]
  (clojure.lang.SeqIterator. coll))

(defn frequency
  "Returns how often a collection contains an item."
  {:examples '[[(java.util.Collections/frequency [1 2 1] 1) 2]]}
  [coll x]
  (count (filter #(= x %) coll)))

(defn max
  "Returns the greatest item of a collection, by a comparator if one is given."
  {:examples '[[(java.util.Collections/max [1 3 2]) 3]]}
  ([coll] (java.util.Collections/max coll compare))
  ([coll order] (host.mutable/first-of (rseq (vec (clojure.core/sort order coll))))))

(defn min
  "Returns the least item of a collection, by a comparator if one is given."
  {:examples '[[(java.util.Collections/min [3 1 2]) 1]]}
  ([coll] (java.util.Collections/min coll compare))
  ([coll order] (host.mutable/first-of (clojure.core/sort order coll))))

(defn nCopies
  "Returns a list that repeats one item a number of times."
  {:examples '[[(java.util.Collections/nCopies 2 :a) [:a :a]]]}
  [n x]
  (vec (repeat n x)))

(defn- change
  "Replaces the items of a mutable list."
  [items changed]
  (dorun (map-indexed (fn [idx x] (.set items idx x)) changed)))

(defn reverse
  "Reverses a mutable list."
  {:examples '[[(vec (doto (java.util.ArrayList. [1 2]) (java.util.Collections/reverse))) [2 1]]]}
  [items]
  (change items (clojure.core/reverse (vec items))))

(defn reverseOrder
  "Returns a comparator for the reverse order."
  {:examples '[[(.compare (java.util.Collections/reverseOrder) 1 2) 1]]}
  ([] (fn [x y] (compare y x)))
  ([order] (fn [x y] (order y x))))

(defn shuffle
  "Shuffles the items of a mutable list, with a generator if one is given."
  {:examples '[[(count (doto (java.util.ArrayList. [1 2]) (java.util.Collections/shuffle))) 2]]}
  ([items] (change items (clojure.core/shuffle (vec items))))
  ([items random]
   (run! (fn [idx] (java.util.Collections/swap items (dec idx) (.nextInt random idx)))
         (range (count items) 1 -1))))

(defn singleton
  "Returns a set of one item."
  {:examples '[[(java.util.Collections/singleton 1) #{1}]]}
  [x]
  #{x})

(defn singletonList
  "Returns a list of one item."
  {:examples '[[(java.util.Collections/singletonList 1) [1]]]}
  [x]
  [x])

(defn singletonMap
  "Returns a map of one entry."
  {:examples '[[(java.util.Collections/singletonMap :a 1) {:a 1}]]}
  [k v]
  {k v})

(defn sort
  "Sorts a mutable list, by a comparator if one is given."
  {:examples '[[(vec (doto (java.util.ArrayList. [2 1]) (java.util.Collections/sort))) [1 2]]]}
  ([items] (.sort items nil))
  ([items order] (.sort items order)))

(defn swap
  "Swaps two items of a mutable list."
  {:examples '[[(vec (doto (java.util.ArrayList. [1 2]) (java.util.Collections/swap 0 1))) [2 1]]]}
  [items i j]
  (.set items i (.set items j (.get items i)))
  nil)

(defn synchronizedList
  "Returns the list unchanged: there is only one thread."
  {:examples '[[(java.util.Collections/synchronizedList [1]) [1]]]}
  [items]
  items)

(defn synchronizedMap
  "Returns the map unchanged: there is only one thread."
  {:examples '[[(java.util.Collections/synchronizedMap {}) {}]]}
  [m]
  m)

(defn synchronizedSet
  "Returns the set unchanged: there is only one thread."
  {:examples '[[(java.util.Collections/synchronizedSet #{}) #{}]]}
  [items]
  items)

(defn unmodifiableCollection
  "Returns the items as a vector."
  {:examples '[[(java.util.Collections/unmodifiableCollection [1]) [1]]]}
  [items]
  (vec items))

(defn unmodifiableList
  "Returns the items as a vector."
  {:examples '[[(java.util.Collections/unmodifiableList [1]) [1]]]}
  [items]
  (vec items))

(defn unmodifiableMap
  "Returns the entries as a map."
  {:examples '[[(java.util.Collections/unmodifiableMap {:a 1}) {:a 1}]]}
  [m]
  (into {} m))

(defn unmodifiableSet
  "Returns the items as a set."
  {:examples '[[(java.util.Collections/unmodifiableSet #{1}) #{1}]]}
  [items]
  (set items))
