(ns FileWriter
  "`java.io.FileWriter`: the written text is in the file once the writer is flushed or closed.")

(deftype ^{:package "java.io"} FileWriter [path held]
  java.io.Writer
  (append [this x] (.append held (if (nil? x) "null" x)) this)
  (close [this] (.flush this))
  (flush [this]
    (spit path (str held) :append true)
    (.setLength held 0)
    nil)
  (newLine [this] (.append held "\n") nil)
  (write [this x] (.append held (if (int? x) (char x) (str x))) nil)
  (write [this text start length] (.append held (subs (str text) start (+ start length))) nil))

(defn new
  "Returns a writer to a file; existing content is removed unless append is true."
  {:examples []}
  ([path] (java.io.FileWriter. path false))
  ([path append]
   (when-not append (spit (str path) ""))
   (->FileWriter (str path) (StringBuilder.))))
