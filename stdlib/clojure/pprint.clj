(ns clojure.pprint
  "Printing of nested data in lines of limited length, of tables, and by format strings."
  (:require [clojure.string :as string]
            [clojure.walk :as walk]))

(def ^:dynamic *print-right-margin*
  "The width of lines; nil for no limit."
  72)

(def ^:dynamic *print-miser-width*
  "Has no effect; exists for code that binds it."
  40)

(def ^:dynamic *print-pretty*
  "Whether pprint breaks lines."
  true)

(def ^:dynamic *print-pprint-dispatch*
  "Has no effect; exists for code that binds it."
  nil)

(declare layout simple-dispatch)

(def ^:dynamic *print-suppress-namespaces*
  "Whether symbols are printed without their namespaces."
  nil)

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
  "Lays out items one below another."
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

(def ^:private reader-marks
  "The reader's prefixes for calls with one argument."
  '{quote "'" var "#'" clojure.core/deref "@" clojure.core/unquote "~"})

(defn- reader-mark
  "Returns the reader's prefix for a form such as (quote a), or nil."
  [x]
  (when (and (seq? x) (= 2 (bounded-count 3 x)))
    (get reader-marks (first x))))

(defn- marked?
  "Tells whether x contains a form for which the reader has a prefix."
  [x]
  (boolean (and (coll? x)
                (or (reader-mark x)
                    (some marked? (if (map? x) (mapcat identity x) (take 1000 x)))))))

(defn- one-line
  "Returns x as pr-str prints it, with the reader's prefixes for calls such as (quote a)."
  [x]
  (cond
    (or *print-length* *print-level* (record? x) (not (marked? x))) (pr-str x)
    (reader-mark x) (str (reader-mark x) (one-line (second x)))
    (map? x) (str "{" (string/join ", " (map (fn [[k v]] (str (one-line k) " " (one-line v))) x)) "}")
    (set? x) (str "#{" (string/join " " (map one-line x)) "}")
    (vector? x) (str "[" (string/join " " (map one-line x)) "]")
    :else (str "(" (string/join " " (map one-line x)) ")")))

(defn- layout-pair
  "Lays out a key and its value: on one line, or the value below the key."
  [[k v] column tail]
  (let [text (str (one-line k) " " (one-line v))]
    (if (fits? text column tail)
      text
      (str (layout k column 0)
           "\n" (apply str (repeat column " "))
           (layout v column tail)))))

(defn- own-method
  "Returns the program's method for a value, if simple-dispatch has one besides its own."
  [x]
  (let [all (methods simple-dispatch)]
    (when (next all)
      (let [found (get-method simple-dispatch (class x))]
        (when-not (= found (get all :default))
          found)))))

(defn- layout
  "Returns the text of x at a column, leaving room for a number of characters after it."
  [x column tail]
  (let [own (own-method x)
        text (if own (with-out-str (own x)) (one-line x))]
    (cond
      own text
      (not (coll? x)) text
      (fits? text column tail) text
      (reader-mark x) (let [mark (reader-mark x)]
                        (str mark (layout (second x) (+ column (count mark)) tail)))
      (record? x) (let [[_ tag] (re-find #"^(#[^{]*)\{" text)]
                    (join-lines "," (layout-items (str tag "{") x "}" column tail layout-pair)))
      (map? x) (join-lines "," (layout-items "{" x "}" column tail layout-pair))
      (set? x) (join-lines "" (layout-items "#{" x "}" column tail layout))
      (vector? x) (join-lines "" (layout-items "[" x "]" column tail layout))
      :else (join-lines "" (layout-items "(" x ")" column tail layout)))))

(defn- as-shown
  "Returns x, with the namespaces of symbols removed if they are not to be printed."
  [x]
  (if *print-suppress-namespaces*
    (walk/postwalk #(if (symbol? %) (symbol (name %)) %) x)
    x))

(defn write
  "Prints x prettily, or returns the text if :stream is nil; :pretty and :right-margin are options."
  {:examples '[[(write [1 2] :stream nil) "[1 2]"]]}
  [x & {:keys [stream pretty right-margin] :as options}]
  (binding [*print-pretty* (if (contains? options :pretty) pretty *print-pretty*)
            *print-right-margin* (if (contains? options :right-margin) right-margin *print-right-margin*)]
    (let [text (layout (as-shown x) 0 0)]
      (if (and (contains? options :stream) (nil? stream))
        text
        (do (print text) nil)))))

(defn write-out
  "Prints x prettily, without a line end."
  {:examples '[[(with-out-str (write-out [1])) "[1]"]]}
  [x]
  (print (layout x 0 0)))

(defn pprint
  "Prints x in lines of limited length."
  {:examples '[[(with-out-str (pprint {:a 1})) "{:a 1}\n"]
               [(with-out-str (pprint '(f 'a @b))) "(f 'a @b)\n"]]}
  ([x]
   (println (layout (as-shown x) 0 0)))
  ([x writer]
   (binding [*out* writer]
     (pprint x))))

(defmacro pp
  "Prints the last value at the prompt prettily."
  []
  `(pprint *1))

(defmulti simple-dispatch
  "Prints x prettily, as pprint does. Methods added to it apply to pprint, too."
  {:examples '[[(with-out-str (clojure.pprint/simple-dispatch 1)) "1"]]}
  class)

(defmethod simple-dispatch :default [x]
  (write-out x))

(defn code-dispatch
  "Prints x prettily; code is laid out like data."
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
  "Splits off the parameters of a directive: a vector of them, the modifiers, the directive, and the rest."
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

(defn- filling
  [size fill]
  (apply str (repeat size (or fill \space))))

(defn- pad-text
  [text {:keys [params at?]}]
  (let [[size step least fill] params
        step (max 1 (or step 1))
        least (or least 0)
        missing (max 0 (- (or size 0) (count text) least))
        space (filling (+ least (* step (quot (+ missing (dec step)) step))) fill)]
    (if at? (str space text) (str text space))))

(defn- group-digits
  [digits separator size]
  (->> (reverse digits)
       (partition-all size)
       (map #(apply str (reverse %)))
       reverse
       (string/join (str separator))))

(defn- whole-number
  "Returns x as an integer if its value is one, else nil."
  [x]
  (cond
    (integer? x) x
    (and (or (decimal? x) (and (float? x) (not (infinite? x)))) (== x (bigint x))) (bigint x)))

(defn- integer-text
  [given base {:keys [params colon? at?]}]
  (let [[size fill separator group] params
        x (whole-number given)
        text (if (nil? x)
               (print-str given)
               (let [digits (loop [n (abs x) digits ()]
                              (let [digits (cons (nth "0123456789abcdefghijklmnopqrstuvwxyz" (rem n base)) digits)
                                    n (quot n base)]
                                (if (zero? n) (apply str digits) (recur n digits))))
                     digits (if colon? (group-digits digits (or separator \,) (or group 3)) digits)]
                 (str (cond (neg? x) "-" at? "+") digits)))]
    (str (filling (- (or size 0) (count text)) fill) text)))

(def ^:private small-numbers
  ["zero" "one" "two" "three" "four" "five" "six" "seven" "eight" "nine" "ten" "eleven" "twelve" "thirteen"
   "fourteen" "fifteen" "sixteen" "seventeen" "eighteen" "nineteen"])

(def ^:private tens
  ["" "" "twenty" "thirty" "forty" "fifty" "sixty" "seventy" "eighty" "ninety"])

(def ^:private scales
  ["" "thousand" "million" "billion" "trillion" "quadrillion" "quintillion" "sextillion" "septillion" "octillion"
   "nonillion" "decillion" "undecillion" "duodecillion" "tredecillion" "quattuordecillion" "quindecillion"
   "sexdecillion" "septendecillion" "octodecillion" "novemdecillion" "vigintillion"])

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

(defn- named?
  "Tells whether there is a word for each group of three digits of an integer."
  [n]
  (<= (count (str (abs (bigint n)))) (* 3 (count scales))))

(defn- plain
  [n]
  (integer-text n 10 {:params [] :colon? true}))

(defn- words
  [n]
  (cond
    (zero? n) "zero"
    (not (named? n)) (plain n)
    :else
    (let [groups (loop [n (abs n) groups ()]
                   (if (zero? n) groups (recur (quot n 1000) (cons (long (rem n 1000)) groups))))
          named (map (fn [group scale]
                       (when (pos? group)
                         (str (below-thousand group) (when (not= scale "") (str " " scale)))))
                     groups
                     (reverse (take (count groups) scales)))]
      (str (when (neg? n) "minus ") (string/join ", " (remove nil? named))))))

(defn- ordinal
  [n]
  (if-not (named? n)
    (let [below (rem (abs n) 100)
          unit (rem below 10)]
      (str (plain n) (if (or (<= 11 below 13) (not (<= 1 unit 3))) "th" (["th" "st" "nd" "rd"] (long unit)))))
    (let [text (words n)
          [_ before end] (re-matches #"(.*?)([a-z]+)" text)]
      (str before
           (or ({"one" "first" "two" "second" "three" "third" "five" "fifth" "eight" "eighth" "nine" "ninth"
                 "twelve" "twelfth"} end)
               (if (string/ends-with? end "y")
                 (str (subs end 0 (dec (count end))) "ieth")
                 (str end "th")))))))

(defn- roman
  [n old?]
  (loop [n n text ""]
    (if-let [[value digits] (first (filter #(and (<= (first %) n) (or (not old?) (= (count (second %)) 1)))
                                           [[1000 "M"] [900 "CM"] [500 "D"] [400 "CD"] [100 "C"] [90 "XC"]
                                            [50 "L"] [40 "XL"] [10 "X"] [9 "IX"] [5 "V"] [4 "IV"] [1 "I"]]))]
      (recur (- n value) (str text digits))
      text)))

(defn- radix-text
  "Writes ~r: in a base, in Roman numerals, or in words."
  [given {:keys [params colon? at?] :as directive}]
  (let [x (whole-number given)]
    (cond
      (first params) (integer-text given (first params) (update directive :params subvec 1))
      (nil? x) (print-str given)
      (and at? (< 0 x 4000)) (roman x colon?)
      at? (plain x)
      colon? (ordinal x)
      :else (words x))))

(defn- character-text
  [c {:keys [colon? at?]}]
  (let [code (int c)]
    (cond
      at? (pr-str c)
      (not colon?) (str c)
      :else (or ({8 "Backspace" 9 "Tab" 10 "Newline" 13 "Return" 32 "Space" 127 "Control-?"} code)
                (if (< code 32) (str "Control-" (char (+ code 64))) (str c))))))

;; Numbers with a point are split into their digits and the position of the point relative to them:
;; 0.0314 is ["314" -1], 314.0 is ["314" 3].

(defn- digits-of
  [x]
  (let [x (abs (if (ratio? x) (double x) x))
        [_ whole fraction exponent] (re-matches #"(\d+)(?:\.(\d+))?(?:E([-+]?\d+))?[MN]?" (str x))
        digits (str whole fraction)
        zeros (count (re-find #"^0*" digits))
        kept (string/replace (subs digits zeros) #"0+$" "")]
    (if (= kept "")
      ["0" 1]
      [kept (+ (count whole) (- zeros) (if exponent (parse-long (string/replace exponent "+" "")) 0))])))

(defn- rounded
  "Rounds to a number of digits, half up."
  [[digits point] kept]
  (cond
    (neg? kept) ["0" 1]
    (zero? kept) [(if (string/starts-with? (string/replace digits #"^[5-9]" "up") "up") "1" "0") (inc point)]
    (<= (count digits) kept) [digits point]
    :else
    (let [up? (<= (int \5) (int (nth digits kept)))
          cut (subs digits 0 kept)
          text (str (if up? (inc (bigint cut)) (bigint cut)))]
      (if (< kept (count text))
        [(subs text 0 kept) (inc point)]
        [(str (filling (- kept (count text)) \0) text) point]))))

(defn- pointed
  "Writes digits with their point, with the given number of decimal places if places is not nil: 0.5 is .5 here."
  [[digits point] places]
  (let [digits (if (neg? point) (str (filling (- point) \0) digits) digits)
        point (max 0 point)
        digits (str digits (filling (- (+ point (or places 0)) (count digits)) \0))]
    (str (subs digits 0 point) "." (subs digits point (if places (+ point places) (count digits))))))

(defn- sign-of
  [x at?]
  (cond (neg? x) "-" at? "+" :else ""))

(defn- fitted
  "Pads a number on its left, or writes signs instead if it is too long."
  [text size overflow fill]
  (if (and size overflow (< size (count text)))
    (filling size overflow)
    (str (filling (- (or size 0) (count text)) fill) text)))

(defn- float-text
  [x {:keys [params at?]}]
  (let [[size places scale overflow fill] params
        sign (sign-of x at?)
        [digits point] (update (digits-of x) 1 + (or scale 0))
        room (when size (- size (count sign)))
        kept (cond
               places (+ point places)
               size (if (pos? point) (max point (dec (max 2 room))) (+ (max 2 room) point -1)))
        text (pointed (if kept (rounded [digits point] kept) [digits point]) places)
        text (if (and size places (pos? places) (string/starts-with? text "0.") (< room (count text)))
               (subs text 1)
               text)
        space? (or (nil? size) (< (count text) room))
        text (str (when (and space? (string/starts-with? text ".")) "0")
                  text
                  (when (and space? (nil? places) (<= (count digits) point)) "0"))]
    (fitted (str sign text) size overflow fill)))

(defn- exponent-text
  [x {:keys [params at?]}]
  (let [[size places exponent-size scale overflow fill mark] params
        scale (or scale 1)
        sign (sign-of x at?)]
    (loop [[digits point] (digits-of x)]
      (let [power (- point scale)
            power-digits (str (abs power))
            power-text (str (or mark \E) (if (neg? power) "-" "+")
                            (filling (- (or exponent-size 0) (count power-digits)) \0) power-digits)
            room (when size (- size (count power-text) (count sign)))
            kept (cond
                   places (if (pos? scale) (inc places) (+ places scale))
                   size (+ (dec (max 2 room)) (min 0 scale)))
            [shown moved] (if kept (rounded [digits point] kept) [digits point])]
        (if (and (not= moved point) (not= shown "0"))
          (recur [shown moved])
          (let [text (pointed [shown scale] (when places (if (pos? scale) (max 0 (- (inc places) scale)) places)))
                text (if (and (not (pos? scale)) (or (nil? size) (not= (count text) room))) (str "0" text) text)
                text (if (and (nil? places) (string/ends-with? text ".") (or (nil? size) (< (count text) room)))
                       (str text "0")
                       text)
                wide? (and exponent-size (< exponent-size (count power-digits)))]
            (if (and wide? overflow size)
              (filling size overflow)
              (fitted (str sign text power-text) size overflow fill))))))))

(defn- dollars-text
  [x {:keys [params colon? at?]}]
  (let [[places least size fill] params
        places (or places 2)
        sign (sign-of x at?)
        [_ point :as parts] (digits-of x)
        text (pointed (rounded parts (+ point places)) places)
        text (str (filling (- (or least 1) (string/index-of text ".")) \0) text)
        space (filling (- (or size 0) (count sign) (count text)) fill)]
    (if colon? (str sign space text) (str space sign text))))

(defn- of-number
  "Writes a number with a function, and any other value as ~a does."
  [text-of directive]
  #(if (and (number? %) (not (and (float? %) (or (infinite? %) (NaN? %)))))
     (text-of % directive)
     (fitted (print-str %) (first (:params directive)) nil nil)))

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
  "~{...~}: writes the items once for each round of arguments; with ~:} at least once. Empty braces take the items from an argument."
  [state {:keys [clauses colon? at? params]}]
  (let [{:keys [items end]} (first clauses)
        [items state] (if (seq items)
                        [items state]
                        (let [[text state] (take-argument state)] [(first (parse text #{})) state]))
        limit (or (first params) -1)
        [arguments state] (if at?
                            [(subvec (:arguments state) (:at state)) (assoc state :at (count (:arguments state)))]
                            (let [[x state] (take-argument state)] [(vec x) state]))]
    (loop [inner {:arguments arguments :at 0 :out (:out state)} left limit once? (:colon? end)]
      (if (or (zero? left) (and (not once?) (>= (:at inner) (count (:arguments inner)))))
        (assoc state :out (:out inner))
        (if colon?
          (let [[round inner] (if (< (:at inner) (count (:arguments inner))) (take-argument inner) [nil inner])
                done (run {:arguments (vec round) :at 0 :out (:out inner)} items)]
            (recur (assoc inner :out (:out done)) (dec left) false))
          (let [done (run inner items)
                stuck? (= (:at done) (:at inner))]
            (recur (dissoc done :stop?) (if (or (:stop? done) stuck?) 0 (dec left)) false)))))))

(defn- stop?
  "Tells whether ~^ ends the enclosing directive."
  [state params]
  (let [[low middle high] (remove nil? params)]
    (cond
      high (<= low middle high)
      middle (= low middle)
      low (= low 0)
      :else (>= (:at state) (count (:arguments state))))))

(defn- run-choice
  "~[...~]: writes one of the clauses."
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

(defn- run-parts
  "Returns the texts of the clauses of ~<...~>, up to a ~^ that ends them, and the state after them."
  [state clauses]
  (loop [state state texts [] clauses clauses]
    (if (empty? clauses)
      [texts state]
      (let [done (run (assoc state :out "") (:items (first clauses)))
            after (assoc (dissoc done :stop?) :out (:out state))]
        (if (:stop? done)
          [texts after]
          (recur after (conj texts (:out done)) (next clauses)))))))

(defn- run-justified
  "~<...~>: writes texts with space between them, so that they fill a width; the first, if it ends with ~:;, begins lines."
  [state {:keys [clauses colon? at? params]}]
  (let [[least-size step least fill] params
        step (max 1 (or step 1))
        [begins state] (if (and (next clauses) (:colon? (:end (first clauses))))
                         (run-parts state (take 1 clauses))
                         [nil state])
        [texts state] (run-parts state (if begins (next clauses) clauses))
        before? (or colon? (and (= (count texts) 1) (not at?)))
        slots (max 1 (+ (dec (count texts)) (if colon? 1 0) (if at? 1 0)))
        size (reduce + (map count texts))
        wanted (+ size (* slots (or least 0)))
        missing (max 0 (- wanted (or least-size 0)))
        width (+ (or least-size 0) (* step (quot (+ missing (dec step)) step)))
        space (- width size)
        gaps (map #(filling (+ (quot space slots) (if (< % (rem space slots)) 1 0)) fill) (range slots))
        gaps (concat (when-not before? [""]) gaps)
        [spare line] (:params (:end (first clauses)))
        [spare line] [(or spare 0) (or line 72)]
        state (if (and begins (< line (+ (column (:out state)) spare width)))
                (emit state (first begins))
                state)]
    (emit state (apply str (concat (mapcat vector gaps texts) (drop (count texts) gaps))))))

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

(defn- tab-size
  "Returns the number of spaces that ~t writes at a column: up to the next tab stop, or with @ a number of spaces and then up to the next tab stop."
  [here {:keys [params at?]}]
  (let [[place step] params
        [place step] [(or place 1) (or step 1)]
        after (fn [at] (if (pos? step) (mod (- at) step) 0))]
    (cond
      at? (+ place (after (+ here place)))
      (< here place) (- place here)
      (pos? step) (- step (rem (- here place) step))
      :else 0)))

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
    \r (one-argument state #(radix-text % directive))
    \p (let [state (if colon? (update state :at dec) state)]
         (one-argument state #(if at? (if (= % 1) "y" "ies") (if (= % 1) "" "s"))))
    \c (one-argument state #(character-text % directive))
    \f (one-argument state (of-number float-text directive))
    \e (one-argument state (of-number exponent-text directive))
    \g (one-argument state (of-number float-text directive))
    \$ (one-argument state (of-number dollars-text directive))
    \% (emit state (apply str (repeat (or (first params) 1) "\n")))
    \& (let [lines (or (first params) 1)]
         (emit state (filling (if (zero? (column (:out state))) (dec lines) lines) \newline)))
    \| (emit state "\f")
    \~ (emit state (apply str (repeat (or (first params) 1) "~")))
    \newline state
    \t (emit state (filling (tab-size (column (:out state)) directive) nil))
    \* (cond
         at? (assoc state :at (or (first params) 0))
         colon? (update state :at - (or (first params) 1))
         :else (update state :at + (or (first params) 1)))
    \? (let [[inner state] (take-argument state)
             items (first (parse inner #{}))]
         (if at?
           (run state items)
           (let [[arguments state] (take-argument state)
                 done (run {:arguments (vec arguments) :at 0 :out (:out state)} items)]
             (assoc state :out (:out done)))))
    \^ (if (stop? state params) (assoc state :stop? true) state)
    \{ (run-loop state directive)
    \[ (run-choice state directive)
    \( (run-case state directive)
    \< (if (:colon? (:end (peek (:clauses directive))))
         (run state (:items (first (:clauses directive))))
         (run-justified state directive))
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
  "Writes arguments by a format string of Common Lisp: to a string if writer is nil or false, to standard output if it is
  true, else to the writer."
  {:examples '[[(cl-format nil "~a and ~s" "x" "y") "x and \"y\""]
               [(cl-format nil "~{~a~^, ~}" [1 2 3]) "1, 2, 3"]
               [(cl-format nil "~:d item~:p" 1234) "1,234 items"]
               [(cl-format nil "~r" 42) "forty-two"]
               [(cl-format nil "~[no~;one~:;many~]" 5) "many"]]}
  [writer format-string & arguments]
  (let [[items] (parse format-string #{})
        text (:out (run {:arguments (vec arguments) :at 0 :out ""} items))]
    (cond
      (not writer) text
      (true? writer) (print text)
      :else (binding [*out* writer] (print text)))))

(defmacro formatter
  "Returns a function of a writer and arguments that works like cl-format with a format string."
  {:examples '[[((formatter "~a of ~d") nil "x" 2) "x of 2"]]}
  [format-string]
  `(let [text# ~format-string]
     (fn [writer# & arguments#]
       (apply cl-format writer# text# arguments#))))

(defmacro formatter-out
  "Returns a function of arguments that writes them to standard output by a format string, as cl-format does."
  {:examples '[[(with-out-str ((formatter-out "~a of ~d") "x" 2)) "x of 2"]]}
  [format-string]
  `(let [text# ~format-string]
     (fn [& arguments#]
       (apply cl-format true text# arguments#))))
