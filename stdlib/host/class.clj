(ns Class
  "`Class/...`: classes by their names.")

(def ^:private arrays
  "Classes of arrays by their names."
  (delay (into {} (map (fn [array] [(.getName (class array)) (class array)])
                       [(byte-array 0) (char-array 0) (double-array 0) (float-array 0) (int-array 0) (long-array 0)
                        (short-array 0) (boolean-array 0) (object-array 0) (into-array String [])]))))

(defn forName
  "Returns the class with a full name, or throws."
  {:examples '[[(.getName (Class/forName "java.lang.String")) "java.lang.String"]]}
  ([full-name]
   (let [found (when (clojure.string/includes? full-name ".") (resolve (symbol full-name)))
         found (if (var? found) @found found)]
     (cond
       (class? found) found
       (contains? @arrays full-name) (get @arrays full-name)
       :else (throw (ClassNotFoundException. full-name)))))
  ([full-name _initialize _loader] (Class/forName full-name)))
