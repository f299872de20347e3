;; Lazy sequences that a program makes itself, and `for`.
(defn numbers [n] (lazy-seq (cons n (numbers (inc n)))))

(defn kernel []
  (+ (reduce + (take 100000 (numbers 0)))
     (count (for [x (range 300) y (range 300) :when (odd? (+ x y))] [x y]))))
