(in-ns 'clojure.core)

;; Reading from streams, and printing that programs can extend.

(defn- next-form
  "Reads the next form of a reader: a vector of it and its text. At the end returns on-end, or throws if on-end equals ::none."
  [stream opts on-end]
  (or (-read-form stream opts)
      (if (= on-end ::none)
        (throw (new-exception RuntimeException "EOF while reading"))
        [on-end ""])))

(defn- eof-of
  "Returns the value for the end of the text in an options map, or ::none."
  [opts]
  (let [eof (get opts :eof ::none)]
    (if (= eof :eofthrow) ::none eof)))

(defn read
  "Reads the next form of a reader (*in*) as code. At its end throws, or returns eof-value if eof-error? is false.
  The options are those of read-string."
  {:examples '[[(with-in-str "(+ 1 2) :b" [(read) (read) (read *in* false :end)]) [(+ 1 2) :b :end]]]}
  ([] (read *in*))
  ([stream] (first (next-form stream {} ::none)))
  ([opts stream] (first (next-form stream opts (eof-of opts))))
  ([stream eof-error? eof-value] (first (next-form stream {} (if eof-error? ::none eof-value))))
  ([stream eof-error? eof-value _recursive?] (read stream eof-error? eof-value)))

(defn read+string
  "Reads as read does, and returns a vector of the form and its text."
  {:examples '[[(with-in-str " [1 2] 3" (read+string)) [[1 2] "[1 2]"]]]}
  ([] (read+string *in*))
  ([stream] (trimmed (next-form stream {} ::none)))
  ([opts stream] (trimmed (next-form stream opts (eof-of opts))))
  ([stream eof-error? eof-value] (trimmed (next-form stream {} (if eof-error? ::none eof-value))))
  ([stream eof-error? eof-value _recursive?] (read+string stream eof-error? eof-value)))

(defn- trimmed
  [[form text]]
  [form (clojure.string/trim text)])

(defn read-line
  "Returns the next line of *in*, which is standard input unless with-in-str binds it; nil at its end."
  {:examples '[[(with-in-str "a\nb" [(read-line) (read-line) (read-line)]) ["a" "b" nil]]]}
  []
  (-read-line *in*))

(defn line-seq
  "Returns the lines of a reader, each read when it is needed."
  {:examples '[[(with-in-str "a\nb" (vec (line-seq *in*))) ["a" "b"]]]}
  [reader]
  (when-let [line (-read-line reader)]
    (cons line (lazy-seq (line-seq reader)))))

(defmacro with-in-str
  "Evaluates the body with *in* bound to a reader over the text s."
  {:examples '[[(with-in-str "1 2" (+ (read) (read))) 3]]}
  [s & body]
  `(binding [*in* (-text-reader ~s)]
     ~@body))

(defn load-reader
  "Reads and runs every form of a reader, and returns the value of the last."
  {:examples '[[(with-in-str "(+ 1 2) (* 2 3)" (load-reader *in*)) 6]]}
  [reader]
  (load-string (-read-all reader)))

(def default-data-readers
  "The functions that read the built-in tags."
  {'inst (fn [text] (clojure.edn/read-string (str "#inst " (pr-str text))))
   'uuid (fn [text] (clojure.edn/read-string (str "#uuid " (pr-str text))))})

(defmulti print-method
  "Prints x to a writer. Add methods, by class or by a keyword under :type in the metadata, to change how pr, print and
  str print your own values."
  (fn [x _writer]
    (let [kind (:type (meta x))]
      (if (keyword? kind) kind (class x)))))

(defmethod print-method :default [x writer]
  (-print-default x writer))

(defmulti print-dup
  "Prints x to a writer so that it can be read back: used by pr while *print-dup* is true."
  (fn [x _writer] (class x)))

(defmethod print-dup :default [x writer]
  (-print-default x writer))

(defn print-simple
  "Prints x to a writer as str shows it."
  {:examples '[[(with-out-str (print-simple :a *out*)) ":a"]]}
  [x writer]
  (-write writer (str x)))

(defn print-ctor
  "Prints a constructor call of the class of x to a writer; print-args is called with x and the writer to print the arguments."
  {:examples '[[(with-out-str (print-ctor 1 (fn [x w] (print-method x w)) *out*)) "#=(java.lang.Long. 1)"]]}
  [x print-args writer]
  (-write writer (str "#=(" (pr-str (class x)) ". "))
  (print-args x writer)
  (-write writer ")"))

;; Methods of writers and readers.

(defn .append
  "Writes a character or a string to a writer or string builder, and returns it."
  {:examples '[[(str (.append (StringBuilder. "a") \b)) "ab"]]}
  [writer x]
  (-append writer x))

(defn .close
  "Closes a reader or writer; for those over text there is nothing to do."
  {:examples '[[(with-open [r (java.io.StringReader. "a")] (.readLine r)) "a"]]}
  [_stream]
  nil)

(defn .flush
  "Does nothing: written text arrives in order without it."
  {:examples '[[(.flush *out*) nil]]}
  [_stream]
  nil)

(defn .read
  "Returns the code of the next character of a reader, or -1 at its end; or reads characters into an array, and returns their number."
  {:examples '[[(.read (java.io.StringReader. "a")) 97]
               [(let [chars (char-array 3)] [(.read (java.io.StringReader. "ab") chars 1 2) (vec chars)]) [2 [\o0 \a \b]]]]}
  ([reader] (-read-char reader))
  ([reader chars] (.read reader chars 0 (count chars)))
  ([reader chars start length]
   (loop [n 0]
     (let [code (if (< n length) (-read-char reader) -1)]
       (cond
         (nat-int? code) (do (aset chars (+ start n) (char code)) (recur (inc n)))
         (and (zero? n) (pos? length)) -1
         :else n)))))

(defn .readLine
  "Returns the next line of a reader, or nil at its end."
  {:examples '[[(.readLine (java.io.StringReader. "a\nb")) "a"]]}
  [reader]
  (-read-line reader))

(defn .unread
  "Puts back a character, or the one with a code, to be read again."
  {:examples '[[(let [r (java.io.StringReader. "b")] (.unread r 97) (.readLine r)) "ab"]]}
  ([reader x] (-unread reader x))
  ([reader chars start length]
   (-unread reader (apply str (take length (drop start chars))))))

(defn .write
  "Writes a string, or the character with a code, to a writer."
  {:examples '[[(with-out-str (.write *out* "a")) "a"]]}
  [writer x]
  (-write writer x))
