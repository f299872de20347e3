;; Two million keyword lookups in a small map.
(defn kernel []
  (let [m {:a 1 :b 2 :c 3 :d 4 :e 5}]
    (loop [n 0 sum 0]
      (if (< n 1000000)
        (recur (inc n) (+ sum (:b m) (:e m)))
        sum))))
