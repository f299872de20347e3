;; Matches in a text, with groups.
(require '[clojure.string :as str])

(def text
  (str/join "\n" (map (fn [n] (str "2024-01-" (+ 10 (rem n 20)) " user" n "@example.org ok")) (range 10000))))

(defn kernel []
  (reduce + (map (fn [[_ day user]] (+ (count day) (count user)))
                 (re-seq #"\d{4}-\d\d-(\d\d) (\w+)@" text))))
