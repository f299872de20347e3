;; Strings made of numbers and words, and put together.
(defn kernel []
  (loop [n 0 length 0]
    (if (< n 100000)
      (recur (inc n) (+ length (count (str "item-" n ":" (* n 2)))))
      (+ length (count (apply str (map (fn [n] (str n ",")) (range 100000))))))))
