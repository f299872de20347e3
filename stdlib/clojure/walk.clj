(ns clojure.walk
  "Traversal and transformation of nested data.")

(defn walk
  "Applies inner to each item of form, builds a collection of the same kind, and applies outer to that."
  {:examples '[[(walk inc (fn [xs] (apply + xs)) [1 2]) 5]]}
  [inner outer form]
  (cond
    (list? form) (outer (with-meta (apply list (map inner form)) (meta form)))
    (map-entry? form) (outer (first {(inner (key form)) (inner (val form))}))
    (seq? form) (outer (with-meta (doall (map inner form)) (meta form)))
    (record? form) (outer (reduce (fn [result item] (conj result (inner item))) form form))
    (coll? form) (outer (into (empty form) (map inner) form))
    :else (outer form)))

(defn postwalk
  "Applies f to each part of form, the innermost first."
  {:examples '[[(postwalk (fn [x] (if (number? x) (inc x) x)) [1 [2]]) [2 [3]]]]}
  [f form]
  (walk (partial postwalk f) f form))

(defn prewalk
  "Applies f to each part of form, the outermost first."
  {:examples '[[(prewalk (fn [x] (if (number? x) (inc x) x)) [1 [2]]) [2 [3]]]]}
  [f form]
  (walk (partial prewalk f) identity (f form)))

(defn postwalk-demo
  "Prints each part of form in the order of postwalk, and returns form."
  [form]
  (postwalk (fn [x] (print "Walked: ") (prn x) x) form))

(defn prewalk-demo
  "Prints each part of form in the order of prewalk, and returns form."
  [form]
  (prewalk (fn [x] (print "Walked: ") (prn x) x) form))

(defn keywordize-keys
  "Returns m with all string keys of its maps, at any depth, converted to keywords."
  {:examples '[[(keywordize-keys {"a" [{"b" 1}]}) {:a [{:b 1}]}]]}
  [m]
  (postwalk #(if (map? %)
               (update-keys % (fn [k] (if (string? k) (keyword k) k)))
               %)
            m))

(defn stringify-keys
  "Returns m with all keyword keys of its maps, at any depth, converted to strings."
  {:examples '[[(stringify-keys {:a {:b 1}}) {"a" {"b" 1}}]]}
  [m]
  (postwalk #(if (map? %)
               (update-keys % (fn [k] (if (keyword? k) (name k) k)))
               %)
            m))

(defn postwalk-replace
  "Returns form with each part that is a key of smap replaced by its value, the innermost first."
  {:examples '[[(postwalk-replace {:a 1} [:a [:b]]) [1 [:b]]]]}
  [smap form]
  (postwalk #(if (contains? smap %) (smap %) %) form))

(defn prewalk-replace
  "Returns form with each part that is a key of smap replaced by its value, the outermost first."
  {:examples '[[(prewalk-replace {:a 1} [:a [:b]]) [1 [:b]]]]}
  [smap form]
  (prewalk #(if (contains? smap %) (smap %) %) form))

(defn macroexpand-all
  "Returns form with all macro calls in it expanded, as far as macroexpand can detect them."
  {:examples '[[(macroexpand-all '(when a (when b c))) (if a (do (if b (do c))))]]}
  [form]
  (prewalk #(if (seq? %) (macroexpand %) %) form))
