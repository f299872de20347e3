(ns StackTraceElement
  "`java.lang.StackTraceElement`: a line of a trace, as created by programs.")

(deftype ^{:package "java.lang"} StackTraceElement [class-name method file line]
  java.lang.Object
  (equals [this other] (and (instance? StackTraceElement other) (= (str this) (str other))))
  (getClassName [this] class-name)
  (getFileName [this] file)
  (getLineNumber [this] line)
  (getMethodName [this] method)
  (hashCode [this] (.hashCode (str this)))
  (isNativeMethod [this] (= -2 line))
  (toString [this]
    (str class-name "." method
         (cond
           (= -2 line) "(Native Method)"
           (nil? file) "(Unknown Source)"
           (neg? line) (str "(" file ")")
           :else (str "(" file ":" line ")")))))

(defn new
  "Returns a line of a trace."
  {:examples '[[(str (StackTraceElement. "a.B" "c" "B.java" 7)) "a.B.c(B.java:7)"]]}
  [class-name method file line]
  (->StackTraceElement class-name method file line))
