;; Talks with a server through the reference client: java ... clojure.main client.clj PORT
(require '[nrepl.core :as nrepl])

(defn check [what found wanted]
  (when (not= found wanted)
    (println (str what ": " (pr-str found) ", not " (pr-str wanted)))
    (System/exit 1)))

(with-open [connection (nrepl/connect :port (Integer/parseInt (first *command-line-args*)))]
  (let [client (nrepl/client connection 30000)
        session (nrepl/client-session client)
        ask (fn [message] (nrepl/combine-responses (nrepl/message session message)))
        values (fn [code] (nrepl/response-values (nrepl/message session {:op "eval" :code code})))]
    (check "values" (values "(+ 1 2) {:a [1 \"b\"]}") [3 {:a [1 "b"]}])
    (check "new session" (string? (nrepl/new-session client)) true)
    (check "out" (:out (ask {:op "eval" :code "(println :hello)"})) ":hello\n")
    (let [failed (ask {:op "eval" :code "(throw (ex-info \"no\" {}))"})]
      (check "ex" (:ex failed) "class clojure.lang.ExceptionInfo")
      (check "status" (:status failed) #{"done" "eval-error"}))
    (check "last error" (values "(ex-message *e)") ["no"])
    (check "unknown" (:status (ask {:op "fox"})) #{"done" "error" "unknown-op"})
    (let [answers (nrepl/message session {:op "eval" :code "(read-line)"})
          seen (atom [])]
      (doseq [answer answers]
        (swap! seen conj answer)
        (when (some #{"need-input"} (:status answer))
          (dorun (nrepl/message session {:op "stdin" :stdin "typed\n"}))))
      (check "read-line" (keep :value @seen) ["\"typed\""]))
    (println "the reference client: ok")))
(shutdown-agents)
