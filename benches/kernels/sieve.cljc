;; Sets and transients: primes below fifty thousand.
(defn kernel []
  (let [limit 50000]
    (loop [n 2 crossed (transient #{}) primes 0]
      (if (< n limit)
        (if (contains? crossed n)
          (recur (inc n) crossed primes)
          (recur (inc n)
                 (loop [m (* n n) crossed crossed]
                   (if (< m limit) (recur (+ m n) (conj! crossed m)) crossed))
                 (inc primes)))
        primes))))
