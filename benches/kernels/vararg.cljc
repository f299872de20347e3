;; Rest arguments and apply.
(defn total [& ns] (reduce + 0 ns))

(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 200000)
      (recur (inc n) (+ sum (total n 1 2) (apply max [n 1 2])))
      sum)))
