(ns flow.graph
  "What flows made of graph specs call: templates, limits, model turns and tool calls of agents."
  (:require [flow.arguments :as arguments]))

(defn- fail
  "Ends the run with one of the reasons that clients of graph agents know."
  [reason node message data]
  (throw (ex-info message (merge {:kind :graph :reason reason :node (name node)} data))))

(defn- failed?
  "Tells whether an exception is one of fail."
  [error]
  (= :graph (:kind (ex-data error))))

;; Templates

(defn- child
  "Returns [value] for the part of a path below a value; nil for a part that it does not have."
  [value part]
  (cond
    (map? value) (cond
                   (contains? value (keyword part)) [(get value (keyword part))]
                   (contains? value part) [(get value part)])
    (and (sequential? value) (re-matches #"\d{1,9}" part)) (let [idx (parse-long part)]
                                                             (when (< idx (count value)) [(nth value idx)]))))

(defn- resolve-path [data node path]
  (loop [value data, parts (clojure.string/split path #"\."), seen []]
    (if-let [[part & more] (seq parts)]
      (if-let [[found] (child value part)]
        (recur found more (conj seen part))
        (fail "template" node
              (str "the template of `" (name node) "` needs `" path "`, and `"
                   (if (seq seen) (clojure.string/join "." seen) "the data") "` has no `" part "`")
              {:key path}))
      value)))

(def ^:private most-in-order
  "How many keys a map may have so that they are in the order in which they were written."
  8)

(defn- key-text [key]
  (if (keyword? key) (subs (str key) 1) (str key)))

(defn- ordered
  "Returns a value with the keys of large maps in alphabetical order."
  [value]
  (cond
    (map? value) (into (if (< most-in-order (count value))
                         (sorted-map-by (fn [one other] (compare [(key-text one) (string? one)] [(key-text other) (string? other)])))
                         {})
                       (map (fn [[key item]] [key (ordered item)]))
                       value)
    (sequential? value) (mapv ordered value)
    :else value))

(defn- as-text [value]
  (if (string? value) value (json/write-str (ordered value))))

(defn render
  "Returns a template with the values of its paths in place of `{{ root.path }}`: texts as they are, other values as JSON.
  An object of more than 8 keys has them in alphabetical order. data has the roots. A path that leads nowhere ends the run."
  {:examples '[[(flow.graph/render :a "{{ input.b }} {{ input }}" {:input {:b 1 :a 2}}) "1 {\"b\":1,\"a\":2}"]
               [(flow.graph/render :a "{{ input }}" {:input {:i 1 :h 2 :g 3 :f 4 :e 5 :d 6 :c 7 :b 8 :a 9}})
                "{\"a\":9,\"b\":8,\"c\":7,\"d\":6,\"e\":5,\"f\":4,\"g\":3,\"h\":2,\"i\":1}"]]}
  [node template data]
  (loop [out [], rest-of template]
    (let [open (clojure.string/index-of rest-of "{{")
          close (when open (clojure.string/index-of rest-of "}}" open))]
      (cond
        close (recur (conj out (subs rest-of 0 open)
                           (as-text (resolve-path data node (clojure.string/trim (subs rest-of (+ 2 open) close)))))
                     (subs rest-of (+ 2 close)))
        (seq out) (apply str (conj out rest-of))
        :else rest-of))))

(defn render-all
  "Renders each text in a value, at any depth."
  [node value data]
  (cond
    (string? value) (render node value data)
    (map? value) (into {} (map (fn [[key item]] [key (render-all node item data)])) value)
    (sequential? value) (mapv (fn [item] (render-all node item data)) value)
    :else value))

;; Runs

(defn input
  "Returns what the templates of a run find under `input`."
  [given]
  (let [given (if (map? given) (dissoc given :flow/ctx) given)]
    (if (and (map? given) (= [:graph/value] (keys given))) (:graph/value given) given)))

(defn time-limit
  "Returns the `:total-timeout` of all steps of a run, which begins now."
  [seconds]
  {:from (flow/now-ms) :limit (str seconds "s")})

(def ^:private out-of-time
  "The code of the error of a step for which the run has no time left."
  "E0531")

(defn- in-time
  "Calls f, and ends the run if a step in it took longer than the run may."
  [within node f]
  (try (f)
       (catch Exception error
         (when (= out-of-time (:code (ex-data error)))
           (fail "timeout" node (str "the run took longer than " (:limit within)) {}))
         (throw error))))

(defn begin
  "Starts the bookkeeping of a run. limits: :steps, :calls, :parallel and :human-seconds. within: the time limit of the run,
  from time-limit. tools: by key, each with
  :name, :source, :call, :description, :schema and, where a person has to approve each call, :asks?. A tool with :interrupt? asks
  a person itself."
  [given limits within tools]
  {:input (input given)
   :limits limits
   :within within
   :tools tools
   ;; As values, because a function that names them is compiled together with them, and those below are nested already.
   :problems arguments/problems
   :converted arguments/converted
   :steps (atom 0)
   :calls (atom 0)})

(defn state
  "Returns the state that a run starts with: the members of its input."
  [{:keys [input]}]
  (if (map? input) input {}))

(defn- visit
  "Counts the visit of a node."
  [{:keys [steps limits]} node]
  (when (> (swap! steps inc) (:steps limits))
    (fail "max_steps" node (str "the run may visit " (:steps limits) " nodes, and `" (name node) "` is one more") {})))

(defn- paused
  "Asks a person. The time that this takes does not count for the limit of the run."
  [{:keys [limits]} node id payload config]
  (let [_ (flow/emit "graph.pause" payload)
        answer (flow/step :wait id (merge {:timeout (:human-seconds limits)
                                           :on-timeout :continue
                                           :default-value {:graph/late true}
                                           :data payload}
                                          config))]
    (when (:graph/late answer)
      (fail "human_timeout" node (str "nobody answered within " (:human-seconds limits) " seconds") {}))
    answer))

;; Tool calls

(defn- started [{:keys [id name args source step]}]
  (flow/emit "graph.call" {:id id :name name :args args :source source :step (clojure.core/name step)}))

(defn- ended
  "Notes the end of a call, and returns what the model receives."
  [{:keys [id] :as call} status outcome]
  (flow/emit "graph.called" (merge {:id id :status status} outcome))
  (merge call {:status status} outcome))

(defn- refuse [call status message]
  (started call)
  (ended call status {:error message}))

(defn- perform [{:keys [within]} node {:keys [tool args step] :as call}]
  (let [outcome (try {:result (in-time within node (fn [] ((:call tool) step args within)))}
                     (catch Exception error
                       (if (failed? error) (throw error) {:error (ex-message error)})))]
    (ended call (if (contains? outcome :error) "error" "ok") outcome)))

(defn- approve
  "Asks whether a call may run, and runs it."
  [run node {:keys [id name args step] :as call}]
  (started call)
  (let [payload {:tool_call_id id :tool_name name :args args}
        {:keys [action reason]} (paused run node (keyword (str (clojure.core/name step) ".approval")) payload
                                        {:message (str "Run the tool `" name "`?") :approval {}})]
    (if (= :approve action)
      (perform run node call)
      (do (ended call "denied" {:error (str "the call was not approved" (when reason (str ": " reason)))})
          (fail "approval_denied" node (str "the call of `" name "` was not approved") {:tool name})))))

(defn- interrupt
  "Asks a person for a value on behalf of the model."
  [run node {:keys [id args step] :as call}]
  (started call)
  (let [payload {:tool_call_id id :reason (:reason args) :data (:data args)}
        answer (paused run node (keyword (str (clojure.core/name step) ".input")) payload
                       {:message (str (or (:reason args) "The agent asks for input"))
                        :validation [:map [:input :any]]})]
    (assoc (ended call "ok" {:result (:input answer)}) :human [(:input answer)])))

(defn- wrong-names
  "Returns why arguments of one-of do not go together: of each group of names, one is given."
  [one-of arguments]
  (first (keep (fn [names]
                 (let [given (filter (fn [name] (some? (get arguments (keyword name)))) names)]
                   (case (count given)
                     0 (str "the argument `" (first names) "` is missing")
                     1 nil
                     (str "expected the argument `" (first names) "` or `" (second names) "`, got both"))))
               one-of)))

(defn- refused-by-builtin
  "Returns why a built-in tool refuses a call: an argument that it does not have, which would have no effect, or one that it
  lacks."
  [{:keys [name schema one-of]} arguments]
  (let [known (:properties schema)
        missing (first (filter (fn [name] (nil? (get arguments (keyword name)))) (:required schema)))]
    (if-let [unknown (first (remove (fn [key] (contains? known key)) (keys arguments)))]
      (str "the tool `" name "` has no argument `" (clojure.core/name unknown) "`: expected "
           (clojure.string/join ", " (map clojure.core/name (keys known))))
      (cond
        missing (str "the argument `" missing "` is missing")
        (= {} (:key arguments)) "the argument `key` has no cells, which would mean every row"
        :else (wrong-names one-of arguments)))))

(defn- refused-arguments
  "Returns why a tool refuses a call, so that nobody is asked about a call that cannot be made."
  [{:keys [problems]} {:keys [name source schema] :as tool} arguments]
  (if (= "builtin" source)
    (refused-by-builtin tool arguments)
    (when-let [problems (seq (problems schema arguments))]
      (str "the arguments of the tool `" name "` do not fit its schema: " (clojure.string/join "; " problems)))))

(defn- fitting
  "Returns arguments in the types of the schema of a tool."
  [{:keys [converted]} {:keys [source schema]} arguments]
  (if (contains? #{nil "builtin"} source) arguments (converted schema arguments)))

(defn- numbered
  "Returns a requested call with its step and tool, and counts it."
  [{:keys [calls limits] :as run} node turn offered idx {:keys [tool-call-id name arguments arguments-text]}]
  (let [tool (get offered name)
        args (fitting run tool (or arguments {}))
        over? (> (swap! calls inc) (:calls limits))]
    {:id (or tool-call-id (str (clojure.core/name node) "-" turn "-" (inc idx)))
     :name name
     :args args
     :source (:source tool)
     :step (keyword (str (clojure.core/name node) "." turn "." (inc idx)))
     :tool tool
     :refusal (cond
                over? ["budget" (str "not performed: the run may make " (:calls limits) " tool calls")]
                (nil? tool) ["error" (str "there is no tool `" name "`")]
                arguments-text ["error" "the arguments are not JSON"]
                :else (when-let [why (refused-arguments run tool args)] ["error" why]))}))

(defn- asks? [{:keys [tool refusal]}]
  (and (not refusal) (or (:asks? tool) (:interrupt? tool))))

(defn- reads
  "Performs the calls that only read, several at a time."
  [{:keys [limits] :as run} node calls]
  (let [one (fn [{:keys [refusal] :as call}]
              (if-let [[status message] refusal]
                (refuse call status message)
                (do (started call) (perform run node call))))]
    (if (or (next calls) (not (seq calls)))
      (flow/pmap {:max (:parallel limits) :id (keyword (str (name node) ".calls"))} one calls)
      [(one (first calls))])))

(defn- ask [run node {:keys [tool] :as call}]
  (if (:interrupt? tool) (interrupt run node call) (approve run node call)))

(defn- perform-all
  "Performs the calls of a turn: first those that only read, then those that ask, in their order."
  [run node calls]
  (let [done (into (vec (when (some (complement asks?) calls) (reads run node (vec (remove asks? calls)))))
                   (mapv (fn [call] (ask run node call)) (filter asks? calls)))
        by-step (into {} (map (juxt :step identity)) done)]
    (mapv (comp by-step :step) calls)))

(defn- human
  "Returns the state with what a person answered last."
  [state calls]
  (if-let [[value] (last (keep :human calls))] (assoc state :human_input value) state))

;; Nodes

(defn- offered-tools
  "Returns some of the tools of a run by the names that models know."
  [{:keys [tools]} offered]
  (into {} (map (fn [key] (let [tool (get tools key)] [(:name tool) tool]))) offered))

(defn- definition [{:keys [name description schema]}]
  {:name name :description description :input-schema schema})

(defn- answered [{:keys [id name] :as call}]
  {:role :tool :tool-call-id id :name name
   :content (if (contains? call :error) {:error (:error call)} (:result call))})

(def ^:private turn-retry
  "When a turn is tried again, as far as the time of the run allows."
  {:max-attempts 3 :retry-on #{:cut-off :rate-limited :unavailable}})

(defn- turn-of [{:keys [within]} node ask config]
  (try (in-time within node (fn [] (ask (assoc config :retry turn-retry :total-timeout within))))
       (catch Exception error
         (if (failed? error)
           (throw error)
           (fail "model" node (ex-message error) {:error (select-keys (ex-data error) [:kind :code :status])})))))

(defn llm
  "Visits an `llm` node: asks the model until it answers without calling tools, and returns the state with its last text.
  spec: :node, :system and :prompt (templates), :tools (keys of the run's tools), :as (the key of the answer), and :ask, which performs the
  `:llm` step with what it is given, or :model, which gets the node before that."
  [{:keys [input limits] :as run} state {:keys [node system prompt as ask model tools]}]
  (visit run node)
  (let [data {:input input :state state}
        ask (or ask (fn [turn] (model node turn)))
        system (render node system data)
        offered (offered-tools run tools)
        definitions (mapv definition (sort-by :name (vals offered)))
        config (cond-> {}
                 (seq system) (assoc :system system)
                 (seq definitions) (assoc :tools {:definitions definitions}))]
    (loop [turn 1, state state, messages [{:role :user :content (render node prompt data)}]]
      (when (> turn (:steps limits))
        (fail "max_steps" node (str "the model of `" (name node) "` had " (:steps limits) " turns without an answer") {}))
      (let [{:keys [content tool-calls opaque]} (turn-of run node ask (assoc config :messages messages))
            calls (map-indexed (fn [idx call] (numbered run node turn offered idx call)) tool-calls)]
        (if (seq calls)
          (let [done (perform-all run node (vec calls))
                said (cond-> {:role :assistant :tool-calls (mapv (fn [call requested] (assoc requested :tool-call-id (:id call))) calls tool-calls)}
                       (seq content) (assoc :content content)
                       opaque (assoc :opaque opaque))]
            (recur (inc turn) (human state done) (into (conj messages said) (map answered) done)))
          (assoc state (keyword as) content))))))

(defn tool
  "Visits a `tool` node: calls a tool with rendered arguments, and returns the state with its result.
  spec: :node, :tool (a key of the run's tools), :args (templates at any depth), :as (the key of the result)."
  [{:keys [input] :as run} state {:keys [node args as] key :tool}]
  (visit run node)
  (let [args (render-all node args {:input input :state state})
        name (get-in run [:tools key :name])
        call (assoc (numbered run node 1 (offered-tools run [key]) 0 {:name name :arguments args})
                    :id (clojure.core/name node))
        done (cond
               (:refusal call) (apply refuse call (:refusal call))
               (asks? call) (ask run node call)
               :else (do (started call) (perform run node call)))]
    (when (contains? done :error)
      (fail "internal" node (str "the tool `" name "` failed: " (:error done)) {:tool name}))
    (assoc (human state [done]) (keyword as) (:result done))))

(defn end
  "Visits an `end` node: returns the rendered output of the run."
  [{:keys [input] :as run} state {:keys [node output]}]
  (visit run node)
  (render node output {:input input :state state}))

;; Built-in tools
;;
;; Some arguments have two names: that of this project's steps, and that of published specs.

(defn- given
  "Returns an argument that a call has under one of two names; nil if it has neither."
  [args one other]
  (let [[first-value second-value] (map args [one other])]
    (when (and (some? first-value) (some? second-value))
      (throw (ex-info (str "expected the argument `" (name one) "` or `" (name other) "`, got both") {:kind :bad-input})))
    (if (some? first-value) first-value second-value)))

(defn- needed
  "Returns an argument that a call must have under one of two names."
  [args one other]
  (let [value (given args one other)]
    (when (nil? value)
      (throw (ex-info (str "the argument `" (name one) "` is missing") {:kind :bad-input})))
    value))

(defn- row-key
  "Returns the cells that identify a row: `key`, or the cell `id`."
  [args]
  (let [key (needed args :key :id)
        cells (if (map? key) key {:id key})]
    (when (empty? cells)
      (throw (ex-info "the argument `key` has no cells, which would mean every row" {:kind :bad-input})))
    cells))

(defn- own-table
  "Refuses tables that hold agents, functions and servers."
  [table]
  (let [table (str table)]
    (when (re-find #"^(flowstone_|res://)" table)
      (throw (ex-info (str "the table `" table "` is not for agents") {:kind :denied})))
    table))

(defn- column [name] (keyword name))

(defn- condition [{:keys [op value] :as given}]
  [(column (:column given)) (keyword (or op "=")) value])

(defn- conditions
  "Returns the conditions of a tool call: a map of equal cells, or a list of {column, op, value}."
  [where]
  (if (map? where)
    (mapv (fn [[name value]] [(column name) := value]) where)
    (mapv condition where)))

(defn- whole [value]
  (if (string? value) (parse-long value) value))

(defn- sorting [sort]
  (mapv (fn [item]
          (if (map? item) [(column (:column item)) (keyword (or (:direction item) "asc"))] [(column item) :asc]))
        (if (sequential? sort) sort [sort])))

(defn query-table
  "Reads rows of a table."
  [id {:keys [table select sort limit offset] :as args} within]
  (let [where (given args :where :filter)]
    (flow/step :table id
               (cond-> {:op :query :table (own-table table) :total-timeout within
                        :page {:limit (min 1000 (or (whole limit) 100)) :offset (or (whole offset) 0)}}
                 (seq where) (assoc :where (conditions where))
                 (seq select) (assoc :select (mapv column select))
                 (seq sort) (assoc :sort (sorting sort))))))

(defn insert-row
  "Adds a row to a table."
  [id {:keys [table key] :as args} within]
  (flow/step :table id (cond-> {:op :insert :table (own-table table) :rows [(needed args :row :values)] :total-timeout within}
                         (seq key) (assoc :key-fields (mapv column key)))))

(defn upsert-row
  "Adds a row to a table, or changes the row with the same key."
  [id {:keys [table key] :as args} within]
  (flow/step :table id (cond-> {:op :upsert :table (own-table table) :rows [(needed args :row :values)] :total-timeout within}
                         (seq key) (assoc :key-fields (mapv column key)))))

(defn update-row
  "Changes cells of an existing row."
  [id {:keys [table] :as args} within]
  (let [table (own-table table)
        key (row-key args)
        values (needed args :values :patch)
        found (flow/step :table (keyword (str (name id) ".found")) {:op :get-row :table table :key key :total-timeout within})]
    (when-not (:row found)
      (throw (ex-info (str "the table `" table "` has no such row") {:kind :not-found})))
    (flow/step :table id {:op :upsert :table table :rows [(merge key values)] :key-fields (vec (keys key)) :total-timeout within})))

(defn delete-row
  "Deletes the row with a key. Cells that several rows have are not a key."
  [id {:keys [table] :as args} within]
  (let [table (own-table table)
        key (row-key args)
        found (flow/step :table (keyword (str (name id) ".found"))
                         {:op :query :table table :where (conditions key) :page {:limit 2} :total-timeout within})]
    (when (next (:rows found))
      (throw (ex-info (str "the argument `key` fits several rows of the table `" table "`: name the cells of its key fields")
                      {:kind :bad-input})))
    (flow/step :table id {:op :delete :table table :key key :total-timeout within})))

(defn user-lookup
  "Reads a person from the project's table `users`."
  [id {:keys [email] :as args} within]
  (let [user (given args :user_id :id)]
    (when (and (nil? user) (nil? email))
      (throw (ex-info "expected the argument `user_id` or `email`" {:kind :bad-input})))
    (query-table id {:table "users" :where (if (some? user) {:id user} {:email email}) :limit 1} within)))

(defn- storage-key
  "Returns the key of a path: characters that keys do not have become their numbers."
  [path]
  (apply str "storage:" (map (fn [char] (if (re-matches #"[A-Za-z0-9_-]" (str char)) char (str ":" (int char) ":"))) (str path))))

(defn read-storage
  "Reads a stored value by its path, or a resource by its `res://` name."
  [id args within]
  (let [path (needed args :path :key)]
    (if (clojure.string/starts-with? (str path) "res://")
      (flow/step :function id {:code '(fn [{:keys [content]}] {:content content})
                               :input {:content path} :load [:content] :total-timeout within})
      (let [{:keys [value exists?]}
            (flow/step :kv id {:operation :get :key (storage-key path) :total-timeout within})]
        (if exists?
          {:path path :content value}
          (throw (ex-info (str "nothing is stored under `" path "`") {:kind :not-found})))))))

(defn write-storage
  "Stores a value under a path: any value, or the base64 text of bytes with their type."
  [id {:keys [content_base64 content_type] :as args} within]
  (let [path (needed args :path :key)
        content (needed args :content :content_base64)
        value (cond
                (nil? content_base64) content
                content_type {:content_base64 content :content_type content_type}
                :else {:content_base64 content})]
    (flow/step :kv id {:operation :set :key (storage-key path) :value value :total-timeout within})
    {:path path :stored true}))

(defn delete-storage
  "Deletes the value under a path."
  [id args within]
  (let [path (needed args :path :key)]
    (flow/step :kv id {:operation :delete :key (storage-key path) :total-timeout within})
    {:path path :deleted true}))

;; Tools of MCP servers

(defn pinned
  "Returns some tools of a server's list, by name; list performs the step that returns the list. A name that the list lacks
  ends the run. A tool is assumed to change something unless the list says that it only reads."
  [node within list names]
  (let [listed (into {} (map (juxt :name identity)) (:tools (in-time within node list)))]
    (into {} (map (fn [name]
                    (let [{:keys [description input-schema read-only?]} (listed name)]
                      (when-not (contains? listed name)
                        (fail "tool_missing" node (str "the server has no tool `" name "`") {:tool name}))
                      [name {:description description
                             :schema (merge {:type "object" :properties {}} input-schema)
                             :read-only? (true? read-only?)}])))
          names)))
