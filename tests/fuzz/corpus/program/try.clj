(try (throw (ex-info "x" {:a 1})) (catch Exception e (ex-data e)) (finally (println "done")))
