;; A map of a hundred thousand entries: built by assoc, then read.
(defn kernel []
  (let [m (loop [n 0 m {}]
            (if (< n 100000) (recur (inc n) (assoc m n (inc n))) m))]
    (loop [n 0 sum 0]
      (if (< n 100000) (recur (inc n) (+ sum (get m n))) sum))))
