;; Nested maps changed on the way.
(defn kernel []
  (loop [n 0 m {:a {:b {:c 0}} :total 0}]
    (if (< n 200000)
      (recur (inc n) (-> m (update-in [:a :b :c] inc) (update :total + n)))
      (+ (get-in m [:a :b :c]) (:total m)))))
