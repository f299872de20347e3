;; Counting and grouping.
(def items (vec (map (fn [n] (rem (* n 7919) 1009)) (range 200000))))

(defn kernel []
  (+ (count (frequencies items))
     (count (group-by (fn [n] (rem n 100)) items))))
