;; Small pseudo-random programs, the same ones each time, which `generate.clj` evaluates besides the tables.
;; Each function takes the remaining depth of a form and returns its text. Programs always end:
;; loops are short, and only a part of an infinite sequence is taken.

(ns random
  (:require [clojure.string :as str]))

(def ^:dynamic ^java.util.Random *dice* nil)

(defn below [n] (.nextInt *dice* (int n)))
(defn pick [items] (nth items (below (count items))))
(defn chance [percent] (< (below 100) percent))

(defmacro one-of
  "One of the forms, each as likely as any other."
  [& forms]
  `(case (below ~(count forms))
     ~@(mapcat (fn [idx form] [idx form]) (range) forms)))

(def ^:dynamic *numbers* [])
(def ^:dynamic *colls* [])

(defn call [f & args]
  (str "(" f (when (seq args) " ") (str/join " " args) ")"))

(defn int-literal []
  (pick ["0" "1" "2" "3" "-1" "-7" "10" "42" "100" "2147483648" "9223372036854775807" "-9223372036854775808"]))

(defn number-literal []
  (if (chance 60)
    (pick ["0" "1" "2" "3" "5" "-1" "-4" "17"])
    (pick ["1.5" "-0.25" "2.0" "1/2" "-5/3" "7N" "123456789012345678901N" "1.10M" "-0.5M" "0.0" "1e10" (int-literal)])))

(declare number coll any)

(defn small [] (str (below 6)))

(defn number [depth]
  (if (or (zero? depth) (chance 15))
    (if (and (seq *numbers*) (chance 50)) (pick *numbers*) (number-literal))
    (let [d (dec depth)]
      (case (below 14)
        (0 1) (call (pick ["+" "-" "*" "+'" "-'" "*'"]) (number d) (number d))
        2 (call (pick ["quot" "rem" "mod" "/"]) (number d) (number d))
        3 (call (pick ["inc" "dec" "-" "abs" "inc'" "dec'"]) (number d))
        4 (call (pick ["max" "min"]) (number d) (number d))
        5 (call "if" (call (pick ["<" "<=" ">" ">=" "==" "="]) (number d) (number d)) (number d) (number d))
        6 (call "count" (coll d))
        7 (call "reduce" (pick ["+" "*'" "max" "-"]) (number d) (call "filter" "number?" (coll d)))
        8 (let [name (str "n" (below 100))
                value (number d)]
            (binding [*numbers* (conj *numbers* name)]
              (call "let" (str "[" name " " value "]") (number d))))
        9 (let [i (str "i" (below 100)) acc (str "acc" (below 100))]
            (binding [*numbers* (conj *numbers* i acc)]
              (call "loop" (str "[" i " " (small) " " acc " 0]")
                    (call "if" (call "pos?" i) (call "recur" (call "dec" i) (number (min d 1))) acc))))
        10 (call "try" (number d) (call "catch" "ArithmeticException" "e" (number-literal)))
        11 (call (pick ["bit-and" "bit-or" "bit-xor" "bit-shift-left" "bit-shift-right"])
                 (call "long" (pick ["5" "-9" "255" "1024"])) (small))
        12 (call "nth" (coll d) (small) (number-literal))
        13 (call (str "(fn [x & more] " (binding [*numbers* (conj *numbers* "x")] (number (min d 2))) ")")
                 (number d) (number d))))))

(defn predicate []
  (pick ["number?" "nil?" "some?" "string?" "keyword?" "#(and (int? %) (odd? %))" "#(and (number? %) (pos? %))"
         "identity" "(complement nil?)" "coll?" "#{1 2 3 :a}" "(constantly true)"]))

(defn function []
  (pick ["identity" "str" "vector" "#(if (number? %) (inc %) %)" "(fn [x] [x x])" "list" "type?" "pr-str" "hash-set"
         "#(if (coll? %) (count %) %)" "(juxt identity nil?)" "(comp str identity)" "(fnil str :none)"]))

(defn scalar []
  (pick ["nil" "true" "false" ":a" ":b" ":k/n" "'s" "\"\"" "\"ab\"" "\"héy\"" "\\a" "\\newline" "1" "0" "-1" "2.5" "1/3"]))

(defn literal-coll [d]
  (one-of (str "[" (str/join " " (repeatedly (below 5) #(any d))) "]")
          (call "list" (str/join " " (repeatedly (below 4) #(any d))))
          (call "hash-set" (str/join " " (repeatedly (below 4) #(any d))))
          (call "hash-map" (str/join " " (repeatedly (* 2 (below 4)) #(any d))))
          (call "range" (small))
          (call "range" (small) (str (+ 3 (below 9))) (str (inc (below 3))))
          (pick ["nil" "\"abcab\"" "\"\"" "(sorted-set 3 1 2)" "(sorted-map :b 1 :a 2)" "[1 2 3 4 5]" "[3 1 2 1]"])))

(defn coll [depth]
  (if (or (zero? depth) (chance 20))
    (if (and (seq *colls*) (chance 40)) (pick *colls*) (literal-coll 0))
    (let [d (dec depth)]
      (case (below 17)
        0 (literal-coll d)
        1 (call (pick ["map" "mapv" "keep"]) (function) (coll d))
        2 (call (pick ["filter" "remove" "take-while" "drop-while" "filterv" "partition-by" "group-by" "split-with"])
                (predicate) (coll d))
        3 (call (pick ["take" "drop" "take-last" "drop-last" "take-nth" "partition-all" "split-at"])
                (str (inc (below 4))) (coll d))
        4 (call (pick ["reverse" "dedupe" "vec" "set" "(comp distinct vec)" "seq" "rest" "next" "butlast" "flatten" "frequencies"
                       "doall" "not-empty" "cycle-2"])
                (coll d))
        5 (call (pick ["concat" "interleave"]) (coll d) (coll d))
        6 (call "into" (pick ["[]" "()" "#{}"]) (coll d))
        7 (call "into" "[]" (pick ["(map str)" "(filter some?)" "(take 3)" "(drop 1)" "(partition-all 2)" "(dedupe)"
                                   "(comp (map vector) (take 2))" "(mapcat vector)" "(interpose :x)" "(keep identity)"])
                (coll d))
        8 (call "conj" (coll d) (any d))
        9 (call "cons" (any d) (coll d))
        10 (call "for" (str "[x " (coll d) " :when " (call (predicate) "x") "]") (call "vector" "x"))
        11 (call "sort-by" (pick ["pr-str" "(comp count pr-str)"]) (coll d))
        12 (call "interpose" (scalar) (coll d))
        13 (let [name (str "c" (below 100))
                 value (coll d)]
             (binding [*colls* (conj *colls* name)]
               (call "let" (str "[" name " " value "]") (coll d))))
        14 (call "reductions" "conj" "[]" (coll d))
        15 (call "zipmap" (coll d) (coll d))
        16 (call "take" (small) (pick ["(range)" "(iterate inc 0)" "(repeat :r)" "(cycle [1 2])" "(repeatedly (fn [] 1))"]))))))

(defn any [depth]
  (if (zero? depth)
    (scalar)
    (let [d (dec depth)]
      (one-of (number d) (coll d) (scalar) (call "pr-str" (any d) (any d)) (call "first" (coll d))
              (call (pick ["=" "not=" "identical-type?"]) (any d) (any d))))))

(defn binding-pattern
  "A pattern and the names in it."
  [depth]
  (let [name #(str (pick ["a" "b" "c" "d" "e"]) (below 50))]
    (if (zero? depth)
      (let [n (name)] [n [n]])
      (case (below 4)
        0 (let [n (name)] [n [n]])
        1 (let [parts (repeatedly (inc (below 3)) #(binding-pattern (dec depth)))
                more (when (chance 40) (name))
                all (when (chance 30) (name))]
            [(str "[" (str/join " " (map first parts)) (when more (str " & " more)) (when all (str " :as " all)) "]")
             (concat (mapcat second parts) (remove nil? [more all]))])
        2 (let [keys (distinct (repeatedly (inc (below 3)) #(pick ["a" "b" "k"])))
                all (when (chance 30) (name))]
            [(str "{:keys [" (str/join " " keys) "]"
                  (when (chance 40) (str " :or {" (first keys) " " (scalar) "}"))
                  (when all (str " :as " all)) "}")
             (concat keys (when all [all]))])
        3 (let [[inner names] (binding-pattern (dec depth))]
            [(str "{" inner " " (pick [":a" ":b" "0" "\"s\""]) "}") names])))))

(defn data [depth]
  (if (zero? depth)
    (scalar)
    (let [d (dec depth)]
      (one-of (str "[" (str/join " " (repeatedly (below 4) #(data d))) "]")
              (str "{:a " (data d) " :b " (data d) "}")
              (str "{:a " (data d) " 0 " (data d) " \"s\" " (data d) "}")
              (str "(list " (data d) " " (data d) ")")
              "nil"
              (scalar)))))

(defn destructuring []
  (let [[shape names] (binding-pattern 2)
        names (str "[" (str/join " " (distinct names)) "]")]
    (one-of (call "let" (str "[" shape " (identity " (data 3) ")]") names)
            (call (str "(fn [" shape "] " names ")") (data 3))
            (call "loop" (str "[" shape " (identity " (data 3) ")]") names)
            (call "for" (str "[" shape " [" (data 2) " " (data 2) "]]") names))))

(defn shadowing-name [] (pick ["s" "t" "u"]))

(defn shadowing-data [d]
  (if (zero? d)
    (pick ["1" "2" ":k" "\"ab\"" "nil" "\\c" "[3 4]"])
    (let [d (dec d)]
      (one-of (str "[" (str/join " " (repeatedly (+ 2 (below 2)) #(shadowing-data d))) "]")
              (str "[" (shadowing-data d) " " (shadowing-data d) "]")
              (str "{:s " (shadowing-data d) " :t " (shadowing-data d) " \"u\" " (shadowing-data d) "}")
              (str "(list " (shadowing-data d) " " (shadowing-data d) " :s 5)")
              (str "(map identity [" (shadowing-data d) " " (shadowing-data d) "])")))))

(defn shadowing-pattern [d]
  (if (zero? d)
    (shadowing-name)
    (let [d (dec d)]
      (case (below 6)
        (0 1 2) (str "[" (str/join " " (repeatedly (inc (below 3)) #(shadowing-pattern (if (chance 70) 0 d))))
                     (when (chance 25) (str " & " (shadowing-pattern (if (chance 60) 0 d))))
                     (when (chance 30) (str " :as " (shadowing-name))) "]")
        3 (str "{:keys [" (str/join " " (distinct (repeatedly 2 shadowing-name))) "]"
               (when (chance 40) (str " :or {" (shadowing-name) " " (shadowing-name) "}"))
               (when (chance 30) (str " :as " (shadowing-name))) "}")
        4 (str "{" (shadowing-pattern d) " " (pick [":s" ":t" "\"u\"" "0"])
               (when (chance 40) (str " :strs [" (shadowing-name) "]"))
               (when (chance 30) (str " :or {" (shadowing-name) " " (shadowing-name) "}")) "}")
        5 (shadowing-name)))))

(defn shadowing-body [d]
  (if (zero? d)
    "[s t u]"
    (let [d (dec d)
          bindings (fn [] (str/join " " (repeatedly (inc (below 3)) #(str (shadowing-pattern 2) " " (shadowing-name)))))]
      (one-of (call "let" (str "[" (bindings) "]") (shadowing-body d))
              (call (str "(fn [" (shadowing-pattern 2) " " (shadowing-pattern 1) "] " (shadowing-body d) ")")
                    (shadowing-name) (shadowing-name))
              (call (str "(fn [" (shadowing-name) " & " (shadowing-pattern 2) "] " (shadowing-body d) ")")
                    (shadowing-name) (shadowing-name) (shadowing-name))
              (call "loop" (str "[" (bindings) " n 2]")
                    (call "if" "(< 3 n)" (call "recur" (shadowing-name) "(inc n)") (shadowing-body d)))
              (call "loop" (str "[" (shadowing-pattern 2) " " (shadowing-name) " n 2]")
                    (call "if" "(pos? n)" (call "recur" (shadowing-name) "(dec n)") (shadowing-body d)))
              (call "doall"
                    (call "for" (str "[" (shadowing-pattern 1) " [" (shadowing-name) " " (shadowing-name) "]"
                                     (when (chance 60) (str " :let [" (bindings) "]")) "]")
                          (shadowing-body d)))
              (call "doseq" (str "[" (shadowing-pattern 1) " [" (shadowing-name) "] :let [" (bindings) "]]")
                    (call "prn" (shadowing-body d)))
              (call (pick ["if-let" "when-let" "when-some"]) (str "[" (shadowing-pattern 2) " " (shadowing-name) "]")
                    (shadowing-body d))))))

(defn shadowing []
  (call "let" (str "[s " (shadowing-data 2) " t " (shadowing-data 2) " u " (shadowing-data 2) "]")
        (shadowing-body (inc (below 2)))))

(defn throwing [d]
  (one-of (call "throw" (call "ex-info" "\"e\"" (str "{:n " (number-literal) "}")))
          (call "/" (pick ["1" "7N" "1/2" "2M"]) "0")
          (call "throw" "(IllegalArgumentException. \"i\")")
          (call "nth" "[]" "5")
          (call "inc" "nil")
          (number d)))

(defn effects [d]
  (one-of (call "print" (str "\"p" (below 10) "\"")) (call "prn" (any d)) (call "println" (scalar) (scalar)) "nil"))

(defn exceptions [depth]
  (let [d (dec depth)
        body (if (and (pos? d) (chance 50)) (exceptions d) (throwing 1))]
    (str "(try " (effects 1) " " body
         (when (chance 70)
           (str " (catch " (pick ["Exception" "ArithmeticException" "clojure.lang.ExceptionInfo" "IllegalArgumentException"
                                  "Throwable" "RuntimeException"])
                " e " (effects 1) " " (one-of (call "ex-data" "e") ":caught" (throwing 1)) ")"))
         (when (chance 50) (str " (finally " (effects 1) ")"))
         ")")))

(defn printing [depth]
  (one-of (call (pick ["pr-str" "print-str" "prn-str"]) (any depth) (any depth))
          (call "read-string" (call "pr-str" (str "'" (data depth))))
          (call "with-out-str" (call (pick ["pr" "prn" "print" "println"]) (any depth) (any depth)))
          (call "format" "\"%s|%5s|%-5s\"" (scalar) (any 1) (scalar))
          (call "clojure.string/join" (pick ["\", \"" "\"\"" "\\-"]) (call "map" "pr-str" (coll depth)))
          (call (pick ["hash" "count" "clojure.string/upper-case" "clojure.string/reverse"]) (call "pr-str" (any depth)))
          (call "hash" (data depth))
          (call "=" (data depth) (data depth))
          (call "binding" (str "[*print-length* " (small) " *print-level* " (small) "]") (call "pr-str" (data 3)))))

;; Regexes: patterns over a small alphabet, each with a text over the same one.

(declare pattern)

(defn class-member []
  (one-of (pick ["a" "b" "c" "-" "^" "&" "é" "\\\\n" "\\\\r" "A"])
          (pick ["a-c" "A-C" "b-z" "\\\\d" "\\\\w" "\\\\s" "\\\\W" "\\\\p{L}" "\\\\P{Lu}" "\\\\h"])
          (pick ["a" "b" "ab" "&&[ab]" "&&[^b]" "[bc]" "&&b"])))

(defn char-class []
  (str "[" (when (chance 25) "^") (str/join (repeatedly (inc (below 3)) class-member)) "]"))

(defn pattern-atom [depth]
  (case (below (if (pos? depth) 12 7))
    (0 1 2) (pick ["a" "b" "c" "ab" "A" "1" " " "é"])
    3 (pick ["." "\\\\w" "\\\\d" "\\\\s" "\\\\W" "\\\\n" "\\\\r" "\\\\R" "\\\\p{Ll}" "\\\\h"])
    4 (char-class)
    5 (pick ["^" "$" "\\\\b" "\\\\B" "\\\\A" "\\\\z" "\\\\Z" "\\\\G"])
    6 (pick ["\\\\1" "\\\\2" "a" "b" "."])
    (7 8) (str "(" (pattern (dec depth)) ")")
    9 (str "(?:" (pattern (dec depth)) ")")
    10 (str "(?" (pick ["=" "!" ">" "<=" "<!" "i:" "s:" "m:" "iu:" "d:"]) (pattern (dec depth)) ")")
    11 (str (pick ["(?i)" "(?m)" "(?s)" "(?-i)" "(?u)" "(?U)" "(?d)" "(?x)"]) (pattern (dec depth)))))

(defn piece [depth]
  (str (pattern-atom depth)
       (when (chance 35)
         (str (pick ["*" "+" "?" "{2}" "{1,2}" "{0,2}" "{2,}"]) (when (chance 30) (pick ["?" "+"]))))))

(defn pattern [depth]
  (let [sequence #(str/join (repeatedly (inc (below 3)) (fn [] (piece depth))))]
    (if (chance 25)
      (str/join "|" (repeatedly (+ 2 (below 2)) sequence))
      (sequence))))

(defn subject []
  (str/join (repeatedly (below 9) #(pick ["a" "a" "b" "b" "c" "ab" "A" "B" "1" " " "\\n" "\\r" "\\r\\n" "é" "É" "-" "&"]))))

(defn regexes []
  (call "all-of" (str "\"" (pattern 2) "\"") (str "\"" (subject) "\"")))

(def prelude
  "Definitions that the programs use in addition to the language itself."
  ["(defn cycle-2 [xs] (take 5 (cycle xs)))"
   "(defn type? [x] (cond (nil? x) :nil (number? x) :number (string? x) :string (coll? x) :coll :else :other))"
   "(defn identical-type? [x y] (= (type? x) (type? y)))"
   "(require 'clojure.string)"
   "(defn all-of [p s] (try (let [re (re-pattern p)] [(re-find re s) (re-matches re s) (re-seq re s) (clojure.string/replace s re \"<$0>\") (clojure.string/split s re)]) (catch java.util.regex.PatternSyntaxException _ :refused)))"])

(defn programs
  "A number of programs from a generator; those with long texts are left out."
  [seed count make]
  (fn []
    (binding [*dice* (java.util.Random. seed)]
      (->> (repeatedly make)
           (remove #(< 400 (clojure.core/count %)))
           (take count)
           (into prelude)
           (distinct)
           (doall)))))

(def kinds
  {"numbers" (programs 1 1500 #(number 4))
   "sequences" (programs 2 2200 #(coll 3))
   "destructuring" (programs 3 900 destructuring)
   "exceptions" (programs 4 800 #(exceptions 3))
   "printing" (programs 5 900 #(printing 2))
   "shadowing" (programs 6 1500 shadowing)
   "regexes" (programs 6 3000 regexes)})
