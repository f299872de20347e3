(ns clojure.pprint
  "Printing of nested data in lines that are not too long, of tables, and by format strings."
  (:require [clojure.string :as string]))

(def ^:dynamic *print-right-margin*
  "The width that lines should keep to; nil for no limit."
  72)

(def ^:dynamic *print-miser-width*
  "Kept for code that binds it."
  40)

(def ^:dynamic *print-pretty*
  "Whether pprint breaks lines at all."
  true)

(def ^:dynamic *print-pprint-dispatch*
  "Kept for code that binds it."
  nil)

(declare layout)

(defn- fits?
  [text column tail]
  (and (not (string/includes? text "\n"))
       (or (nil? *print-right-margin*)
           (not *print-pretty*)
           (<= (+ column (count text) tail) *print-right-margin*))))

(defn- limited
  "Returns the items that *print-length* allows, and whether there are more."
  [coll]
  (if-let [length *print-length*]
    [(take length coll) (boolean (seq (drop length coll)))]
    [coll false]))

(defn- layout-items
  "Lays out items one below the other."
  [open items close column tail render]
  (let [inner (+ column (count open))
        [items more?] (limited items)
        items (vec items)
        last-idx (dec (count items))
        lines (map-indexed (fn [idx item]
                             (render item inner
                                     (if (and (= idx last-idx) (not more?))
                                       (+ (count close) tail)
                                       1)))
                           items)
        lines (if more? (concat lines ["..."]) lines)]
    [open lines close inner]))

(defn- join-lines
  [separator [open lines close inner]]
  (str open
       (string/join (str separator "\n" (apply str (repeat inner " "))) lines)
       close))

(defn- layout-pair
  "Lays out a key and its value: in a line, or the value below the key."
  [[k v] column tail]
  (let [text (str (pr-str k) " " (pr-str v))]
    (if (fits? text column tail)
      text
      (str (layout k column 0)
           "\n" (apply str (repeat column " "))
           (layout v column tail)))))

(defn- layout
  "Returns the text of x for a place at a column, with room for so many characters after it."
  [x column tail]
  (let [text (pr-str x)]
    (cond
      (or (not (coll? x)) (fits? text column tail)) text
      (record? x) (let [[_ tag] (re-find #"^(#[^{]*)\{" text)]
                    (join-lines "," (layout-items (str tag "{") x "}" column tail layout-pair)))
      (map? x) (join-lines "," (layout-items "{" x "}" column tail layout-pair))
      (set? x) (join-lines "" (layout-items "#{" x "}" column tail layout))
      (vector? x) (join-lines "" (layout-items "[" x "]" column tail layout))
      :else (join-lines "" (layout-items "(" x ")" column tail layout)))))

(defn write
  "Prints x prettily, or returns the text if :stream is nil; :pretty and :right-margin set how."
  {:examples '[[(write [1 2] :stream nil) "[1 2]"]]}
  [x & {:keys [stream pretty right-margin] :as options}]
  (binding [*print-pretty* (if (contains? options :pretty) pretty *print-pretty*)
            *print-right-margin* (if (contains? options :right-margin) right-margin *print-right-margin*)]
    (let [text (layout x 0 0)]
      (if (and (contains? options :stream) (nil? stream))
        text
        (do (print text) nil)))))

(defn write-out
  "Prints x prettily, without a line end."
  {:examples '[[(with-out-str (write-out [1])) "[1]"]]}
  [x]
  (print (layout x 0 0)))

(defn pprint
  "Prints x in lines that are not too long."
  {:examples '[[(with-out-str (pprint {:a 1})) "{:a 1}\n"]]}
  ([x]
   (println (layout x 0 0)))
  ([x _writer]
   (pprint x)))

(defmacro pp
  "Prints the last value at the prompt prettily."
  []
  `(pprint *1))

(defn simple-dispatch
  "Prints x prettily, as pprint does."
  {:examples '[[(with-out-str (simple-dispatch 1)) "1"]]}
  [x]
  (write-out x))

(defn code-dispatch
  "Prints x prettily; code is laid out as data is."
  {:examples '[[(with-out-str (code-dispatch '(a b))) "(a b)"]]}
  [x]
  (write-out x))

(defmacro with-pprint-dispatch
  "Evaluates the body; the dispatch function is not used."
  [_dispatch & body]
  `(do ~@body))

(defn print-table
  "Prints maps as a table with a column for each of ks (the keys of the first map)."
  {:examples '[[(with-out-str (print-table [:a] [{:a 1}])) "\n| :a |\n|----|\n|  1 |\n"]]}
  ([rows] (print-table (keys (first rows)) rows))
  ([ks rows]
   (when (seq rows)
     (let [text (fn [x] (str x))
           width (fn [k] (apply max (count (text k)) (map #(count (text (get % k))) rows)))
           widths (map width ks)
           pad (fn [s size] (str (apply str (repeat (- size (count s)) " ")) s))
           line (fn [values] (str "| " (string/join " | " (map pad values widths)) " |"))]
       (println)
       (println (line (map text ks)))
       (println (str "|-" (string/join "-+-" (map #(apply str (repeat % "-")) widths)) "-|"))
       (doseq [row rows]
         (println (line (map #(text (get row %)) ks))))))))

;; cl-format

(defn- parse-params
  "Splits the parameters of a directive off: a vector of them, the modifiers, the directive, and the rest."
  [text]
  (let [[whole params modifiers directive] (re-find #"(?s)^((?:[-+]?\d+|'.|[vV#])?(?:,(?:[-+]?\d+|'.|[vV#])?)*)([:@]*)(.)" text)]
    (when-not whole
      (throw (ex-info "cl-format: a directive is missing after ~" {:format text})))
    {:params (mapv (fn [param]
                     (cond
                       (= param "") nil
                       (= (first param) \') (second param)
                       (re-matches #"[vV]" param) :argument
                       (= param "#") :count
                       :else (parse-long param)))
                   (if (= params "") [] (string/split params #"(?<!'),(?!$)|(?<!'),$" -1)))
     :colon? (string/includes? modifiers ":")
     :at? (string/includes? modifiers "@")
     :directive (first (string/lower-case directive))
     :rest (subs text (count whole))}))

(def ^:private closers {\{ \} \[ \] \( \) \< \>})

(defn- parse
  "Returns the directives of a format string up to one of the ends, that end, and the rest."
  [text ends]
  (loop [items [] text text]
    (let [at (string/index-of text "~")]
      (if (nil? at)
        [(if (= text "") items (conj items text)) nil ""]
        (let [items (if (pos? at) (conj items (subs text 0 at)) items)
              {:keys [directive] :as parsed} (parse-params (subs text (inc at)))]
          (cond
            (contains? ends directive) [items parsed (:rest parsed)]
            (contains? closers directive)
            (let [close (closers directive)
                  [clauses text]
                  (loop [clauses [] text (:rest parsed)]
                    (let [[inner end text] (parse text #{close \;})]
                      (cond
                        (nil? end) (throw (ex-info (str "cl-format: ~" directive " is not closed") {}))
                        (= (:directive end) close) [(conj clauses {:items inner :end end}) text]
                        :else (recur (conj clauses {:items inner :end end}) text))))]
              (recur (conj items (assoc parsed :clauses clauses)) text))
            :else (recur (conj items parsed) (:rest parsed))))))))

(defn- pad-text
  [text {:keys [params at?]}]
  (let [[size _ _ fill] params
        space (apply str (repeat (- (or size 0) (count text)) (or fill \space)))]
    (if at? (str space text) (str text space))))

(defn- group-digits
  [digits separator size]
  (->> (reverse digits)
       (partition-all size)
       (map #(apply str (reverse %)))
       reverse
       (string/join (str separator))))

(defn- integer-text
  [x base {:keys [params colon? at?]}]
  (if-not (integer? x)
    (str x)
    (let [[size fill separator group] params
          digits (loop [n (abs x) digits ()]
                   (let [digits (cons (nth "0123456789abcdefghijklmnopqrstuvwxyz" (rem n base)) digits)
                         n (quot n base)]
                     (if (zero? n) (apply str digits) (recur n digits))))
          digits (if colon? (group-digits digits (or separator \,) (or group 3)) digits)
          text (str (cond (neg? x) "-" at? "+") digits)]
      (str (apply str (repeat (- (or size 0) (count text)) (or fill \space))) text))))

(def ^:private small-numbers
  ["zero" "one" "two" "three" "four" "five" "six" "seven" "eight" "nine" "ten" "eleven" "twelve" "thirteen"
   "fourteen" "fifteen" "sixteen" "seventeen" "eighteen" "nineteen"])

(def ^:private tens
  ["" "" "twenty" "thirty" "forty" "fifty" "sixty" "seventy" "eighty" "ninety"])

(def ^:private scales
  ["" "thousand" "million" "billion" "trillion" "quadrillion" "quintillion"])

(defn- below-thousand
  [n]
  (let [hundreds (quot n 100)
        below (rem n 100)
        small (cond
                (zero? below) nil
                (< below 20) (small-numbers below)
                (zero? (rem below 10)) (tens (quot below 10))
                :else (str (tens (quot below 10)) "-" (small-numbers (rem below 10))))]
    (string/join " " (remove nil? [(when (pos? hundreds) (str (small-numbers hundreds) " hundred")) small]))))

(defn- words
  [n]
  (if (zero? n)
    "zero"
    (let [groups (loop [n (abs n) groups ()]
                   (if (zero? n) groups (recur (quot n 1000) (cons (rem n 1000) groups))))
          named (map (fn [group scale]
                       (when (pos? group)
                         (str (below-thousand group) (when (not= scale "") (str " " scale)))))
                     groups
                     (reverse (take (count groups) scales)))]
      (str (when (neg? n) "minus ") (string/join ", " (remove nil? named))))))

(defn- ordinal
  [n]
  (let [text (words n)
        [_ before end] (re-matches #"(.*?)([a-z]+)" text)]
    (str before
         (or ({"one" "first" "two" "second" "three" "third" "five" "fifth" "eight" "eighth" "nine" "ninth"
               "twelve" "twelfth"} end)
             (if (string/ends-with? end "y")
               (str (subs end 0 (dec (count end))) "ieth")
               (str end "th"))))))

(defn- exponent-text
  "A double as digits with one before the point, and its power of ten."
  [x]
  (let [[_ sign whole fraction exponent] (re-matches #"(-?)(\d+)\.(\d+)(?:E(-?\d+))?" (str (double x)))
        digits (str whole fraction)
        zeros (count (re-find #"^0*" digits))
        kept (string/replace (subs digits zeros) #"0+$" "")
        power (if (= kept "") 0 (+ (or (some-> exponent parse-long) 0) (count whole) (- zeros) -1))]
    (str sign
         (if (= kept "") "0" (subs kept 0 1))
         "."
         (if (< (count kept) 2) "0" (subs kept 1))
         (if (neg? power) "E-" "E+")
         (abs power))))

(defn- roman
  [n]
  (loop [n n text ""]
    (if-let [[value digits] (first (filter #(<= (first %) n)
                                           [[1000 "M"] [900 "CM"] [500 "D"] [400 "CD"] [100 "C"] [90 "XC"]
                                            [50 "L"] [40 "XL"] [10 "X"] [9 "IX"] [5 "V"] [4 "IV"] [1 "I"]]))]
      (recur (- n value) (str text digits))
      text)))

(defn- float-text
  [x {:keys [params at?]}]
  (let [[size digits] params
        text (if digits (format (str "%." digits "f") (double x)) (str (double x)))
        text (if (and at? (not (neg? x))) (str "+" text) text)]
    (str (apply str (repeat (- (or size 0) (count text)) " ")) text)))

(defn- dollars-text
  [x {:keys [params]}]
  (let [[digits _ size] params
        text (format (str "%." (or digits 2) "f") (double x))]
    (str (apply str (repeat (- (or size 0) (count text)) " ")) text)))

(declare run)

(defn- take-argument
  [{:keys [arguments at] :as state}]
  (when (>= at (count arguments))
    (throw (ex-info "cl-format: there are not enough arguments" {:arguments arguments})))
  [(nth arguments at) (update state :at inc)])

(defn- emit
  [state text]
  (update state :out str text))

(defn- one-argument
  [state text-of]
  (let [[x state] (take-argument state)]
    (emit state (text-of x))))

(defn- run-loop
  "~{...~}: the items once for each round of arguments."
  [state {:keys [clauses colon? at? params]}]
  (let [items (:items (first clauses))
        limit (or (first params) -1)
        [arguments state] (if at?
                            [(subvec (:arguments state) (:at state)) (assoc state :at (count (:arguments state)))]
                            (let [[x state] (take-argument state)] [(vec x) state]))]
    (loop [inner {:arguments arguments :at 0 :out (:out state)} left limit]
      (if (or (>= (:at inner) (count (:arguments inner))) (zero? left))
        (assoc state :out (:out inner))
        (if colon?
          (let [[round inner] (take-argument inner)
                done (run {:arguments (vec round) :at 0 :out (:out inner)} items)]
            (recur (assoc inner :out (:out done)) (dec left)))
          (let [done (run inner items)]
            (recur (dissoc done :stop?) (if (:stop? done) 0 (dec left)))))))))

(defn- run-choice
  "~[...~]: one of the clauses."
  [state {:keys [clauses colon? at? params]}]
  (cond
    colon? (let [[x state] (take-argument state)]
             (run state (:items (nth clauses (if x 1 0)))))
    at? (let [x (nth (:arguments state) (:at state))]
          (if x
            (run state (:items (first clauses)))
            (update state :at inc)))
    :else (let [[x state] (if-let [given (first params)] [given state] (take-argument state))
                default (when (:colon? (:end (last (butlast clauses)))) (last clauses))
                chosen (or (get clauses x) default)]
            (if chosen (run state (:items chosen)) state))))

(defn- change-case
  [text {:keys [colon? at?]}]
  (cond
    (and colon? at?) (string/upper-case text)
    colon? (string/replace text #"\w+" string/capitalize)
    at? (string/capitalize text)
    :else (string/lower-case text)))

(defn- run-case
  [state directive]
  (let [done (run (assoc state :out "") (:items (first (:clauses directive))))]
    (assoc done :out (str (:out state) (change-case (:out done) directive)))))

(defn- column
  [text]
  (- (count text) (inc (or (string/last-index-of text "\n") -1))))

(defn- fill-params
  "Replaces the parameters V and # by an argument and by the number of arguments left."
  [state directive]
  (reduce (fn [[state directive] idx]
            (case (get-in directive [:params idx])
              :argument (let [[x state] (take-argument state)]
                          [state (assoc-in directive [:params idx] x)])
              :count [state (assoc-in directive [:params idx] (- (count (:arguments state)) (:at state)))]
              [state directive]))
          [state directive]
          (range (count (:params directive)))))

(defn- run-one
  [state {:keys [params colon? at?] :as directive}]
  (case (:directive directive)
    \a (one-argument state #(pad-text (if (nil? %) "nil" (print-str %)) directive))
    \s (one-argument state #(pad-text (pr-str %) directive))
    \w (one-argument state pr-str)
    \d (one-argument state #(integer-text % 10 directive))
    \b (one-argument state #(integer-text % 2 directive))
    \o (one-argument state #(integer-text % 8 directive))
    \x (one-argument state #(integer-text % 16 directive))
    \r (one-argument state (fn [x]
                             (cond
                               (first params) (integer-text x (first params) (update directive :params subvec 1))
                               (and at? (< 0 x 4000)) (roman x)
                               at? (integer-text x 10 {:params [] :colon? true})
                               colon? (ordinal x)
                               :else (words x))))
    \p (let [state (if colon? (update state :at dec) state)]
         (one-argument state #(if at? (if (= % 1) "y" "ies") (if (= % 1) "" "s"))))
    \c (one-argument state #(if at? (pr-str %) (str %)))
    \f (one-argument state #(float-text % directive))
    \e (one-argument state exponent-text)
    \g (one-argument state #(float-text % directive))
    \$ (one-argument state #(dollars-text % directive))
    \% (emit state (apply str (repeat (or (first params) 1) "\n")))
    \& (if (zero? (column (:out state))) state (emit state "\n"))
    \| (emit state "\f")
    \~ (emit state (apply str (repeat (or (first params) 1) "~")))
    \newline state
    \t (let [wanted (or (first params) 1)
             here (column (:out state))]
         (emit state (apply str (repeat (if at? wanted (max 1 (- wanted here))) " "))))
    \* (cond
         at? (assoc state :at (or (first params) 0))
         colon? (update state :at - (or (first params) 1))
         :else (update state :at + (or (first params) 1)))
    \? (let [[inner state] (take-argument state)
             [arguments state] (take-argument state)
             done (run {:arguments (vec arguments) :at 0 :out (:out state)} (first (parse inner #{})))]
         (assoc state :out (:out done)))
    \^ (if (>= (:at state) (count (:arguments state))) (assoc state :stop? true) state)
    \{ (run-loop state directive)
    \[ (run-choice state directive)
    \( (run-case state directive)
    \< (run state (:items (first (:clauses directive))))
    \_ state
    \i state
    (throw (ex-info (str "cl-format does not know ~" (:directive directive)) {}))))

(defn- run
  "Runs directives until their end or a ~^ without arguments left."
  [state items]
  (reduce (fn [state item]
            (if (string? item)
              (emit state item)
              (let [[state item] (fill-params state item)
                    state (run-one state item)]
                (if (:stop? state) (reduced state) state))))
          state
          items))

(defn cl-format
  "Writes arguments by a format string of Common Lisp: to a string if writer is nil, else to standard output."
  {:examples '[[(cl-format nil "~a and ~s" "x" "y") "x and \"y\""]
               [(cl-format nil "~{~a~^, ~}" [1 2 3]) "1, 2, 3"]
               [(cl-format nil "~:d item~:p" 1234) "1,234 items"]
               [(cl-format nil "~r" 42) "forty-two"]
               [(cl-format nil "~[no~;one~:;many~]" 5) "many"]]}
  [writer format-string & arguments]
  (let [[items] (parse format-string #{})
        text (:out (run {:arguments (vec arguments) :at 0 :out ""} items))]
    (if (nil? writer)
      text
      (do (print text) nil))))
