(ns flow
  "What flows use beside the functions of the engine.")

(def ^:private poll-options
  #{:interval :timeout :max-attempts :return-on :backoff :abort-on :id})

(defn- check-poll [opts]
  (doseq [key (keys opts)]
    (when-not (contains? poll-options key)
      (throw (ex-info (str "flow/poll has no option " key)
                      {:kind :bad-config :options (vec (sort poll-options))}))))
  (doseq [key [:interval :return-on]]
    (when-not (get opts key)
      (throw (ex-info (str "flow/poll needs " key) {:kind :bad-config}))))
  (when-not (or (:timeout opts) (:max-attempts opts))
    (throw (ex-info "flow/poll needs :timeout or :max-attempts" {:kind :bad-config}))))

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
  (let [{:keys [return-on abort-on id]} opts
        start (flow/now-ms)]
    (loop [attempt 1]
      (let [[result :as done] (poll-attempt opts f)
            status (:status result)]
        (cond
          (and done (return-on result))
          result

          (and done (contains? (set (:status abort-on)) status))
          (throw (ex-info (str "polling was aborted by status " status)
                          {:kind :aborted :status status :attempts attempt}))

          (poll-over? opts start attempt)
          (throw (ex-info "polling came to its end without the wanted result"
                          {:kind :timeout :attempts attempt}))

          :else
          (do (flow/step :sleep (or id :poll-pause) {:millis (poll-pause opts attempt)})
              (recur (inc attempt))))))))

(defmacro poll
  "Repeats a step until its result is the wanted one, with a :sleep step between.
  opts: :interval, milliseconds or a duration; :return-on, a predicate of the result; :timeout or :max-attempts;
  :backoff as in flow/backoff; :abort-on {:error? bool :status #{...}}; :id of the pauses."
  [opts step-form]
  `(flow/poll* ~opts (fn [] ~step-form)))
