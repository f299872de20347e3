(ns Pattern
  "`java.util.regex.Pattern/...`: regular expressions from text.")

(defn compile
  "Returns the regular expression of a text."
  {:examples '[[(re-find (java.util.regex.Pattern/compile "b+") "abb") "bb"]]}
  [s]
  (re-pattern s))

(defn matches
  "Tells whether a regular expression, as a string, matches all of a string."
  {:examples '[[(java.util.regex.Pattern/matches "a+" "aa") true]]}
  [regex s]
  (some? (re-matches (re-pattern regex) s)))

(defn quote
  "Returns the text of a regular expression that matches the string literally."
  {:examples '[[(java.util.regex.Pattern/quote "a.b") "\\Qa.b\\E"]]}
  [s]
  (str "\\Q" (clojure.string/replace s "\\E" "\\E\\\\E\\Q") "\\E"))
