(ns host.mutable
  "The mutable collections of `java.util`: each is a type that holds a persistent collection."
  (:require [clojure.string :as str]))

(defn text-of
  "Returns the text of a value as Java concatenates it to a text."
  {:examples '[[(host.mutable/text-of nil) "null"]]}
  [x]
  (if (nil? x) "null" (str x)))

(defn list-text
  "Returns the text of a list or set."
  {:examples '[[(host.mutable/list-text [1 nil]) "[1, null]"]]}
  [items]
  (str "[" (str/join ", " (map text-of items)) "]"))

(defn map-text
  "Returns the text of a map."
  {:examples '[[(host.mutable/map-text {:a 1}) "{:a=1}"]]}
  [entries]
  (str "{" (str/join ", " (map (fn [[k v]] (str (text-of k) "=" (text-of v))) entries)) "}"))

(defn at
  "Returns the item of a vector at an index, or throws as a list does."
  {:examples '[[(host.mutable/at [1 2] 1) 2]]}
  [items idx]
  (if (and (int? idx) (< -1 idx (count items)))
    (nth items idx)
    (throw (IndexOutOfBoundsException. (str "Index " idx " out of bounds for length " (count items))))))

(defn without
  "Returns a vector without the item at an index."
  {:examples '[[(host.mutable/without [1 2 3] 1) [1 3]]]}
  [items idx]
  (at items idx)
  (into (subvec items 0 idx) (subvec items (inc idx))))

(defn index-of
  "Returns the index of the first item that is equal to x; -1 if there is no such item."
  {:examples '[[(host.mutable/index-of [1 2] 2) 1]]}
  [items x]
  (or (first (keep-indexed (fn [idx item] (when (= item x) idx)) items)) -1))

(defn first-of
  "Returns the first item, or throws if it is empty."
  {:examples '[[(host.mutable/first-of [1 2]) 1]]}
  [items]
  (if (seq items) (first items) (throw (java.util.NoSuchElementException.))))

(defn equal-lists?
  "Tells whether a list holds the items of another list, or of a sequential collection."
  {:examples '[[(host.mutable/equal-lists? [1] '(1)) true]]}
  [items other]
  (and (or (sequential? other) (instance? java.util.List other))
       (= (seq items) (seq other))))

(def list-methods
  "The methods of all lists."
  '(java.util.List
    (add [this x] (set! items (conj items x)) true)
    (add [this idx x]
      (when-not (<= 0 idx (count items)) (host.mutable/at items idx))
      (set! items (into (conj (subvec items 0 idx) x) (subvec items idx)))
      nil)
    (addAll [this more]
      (let [size (count items)]
        (set! items (into items more))
        (not= size (count items))))
    (addFirst [this x] (set! items (into [x] items)) nil)
    (addLast [this x] (set! items (conj items x)) nil)
    (clear [this] (set! items []) nil)
    (contains [this x] (boolean (some (fn [item] (= item x)) items)))
    (containsAll [this more] (every? (fn [x] (some (fn [item] (= item x)) items)) more))
    (count [this] (count items))
    (equals [this other] (host.mutable/equal-lists? items other))
    (forEach [this f] (run! f items))
    (get [this idx] (host.mutable/at items idx))
    (getFirst [this] (host.mutable/first-of items))
    (getLast [this] (host.mutable/first-of (rseq items)))
    (hashCode [this] (.hashCode items))
    (hasheq [this] (hash items))
    (indexOf [this x] (host.mutable/index-of items x))
    (isEmpty [this] (empty? items))
    (iterator [this] (clojure.lang.SeqIterator. items))
    (lastIndexOf [this x]
      (let [idx (host.mutable/index-of (rseq items) x)]
        (if (neg? idx) -1 (- (count items) idx 1))))
    (nth [this idx] (host.mutable/at items idx))
    (nth [this idx default] (nth items idx default))
    (removeAll [this gone]
      (let [size (count items)]
        (set! items (vec (remove (set gone) items)))
        (not= size (count items))))
    (removeFirst [this]
      (let [x (host.mutable/first-of items)]
        (set! items (subvec items 1))
        x))
    (removeIf [this f]
      (let [size (count items)]
        (set! items (vec (remove f items)))
        (not= size (count items))))
    (removeLast [this]
      (let [x (host.mutable/first-of (rseq items))]
        (set! items (pop items))
        x))
    (seq [this] (seq items))
    (set [this idx x]
      (let [old (host.mutable/at items idx)]
        (set! items (assoc items idx x))
        old))
    (size [this] (count items))
    (sort [this order] (set! items (vec (sort (or order compare) items))) nil)
    (subList [this start end] (subvec items start end))
    (toArray [this] (to-array items))
    (toArray [this _kind] (to-array items))
    (toString [this] (host.mutable/list-text items))))

(def deque-methods
  "The methods of lists that are used from both ends."
  '(java.util.Deque
    (descendingIterator [this] (clojure.lang.SeqIterator. (rseq items)))
    (element [this] (host.mutable/first-of items))
    (offer [this x] (set! items (conj items x)) true)
    (offerFirst [this x] (set! items (into [x] items)) true)
    (offerLast [this x] (set! items (conj items x)) true)
    (peek [this] (first items))
    (peekFirst [this] (first items))
    (peekLast [this] (peek items))
    (poll [this] (when (seq items) (.removeFirst this)))
    (pollFirst [this] (when (seq items) (.removeFirst this)))
    (pollLast [this] (when (seq items) (.removeLast this)))
    (pop [this] (.removeFirst this))
    (push [this x] (set! items (into [x] items)) nil)
    (remove [this] (.removeFirst this))
    (remove [this x]
      (let [idx (host.mutable/index-of items x)]
        (when-not (neg? idx) (set! items (host.mutable/without items idx)))
        (not (neg? idx))))))

(defmacro deflist
  "Defines a class of lists."
  [tname methods]
  (list* 'deftype tname '[^:unsynchronized-mutable items] (concat list-methods @(resolve methods))))

(def by-index
  "The removal methods of array lists: at an index, or of an item."
  '(java.util.RandomAccess
    (remove [this x]
      (if (int? x)
        (let [old (host.mutable/at items x)]
          (set! items (host.mutable/without items x))
          old)
        (let [idx (host.mutable/index-of items x)]
          (when-not (neg? idx) (set! items (host.mutable/without items idx)))
          (not (neg? idx)))))))

(defn entries-in-order
  "Returns the entries of a map in the insertion order of their keys."
  {:examples '[[(host.mutable/entries-in-order {:a [0 1]} (sorted-map 0 :a)) ([:a 1])]]}
  [entries order]
  (map (fn [[_ k]] (clojure.lang.MapEntry/create k (second (get entries k)))) order))

(def map-methods
  "The methods of all maps. Entries are stored by key, with their position in the order."
  '(java.util.Map
    (clear [this] (set! entries {}) (set! order (sorted-map)) nil)
    (compute [this k f]
      (let [v (f k (second (get entries k)))]
        (if (nil? v) (.remove this k) (.put this k v))
        v))
    (computeIfAbsent [this k f]
      (if-some [v (second (get entries k))]
        v
        (let [v (f k)]
          (when-not (nil? v) (.put this k v))
          v)))
    (computeIfPresent [this k f]
      (when-some [old (second (get entries k))]
        (let [v (f k old)]
          (if (nil? v) (.remove this k) (.put this k v))
          v)))
    (containsKey [this k] (contains? entries k))
    (containsValue [this v] (boolean (some (fn [entry] (= v (second (val entry)))) entries)))
    (count [this] (count entries))
    (entrySet [this] (set (host.mutable/entries-in-order entries order)))
    (equals [this other]
      (and (or (map? other) (instance? java.util.Map other))
           (= (into {} (host.mutable/entries-in-order entries order)) (into {} other))))
    (forEach [this f] (run! (fn [entry] (f (key entry) (second (val entry)))) entries))
    (get [this k] (second (get entries k)))
    (getOrDefault [this k default] (if-let [found (get entries k)] (second found) default))
    (hashCode [this] (.hashCode (into {} (host.mutable/entries-in-order entries order))))
    (hasheq [this] (hash (into {} (host.mutable/entries-in-order entries order))))
    (isEmpty [this] (empty? entries))
    (iterator [this] (clojure.lang.SeqIterator. (host.mutable/entries-in-order entries order)))
    (keySet [this] (set (keys entries)))
    (merge [this k v f]
      (let [old (second (get entries k))
            v (if (nil? old) v (f old v))]
        (if (nil? v) (.remove this k) (.put this k v))
        v))
    (put [this k v]
      (let [[place old] (get entries k)
            place (or place (if (seq order) (inc (key (first (rseq order)))) 0))]
        (set! entries (assoc entries k [place v]))
        (set! order (assoc order place k))
        old))
    (putAll [this more] (run! (fn [[k v]] (.put this k v)) more))
    (putIfAbsent [this k v]
      (let [old (second (get entries k))]
        (when (nil? old) (.put this k v))
        old))
    (remove [this k]
      (let [[place old] (get entries k)]
        (when place
          (set! entries (dissoc entries k))
          (set! order (dissoc order place)))
        old))
    (remove [this k v]
      (let [found (get entries k)
            same (and (some? found) (= v (second found)))]
        (when same (.remove this k))
        same))
    (replace [this k v] (when (contains? entries k) (.put this k v)))
    (seq [this] (seq (host.mutable/entries-in-order entries order)))
    (size [this] (count entries))
    (toString [this] (host.mutable/map-text (host.mutable/entries-in-order entries order)))
    (valAt [this k] (second (get entries k)))
    (valAt [this k default] (if-let [found (get entries k)] (second found) default))
    (values [this] (map second (host.mutable/entries-in-order entries order)))))

(defmacro defmap
  "Defines a class of maps that keep insertion order."
  [tname]
  (list* 'deftype tname '[^:unsynchronized-mutable entries ^:unsynchronized-mutable order] map-methods))

(def set-methods
  "The methods of all sets."
  '(java.util.Set
    (add [this x]
      (let [new (not (contains? entries x))]
        (when new
          (let [place (if (seq order) (inc (key (first (rseq order)))) 0)]
            (set! entries (assoc entries x place))
            (set! order (assoc order place x))))
        new))
    (addAll [this more] (boolean (some true? (mapv (fn [x] (.add this x)) more))))
    (clear [this] (set! entries {}) (set! order (sorted-map)) nil)
    (contains [this x] (contains? entries x))
    (containsAll [this more] (every? (fn [x] (contains? entries x)) more))
    (count [this] (count entries))
    (equals [this other]
      (and (or (set? other) (instance? java.util.Set other))
           (= (set (vals order)) (set other))))
    (forEach [this f] (run! f (vals order)))
    (get [this x] (when (contains? entries x) x))
    (hashCode [this] (.hashCode (set (vals order))))
    (hasheq [this] (hash (set (vals order))))
    (isEmpty [this] (empty? entries))
    (iterator [this] (clojure.lang.SeqIterator. (vals order)))
    (remove [this x]
      (let [place (get entries x)]
        (when place
          (set! entries (dissoc entries x))
          (set! order (dissoc order place)))
        (some? place)))
    (removeAll [this gone] (boolean (some true? (mapv (fn [x] (.remove this x)) gone))))
    (removeIf [this f] (boolean (some true? (mapv (fn [x] (.remove this x)) (filterv f (vals order))))))
    (retainAll [this kept]
      (let [kept (set kept)]
        (boolean (some true? (mapv (fn [x] (.remove this x)) (vec (remove kept (vals order))))))))
    (seq [this] (seq (vals order)))
    (size [this] (count entries))
    (toArray [this] (to-array (vals order)))
    (toString [this] (host.mutable/list-text (vals order)))))

(defmacro defset
  "Defines a class of sets that keep insertion order."
  [tname]
  (list* 'deftype tname '[^:unsynchronized-mutable entries ^:unsynchronized-mutable order] set-methods))

(def counter-methods
  "The methods of numbers that are changed in place."
  '(java.lang.Number
    (accumulateAndGet [this x f] (set! value (long (f value x))))
    (addAndGet [this x] (set! value (+ value x)))
    (compareAndSet [this expected x]
      (let [same (= expected value)]
        (when same (set! value x))
        same))
    (decrementAndGet [this] (set! value (dec value)))
    (doubleValue [this] (double value))
    (get [this] value)
    (getAndAdd [this x] (let [old value] (set! value (+ value x)) old))
    (getAndDecrement [this] (let [old value] (set! value (dec value)) old))
    (getAndIncrement [this] (let [old value] (set! value (inc value)) old))
    (getAndSet [this x] (let [old value] (set! value x) old))
    (getAndUpdate [this f] (let [old value] (set! value (f value)) old))
    (incrementAndGet [this] (set! value (inc value)))
    (intValue [this] (int value))
    (lazySet [this x] (set! value x) nil)
    (longValue [this] value)
    (set [this x] (set! value x) nil)
    (toString [this] (str value))
    (updateAndGet [this f] (set! value (f value)))))

(defmacro defcounter
  "Defines a class of numbers that are changed in place."
  [tname]
  (list* 'deftype tname '[^:unsynchronized-mutable value] counter-methods))

(def reference-methods
  "The methods of objects that hold a mutable value."
  '(java.lang.Object
    (accumulateAndGet [this x f] (set! value (f value x)))
    (compareAndSet [this expected x]
      (let [same (identical? expected value)]
        (when same (set! value x))
        same))
    (get [this] value)
    (getAndSet [this x] (let [old value] (set! value x) old))
    (getAndUpdate [this f] (let [old value] (set! value (f value)) old))
    (getPlain [this] value)
    (lazySet [this x] (set! value x) nil)
    (set [this x] (set! value x) nil)
    (toString [this] (host.mutable/text-of value))
    (updateAndGet [this f] (set! value (f value)))))

(defmacro defreference
  "Defines a class of objects that hold a mutable value."
  [tname]
  (list* 'deftype tname '[^:unsynchronized-mutable value] reference-methods))
