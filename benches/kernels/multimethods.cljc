;; Dispatch on a keyword of a map.
(defmulti cost :kind)
(defmethod cost :fixed [item] (:price item))
(defmethod cost :rated [item] (* 2 (:price item)))
(defmethod cost :default [_] 0)

(def things [{:kind :fixed :price 2} {:kind :rated :price 3} {:kind :other}])

(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 300000)
      (recur (inc n) (+ sum (cost (nth things (rem n 3)))))
      sum)))
