(ns flow.tree
  "Behaviour trees: pure functions from a tree, its state and an answer to the next state."
  (:require [clojure.string :as str]))

;; A tree is {:root node :var {...} :const {...}}. A node is {:type "sequence" :name "A" :children [...]}, "selector",
;; "parallel", {:type "action" :name "B" :steps [{:instruct "..."} {:evaluate "..."}]}, or {:type "ref" :ref "..."}: a
;; reference that leads back to itself. :retries is a number of further attempts.
;;
;; A path is the text of the child indices from the root, such as "0.2"; that of the root is "".

(def ^:private gate-name "Acknowledge_Protocol")

(def ^:private gate-text
  (str "You drive a behaviour tree. Its control flow belongs to the runtime; the work belongs to you.\n\n"
       "- next_step returns one request. Until you answer it, next_step returns the same request again.\n"
       "- Answer an `evaluate` request with eval: true if the expression holds, otherwise false.\n"
       "- Answer an `instruct` request with submit: success when the work is done, failure when it cannot be done, "
       "running when it continues and the request stays open.\n"
       "- $VAR and $CONST are stores, not text to fill in. Read them with var_read and const_read, and write results "
       "with var_write before you submit. Take no value from memory.\n"
       "- think records a thought about the open request. It changes nothing else.\n"
       "- Pass the `cursor` of the request as `expected_cursor`, so that an answer to an older request is refused.\n\n"
       "Submit success to accept these rules, or failure to end the run."))

(def ^:private gate-request
  {:type "instruct" :name gate-name :text gate-text})

;; ── The tick ─────────────────────────────────────────────────────────────────────────────────────────────────────────

(defn- child-path [path idx]
  (if (= "" path) (str idx) (str path "." idx)))

(defn- forget-below [entries path]
  (let [inside (str path ".")]
    (into {}
          (remove (fn [[key _]]
                    (or (= "" path) (= key path) (str/starts-with? key inside))))
          entries)))

(defn- retried
  "Returns the state with one more attempt at a node, or nil if no attempt is left. Used attempts of descendants stay."
  [state path node]
  (let [used (get-in state [:retry-count path] 0)]
    (when (< used (:retries node 0))
      (-> state
          (assoc-in [:retry-count path] (inc used))
          (update :node-status forget-below path)
          (update :step-index forget-below path)))))

(declare tick-node)

(defn- tick-child
  "Ticks a child unless its end is known, and tries it again while it fails and attempts are left."
  [state path node]
  (let [status (get-in state [:node-status path])]
    (cond
      (= "success" status)
      [state :done]

      (= "failure" status)
      (if-some [again (retried state path node)]
        (recur again path node)
        [state :failure])

      :else
      (let [[state result] (tick-node state path node)]
        (cond
          (= :done result) [(assoc-in state [:node-status path] "success") :done]
          (= :failure result) (recur (assoc-in state [:node-status path] "failure") path node)
          :else [state result])))))

(defn- tick-sequence [state path children]
  (loop [state state idx 0]
    (if-some [child (get children idx)]
      (let [[state result] (tick-child state (child-path path idx) child)]
        (if (= :done result)
          (recur state (inc idx))
          [state result]))
      [state :done])))

(defn- tick-selector [state path children]
  (loop [state state idx 0]
    (if-some [child (get children idx)]
      (let [[state result] (tick-child state (child-path path idx) child)]
        (if (= :failure result)
          (recur state (inc idx))
          [state result]))
      [state :failure])))

(defn- tick-parallel
  "Ticks every child, so that a failure counts at once, and returns the first open request."
  [state path children]
  (loop [state state idx 0 pending nil]
    (if-some [child (get children idx)]
      (let [[state result] (tick-child state (child-path path idx) child)]
        (cond
          (= :done result) (recur state (inc idx) pending)
          (= :failure result) [state :failure]
          :else (recur state (inc idx) (or pending result))))
      [state (or pending :done)])))

(defn- request-at [path step {:keys [name steps]}]
  (when-some [{:keys [evaluate instruct]} (get steps step)]
    {:type (if evaluate "evaluate" "instruct")
     :name name
     :text (or evaluate instruct)
     :path path
     :step step
     :steps (count steps)}))

(defn- tick-action [state path node]
  (case (get-in state [:node-status path])
    "success" [state :done]
    "failure" [state :failure]
    [state (or (request-at path (get-in state [:step-index path] 0) node) :done)]))

(defn- tick-node [state path {:keys [type children] :as node}]
  (case type
    "sequence" (tick-sequence state path children)
    "selector" (tick-selector state path children)
    "parallel" (tick-parallel state path children)
    "action" (tick-action state path node)
    [state :failure]))

(defn tick
  "Returns [state result] for a tree's root node: result is :done, :failure, or the request to answer next."
  {:examples '[[(second (flow.tree/tick {} {:type "action" :name "A" :steps [{:instruct "x"}]}))
                {:type "instruct" :name "A" :text "x" :path "" :step 0 :steps 1}]]}
  [state root]
  (let [[state result] (tick-node state "" root)]
    (if-some [again (when (= :failure result) (retried state "" root))]
      (recur again root)
      [state result])))

;; ── The store ────────────────────────────────────────────────────────────────────────────────────────────────────────

(defn- index-in [items key]
  (let [idx (when (re-matches #"0|[1-9]\d{0,8}" key) (parse-long key))]
    (when (and idx (<= idx (count items))) idx)))

(defn written
  "Returns a store with a value at a path of keys, or nil if a list on the way has no such place, or a key is one that would
  change objects in other languages. Maps on the way are made."
  {:examples '[[(flow.tree/written {} ["a" "b"] 1) {"a" {"b" 1}}]
               [(flow.tree/written {"l" [1 2]} ["l" "1"] 3) {"l" [1 3]}]
               [(flow.tree/written {"l" [1 2]} ["l" "01"] 3) nil]
               [(flow.tree/written {"l" []} ["l" "x"] 3) nil]]}
  [store [key & more] value]
  (let [store (if (coll? store) store {})
        key (if (vector? store) (index-in store key) key)]
    (when (and key (not (contains? #{"__proto__" "constructor" "prototype"} key)))
      (if-not more
        (assoc store key value)
        (when-some [inner (written (get store key) more value)]
          (assoc store key inner))))))

;; ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

(defn- cursor-text [path step]
  (str "{\"path\":[" (str/replace path "." ",") "],\"step\":" step "}"))

(defn- node-at [root path]
  (reduce (fn [node idx] (get-in node [:children (parse-long idx)]))
          root
          (if (= "" path) [] (str/split path #"\."))))

(defn- imported
  "Returns the state of a document that another runtime wrote."
  [state {:keys [root]} {:keys [at trace] :as from}]
  (let [{:keys [path step]} at
        open (cond
               (= "protocol" (:phase from)) gate-request
               at (request-at path step (node-at root path)))]
    (-> (merge state (dissoc from :at :trace))
        (assoc :event (when (seq trace) {:name :imported :data trace}))
        (cond-> open (assoc :at open :offer 1)))))

(defn start
  "Returns the state of a tree before its first request.
  options: :gate, whether the driver has to accept the protocol first; :from, the state of an imported document."
  {:examples '[[(:phase (flow.tree/start {:root {}} {})) "idle"]]}
  [{:keys [var] :as tree} {:keys [gate from]}]
  (let [state {:status "running"
               :phase "idle"
               :cursor "[]"
               :offer 0
               :gate (boolean gate)
               :accepted (not gate)
               :var (or var {})
               :node-status {}
               :step-index {}
               :retry-count {}}]
    (if from (imported state tree from) state)))

(def ^:private refused-keys
  "Keys that have a special meaning in programs of other languages."
  #{"__proto__" "constructor" "prototype"})

(defn- refused-key [value]
  (cond
    (map? value) (some (fn [[key item]] (or (refused-keys key) (refused-key item))) value)
    (coll? value) (some refused-key value)))

(def ^:private var-max
  "The characters that the start values of $VAR may have, printed."
  262144)

(defn- bad-var [message]
  (throw (ex-info (str "the input `:var` of a behaviour tree " message) {:kind :bad-input})))

(defn- checked
  "Returns a value with texts as keys, and throws if JSON would change it."
  [value]
  (cond
    (map? value) (let [names (map (fn [key] (if (or (string? key) (keyword? key))
                                              (if (string? key) key (subs (str key) 1))
                                              (bad-var (str "has the key " (pr-str key) ", which is not a text"))))
                                  (keys value))]
                   (when-not (or (empty? names) (apply distinct? names))
                     (bad-var "has the same key as a text and as a keyword"))
                   (zipmap names (map checked (vals value))))
    (coll? value) (mapv checked value)
    (and (float? value) (or (NaN? value) (infinite? value))) (bad-var (str "has the number " (pr-str value)))
    (and (integer? value) (not (<= -9223372036854775808 value 18446744073709551615)))
    (bad-var (str "has the integer " value " of more than 64 bits: write it as a text"))
    :else value))

(defn- start-values [values]
  (let [values (checked values)]
    (when-some [key (refused-key values)]
      (bad-var (str "has the key `" key "`, which is refused")))
    (when (< var-max (count (pr-str values)))
      (bad-var (str "has more than " var-max " characters")))
    values))

(defn with-var
  "Returns a tree with start values of $VAR in place of its own. values: a map, or nil for none."
  {:examples '[[(flow.tree/with-var {:var {"a" 1 "b" 2}} {:b 3}) {:var {"a" 1 "b" 3}}]
               [(flow.tree/with-var {:var {"a" 1}} nil) {:var {"a" 1}}]]}
  [tree values]
  (cond
    (nil? values) tree
    (map? values) (update tree :var merge (start-values values))
    :else (throw (ex-info "the input `:var` of a behaviour tree must be a map" {:kind :bad-input}))))

(def ^:private input-keys
  #{:flow/ctx :from :gate :handle :tree-uri :var})

(defn inputs
  "Returns the input of a tree's flow, and throws if it has a key that no tree takes."
  {:examples '[[(flow.tree/inputs {:gate true}) {:gate true}]]}
  [given]
  (if-some [unknown (first (remove input-keys (keys given)))]
    (throw (ex-info (str "a behaviour tree has no input `" unknown "`: expected `:var`, with start values of $VAR, or `:gate`")
                    {:kind :bad-input}))
    given))

(defn- idle [state]
  (-> state (assoc :phase "idle" :cursor "null") (dissoc :at)))

(defn- ended [state status]
  (assoc (idle state) :status status))

(defn- noted [state kind submitted outcome note]
  (assoc state
         :outcome outcome
         :event {:name :trace
                 :data (cond-> {:kind kind
                                :cursor (:cursor state)
                                :name (:name (:at state))
                                :submitted submitted
                                :outcome outcome}
                         note (assoc :note note))}))

(defn- offered [state phase cursor request]
  (-> state
      (assoc :phase phase :cursor cursor :at request)
      (update :offer inc)))

(defn- next-request [{:keys [root]} state]
  (if-not (:accepted state)
    (offered state "protocol" "null" gate-request)
    (let [[state result] (tick state root)]
      (cond
        (= :done result) (ended state "complete")
        (= :failure result) (ended state "failed")
        :else (offered state
                       (if (= "evaluate" (:type result)) "evaluating" "performing")
                       (cursor-text (:path result) (:step result))
                       result)))))

(defn- evaluated [{:keys [at] :as state} {:keys [result note]}]
  (let [{:keys [path step]} at]
    (if result
      (-> (noted state "evaluate" "true" "evaluation_passed" note)
          (assoc-in [:step-index path] (inc step))
          idle)
      (-> (noted state "evaluate" "false" "evaluation_failed" note)
          (assoc-in [:node-status path] "failure")
          idle))))

(defn- gate-answered [state status note]
  (case status
    "success" (-> (noted state "protocol" "accept" "protocol_accepted" note)
                  (assoc :accepted true)
                  idle)
    "failure" (-> (noted state "protocol" "reject" "protocol_rejected" note)
                  (ended "failed"))
    (noted state "protocol" "running" "running" note)))

(defn- submitted [{:keys [at] :as state} {:keys [status note]}]
  (let [{:keys [path step steps]} at]
    (cond
      (= "protocol" (:phase state))
      (gate-answered state status note)

      (= "running" status)
      (noted state "instruct" "running" "running" note)

      (= "failure" status)
      (-> (noted state "instruct" "failure" "action_failed" note)
          (assoc-in [:node-status path] "failure")
          idle)

      (= steps (inc step))
      (-> (noted state "instruct" "success" "action_complete" note)
          (assoc-in [:node-status path] "success")
          idle)

      :else
      (-> (noted state "instruct" "success" "step_complete" note)
          (assoc-in [:step-index path] (inc step))
          idle))))

(defn- texts
  "Returns a value with texts in place of keys that are keywords, as the answers of some programs have them."
  [value]
  (cond
    (map? value) (into {} (map (fn [[key item]] [(if (keyword? key) (subs (str key) 1) key) (texts item)])) value)
    (coll? value) (mapv texts value)
    :else value))

(defn- var-written [state {:keys [path value]}]
  (if-some [var (written (:var state) path (texts value))]
    (assoc state :var var :outcome "written")
    (assoc state :outcome "refused")))

(defn- reset [tree {:keys [gate offer]}]
  (assoc (start tree {:gate gate})
         :offer offer
         :outcome "reset"
         :event {:name :reset :data {}}))

(defn- fits?
  "Tells whether an answer is one that the phase takes."
  [phase op]
  (case op
    (:reset :var-write) true
    :next (= "idle" phase)
    :eval (= "evaluating" phase)
    :submit (contains? #{"performing" "protocol"} phase)
    :think (contains? #{"evaluating" "performing"} phase)
    false))

(defn answered
  "Returns the state after an answer. An answer that the phase does not take changes nothing.
  answer: {:op :next}, {:op :eval :result true}, {:op :submit :status \"success\"}, {:op :think :thought \"...\"},
  {:op :var-write :path [\"a\"] :value 1} or {:op :reset}."
  {:examples '[[(let [tree {:root {:type "action" :name "A" :steps [{:instruct "x"}]}}
                      state (flow.tree/answered tree (flow.tree/start tree {}) {:op :next})]
                  (:outcome (flow.tree/answered tree state {:op :submit :status "success"})))
                "action_complete"]]}
  [tree state {:keys [op] :as answer}]
  (let [state (dissoc state :event :outcome)]
    (if-not (fits? (:phase state) op)
      state
      (case op
        :next (next-request tree state)
        :eval (evaluated state answer)
        :submit (submitted state answer)
        :think (noted state "think" "thought" "recorded" (:thought answer))
        :var-write (var-written state answer)
        :reset (reset tree state)))))

(defn over?
  "Tells whether a tree has ended."
  {:examples '[[(flow.tree/over? {:status "failed"}) true]]}
  [state]
  (not= "running" (:status state)))

;; ── What the flow of a tree asks ─────────────────────────────────────────────────────────────────────────────────────

(def ^:private anywhere
  [[:map [:op [:enum :var-write]] [:path [:vector {:min 1} :string]] [:value :any]]
   [:map [:op [:enum :reset]]]])

(def ^:private note [:note {:optional true} :string])

(def ^:private thinking
  [:map [:op [:enum :think]] [:thought :string]])

(defn- answers-of [phase]
  (case phase
    "idle" [[:map [:op [:enum :next]]]]
    "evaluating" [[:map [:op [:enum :eval]] [:result :boolean] note] thinking]
    "performing" [[:map [:op [:enum :submit]] [:status [:enum "success" "failure" "running"]] note] thinking]
    [[:map [:op [:enum :submit]] [:status [:enum "success" "failure" "running"]] note]]))

(defn question
  "Returns the config of the :wait step that asks a tree's driver for the next answer. timeout: how long one wait lasts
  before it is opened again."
  {:examples '[[(:message (flow.tree/question {:phase "idle"} "30d")) "The driver asks for the next request."]]}
  [{:keys [phase at] :as state} timeout]
  {:message (if at
              (str (:name at) ": " (:text at))
              "The driver asks for the next request.")
   :data {:state (dissoc state :event)}
   :timeout timeout
   :keep-alive "30s"
   :on-timeout :continue
   :default-value {:op :timeout}
   :validation (into [:or] (concat (answers-of phase) anywhere))})

(defn result
  "Returns the state of a tree that is complete, and throws for one that failed."
  {:examples '[[(flow.tree/result {:status "complete" :outcome "x"}) {:status "complete" :outcome "x"}]]}
  [state]
  (let [state (dissoc state :event)]
    (if (= "complete" (:status state))
      state
      (throw (ex-info (if (:accepted state)
                        "the behaviour tree failed"
                        "the driver did not accept the protocol")
                      {:kind :tree-failed :state state})))))
