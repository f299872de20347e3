;; A hundred thousand exceptions with data, each caught.
(defn check [n]
  (if (neg? n) n (throw (ex-info "too much" {:n 1}))))

(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 100000)
      (recur (inc n)
             (+ sum (try (check n)
                         (catch #?(:cljs :default :default Exception) e (:n (ex-data e))))))
      sum)))
