;; Calls, comparison, small arithmetic.
(defn fib [n]
  (if (< n 2)
    n
    (+ (fib (- n 1)) (fib (- n 2)))))

(defn kernel [] (fib 30))
