;; State that is swapped.
(defn kernel []
  (let [state (atom {:count 0})]
    (dotimes [n 300000] (swap! state update :count + n))
    (:count @state)))
