(in-ns 'clojure.core)

(defmacro future
  "Runs the body at once and returns a future of its value; deref throws the exception that the body threw."
  {:examples '[[@(future (+ 1 2)) 3]]}
  [& body]
  `(future-call (fn [] ~@body)))

(defn pmap
  "Returns the results of f for each item of coll, or for the items of several colls at each position.
  Here it does the same as map: steps run concurrently with flow/pmap."
  {:examples '[[(pmap inc [1 2]) (2 3)]]}
  [f & colls]
  (apply map f colls))

(defn pcalls
  "Returns the results of functions without arguments."
  {:examples '[[(pcalls (constantly 1) (constantly 2)) (1 2)]]}
  [& fns]
  (pmap #(%) fns))

(defmacro pvalues
  "Returns the values of the expressions, each computed when it is read."
  {:examples '[[(pvalues 1 (+ 1 1)) (1 2)]]}
  [& exprs]
  `(pcalls ~@(map (fn [expr] `(fn [] ~expr)) exprs)))

(defmacro dosync
  "Throws: Flowstone has no refs. Use an atom."
  [& _]
  `(ref nil))

(defmacro sync
  "Throws: Flowstone has no refs. Use an atom."
  [& _]
  `(ref nil))

(defmacro io!
  "Evaluates the body; a leading string, the message for transactions, is ignored."
  {:examples '[[(io! "no" 1) 1]]}
  [& body]
  `(do ~@(if (string? (first body)) (rest body) body)))

(defn shutdown-agents
  "Does nothing: Flowstone has no agents, so none keep a program running."
  {:examples '[[(shutdown-agents) nil]]}
  [])

(def ^:private taps (atom #{}))

(defn add-tap
  "Registers f to be called with each value sent to tap>."
  {:examples '[[(add-tap identity) nil]]}
  [f]
  (swap! taps conj f)
  nil)

(defn remove-tap
  "Removes f from the functions that tap> calls."
  {:examples '[[(remove-tap identity) nil]]}
  [f]
  (swap! taps disj f)
  nil)

(defn tap>
  "Sends x to all taps, whose exceptions are ignored; returns true."
  {:examples '[[(tap> 1) true]]}
  [x]
  (doseq [tap @taps]
    (try (tap x) (catch Exception _ nil)))
  true)

;; Bindings

(defmacro with-bindings
  "Evaluates the body with vars bound to the values in a map."
  {:examples '[[(with-bindings {#'*print-length* 1} *print-length*) 1]]}
  [binding-map & body]
  `(with-bindings* ~binding-map (fn [] ~@body)))

(defn with-bindings*
  "Calls f with args, with vars bound to the values in a map."
  {:examples '[[(with-bindings* {#'*print-length* 1} (fn [] *print-length*)) 1]]}
  [binding-map f & args]
  (let [depth (push-thread-bindings binding-map)]
    (try
      (apply f args)
      (finally (pop-thread-bindings depth)))))

(defn bound-fn*
  "Returns a function that calls f with the current bindings of vars."
  {:examples '[[((bound-fn* inc) 1) 2]]}
  [f]
  (let [bindings (get-thread-bindings)]
    (fn [& args]
      (apply with-bindings* bindings f args))))

(defmacro bound-fn
  "Returns a function with this body that runs with the current bindings of vars."
  {:examples '[[((bound-fn [x] (inc x)) 1) 2]]}
  [& fntail]
  `(bound-fn* (fn ~@fntail)))

(defmacro with-local-vars
  "Evaluates the body with names bound to new vars, which var-get and var-set read and change."
  {:examples '[[(with-local-vars [x 1] (var-set x 2) (var-get x)) 2]]}
  [name-vals & body]
  `(let [~@(mapcat (fn [[name _]] [name `(local-var)]) (partition 2 name-vals))]
     (with-bindings* (hash-map ~@name-vals) (fn [] ~@body))))

(defmacro memfn
  "Returns a function that calls a method on its first argument with the others."
  [method & args]
  (let [target (gensym "target")]
    `(fn [~target ~@args]
       (. ~target (~method ~@args)))))

(defmacro import
  "Makes record types of other namespaces available here by their names; class names are known everywhere."
  {:examples '[[(import java.util.UUID) nil]]}
  [& specs]
  (let [names (mapcat (fn [spec]
                        (if (symbol? spec)
                          [spec]
                          (map #(symbol (str (first spec) "." %)) (rest spec))))
                      (map #(if (and (seq? %) (= 'quote (first %))) (second %) %) specs))]
    `(do ~@(map (fn [full] `(import-type '~full)) names) nil)))

(defn import-type
  "Refers to the record type with this full name and to its constructor, if it has one."
  {:examples '[[(import-type 'java.util.UUID) nil]]}
  [full]
  (let [text (str full)
        at (or (clojure.string/last-index-of text ".") -1)
        home (when (pos? at) (find-ns (symbol (clojure.string/replace (subs text 0 at) "_" "-"))))
        type-name (symbol (subs text (inc at)))]
    (if-let [v (and home (ns-resolve home type-name))]
      (when (var? v)
        (refer (ns-name home) :only [type-name])
        (when-let [constructors (find-ns (symbol (str (ns-name home) "." type-name)))]
          (alias type-name (ns-name constructors))))
      (-import-foreign full))
    nil))

;; Chunks: each item here is its own chunk

(defn chunked-seq?
  "Returns false: sequences have no visible chunks here."
  {:examples '[[(chunked-seq? (seq [1])) false]]}
  [_]
  false)

(defn chunk-buffer
  "Returns a buffer for chunk-append and chunk."
  {:examples '[[(chunk (chunk-buffer 2)) []]]}
  [_capacity]
  (volatile! []))

(defn chunk-append
  "Adds x to a buffer."
  {:examples '[[(let [b (chunk-buffer 2)] (chunk-append b 1) (chunk b)) [1]]]}
  [buffer x]
  (vswap! buffer conj x)
  nil)

(defn chunk
  "Returns the items of a buffer."
  {:examples '[[(chunk (chunk-buffer 2)) []]]}
  [buffer]
  @buffer)

(defn chunk-cons
  "Returns the items of a chunk followed by those of coll."
  {:examples '[[(chunk-cons [1] [2]) (1 2)]]}
  [chunk coll]
  (if (empty? chunk) coll (concat chunk coll)))

(defn chunk-first
  "Returns the first chunk of coll: its first item."
  {:examples '[[(chunk-first [1 2]) [1]]]}
  [coll]
  [(first coll)])

(defn chunk-rest
  "Returns the rest after the first chunk."
  {:examples '[[(chunk-rest [1 2]) (2)]]}
  [coll]
  (rest coll))

(defn chunk-next
  "Returns the rest after the first chunk, or nil."
  {:examples '[[(chunk-next [1]) nil]]}
  [coll]
  (next coll))

(defn seque
  "Returns coll: there is no other thread that could compute ahead."
  {:examples '[[(seque [1 2]) [1 2]]]}
  ([coll] coll)
  ([_n coll] coll))
