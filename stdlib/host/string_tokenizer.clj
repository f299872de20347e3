(ns StringTokenizer
  "`java.util.StringTokenizer`: the parts of a text between characters.")

(deftype ^{:package "java.util"} StringTokenizer [^:unsynchronized-mutable parts]
  java.util.Enumeration
  (countTokens [this] (count parts))
  (hasMoreElements [this] (some? (seq parts)))
  (hasMoreTokens [this] (some? (seq parts)))
  (nextElement [this] (.nextToken this))
  (nextToken [this]
    (if (seq parts)
      (let [part (first parts)]
        (set! parts (rest parts))
        part)
      (throw (java.util.NoSuchElementException.)))))

(defn new
  "Returns the parts of a text between whitespace, or any of the characters of another text."
  {:examples '[[(.nextToken (java.util.StringTokenizer. "a&b" "&")) "a"]]}
  ([text] (java.util.StringTokenizer. text " \t\n\r\f"))
  ([text separators]
   (->StringTokenizer (remove #(= "" %)
                              (map #(apply str %)
                                   (reduce (fn [parts c]
                                             (if (clojure.string/includes? separators (str c))
                                               (conj parts [])
                                               (conj (pop parts) (conj (peek parts) c))))
                                           [[]]
                                           text))))))
