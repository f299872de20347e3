(in-ns 'clojure.core)

;; More methods of host classes: of collections, functions, names, numbers and patterns.

(defn .abs
  "Returns the absolute value of a number."
  {:examples '[[(.abs -1.5M) 1.5M]]}
  [x]
  (abs x))

(defn .add
  "Returns the sum of two big numbers."
  {:examples '[[(.add 1N 2N) 3N]]}
  [x y]
  (+' x y))

(defn .applyTo
  "Calls a function with the items of a sequence."
  {:examples '[[(.applyTo + '(1 2)) 3]]}
  [f args]
  (apply f args))

(defn .assoc
  "Returns a map or vector with the value of a key set; a transient changes."
  {:examples '[[(.assoc {} :a 1) {:a 1}]]}
  [coll k v]
  (if (instance? clojure.lang.ITransientCollection coll)
    (assoc! coll k v)
    (assoc coll k v)))

(defn .assocN
  "Returns a vector with the value at an index set."
  {:examples '[[(.assocN [1 2] 0 3) [3 2]]]}
  [v idx x]
  (assoc v idx x))

(defn .cast
  "Returns x if it is an instance of a class, else throws."
  {:examples '[[(.cast Number 1) 1]]}
  [c x]
  (cast c x))

(defn .codePointAt
  "Returns the code of the character of a string at an index."
  {:examples '[[(.codePointAt "a" 0) 97]]}
  [s idx]
  (int (nth s idx)))

(defn .cons
  "Returns a collection with an item added, as conj does."
  {:examples '[[(.cons [1] 2) [1 2]]]}
  [coll item]
  (conj coll item))

(defn .disjoin
  "Returns a set without an item; a transient changes."
  {:examples '[[(.disjoin #{1 2} 1) #{2}]]}
  [coll x]
  (if (instance? clojure.lang.ITransientCollection coll)
    (disj! coll x)
    (disj coll x)))

(defn .divide
  "Returns a big integer or decimal divided by another: the whole part of integers; a decimal with the places
  of x or with a number of them, rounded by a mode of java.math.RoundingMode, or exactly."
  {:examples '[[(.divide 7N 2N) 3N]
               [(.divide 1M 3M 2 java.math.RoundingMode/HALF_UP) 0.33M]]}
  ([x y] (-divide x y))
  ([x y rounding] (-divide x y rounding))
  ([x y places rounding] (-divide x y places rounding)))

(defn .empty
  "Returns an empty collection of the same kind."
  {:examples '[[(.empty [1]) []]]}
  [coll]
  (empty coll))

(defn .entrySet
  "Returns the set of the entries of a map."
  {:examples '[[(.entrySet {:a 1}) #{[:a 1]}]]}
  [m]
  (set (seq m)))

(defn .equiv
  "Tells whether two values are equal."
  {:examples '[[(.equiv [1] [1]) true]]}
  [x y]
  (= x y))

(defn .entryAt
  "Returns the entry of a map for a key, or nil."
  {:examples '[[(.entryAt {:a 1} :a) [:a 1]]]}
  [m k]
  (find m k))

(defn .first
  "Returns the first item of a sequence."
  {:examples '[[(.first '(1 2)) 1]]}
  [coll]
  (first coll))

(defn .getLeastSignificantBits
  "Returns the lower 64 bits of a UUID as an integer."
  {:examples '[[(.getLeastSignificantBits #uuid "00000000-0000-0000-0000-000000000001") 1]]}
  [id]
  (unchecked-long (bigint (BigInteger. (subs (clojure.string/replace (str id) "-" "") 16) 16))))

(defn .getMostSignificantBits
  "Returns the upper 64 bits of a UUID as an integer."
  {:examples '[[(.getMostSignificantBits #uuid "00000000-0000-0001-0000-000000000001") 1]]}
  [id]
  (unchecked-long (bigint (BigInteger. (subs (clojure.string/replace (str id) "-" "") 0 16) 16))))

(defn .getOrDefault
  "Returns the value of a map at a key, or a default."
  {:examples '[[(.getOrDefault {:a 1} :b 2) 2]]}
  [m k default]
  (get m k default))

(defn .getStackTrace
  "Returns an empty array: an exception here has its place in the source, but no frames of the host."
  {:examples '[[(alength (.getStackTrace (ex-info "a" {}))) 0]]}
  [_]
  (object-array 0))

(defn .setStackTrace
  "Does nothing: an exception here keeps its place in the source."
  {:examples '[[(.setStackTrace (ex-info "a" {}) (object-array 0)) nil]]}
  [_ _elements]
  nil)

(defn .hashCode
  "Returns the hash of a value as a host integer, computed from its parts as in Java."
  {:examples '[[(.hashCode "abc") 96354]
               [(.hashCode [1 2]) 994]]}
  [x]
  (let [of #(if (nil? %) 0 (.hashCode %))
        fold #(unchecked-int (bit-xor % (unsigned-bit-shift-right % 32)))
        total #(reduce unchecked-add-int 0 %)
        listed #(reduce (fn [h item] (unchecked-add-int (unchecked-multiply-int 31 h) (of item))) 1 %)]
    (cond
      (string? x) (reduce (fn [h c] (unchecked-add-int (unchecked-multiply-int 31 h) (int c))) 0 x)
      (map? x) (total (map (fn [[k v]] (bit-xor (of k) (of v))) x))
      (set? x) (total (map of x))
      (sequential? x) (listed x)
      (int? x) (fold x)
      (double? x) (fold (Double/doubleToLongBits x))
      (ratio? x) (bit-xor (of (numerator x)) (of (denominator x)))
      :else (hash x))))

(defn .hasheq
  "Returns the hash of a value."
  {:examples '[[(= (.hasheq [1]) (hash [1])) true]]}
  [x]
  (hash x))

(defn .intern
  "Returns the string."
  {:examples '[[(.intern "a") "a"]]}
  [s]
  s)

(defn .invoke
  "Calls a function."
  {:examples '[[(.invoke + 1 2) 3]]}
  [f & args]
  (apply f args))

(defn .isInstance
  "Tells whether x is an instance of a class."
  {:examples '[[(.isInstance String "a") true]]}
  [c x]
  (instance? c x))

(defn .iterator
  "Returns an iterator over the items of a collection."
  {:examples '[[(.next (.iterator [1 2])) 1]]}
  [coll]
  (clojure.lang.SeqIterator. coll))

(defn .key
  "Returns the key of a map entry."
  {:examples '[[(.key (first {:a 1})) :a]]}
  [entry]
  (key entry))

(defn .lines
  "Returns the lines of a string."
  {:examples '[[(.lines "a\nb") ["a" "b"]]]}
  [s]
  (clojure.string/split-lines s))

(defn .max
  "Returns the greater of two numbers."
  {:examples '[[(.max 1M 2M) 2M]]}
  [x y]
  (max x y))

(defn .meta
  "Returns the metadata of a value."
  {:examples '[[(.meta (with-meta [] {:a 1})) {:a 1}]]}
  [x]
  (meta x))

(defn .min
  "Returns the lesser of two numbers."
  {:examples '[[(.min 1M 2M) 1M]]}
  [x y]
  (min x y))

(defn .more
  "Returns the sequence after the first item, which may be empty."
  {:examples '[[(.more '(1 2)) (2)]]}
  [coll]
  (rest coll))

(defn .multiply
  "Returns the product of two big numbers."
  {:examples '[[(.multiply 2N 3N) 6N]]}
  [x y]
  (*' x y))

(defn .negate
  "Returns a big number negated."
  {:examples '[[(.negate 1.5M) -1.5M]]}
  [x]
  (-' x))

(defn .next
  "Returns the sequence after the first item, or nil."
  {:examples '[[(.next '(1)) nil]]}
  [coll]
  (next coll))

(defn .ns
  "Returns the namespace of a var."
  {:examples '[[(ns-name (.ns #'map)) clojure.core]]}
  [v]
  (the-ns (symbol (namespace (symbol v)))))

(defn .ordinal
  "Returns the index of a constant among those of its class, from 0."
  {:examples '[[(.ordinal java.math.RoundingMode/DOWN) 1]]}
  [constant]
  (-ordinal constant))

(defn .pattern
  "Returns the text of a regular expression, or the regular expression of a matcher."
  {:examples '[[(.pattern #"a+") "a+"]]}
  [re]
  (if (regex? re) (str re) (second (-matcher-parts re))))

(defn .remainder
  "Returns the remainder of dividing a big number by another."
  {:examples '[[(.remainder 7N 2N) 1N]]}
  [x y]
  (rem x y))

(defn .repeat
  "Returns a string repeated a number of times."
  {:examples '[[(.repeat "ab" 2) "abab"]]}
  [s n]
  (when (neg? n)
    (throw (IllegalArgumentException. (str "count is negative: " n))))
  (apply str (repeat n s)))

(defn .reset
  "Sets an atom to a value; resets a matcher to the start of its text, or of another one."
  {:examples '[[(.reset (atom 1) 2) 2]
               [(re-find (.reset (re-matcher #"." "a") "b")) "b"]]}
  ([matcher] (-matcher-reset matcher))
  ([a x]
   (if (instance? java.util.regex.Matcher a)
     (-matcher-reset a x)
     (reset! a x))))

(defn .seq
  "Returns a collection as a sequence, or nil."
  {:examples '[[(.seq [1]) (1)]
               [(.seq (sorted-set 1 2) false) (2 1)]]}
  ([coll] (seq coll))
  ([coll ascending] (if ascending (seq coll) (rseq coll))))

(defn .comparator
  "Returns the function that orders a sorted collection."
  {:examples '[[((.comparator (sorted-set-by >)) 1 2) false]]}
  [coll]
  (-comparator-of coll))

(defn .compare
  "Compares two values with a comparator: a negative number, 0 or a positive number."
  {:examples '[[(.compare compare 1 2) -1]
               [(.compare > 1 2) 1]]}
  [comparator x y]
  (let [order (comparator x y)]
    (cond
      (number? order) (int order)
      order -1
      (comparator y x) 1
      :else 0)))

(defn .entryKey
  "Returns the key by which a sorted collection orders an item: the key of an entry, or the item of a set."
  {:examples '[[(.entryKey (sorted-map 1 2) (first {1 2})) 1]]}
  [coll item]
  (if (map? coll) (key item) item))

(defn .seqFrom
  "Returns the items of a sorted collection from a key on, in its order or in reverse order, or nil."
  {:examples '[[(.seqFrom (sorted-set 1 2 3) 2 true) (2 3)]
               [(.seqFrom (sorted-set 1 2 3) 2 false) (2 1)]]}
  [coll from ascending]
  (if ascending (subseq coll >= from) (rsubseq coll <= from)))

(defn- -part-of-sorted
  "Returns the result of subseq and rsubseq for an object with the methods of sorted collections."
  ([ascending coll test limit]
   (if (contains? (if ascending #{> >=} #{< <=}) test)
     (-part-of-sorted ascending coll test limit (constantly true) nil)
     (take-while #(-passes? coll test limit %) (.seq coll ascending))))
  ([ascending coll start-test start end-test end]
   (when-let [items (seq (.seqFrom coll start ascending))]
     (take-while #(or (nil? end) (-passes? coll end-test end %))
                 (if (-passes? coll start-test start (first items)) items (rest items))))))

(defn- -passes?
  "Tells whether an item of an object that is a sorted collection passes a test against a key."
  [coll test limit item]
  (test (.compare (.comparator coll) (.entryKey coll item) limit) 0))

(defn .signum
  "Returns -1, 0 or 1, as a number is negative, 0 or positive."
  {:examples '[[(.signum -1.5M) -1]]}
  [x]
  (cond (neg? x) -1 (pos? x) 1 :else 0))

(defn .splitAsStream
  "Returns the parts of a string between matches of a regular expression."
  {:examples '[[(.splitAsStream #"," "a,b") ["a" "b"]]]}
  [re s]
  (clojure.string/split s re))

(defn .stripLeading
  "Returns a string without the whitespace at its start."
  {:examples '[[(.stripLeading " a ") "a "]]}
  [s]
  (clojure.string/triml s))

(defn .stripTrailing
  "Returns a string without the whitespace at its end."
  {:examples '[[(.stripTrailing " a ") " a"]]}
  [s]
  (clojure.string/trimr s))

(defn .subtract
  "Returns the difference of two big numbers."
  {:examples '[[(.subtract 3N 2N) 1N]]}
  [x y]
  (-' x y))

(defn .swap
  "Sets an atom to the result of a function of its value and the arguments."
  {:examples '[[(.swap (atom 1) + 2) 3]]}
  [a f & args]
  (apply swap! a f args))

(defn .sym
  "Returns the symbol of a keyword, or the name of a var."
  {:examples '[[(.sym :a/b) a/b]
               [(.sym #'map) map]]}
  [x]
  (if (var? x) (symbol (name (symbol x))) (symbol x)))

(defn .without
  "Returns a map without a key; a transient changes."
  {:examples '[[(.without {:a 1} :a) {}]]}
  [m k]
  (if (instance? clojure.lang.ITransientCollection m)
    (dissoc! m k)
    (dissoc m k)))

(defn .withMeta
  "Returns a value with metadata."
  {:examples '[[(meta (.withMeta [] {:a 1})) {:a 1}]]}
  [x m]
  (with-meta x m))

(defn .val
  "Returns the value of a map entry."
  {:examples '[[(.val (first {:a 1})) 1]]}
  [entry]
  (val entry))

(defn .asTransient
  "Returns a transient with the items of a collection."
  {:examples '[[(.persistent (.conj (.asTransient [1]) 2)) [1 2]]]}
  [coll]
  (transient coll))

(defn .conj
  "Adds an item to a transient, and returns it."
  {:examples '[[(.persistent (.conj (.asTransient [1]) 2)) [1 2]]]}
  [coll x]
  (conj! coll x))

(defn .persistent
  "Returns the collection that a transient holds."
  {:examples '[[(.persistent (.asTransient [1])) [1]]]}
  [coll]
  (persistent! coll))

(defn .subSequence
  "Returns the part of a string from start up to end."
  {:examples '[[(.subSequence "abcd" 1 3) "bc"]]}
  [s start end]
  (subs (str s) start end))

(defn .withLocale
  "Returns the formatter unchanged: its words are English, as in all available locales."
  {:examples '[[(.format (.withLocale (java.time.format.DateTimeFormatter/ofPattern "yyyy") java.util.Locale/US)
                         (java.time.LocalDate/parse "2024-01-02"))
                 "2024"]]}
  [formatter _locale]
  formatter)

(defn StackTraceElement->vec
  "Returns a line of a trace as a vector: class, method, file and line."
  {:examples '[[(StackTraceElement->vec (StackTraceElement. "a.B" "c" "B.java" 7)) [a.B c "B.java" 7]]]}
  [element]
  [(symbol (.getClassName element)) (symbol (.getMethodName element)) (.getFileName element) (.getLineNumber element)])

(defn .denominator
  "Returns the denominator of a ratio."
  {:examples '[[(.denominator 1/3) 3]]}
  [x]
  (denominator x))

(defn .isArray
  "Tells whether a class is the class of an array."
  {:examples '[[(.isArray (class (int-array 0))) true]]}
  [c]
  (clojure.string/starts-with? (.getName c) "["))

(defn .isInfinite
  "Tells whether a number is infinite."
  {:examples '[[(.isInfinite ##Inf) true]]}
  [x]
  (infinite? x))

(defn .isNaN
  "Tells whether a number is NaN."
  {:examples '[[(.isNaN ##NaN) true]]}
  [x]
  (NaN? x))

(defn .matcher
  "Returns a matcher of a regular expression for a text."
  {:examples '[[(.find (.matcher #"b" "abc")) true]]}
  [re s]
  (re-matcher re s))

(defn .numerator
  "Returns the numerator of a ratio."
  {:examples '[[(.numerator 1/3) 1]]}
  [x]
  (numerator x))

(defn .shiftLeft
  "Returns a big integer multiplied by a power of 2."
  {:examples '[[(.shiftLeft 3N 2) 12N]]}
  [x n]
  (reduce *' (bigint x) (repeat n 2)))

(defn .shiftRight
  "Returns a big integer divided by a power of 2, rounded down."
  {:examples '[[(.shiftRight 13N 2) 3N]]}
  [x n]
  (let [divisor (reduce *' 1N (repeat n 2))]
    (bigint (quot (- x (mod x divisor)) divisor))))

(defn .isRealized
  "Tells whether a delay, promise, future or lazy sequence has its value."
  {:examples '[[(.isRealized (delay 1)) false]]}
  [x]
  (realized? x))

(defn .kvreduce
  "Reduces a map or vector with a function of the result so far, a key and its value."
  {:examples '[[(.kvreduce {:a 1} conj []) [:a 1]]]}
  [coll f init]
  (reduce-kv f init coll))

(defn .peek
  "Returns the item of a list, vector or queue that pop removes."
  {:examples '[[(.peek [1 2]) 2]]}
  [coll]
  (peek coll))

(defn .pop
  "Returns a list, vector or queue without the item that peek returns."
  {:examples '[[(.pop [1 2]) [1]]]}
  [coll]
  (pop coll))

(defn .reduce
  "Reduces a collection with a function, from an initial value if one is given."
  {:examples '[[(.reduce [1 2 3] + 10) 16]]}
  ([coll f] (reduce f coll))
  ([coll f init] (reduce f init coll)))

(defn .rseq
  "Returns the items of a vector or sorted collection in reverse order."
  {:examples '[[(.rseq [1 2]) (2 1)]]}
  [coll]
  (rseq coll))
