;; The macros of clojure.core that are not native. Each is compiled when it is first used.
(ns clojure.core)

(defmacro ..
  "Calls methods on x, each on the result of the previous one."
  ([x form] `(. ~x ~form))
  ([x form & more] `(.. (. ~x ~form) ~@more)))

(defmacro amap
  "Returns an array of the values of expr, one for each item of array. Meanwhile idx is the index, and ret
  the array that is made, a copy of the first."
  {:examples '[[(let [a (int-array [1 2])] (vec (amap a i made (* 10 (aget a i))))) [10 20]]]}
  [array idx ret expr]
  `(let [array# ~array
         length# (alength array#)
         ~ret (aclone array#)]
     (loop [~idx 0]
       (if (< ~idx length#)
         (do (aset ~ret ~idx ~expr)
             (recur (inc ~idx)))
         ~ret))))

(defmacro areduce
  "Reduces the items of array: ret is init at first, then the value of expr, where idx is the index."
  {:examples '[[(let [a (int-array [1 2 3])] (areduce a i sum 0 (+ sum (aget a i)))) 6]]}
  [array idx ret init expr]
  `(let [array# ~array
         length# (alength array#)]
     (loop [~idx 0 ~ret ~init]
       (if (< ~idx length#)
         (recur (inc ~idx) ~expr)
         ~ret))))

(defmacro as->
  "Binds name to the value of expr, and then to that of each form in turn; returns the last value."
  {:examples '[[(as-> 1 x (inc x) (* x 10)) 20]]}
  [expr name & forms]
  `(let [~name ~expr
         ~@(interleave (repeat name) (butlast forms))]
     ~(if (empty? forms) name (last forms))))

(defmacro assert
  "Throws an AssertionError if x is nil or false."
  ([x]
   `(when-not ~x
      (throw (new-exception AssertionError (str "Assert failed: " (pr-str '~x))))))
  ([x message]
   `(when-not ~x
      (throw (new-exception AssertionError (str "Assert failed: " ~message "\n" (pr-str '~x)))))))

(defmacro binding
  "Evaluates the body with dynamic vars bound to other values."
  [bindings & body]
  (check-bindings 'binding bindings)
  (let [pairs (partition 2 bindings)]
    `(let [count# (push-thread-bindings (array-map ~@(mapcat (fn [[name value]] [`(var ~name) value]) pairs)))]
       (try
         ~@body
         (finally (pop-thread-bindings count#))))))

(defmacro cond->
  "Threads expr as the first argument through each form whose test is truthy."
  {:examples '[[(cond-> 1 true inc false (* 42)) 2]]}
  [expr & clauses]
  (assert (even? (count clauses)) "cond-> needs a form for each test")
  (let [g (gensym)
        steps (map (fn [[test step]] `(if ~test (-> ~g ~step) ~g)) (partition 2 clauses))]
    `(let [~g ~expr
           ~@(interleave (repeat g) (butlast steps))]
       ~(if (empty? steps) g (last steps)))))

(defmacro cond->>
  "Threads expr as the last argument through each form whose test is truthy."
  {:examples '[[(cond->> [1 2] true (map inc)) (2 3)]]}
  [expr & clauses]
  (assert (even? (count clauses)) "cond->> needs a form for each test")
  (let [g (gensym)
        steps (map (fn [[test step]] `(if ~test (->> ~g ~step) ~g)) (partition 2 clauses))]
    `(let [~g ~expr
           ~@(interleave (repeat g) (butlast steps))]
       ~(if (empty? steps) g (last steps)))))

(defn- condp-clauses [pred expr clauses]
  (let [[test result third & more] clauses]
    (cond
      (empty? clauses) `(no-case ~expr)
      (= 1 (count clauses)) test
      (= :>> result) `(if-let [p# (~pred ~test ~expr)]
                        (~third p#)
                        ~(condp-clauses pred expr more))
      :else `(if (~pred ~test ~expr)
               ~result
               ~(condp-clauses pred expr (drop 2 clauses))))))

(defmacro condp
  "Returns the result of the first clause for whose test (pred test expr) is truthy; the last may be a default.
  A clause written test :>> f returns f of the result of pred."
  {:examples '[[(condp = 2 1 :one 2 :two) :two]]}
  [pred expr & clauses]
  (let [p (gensym) e (gensym)]
    `(let [~p ~pred ~e ~expr]
       ~(condp-clauses p e clauses))))

(defmacro defonce
  "Defines name unless it has a value already."
  [name expr]
  `(let [v# (def ~name)]
     (when-not (bound? v#)
       (def ~name ~expr))))

(defn- kind-of
  "Describes a form for messages."
  [form]
  (cond
    (list? form) "a list"
    (seq? form) "a list"
    (symbol? form) "a symbol"
    (map? form) "a map"
    (set? form) "a set"
    (string? form) "a string"
    (keyword? form) "a keyword"
    (number? form) "a number"
    :else (pr-str form)))

(defn- check-bindings
  "Rejects bindings of a macro that are not a vector of alternating names and values."
  [macro bindings]
  (when-not (vector? bindings)
    (refuse-form "E0213" bindings nil
                 (str "`" macro "` needs a vector of bindings, and this is " (kind-of bindings))
                 (str "(" macro " [name value ...] body ...)")))
  (when (odd? (count bindings))
    (refuse-form "E0210" bindings (dec (count bindings))
                 (str "`" macro "` needs a value for `" (pr-str (peek bindings)) "`")
                 "names and values alternate: [name value name value ...]")))

(defn- check-pair
  "Rejects bindings that are not a vector of exactly one name and value."
  [macro bindings]
  (check-bindings macro bindings)
  (when-not (= 2 (count bindings))
    (refuse-form "E0213" bindings nil
                 (str "`" macro "` needs exactly one name and value")
                 (str "(" macro " [name value] body ...)"))))

(defn- check-steps
  "Rejects bindings that for and doseq do not know."
  [macro bindings]
  (check-bindings macro bindings)
  (dorun
   (map-indexed
    (fn [idx [k]]
      (when (and (keyword? k) (not (#{:let :when :while} k)))
        (refuse-form "E0225" bindings (* 2 idx)
                     (str "`" macro "` does not know " k)
                     "among the bindings there may be :let, :when and :while")))
    (partition 2 bindings)))
  (when (keyword? (first bindings))
    (when-not (= :let (first bindings))
      (refuse-form "E0225" bindings 0
                   (str "`" macro "` begins with a name and a collection, not with " (first bindings))
                   (str "(" macro " [name coll :when test] body)")))))

(defmacro delay
  "Returns a delay: the body is evaluated once, when its value is first needed."
  {:examples '[[@(delay (+ 1 2)) 3]]}
  [& body]
  `(delay* (fn* [] ~@body)))

(defmacro doseq
  "Evaluates the body for each combination of items, for its effects; bindings may have :let, :when and :while."
  [bindings & body]
  (let [step (fn step [bindings]
               (if (empty? bindings)
                 `(do ~@body nil)
                 (let [[k v & more] bindings]
                   (cond
                     (= k :let) `(let ~v ~(step more))
                     (= k :when) `(when ~v ~(step more))
                     (= k :while) `(if ~v ~(step more) :clojure.core/stop)
                     :else `(loop [seq# (seq ~v)]
                              (when seq#
                                (let [~k (first seq#)
                                      result# ~(step more)]
                                  (when-not (identical? result# :clojure.core/stop)
                                    (recur (next seq#))))))))))]
    (check-steps 'doseq bindings)
    (step (seq bindings))))

(defmacro dotimes
  "Evaluates the body with name bound to each integer from 0 up to n."
  [bindings & body]
  (check-pair 'dotimes bindings)
  (let [[name n] bindings]
    `(let [n# (long ~n)]
       (loop [~name 0]
         (when (< ~name n#)
           ~@body
           (recur (inc ~name)))))))

(defmacro doto
  "Returns x after calling each form with it as the first argument."
  {:examples '[[@(doto (atom 1) (swap! inc)) 2]]}
  [x & forms]
  (let [gx (gensym)]
    `(let [~gx ~x]
       ~@(map (fn [f] (with-meta (if (seq? f) `(~(first f) ~gx ~@(next f)) `(~f ~gx)) (meta f))) forms)
       ~gx)))

(defn- for-body [bindings body]
  (let [[k v & more] bindings]
    (cond
      (= k :let) `(let ~v ~(for-body more body))
      (= k :when) `(if ~v ~(for-body more body) nil)
      (= k :while) `(if ~v ~(for-body more body) :clojure.core/stop)
      (empty? bindings) `(list ~body)
      :else `(for-step (fn [~k] ~(for-body more body)) ~v))))

(defn for-step
  "Returns the lazy concatenation of (f item) for each item of coll, up to one that returns :clojure.core/stop."
  [f coll]
  (lazy-seq
   (loop [items (seq coll)]
     (when items
       (let [result (f (first items))]
         (when-not (identical? result :clojure.core/stop)
           (let [found (seq result)]
             (if found
               (concat found (for-step f (rest items)))
               (recur (next items))))))))))

(defmacro for
  "Returns a lazy sequence of the body's value for each combination of items; bindings may have :let, :when and :while."
  {:examples '[[(for [x [1 2] y [:a :b] :when (odd? x)] [x y]) ([1 :a] [1 :b])]]}
  [bindings body]
  (check-steps 'for bindings)
  (for-body (seq bindings) body))

(defmacro if-some
  "Evaluates then with name bound to the test's value unless that is nil, else the other expression."
  {:examples '[[(if-some [x false] [x] :none) [false]]]}
  ([bindings then] `(if-some ~bindings ~then nil))
  ([bindings then else]
   (check-pair 'if-some bindings)
   (let [[name test] bindings]
     `(let [value# ~test]
        (if (nil? value#)
          ~else
          (let [~name value#] ~then))))))

(defmacro lazy-cat
  "Returns the lazy concatenation of the colls, each computed when it is reached."
  [& colls]
  `(concat ~@(map (fn [coll] `(lazy-seq ~coll)) colls)))

(defmacro letfn
  "Evaluates the body with local functions that may refer to each other."
  {:examples '[[(letfn [(twice [x] (* 2 x))] (twice 4)) 8]]}
  [functions & body]
  `(letfn* ~(vec (mapcat (fn [f] [(first f) (cons `fn f)]) functions))
     ~@body))

(defmacro locking
  "Evaluates the body: there is only one thread."
  [x & body]
  `(do ~x ~@body))

(defmacro some->
  "Threads expr as the first argument through the forms until one returns nil."
  {:examples '[[(some-> {:a 1} :a inc) 2] [(some-> {} :a inc) nil]]}
  [expr & forms]
  (let [g (gensym)
        steps (map (fn [step] `(if (nil? ~g) nil (-> ~g ~step))) forms)]
    `(let [~g ~expr
           ~@(interleave (repeat g) (butlast steps))]
       ~(if (empty? steps) g (last steps)))))

(defmacro some->>
  "Threads expr as the last argument through the forms until one returns nil."
  {:examples '[[(some->> [1 2] (map inc)) (2 3)]]}
  [expr & forms]
  (let [g (gensym)
        steps (map (fn [step] `(if (nil? ~g) nil (->> ~g ~step))) forms)]
    `(let [~g ~expr
           ~@(interleave (repeat g) (butlast steps))]
       ~(if (empty? steps) g (last steps)))))

(defmacro time
  "Evaluates expr, prints the time that it took, and returns its value."
  [expr]
  `(let [start# (System/nanoTime)
         value# ~expr]
     (prn (str "Elapsed time: " (/ (double (- (System/nanoTime) start#)) 1000000.0) " msecs"))
     value#))

(defmacro vswap!
  "Sets a volatile to the result of f for its value and the args, and returns it."
  [vol f & args]
  `(vreset! ~vol (~f (deref ~vol) ~@args)))

(defmacro when-first
  "Evaluates the body with name bound to the first item of xs, unless xs is empty."
  [bindings & body]
  (check-pair 'when-first bindings)
  (let [[x xs] bindings]
    `(when-let [xs# (seq ~xs)]
       (let [~x (first xs#)]
         ~@body))))

(defmacro when-some
  "Evaluates the body with name bound to the test's value unless that is nil."
  [bindings & body]
  (check-pair 'when-some bindings)
  (let [[name test] bindings]
    `(let [value# ~test]
       (if (nil? value#)
         nil
         (let [~name value#]
           ~@body)))))

(defmacro while
  "Evaluates the body repeatedly while the test is truthy."
  [test & body]
  `(loop []
     (when ~test
       ~@body
       (recur))))

(defmacro with-open
  "Evaluates the body with names bound to values, and calls .close on each at the end."
  [bindings & body]
  (check-bindings 'with-open bindings)
  (if (empty? bindings)
    `(do ~@body)
    `(let ~(subvec bindings 0 2)
       (try
         (with-open ~(subvec bindings 2) ~@body)
         (finally (.close ~(bindings 0)))))))

(defmacro with-out-str
  "Evaluates the body and returns what it printed, as a string."
  [& body]
  `(-captured (fn* [] ~@body)))

(defn with-redefs-fn
  "Calls f with the roots of vars replaced by the values in a map."
  [bindings f]
  (let [before (mapv (fn [v] [v (-root v)]) (keys bindings))]
    (try
      (doseq [[v value] bindings] (-set-root v [value]))
      (f)
      (finally (doseq [[v root] before] (-set-root v root))))))

(defmacro with-precision
  "Evaluates the body; meanwhile decimals are rounded to precision digits, by the mode after :rounding (HALF_UP)."
  {:examples '[[(with-precision 3 (/ 1M 3)) 0.333M]
               [(with-precision 3 :rounding FLOOR (* 1.239M 1)) 1.23M]]}
  [precision & exprs]
  (let [[rounding body] (if (= (first exprs) :rounding)
                          [(second exprs) (nnext exprs)]
                          [nil exprs])]
    `(-with-precision ~precision '~rounding (fn [] ~@body))))

(defmacro with-redefs
  "Evaluates the body with the roots of vars replaced by other values."
  [bindings & body]
  (check-bindings 'with-redefs bindings)
  `(with-redefs-fn ~(zipmap (map (fn [name] `(var ~name)) (take-nth 2 bindings))
                            (take-nth 2 (next bindings)))
     (fn [] ~@body)))
