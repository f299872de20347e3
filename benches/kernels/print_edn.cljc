;; Data to text.
(defn kernel [] (count (pr-str rows)))
