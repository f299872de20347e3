(in-ns 'clojure.core)

;; Functions for older programs. Structs are plain maps here.

(defn create-struct
  "Returns the basis of a struct, for struct and struct-map: the keys that each struct has."
  {:examples '[[(struct (create-struct :a :b) 1 2) {:a 1 :b 2}]]}
  [& keys]
  (assert (seq keys) "a struct needs keys")
  (vec keys))

(defmacro defstruct
  "Defines name as (create-struct keys...)."
  [name & keys]
  `(def ~name (create-struct ~@keys)))

(defn struct
  "Returns a map with the keys of a struct and the values; nil for missing values."
  {:examples '[[(struct (create-struct :a :b) 1) {:a 1 :b nil}]]}
  [basis & values]
  (when (> (count values) (count basis))
    (throw (new-exception IllegalArgumentException "Too many arguments to struct constructor")))
  (into {} (map vector basis (concat values (repeat nil)))))

(defn struct-map
  "Returns a map with the keys of a struct and values by key; nil for missing values; other keys may follow."
  {:examples '[[(struct-map (create-struct :a :b) :b 1 :c 2) {:a nil :b 1 :c 2}]]}
  [basis & entries]
  (apply assoc (struct basis) entries))

(defn accessor
  "Returns a function that looks up a key of a struct in a map."
  {:examples '[[((accessor (create-struct :a) :a) {:a 1}) 1]]}
  [basis key]
  (when-not (some #{key} basis)
    (throw (new-exception IllegalArgumentException "Not a key of struct")))
  (fn [m] (get m key)))

(defmacro definline
  "Defines a function whose body is a template of its parameters."
  [name & decl]
  (let [[before [args expr]] (split-with (complement vector?) decl)]
    `(defn ~name ~@before ~args
       ~(apply (eval (list `fn args expr)) args))))

(defn ->Eduction
  "Returns the application of a transducer to the items of coll, computed again each time."
  {:examples '[[(reduce + (->Eduction (map inc) [1 2])) 5]]}
  [xform coll]
  (eduction xform coll))

(defn iterator-seq
  "Returns a sequence of the items of an iterator; a collection is its own iterator, too."
  {:examples '[[(iterator-seq (.iterator [1 2])) (1 2)]]}
  [iterator]
  (if (or (nil? iterator) (seqable? iterator))
    (seq iterator)
    (seq ((fn more []
            (lazy-seq (when (.hasNext iterator) (cons (.next iterator) (more)))))))))

(defn enumeration-seq
  "Returns a sequence of the items of an enumeration; a collection is its own enumeration, too."
  {:examples '[[(enumeration-seq (java.util.Collections/enumeration [1 2])) (1 2)]]}
  [enumeration]
  (if (or (nil? enumeration) (seqable? enumeration))
    (seq enumeration)
    (seq ((fn more []
            (lazy-seq (when (.hasMoreElements enumeration) (cons (.nextElement enumeration) (more)))))))))

(defn inst-ms*
  "Returns the milliseconds since 1970 of an instant."
  {:examples '[[(inst-ms* #inst "1970-01-01T00:00:01Z") 1000]]}
  [inst]
  (inst-ms inst))

(defn seq-to-map-for-destructuring
  "Returns the map of keyword arguments: pairs, or a map alone, or pairs with a map at the end."
  {:examples '[[(seq-to-map-for-destructuring '(:a 1 {:b 2})) {:a 1 :b 2}]]}
  [args]
  (if (next args)
    (let [pairs (if (odd? (count args)) (butlast args) args)]
      (into (apply array-map pairs) (when (odd? (count args)) (last args))))
    (or (first args) {})))

(defn file-seq
  "Returns the paths of a folder and of everything below it, each folder before its content. Programs may list files when
  they are started with --allow-files."
  [path]
  (tree-seq -files-in -files-in path))

(defn bean
  "Throws: Flowstone has no Java objects whose properties could be read."
  [_object]
  (throw (new-exception UnsupportedOperationException "Flowstone has no Java objects: use a map or a record")))
