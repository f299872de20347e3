(def ^:dynamic *x* 1)
(let [a (atom {}) d (delay @a)] (binding [*x* 2] (swap! a update :n (fnil + 0) *x*)) [@a @d (case *x* 1 :one 2 :two :other)])
