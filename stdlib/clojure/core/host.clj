(in-ns 'clojure.core)

;; Methods of host classes that existing code calls: plain functions with the method's name.

(defn .charAt
  "Returns the character of a string at an index."
  {:examples '[[(.charAt "abc" 1) \b]]}
  [s idx]
  (nth (str s) idx))

(defn .compareTo
  "Compares two values: a negative number, 0 or a positive one."
  {:examples '[[(.compareTo 1 2) -1]]}
  [x y]
  (compare x y))

(defn .concat
  "Returns both strings joined."
  {:examples '[[(.concat "a" "b") "ab"]]}
  [s more]
  (str s more))

(defn .contains
  "Tells whether a string contains a substring, or a collection an item."
  {:examples '[[(.contains "abc" "bc") true]
               [(.contains [1 2] 2) true]]}
  [x item]
  (cond
    (string? x) (clojure.string/includes? x (str item))
    (sequential? x) (boolean (some #(= item %) x))
    :else (contains? x item)))

(defn .containsKey
  "Tells whether a map contains a key."
  {:examples '[[(.containsKey {:a 1} :a) true]]}
  [m k]
  (contains? m k))

(defn .count
  "Returns the number of items of a collection."
  {:examples '[[(.count [1 2]) 2]]}
  [coll]
  (count coll))

(defn .deref
  "Returns the value of an atom, delay or similar reference."
  {:examples '[[(.deref (atom 1)) 1]]}
  [x]
  (deref x))

(defn .doubleValue
  "Returns a number as a double."
  {:examples '[[(.doubleValue 1) 1.0]]}
  [x]
  (double x))

(defn .endsWith
  "Tells whether a string ends with another."
  {:examples '[[(.endsWith "abc" "bc") true]]}
  [s end]
  (clojure.string/ends-with? s end))

(defn .equals
  "Tells whether two values are equal."
  {:examples '[[(.equals "a" "a") true]]}
  [x y]
  (= x y))

(defn .equalsIgnoreCase
  "Tells whether two strings are equal if case is ignored."
  {:examples '[[(.equalsIgnoreCase "A" "a") true]]}
  [s other]
  (= (clojure.string/lower-case s) (clojure.string/lower-case other)))

(defn .get
  "Returns the value of a map at a key, or the item of a list at an index."
  {:examples '[[(.get {:a 1} :a) 1]
               [(.get [1 2] 0) 1]]}
  ([coll k] (if (sequential? coll) (nth coll k) (get coll k)))
  ([coll k default] (get coll k default)))

(defn .getCause
  "Returns the cause of an exception, or nil."
  {:examples '[[(.getCause (ex-info "a" {})) nil]]}
  [ex]
  (ex-cause ex))

(defn .getClass
  "Returns the class of a value."
  {:examples '[[(.getName (.getClass 1)) "java.lang.Long"]]}
  [x]
  (if (fn? x)
    (function-class x)
    (class x)))

(defn- function-class
  "Returns the class of a function, which has the name of the function."
  [f]
  (let [[_ shown] (re-matches #"(?s)#function\[(.*)\]" (pr-str f))
        [home short] (if (clojure.string/includes? shown "/")
                       (clojure.string/split shown #"/" 2)
                       ["clojure.core" shown])]
    (new-type (symbol (str (namespace-munge home) "$" (munge (if (= "" short) "fn" short)))) [] [] false)))

(defn .getData
  "Returns the map that an exception carries."
  {:examples '[[(.getData (ex-info "a" {:b 1})) {:b 1}]]}
  [ex]
  (ex-data ex))

(defn .getKey
  "Returns the key of a map entry."
  {:examples '[[(.getKey (first {:a 1})) :a]]}
  [entry]
  (key entry))

(defn .getLocalizedMessage
  "Returns the message of an exception, or nil."
  {:examples '[[(.getLocalizedMessage (ex-info "a" {})) "a"]]}
  [ex]
  (ex-message ex))

(defn .getMessage
  "Returns the message of an exception, or nil."
  {:examples '[[(.getMessage (ex-info "a" {})) "a"]]}
  [ex]
  (ex-message ex))

(defn .getName
  "Returns the name of a class, namespace, keyword or symbol."
  {:examples '[[(.getName String) "java.lang.String"]
               [(.getName :a) "a"]]}
  [x]
  (if (ident? x) (name x) (str (if (class? x) (symbol (pr-str x)) (ns-name x)))))

(defn .getNamespace
  "Returns the namespace of a keyword or symbol, or nil."
  {:examples '[[(.getNamespace :a/b) "a"]]}
  [x]
  (namespace x))

(defn .getSimpleName
  "Returns the name of a class without its package."
  {:examples '[[(.getSimpleName String) "String"]]}
  [x]
  (last (clojure.string/split (pr-str x) #"[.$]")))

(defn .getTime
  "Returns an instant as milliseconds since 1970."
  {:examples '[[(.getTime #inst "1970-01-01T00:00:01Z") 1000]]}
  [instant]
  (inst-ms instant))

(defn .getValue
  "Returns the value of a map entry, or the number of a weekday or month, from 1."
  {:examples '[[(.getValue (first {:a 1})) 1]
               [(.getValue java.time.DayOfWeek/MONDAY) 1]]}
  [x]
  (if (map-entry? x) (val x) (inc (-ordinal x))))

(defn .indexOf
  "Returns the index of a substring or character of a string, or of an item of a list; -1 if it does not occur."
  {:examples '[[(.indexOf "abc" "c") 2]
               [(.indexOf [1 2] 5) -1]]}
  ([x item] (.indexOf x item 0))
  ([x item from]
   (if (string? x)
     (or (clojure.string/index-of x (if (int? item) (char item) item) from) -1)
     (or (first (keep-indexed (fn [idx other] (when (and (>= idx from) (= item other)) idx)) x)) -1))))

(defn .intValue
  "Returns a number as an integer, truncated."
  {:examples '[[(.intValue 1.9) 1]]}
  [x]
  (int x))

(defn .isEmpty
  "Tells whether a string or collection has no items."
  {:examples '[[(.isEmpty "") true]]}
  [x]
  (empty? x))

(defn .isBlank
  "Tells whether a string consists only of whitespace."
  {:examples '[[(.isBlank " ") true]]}
  [s]
  (clojure.string/blank? s))

(defn .join
  "Returns the items joined, with the string between them."
  {:examples '[[(.join ", " ["a" "b"]) "a, b"]]}
  [separator items]
  (clojure.string/join separator items))

(defn .keySet
  "Returns the set of the keys of a map."
  {:examples '[[(.keySet {:a 1}) #{:a}]]}
  [m]
  (set (keys m)))

(defn .lastIndexOf
  "Returns the last index of a substring or character of a string, or of an item of a list; -1 if it does not occur."
  {:examples '[[(.lastIndexOf "abcb" "b") 3]]}
  [x item]
  (if (string? x)
    (or (clojure.string/last-index-of x (if (int? item) (char item) item)) -1)
    (or (last (keep-indexed (fn [idx other] (when (= item other) idx)) x)) -1)))

(defn .length
  "Returns the number of characters of a string."
  {:examples '[[(.length "abc") 3]]}
  [s]
  (count (str s)))

(defn .longValue
  "Returns a number as a long, truncated."
  {:examples '[[(.longValue 1.9) 1]]}
  [x]
  (long x))

(defn .nth
  "Returns the item of a collection at an index."
  {:examples '[[(.nth [1 2] 1) 2]]}
  ([coll idx] (nth coll idx))
  ([coll idx default] (nth coll idx default)))

(defn .replace
  "Returns a string with each substring or character replaced."
  {:examples '[[(.replace "a.b" "." "-") "a-b"]]}
  [s old new]
  (clojure.string/replace (str s) old new))

(defn .replaceAll
  "Returns a string with each match of a regular expression, as a string, replaced; or the text of a matcher."
  {:examples '[[(.replaceAll "a1b2" "[0-9]" "") "ab"]
               [(.replaceAll (re-matcher #"[0-9]" "a1b2") "") "ab"]]}
  ([matcher new]
   (let [[text re] (-matcher-parts matcher)] (clojure.string/replace text re new)))
  ([s regex new] (clojure.string/replace s (re-pattern regex) new)))

(defn .replaceFirst
  "Returns a string with the first match of a regular expression, as a string, replaced; or the text of a matcher."
  {:examples '[[(.replaceFirst "a1b2" "[0-9]" "") "ab2"]
               [(.replaceFirst (re-matcher #"[0-9]" "a1b2") "") "ab2"]]}
  ([matcher new]
   (let [[text re] (-matcher-parts matcher)] (clojure.string/replace-first text re new)))
  ([s regex new] (clojure.string/replace-first s (re-pattern regex) new)))

(defn .size
  "Returns the number of items of a collection."
  {:examples '[[(.size {:a 1}) 1]]}
  [coll]
  (count coll))

(defn .split
  "Returns the parts of a string between matches of a regular expression; a vector, not an array. The expression is a string after the text, as
  in String, or comes first, as in Pattern."
  {:examples '[[(.split "a,b" ",") ["a" "b"]] [(.split #"-+" "a--b") ["a" "b"]]]}
  ([s regex]
   (if (regex? s)
     (clojure.string/split regex s)
     (clojure.string/split s (re-pattern regex))))
  ([s regex limit]
   (if (regex? s)
     (clojure.string/split regex s limit)
     (clojure.string/split s (re-pattern regex) limit))))

(defn .startsWith
  "Tells whether a string starts with another."
  {:examples '[[(.startsWith "abc" "ab") true]]}
  [s start]
  (clojure.string/starts-with? s start))

(defn .strip
  "Returns a string without the whitespace at its ends."
  {:examples '[[(.strip " a ") "a"]]}
  [s]
  (clojure.string/trim s))

(defn .substring
  "Returns the part of a string from start up to end."
  {:examples '[[(.substring "abcd" 1 3) "bc"]]}
  ([s start] (subs s start))
  ([s start end] (subs s start end)))

(defn .toCharArray
  "Returns the characters of a string; a vector, not an array."
  {:examples '[[(.toCharArray "ab") [\a \b]]]}
  [s]
  (vec s))

(defn .toLowerCase
  "Returns a string in lower case."
  {:examples '[[(.toLowerCase "AbC") "abc"]]}
  ([s] (clojure.string/lower-case s))
  ([s _locale] (clojure.string/lower-case s)))

(defn .toString
  "Returns a value as a string."
  {:examples '[[(.toString 1) "1"]]}
  [x]
  (str x))

(defn .toUpperCase
  "Returns a string in upper case."
  {:examples '[[(.toUpperCase "AbC") "ABC"]]}
  ([s] (clojure.string/upper-case s))
  ([s _locale] (clojure.string/upper-case s)))

(defn .trim
  "Returns a string without the whitespace at its ends."
  {:examples '[[(.trim " a ") "a"]]}
  [s]
  (clojure.string/trim s))

(defn .valAt
  "Returns the value of a map at a key."
  {:examples '[[(.valAt {:a 1} :a) 1]]}
  ([m k] (get m k))
  ([m k default] (get m k default)))

(defn .values
  "Returns the values of a map."
  {:examples '[[(.values {:a 1}) (1)]]}
  [m]
  (or (vals m) ()))
