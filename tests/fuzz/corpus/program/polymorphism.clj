(defprotocol P (p [x] [x y]))
(defrecord R [a] P (p [x] a) (p [x y] [a y]))
(defmulti m class)
(defmethod m :default [x] x)
[(p (->R 1)) (p (->R 1) 2) (m 3) (assoc (->R 1) :b 2)]
