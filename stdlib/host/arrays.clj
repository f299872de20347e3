(ns Arrays
  "`java.util.Arrays/...`: functions of arrays.")

(defn asList
  "Returns the items of an array as a list."
  {:examples '[[(java.util.Arrays/asList (object-array [1 2])) [1 2]]]}
  ([] [])
  ([array] (vec array))
  ([x & more] (vec (cons x more))))

(defn- empty-like
  "Returns an array of the class of another, with this length."
  [array length]
  (let [make {"[B" byte-array "[C" char-array "[D" double-array "[F" float-array
              "[I" int-array "[J" long-array "[S" short-array "[Z" boolean-array}]
    ((get make (.getName (class array)) object-array) length)))

(defn copyOf
  "Returns an array with the first items of another; it must have at least that many."
  {:examples '[[(vec (java.util.Arrays/copyOf (int-array [1 2 3]) 2)) [1 2]]]}
  [array length]
  (java.util.Arrays/copyOfRange array 0 length))

(defn copyOfRange
  "Returns an array with the items of another from start up to end; items past its end are 0, false or nil."
  {:examples '[[(vec (java.util.Arrays/copyOfRange (int-array [1 2 3]) 1 3)) [2 3]]]}
  [array start end]
  (let [made (empty-like array (- end start))]
    (dotimes [idx (min (- end start) (- (count array) start))]
      (aset made idx (aget array (+ start idx))))
    made))

(defn equals
  "Tells whether two arrays have equal items."
  {:examples '[[(java.util.Arrays/equals (int-array [1]) (int-array [1])) true]]}
  [x y]
  (or (identical? x y) (and (some? x) (some? y) (= (seq x) (seq y)))))

(defn fill
  "Sets all items of an array, or those from start up to end."
  {:examples '[[(vec (doto (int-array 2) (java.util.Arrays/fill 1))) [1 1]]]}
  ([array x] (java.util.Arrays/fill array 0 (count array) x))
  ([array start end x] (run! (fn [idx] (aset array idx x)) (range start end))))

(defn hashCode
  "Returns a hash of the items of an array."
  {:examples '[[(java.util.Arrays/hashCode (long-array [1 2])) 994]]}
  [array]
  (if (nil? array)
    0
    (reduce (fn [h x] (unchecked-int (unchecked-add-int (unchecked-multiply-int 31 h) (if (nil? x) 0 (.hashCode x))))) 1 array)))

(defn sort
  "Sorts an array, by a comparator if one is given."
  {:examples '[[(vec (doto (int-array [2 1]) (java.util.Arrays/sort))) [1 2]]]}
  ([array] (java.util.Arrays/sort array compare))
  ([array order]
   (dorun (map-indexed (fn [idx x] (aset array idx x)) (clojure.core/sort order (vec array))))))

(defn toString
  "Returns the text of an array."
  {:examples '[[(java.util.Arrays/toString (int-array [1 2])) "[1, 2]"]]}
  [array]
  (if (nil? array) "null" (host.mutable/list-text array)))
