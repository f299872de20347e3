;; A loop that sums to ten million.
(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 10000000)
      (recur (inc n) (+ sum n))
      sum)))
