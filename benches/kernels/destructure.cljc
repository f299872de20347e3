;; Vectors and maps taken apart by patterns.
(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 500000)
      (let [[a b] [n 1]
            {:keys [x y] :or {y 2}} {:x a}]
        (recur (+ n b) (+ sum x y)))
      sum)))
