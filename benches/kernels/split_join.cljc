;; A text split into lines and words, and joined again.
(require '[clojure.string :as str])

(def text
  (str/join "\n" (map (fn [n] (str "alpha beta " n " gamma delta")) (range 20000))))

(defn kernel []
  (count (str/join "|" (mapcat (fn [line] (map str/upper-case (str/split line #" ")))
                               (str/split-lines text)))))
