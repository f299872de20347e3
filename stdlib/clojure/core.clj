(ns clojure.core
  "The functions of the core library that are written in the language.")

;; Hierarchies

(def ^:private global-hierarchy
  (atom {:parents {} :descendants {} :ancestors {}}))

(defn make-hierarchy
  "Returns a hierarchy without relationships, for derive, isa? and multimethods."
  {:examples '[[(make-hierarchy) {:parents {} :descendants {} :ancestors {}}]]}
  []
  {:parents {} :descendants {} :ancestors {}})

(defn parents
  "Returns the set of the direct parents of tag, or nil."
  {:examples '[[(parents (derive (make-hierarchy) :a/b :a/c) :a/b) #{:a/c}]]}
  ([tag] (parents @global-hierarchy tag))
  ([h tag]
   (not-empty
     (into (set (get (:parents h) tag))
           (when (class? tag) (bases tag))))))

(defn ancestors
  "Returns the set of all ancestors of tag, or nil."
  {:examples '[[(ancestors (derive (make-hierarchy) :a/b :a/c) :a/b) #{:a/c}]]}
  ([tag] (ancestors @global-hierarchy tag))
  ([h tag]
   (not-empty
     (into (set (get (:ancestors h) tag))
           (when (class? tag)
             (let [above (set (supers tag))]
               (into above (mapcat #(get (:ancestors h) %)) above)))))))

(defn descendants
  "Returns the set of all descendants of tag, or nil."
  {:examples '[[(descendants (derive (make-hierarchy) :a/b :a/c) :a/c) #{:a/b}]]}
  ([tag] (descendants @global-hierarchy tag))
  ([h tag]
   (when (class? tag)
     (throw (new-exception UnsupportedOperationException "Can't get descendants of classes")))
   (not-empty (get (:descendants h) tag))))

(defn- with-relation
  "Adds target and all of its targets to source and all of its sources, in map m."
  [m source sources target targets]
  (reduce (fn [result k]
            (assoc result k
                   (reduce conj (get targets k #{})
                           (cons target (get targets target)))))
          m
          (cons source (get sources source))))

(defn derive
  "Makes tag derive from parent: in a hierarchy, which it returns, or in the global one."
  {:examples '[[(:parents (derive (make-hierarchy) :a/b :a/c)) {:a/b #{:a/c}}]]}
  ([tag parent]
   (assert (namespace parent))
   (assert (or (class? tag) (and (ident? tag) (namespace tag))))
   (swap! global-hierarchy derive tag parent)
   nil)
  ([h tag parent]
   (assert (not= tag parent))
   (when-not (and (map? (:parents h)) (map? (:ancestors h)) (map? (:descendants h)))
     (throw (new-exception IllegalArgumentException (str "no hierarchy: " (pr-str h)))))
   (let [{:keys [ancestors descendants]} h
         direct (:parents h)]
     (cond
       (contains? (get direct tag) parent) h
       (contains? (get ancestors tag) parent)
       (throw (ex-info (str tag " already has " parent " as ancestor") {:tag tag :parent parent}))
       (contains? (get ancestors parent) tag)
       (throw (Exception. (str "Cyclic derivation: " parent " has " tag " as ancestor")))
       :else
       {:parents (assoc direct tag (conj (get direct tag #{}) parent))
        :ancestors (with-relation ancestors tag descendants parent ancestors)
        :descendants (with-relation descendants parent ancestors tag descendants)}))))

(defn underive
  "Removes the derivation of tag from parent: in a hierarchy, which it returns, or in the global one."
  {:examples '[[(underive (derive (make-hierarchy) :a/b :a/c) :a/b :a/c) {:parents {} :descendants {} :ancestors {}}]]}
  ([tag parent]
   (swap! global-hierarchy underive tag parent)
   nil)
  ([h tag parent]
   (let [direct (:parents h)
         left (disj (or (direct tag) #{}) parent)
         changed (if (seq left) (assoc direct tag left) (dissoc direct tag))]
     (if (contains? (get direct tag) parent)
       (reduce (fn [result [child above]]
                 (reduce #(derive %1 child %2) result above))
               (make-hierarchy)
               changed)
       h))))

;; Transducers

(defn halt-when
  "Returns a transducer that ends the reduction at the first item for which pred holds, with that item as the result.
  With retf the result is (retf result-so-far item)."
  {:examples '[[(transduce (halt-when neg?) conj [] [1 -2 3]) -2]]}
  ([pred] (halt-when pred nil))
  ([pred retf]
   (fn [rf]
     (fn
       ([] (rf))
       ([result]
        (if (and (map? result) (contains? result ::halt))
          (::halt result)
          (rf result)))
       ([result input]
        (if (pred input)
          (reduced {::halt (if retf (retf (rf result) input) input)})
          (rf result input)))))))

;; Small ones

(defn comparator
  "Returns a comparator from pred, which tells whether its first argument comes first."
  {:examples '[[((comparator <) 1 2) -1]]}
  [pred]
  (fn [x y]
    (cond (pred x y) -1 (pred y x) 1 :else 0)))

(defn xml-seq
  "Returns the nodes of an XML tree of maps with :content, each before its children."
  {:examples '[[(count (xml-seq {:tag :a :content ["b"]})) 2]]}
  [root]
  (tree-seq (complement string?) (comp seq :content) root))

(defn clojure-version
  "Returns the version of Clojure whose behaviour this language follows."
  {:examples '[[(clojure-version) "1.12.0"]]}
  []
  "1.12.0")

(def char-escape-string
  "The escapes of characters in string literals, by character."
  {\newline "\\n"
   \tab "\\t"
   \return "\\r"
   \" "\\\""
   \\ "\\\\"
   \formfeed "\\f"
   \backspace "\\b"})

(def char-name-string
  "The names of characters in character literals, by character."
  {\newline "newline"
   \tab "tab"
   \space "space"
   \backspace "backspace"
   \formfeed "formfeed"
   \return "return"})

(defn printf
  "Prints fmt with its directives replaced by the arguments, as format does."
  {:examples '[[(with-out-str (printf "%d-%s" 1 "a")) "1-a"]]}
  [fmt & args]
  (print (apply format fmt args)))

(defn test
  "Calls the function under :test in the metadata of a var. Returns :ok, or :no-test if the var has no test."
  {:examples '[[(test (var inc)) :no-test]]}
  [v]
  (if-let [f (:test (meta v))]
    (do (f) :ok)
    :no-test))
