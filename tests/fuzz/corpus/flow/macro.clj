(defmacro twice [x] `(do ~x ~x))
(defn go [n] (loop [i 0] (if (< i n) (recur (inc i)) i)))
(twice (flow/step :kv :k {:op :set :key "a" :value (go 3)}))
