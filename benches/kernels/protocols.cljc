;; Records and a protocol's methods.
(defprotocol Shape
  (area [shape]))

(defrecord Square [side]
  Shape
  (area [_] (* side side)))

(defrecord Oblong [width height]
  Shape
  (area [_] (* width height)))

(def shapes [(->Square 2) (->Oblong 2 3) (->Square 3)])

(defn kernel []
  (loop [n 0 sum 0]
    (if (< n 500000)
      (recur (inc n) (+ sum (area (nth shapes (rem n 3)))))
      sum)))
