;; Types of a program that act as collections, functions and cells.
(ns types-of.suite
  (:require [clojure.test :refer [are deftest is testing]]))

(defprotocol Shape
  (area [shape])
  (scale [shape k]))

(deftype Gauge [^:unsynchronized-mutable level ^:volatile-mutable seen]
  Shape
  (area [_] level)
  (scale [this k]
    (set! level (* level k))
    (set! seen (conj seen k))
    this)
  clojure.lang.IDeref
  (deref [_] [level seen])
  Object
  (toString [_] (str "gauge " level))
  (equals [_ other] (and (instance? Gauge other) (= level (area other))))
  (hashCode [_] (hash level))
  Comparable
  (compareTo [_ other] (compare level (area other))))

(deftest fields-can-be-set
  (let [gauge (->Gauge 2 [])]
    (is (= 6 (area (scale gauge 3))))
    (is (= [6 [3]] @gauge))
    (is (= 12 (area (scale gauge 2))))
    (is (= 12 (.-level gauge)))))

(deftype Tally [^:unsynchronized-mutable n]
  clojure.lang.IFn
  (invoke [_]
    (let [step (fn [] (set! n (inc n)))]
      (step)
      (let [before n]
        (let [n :shadowed]
          [before n (step)])))))

(deftest a-set-field-is-seen-in-closures-and-hidden-by-locals
  (is (= [1 :shadowed 2] ((->Tally 0)))))

(deftest methods-of-object-are-used-by-core
  (let [gauge (->Gauge 6 nil)]
    (are [expected actual] (= expected actual)
      "gauge 6" (str gauge)
      "gauge 6" (.toString gauge)
      "a gauge 6 b" (str "a " gauge " b")
      (->Gauge 6 [:other]) gauge
      (hash 6) (hash gauge)
      6 (.area gauge)
      -1 (compare gauge (->Gauge 7 nil)))
    (is (not= gauge (->Gauge 7 nil)))
    (is (not= gauge 6))
    (is (= [1 2 3] (map area (sort (map #(->Gauge % nil) [3 1 2])))))
    (is (= "5" (.toString 5)))))

(deftype Ring [items]
  clojure.lang.ILookup
  (valAt [_ k] (nth items k nil))
  (valAt [_ k none] (nth items k none))
  clojure.lang.Counted
  (count [_] (count items))
  clojure.lang.IPersistentCollection
  (seq [_] (seq items))
  (cons [_ item] (Ring. (conj items item)))
  (empty [_] (Ring. []))
  (equiv [_ other] (= items (seq other)))
  clojure.lang.Associative
  (assoc [_ k v] (Ring. (assoc items k v)))
  (containsKey [_ k] (< -1 k (count items)))
  clojure.lang.IFn
  (invoke [_ k] (nth items (mod k (count items))))
  (invoke [_ a b] [a b]))

(deftest a-type-can-act-as-a-collection
  (let [ring (->Ring [1 2 3])]
    (are [expected actual] (= expected actual)
      2 (get ring 1)
      :none (get ring 9 :none)
      nil (get ring 9)
      3 (count ring)
      [2 3 4] (map inc ring)
      6 (reduce + ring)
      [1 2 3] (into [] ring)
      [1 2 3 4] (seq (conj ring 4))
      [1 :x 3] (vec (assoc ring 1 :x))
      [] (vec (empty ring))
      1 (first ring)
      [2 3] (rest ring)
      2 (ring 4)
      [:a :b] (ring :a :b)
      [2 1 2] (map ring [1 0 4])
      ring [1 2 3]
      [1 2 3] ring
      6 (apply + ring))
    (are [pred] (pred ring) coll? ifn? counted? seqable? associative?)
    (are [pred] (not (pred ring)) map? sequential? fn?)
    (is (contains? ring 0))
    (is (not (contains? ring 5)))
    (let [[a b] (seq ring)] (is (= [1 2] [a b])))))

(deftype From [n]
  clojure.lang.ISeq
  (seq [this] this)
  (first [_] n)
  (more [_] (From. (inc n)))
  (next [_] (From. (inc n))))

(deftest a-type-can-act-as-a-sequence
  (is (= [5 6 7] (take 3 (->From 5))))
  (is (= 7 (nth (->From 5) 2))))

(defrecord Money [cents]
  Object
  (toString [_] (str cents " cents"))
  clojure.lang.IFn
  (invoke [_ more] (+ cents more)))

(deftest records-can-define-methods
  (let [money (->Money 150)]
    (is (= "150 cents" (str money)))
    (is (= 151 (money 1)))
    (is (= 150 (:cents money)))
    (is (= money (->Money 150)))
    (is (instance? clojure.lang.IFn money))))

(deftest reified-objects-implement-interfaces
  (let [thing (reify
                clojure.lang.IFn (invoke [_ x] (inc x))
                clojure.lang.ILookup (valAt [_ k] [k])
                Shape (area [_] 9)
                Object (toString [_] "thing") (shout [_ word] (str word "!")))]
    (are [expected actual] (= expected actual)
      [2 3] (map thing [1 2])
      [:a] (:a thing)
      9 (area thing)
      9 (.area thing)
      "thing" (str thing)
      "hi!" (.shout thing "hi"))
    (is (ifn? thing))
    (is (thrown? IllegalArgumentException (.shout 5 "hi")))))

(deftest types-are-classes-with-names
  (is (instance? types_of.suite.Ring (->Ring [])))
  (is (instance? Gauge (->Gauge 1 2)))
  (is (not (instance? Ring (->Gauge 1 2))))
  (testing "implemented interfaces are superclasses"
    (is (contains? (parents Gauge) types_of.suite.Shape))
    (is (contains? (supers Money) Object)))
  (is (contains? (parents String) Object))
  (is (nil? (parents Object))))
