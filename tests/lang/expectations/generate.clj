;; Evaluates the expressions of `tables/` and of `random.clj` with Clojure on the JVM, and writes
;; the results to `stored/<name>.tsv`. Needs Clojure 1.11 or later; run in this folder:
;;
;;   clojure generate.clj            every table, and the generated programs
;;   clojure generate.clj maps sets  only these
;;
;; A line of a table is an expression. `‹a ¦ b ¦ c›` stands for each of its choices in turn, `‹name›` for
;; the choices that a line `name = a ¦ b ¦ c` of the table gave earlier. Lines with `;` are comments.
;;
;; A stored line has the expression, its outcome, and the printed text, if any. An outcome is the value as
;; `pr-str` prints it, or `!` and the class of the exception, with the message if programs rely on it.

(require '[clojure.string :as str] '[clojure.java.io :as io])

(def message-matters
  "Classes whose messages are compared: those of programs themselves, and arithmetic."
  #{"ExceptionInfo" "ArithmeticException" "Exception" "AssertionError" "Error"})

(def same-as
  "Classes that differ between versions of the JVM, or depending on how an expression is compiled."
  {"ArrayIndexOutOfBoundsException" "IndexOutOfBoundsException"
   "long overflow" "integer overflow"
   "/ by zero" "Divide by zero"})

(defn outcome-of-throwable [e]
  (let [class (.getSimpleName (class e))
        class (same-as class class)
        message (some-> (ex-message e) (str/replace #"[\n\t]" " "))]
    (if (and (message-matters class) message)
      (str "! " class ": " (same-as message message))
      (str "! " class))))

(defn without-identities
  "Objects that print with their address as `#object`, generated symbols with the number 0, and all in one
  line."
  [shown]
  (-> shown
      (str/escape {\newline "⏎" \tab "⇥" \return "⏎" \u0000 "␀"})
      (str/replace #"#object\[(\"[^\"]*\"|[^\]\"])*\]" "#object")
      (str/replace #"[a-zA-Z_$.]+@[0-9a-f]{4,8}" "#object")
      (str/replace #"__[0-9]+" "__0")))

(defn outcome [text]
  (let [out (java.io.StringWriter.)
        shown (binding [*out* out, *err* out, *print-namespace-maps* false]
                (try
                  (let [value (eval (read-string {:read-cond :allow} text))]
                    (binding [*print-length* 100] (pr-str value)))
                  (catch Throwable e (outcome-of-throwable e))))]
    (cond-> (str text "\t" (without-identities shown))
      (pos? (count (str out))) (str "\t" (pr-str (without-identities (str out)))))))

(defn choices [sets text]
  (let [parts (mapv str/trim (str/split text #"¦"))]
    (if-let [known (and (= 1 (count parts)) (sets (first parts)))]
      known
      parts)))

(defn expand
  "Returns all expressions of a line."
  [sets line]
  (if-let [[_ before inside after] (re-matches #"(?s)(.*?)‹([^›]*)›(.*)" line)]
    (for [choice (choices sets inside)
          rest (expand sets after)]
      (str before choice rest))
    [line]))

(defn expressions [lines]
  (loop [lines lines, sets {}, found []]
    (if-let [[line & more] (seq lines)]
      (if-let [[_ name text] (re-matches #"([a-z]+) = (.*)" line)]
        (recur more (assoc sets name (vec (mapcat #(expand sets %) (choices sets text)))) found)
        (recur more sets (if (or (str/blank? line) (str/starts-with? line ";"))
                           found
                           (into found (expand sets line)))))
      (distinct found))))

(defn store [name expressions]
  (in-ns 'user)
  (let [file (io/file "stored" (str name ".tsv"))]
    (io/make-parents file)
    (spit file (str/join (map #(str (outcome %) "\n") expressions)))
    (println name (count expressions))))

(load-file "random.clj")

(let [wanted (set *command-line-args*)
      tables (for [file (sort (.listFiles (io/file "tables")))
                   :let [name (str/replace (.getName file) ".txt" "")]]
               [name (delay (expressions (str/split-lines (slurp file))))])
      programs (for [[name make] random/kinds]
                 [(str "random-" name) (delay (make))])]
  (doseq [[name expressions] (concat tables programs)
          :when (or (empty? wanted) (wanted name))]
    ;; Each table starts in a fresh `user`, whatever those before it defined.
    (binding [*ns* (create-ns 'user)]
      (refer 'clojure.core)
      (store name @expressions))))
(shutdown-agents)
