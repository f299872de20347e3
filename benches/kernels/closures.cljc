;; Functions made and called.
(defn adder [n] (fn [x] (+ x n)))

(defn kernel []
  (let [one (adder 1)]
    (loop [n 0 sum 0]
      (if (< n 1000000)
        (recur (one n) ((adder sum) 1))
        sum))))
