;; Transducers with functions of the program's own, into a vector.
(defn kernel []
  (count (into [] (comp (map (fn [x] (+ x 1))) (remove (fn [x] (zero? (rem x 3)))) (take 500000))
               (range 1000000))))
