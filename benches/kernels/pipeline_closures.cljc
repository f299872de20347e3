;; The same with functions of the program's own.
(defn kernel []
  (reduce + (map (fn [x] (* x 2)) (filter (fn [x] (zero? (rem x 3))) (range 1000000)))))
