(defmacro unless [c & body] `(if ~c nil (do ~@body)))
(defn f ([x] (f x 1)) ([x & more] (apply + x more)))
(unless false (f 1) (f 1 2 3))
