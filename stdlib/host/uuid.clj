(ns UUID
  "`java.util.UUID`: UUIDs from their bits.")

(defn new
  "Returns the UUID of two integers: its upper and lower 64 bits."
  {:examples '[[(str (java.util.UUID. 1 2)) "00000000-0000-0001-0000-000000000002"]]}
  [high low]
  (let [digits (str (format "%016x" high) (format "%016x" low))]
    (parse-uuid (clojure.string/join "-" (map (fn [[start end]] (subs digits start end))
                                              [[0 8] [8 12] [12 16] [16 20] [20 32]])))))
