(ns LispReader$StringReader
  "`clojure.lang.LispReader$StringReader`: reads a string after its opening quote.")

(def ^:private escapes
  {\t \tab, \r \return, \n \newline, \\ \\, \" \", \b \backspace, \f \formfeed})

(defn- next-char
  "Returns the next character, or throws at the end of the text."
  [reader]
  (let [code (-read-char reader)]
    (when (neg? code)
      (throw (RuntimeException. "EOF while reading string")))
    (char code)))

(defn- digits
  "Returns the number in the following digits of a base; the first digit is already read."
  [reader first-digit base most]
  (loop [n (Character/digit first-digit base), length 1]
    (let [code (if (< length most) (-read-char reader) -1)
          digit (if (neg? code) -1 (Character/digit (char code) base))]
      (if (neg? digit)
        (do (when-not (neg? code) (-unread reader code))
            [n length])
        (recur (+ (* n base) digit) (inc length))))))

(defn- escaped
  "Returns the character that an escape after a backslash denotes."
  [reader]
  (let [c (next-char reader)]
    (cond
      (contains? escapes c) (get escapes c)
      (= \u c) (let [first-digit (next-char reader)
                     _ (when (neg? (Character/digit first-digit 16))
                         (throw (RuntimeException. (str "Invalid unicode escape: \\u" first-digit))))
                     [n length] (digits reader first-digit 16 4)]
                 (when-not (= 4 length)
                   (throw (IllegalArgumentException. (str "Invalid character length: " length ", should be: 4"))))
                 (char n))
      (<= 0 (Character/digit c 8)) (let [[n] (digits reader c 8 3)]
                                     (when (> n 255)
                                       (throw (RuntimeException. "Octal escape sequence must be in range [0, 377].")))
                                     (char n))
      :else (throw (RuntimeException. (str "Unsupported escape character: \\" c))))))

(defn new
  "Returns a function of a reader, and of the opening quote, that reads the rest of a string."
  {:examples '[[((clojure.lang.LispReader$StringReader.) (java.io.PushbackReader. (java.io.StringReader. "a\\nb\" c")) \" nil nil)
                "a\nb"]]}
  []
  (fn [reader _quote _options _pending]
    (loop [text (StringBuilder.)]
      (let [c (next-char reader)]
        (case c
          \" (str text)
          \\ (recur (.append text (escaped reader)))
          (recur (.append text c)))))))
