(ns flow
  "Functions and macros for flows in addition to those of the engine."
  (:refer-clojure :exclude [let]))

(defn- check-poll [opts]
  (when-some [problem (flow/poll-problem* opts)]
    (throw (ex-info problem {:kind :bad-config}))))

(defn- poll-pause [{:keys [interval backoff]} attempt]
  (flow/backoff (if backoff (assoc backoff :base interval) interval) attempt))

(defn- poll-over? [{:keys [timeout max-attempts]} start attempt]
  (or (and max-attempts (>= attempt max-attempts))
      (and timeout (flow/elapsed? start timeout))))

(defn- poll-attempt [{:keys [abort-on]} f]
  (if (false? (:error? abort-on))
    (try [(f)] (catch Exception _ nil))
    [(f)]))

(defn poll*
  "Calls f until :return-on holds for what it returns, with pauses between; see poll."
  [opts f]
  (check-poll opts)
  (clojure.core/let [{:keys [return-on abort-on id]} opts
                     start (flow/now-ms)]
    (loop [attempt 1]
      (clojure.core/let [[result :as done] (poll-attempt opts f)
                         status (:status result)]
        (cond
          (and done (return-on result))
          result

          (and done (contains? (set (:status abort-on)) status))
          (throw (ex-info (str "polling was aborted by status " status)
                          {:kind :aborted :status status :attempts attempt}))

          (poll-over? opts start attempt)
          (throw (ex-info "polling ended without the wanted result"
                          {:kind :timeout :attempts attempt}))

          :else
          (do (flow/step :sleep (or id :poll-pause) {:millis (poll-pause opts attempt)})
              (recur (inc attempt))))))))

(defmacro poll
  "Repeats a step until its result satisfies :return-on, with a :sleep step in between.
  opts: :interval, milliseconds or a duration; :return-on, a predicate of the result; :timeout or :max-attempts;
  :backoff as in flow/backoff; :abort-on {:error? bool :status #{...}}; :id of the pauses."
  [opts step-form]
  `(flow/poll* ~opts (fn [] ~step-form)))

(defn- bound-names
  "Returns the names that a pattern binds."
  [pattern]
  (cond
    (symbol? pattern) (if (= '& pattern) [] [pattern])
    (vector? pattern) (mapcat bound-names (remove keyword? pattern))
    (map? pattern) (mapcat (fn [[key value]]
                             (if (keyword? key)
                               (case (name key)
                                 ("keys" "strs" "syms") (map (comp symbol name) value)
                                 "as" [value]
                                 [])
                               (bound-names key)))
                           pattern)
    :else []))

(defn- evaluated-parts
  "Returns the expressions that are evaluated when a pattern is bound."
  [pattern]
  (cond
    (vector? pattern) (mapcat evaluated-parts pattern)
    (map? pattern) (mapcat (fn [[key value]]
                             (cond
                               (= :or key) (vals value)
                               (keyword? key) []
                               :else (cons value (evaluated-parts key))))
                           pattern)
    :else []))

(defn- mentioned
  "Returns all names that occur in a form."
  [form]
  (set (filter symbol? (tree-seq coll? seq form))))

(defn- let-node
  "Describes one binding of flow/let. known: the number of the binding of each earlier name."
  [known [idx [pattern value]]]
  (clojure.core/let [names (vec (distinct (bound-names pattern)))
                     used (mentioned (cons value (evaluated-parts pattern)))]
    {:idx idx
     :target (if (symbol? pattern) pattern names)
     :label (when (symbol? pattern) (name pattern))
     :needs (vec (sort (distinct (keep known used))))
     :value (if (symbol? pattern)
              value
              `(clojure.core/let [~pattern ~value] ~names))
     :known (into known (map (fn [name] [name idx]) names))}))

(defn- let-nodes [bindings]
  (rest (reductions (fn [{:keys [known]} binding] (let-node known binding))
                    {:known {}}
                    (map-indexed vector (partition 2 bindings)))))

(defmacro let
  "A let whose bindings are evaluated concurrently, each as soon as the bindings that it mentions are available:
  (flow/let [user (flow/step :http :user {...}) news (flow/step :http :news {...}) page (render user news)] page).
  The first failure cancels the others. Values are computed completely, so they must not be infinite sequences."
  [bindings & body]
  (when-not (and (vector? bindings) (even? (count bindings)))
    (throw (ex-info "flow/let needs a vector with a value for each name" {:kind :bad-config})))
  (clojure.core/let [nodes (vec (let-nodes bindings))
                     values (mapv (fn [_] (gensym "value")) nodes)
                     bind (fn [{:keys [idx target]}] [target (nth values idx)])]
    `(clojure.core/let [~values (flow/graph*
                                 [~@(map (fn [{:keys [label needs value]}]
                                           [label
                                            `(fn [~@(map values needs)]
                                               (clojure.core/let [~@(mapcat (comp bind nodes) needs)]
                                                 ~value))
                                            needs])
                                         nodes)])
                        ~@(mapcat bind nodes)]
       ~@body)))
