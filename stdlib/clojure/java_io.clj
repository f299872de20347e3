(ns clojure.java.io
  "Readers and writers of files, texts and bytes; paths. Programs may use files when they are started with --allow-files.")

(defprotocol Coercions
  "Conversion of a value to a path or an address."
  (as-file [x] "Returns x as a file.")
  (as-url [x] "Returns x as an address."))

(extend-protocol Coercions
  nil
  (as-file [_] nil)
  (as-url [_] nil)
  String
  (as-file [s] (java.io.File. s))
  (as-url [s] (java.net.URL. s))
  java.io.File
  (as-file [f] f)
  (as-url [f] (java.net.URL. (str "file:" f)))
  java.net.URL
  (as-file [u]
    (if (= "file" (.getProtocol u))
      (java.io.File. (.getPath u))
      (throw (IllegalArgumentException. (str "Not a file: " u)))))
  (as-url [u] u)
  java.net.URI
  (as-file [u] (as-file (.toURL u)))
  (as-url [u] (.toURL u)))

(defn as-relative-path
  "Returns x as a path; throws if it is absolute."
  {:examples '[[(clojure.java.io/as-relative-path "a/b") "a/b"]]}
  [x]
  (let [f (as-file x)]
    (if (.isAbsolute f)
      (throw (IllegalArgumentException. (str f " is not a relative path")))
      (.getPath f))))

(defn file
  "Returns a file from a path, or from a folder and the names below it."
  {:examples '[[(str (clojure.java.io/file "a" "b" "c.txt")) "a/b/c.txt"]]}
  ([path] (as-file path))
  ([parent child] (java.io.File. (as-file parent) (as-relative-path child)))
  ([parent child & more] (reduce file (file parent child) more)))

(defn- path-of
  "Returns the path of a file; nil if x is not a file."
  [x]
  (when (or (string? x) (instance? java.io.File x) (instance? java.net.URL x) (instance? java.net.URI x))
    (str (as-file x))))

(defprotocol IOFactory
  "Values from which readers, writers and streams can be created."
  (make-reader [x opts] "Returns a reader of x.")
  (make-writer [x opts] "Returns a writer to x.")
  (make-input-stream [x opts] "Returns a stream of the bytes of x.")
  (make-output-stream [x opts] "Returns a stream of bytes to x."))

(defn- refuse
  "Throws the error for a value that cannot be opened."
  [x as]
  (throw (IllegalArgumentException. (str "Cannot open <" (pr-str x) "> as " as "."))))

(extend-protocol IOFactory
  nil
  (make-reader [x _] (refuse x "a Reader"))
  (make-writer [x _] (refuse x "a Writer"))
  (make-input-stream [x _] (refuse x "an InputStream"))
  (make-output-stream [x _] (refuse x "an OutputStream"))
  Object
  (make-reader [x _]
    (cond
      (instance? java.io.Reader x) x
      (path-of x) (java.io.StringReader. (slurp (path-of x)))
      (bytes? x) (java.io.StringReader. (String. x))
      (instance? java.io.InputStream x) (java.io.StringReader. (.readText x))
      (and (class? (class x)) (= "[C" (.getName (class x)))) (java.io.StringReader. (apply str x))
      :else (refuse x "a Reader")))
  (make-writer [x opts]
    (cond
      (instance? java.io.Writer x) x
      (path-of x) (java.io.FileWriter. (path-of x) (boolean (:append opts)))
      :else (refuse x "a Writer")))
  (make-input-stream [x _]
    (cond
      (instance? java.io.InputStream x) x
      (bytes? x) (java.io.ByteArrayInputStream. x)
      (path-of x) (java.io.ByteArrayInputStream. (.getBytes (slurp (path-of x))))
      :else (refuse x "an InputStream")))
  (make-output-stream [x _]
    (if (instance? java.io.OutputStream x)
      x
      (refuse x "an OutputStream"))))

(defn reader
  "Returns a reader of a file, an address of a file, bytes, characters, or another reader."
  {:examples '[[(slurp (clojure.java.io/reader (java.io.StringReader. "a"))) "a"]]}
  [x & opts]
  (make-reader x (apply hash-map opts)))

(defn writer
  "Returns a writer to a file, or another writer. The written text is in the file once the writer is flushed or closed."
  {:examples '[[(str (doto (clojure.java.io/writer (java.io.StringWriter.)) (.write "a"))) "a"]]}
  [x & opts]
  (make-writer x (apply hash-map opts)))

(defn input-stream
  "Returns a stream of the bytes of an array or a text file."
  {:examples '[[(.read (clojure.java.io/input-stream (byte-array [7]))) 7]]}
  [x & opts]
  (make-input-stream x (apply hash-map opts)))

(defn output-stream
  "Returns a stream of bytes: the given one."
  {:examples '[[(.size (clojure.java.io/output-stream (java.io.ByteArrayOutputStream.))) 0]]}
  [x & opts]
  (make-output-stream x (apply hash-map opts)))

(defn copy
  "Copies the content of a reader, stream, file, text or array of bytes to a writer, stream or file."
  {:examples '[[(str (let [w (java.io.StringWriter.)] (clojure.java.io/copy "a" w) w)) "a"]]}
  [input output & _opts]
  (let [text (cond
               (string? input) input
               (bytes? input) (String. input)
               :else (slurp (reader input)))]
    (cond
      (instance? java.io.OutputStream output) (.write output (.getBytes text))
      (path-of output) (spit (path-of output) text)
      :else (.write output text))
    nil))

(defn resource
  "Returns nil: there is no class path to search for a resource."
  {:examples '[[(clojure.java.io/resource "a.txt") nil]]}
  ([_name] nil)
  ([_name _loader] nil))

(defn make-parents
  "Returns false: writing a file creates its parent folders."
  {:examples '[[(clojure.java.io/make-parents "a/b.txt") false]]}
  [_f & _more]
  false)
