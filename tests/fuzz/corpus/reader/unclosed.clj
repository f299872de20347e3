(defn f [x] {:a (inc x]
