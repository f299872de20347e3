;; A vector of a million: built by conj, then read.
(defn kernel []
  (let [v (loop [n 0 v []]
            (if (< n 1000000) (recur (inc n) (conj v n)) v))]
    (loop [n 0 sum 0]
      (if (< n 1000000) (recur (inc n) (+ sum (nth v n))) sum))))
