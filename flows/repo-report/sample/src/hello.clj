;; TODO say goodbye too
(ns hello)

(defn greet [name]
  (str "Hello " name))
