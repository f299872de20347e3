(ns File
  "`java.io.File`: paths of files. Their content can be read if the program may read files.")

(def separator "The separator of the parts of a path." "/")
(def separatorChar "The separator of the parts of a path." \/)
(def pathSeparator "The separator of paths in a list." ":")
(def pathSeparatorChar "The separator of paths in a list." \:)

(deftype ^{:package "java.io"} File [path]
  java.lang.Comparable
  (compareTo [this other] (compare path (str other)))
  (equals [this other] (and (instance? File other) (= path (str other))))
  (exists [this] (or (.isDirectory this) (.isFile this)))
  (getName [this] (subs path (inc (or (clojure.string/last-index-of path "/") -1))))
  (getParent [this]
    (let [at (clojure.string/last-index-of path "/")]
      (cond
        (or (nil? at) (= "/" path)) nil
        (zero? at) "/"
        :else (subs path 0 at))))
  (getParentFile [this] (some-> (.getParent this) (java.io.File.)))
  (getPath [this] path)
  (hashCode [this] (bit-xor 1234321 (.hashCode path)))
  (hasheq [this] (hash path))
  (isAbsolute [this] (clojure.string/starts-with? path "/"))
  (isDirectory [this] (some? (-files-in path)))
  (isFile [this]
    (and (nil? (-files-in path))
         (try (slurp path) true
              (catch java.io.IOException _ false))))
  (isHidden [this] (clojure.string/starts-with? (.getName this) "."))
  (list [this] (some->> (-files-in path) (mapv (fn [found] (.getName (java.io.File. found))))))
  (listFiles [this] (some->> (-files-in path) (mapv (fn [found] (java.io.File. found)))))
  (toString [this] path)
  (toURI [this] (java.net.URI. (str "file:" path))))

(defn- normal
  "Returns a path without doubled and trailing slashes."
  [path]
  (let [path (clojure.string/replace path #"/+" "/")]
    (if (and (< 1 (count path)) (clojure.string/ends-with? path "/"))
      (subs path 0 (dec (count path)))
      path)))

(defn new
  "Returns a path, or that of a child of a folder."
  {:examples '[[(.getName (java.io.File. "a/b.txt")) "b.txt"]
               [(str (java.io.File. "a" "b")) "a/b"]]}
  ([path] (->File (normal (if (instance? java.net.URI path) (.getPath path) path))))
  ([folder child]
   (->File (normal (if (nil? folder) child (str folder "/" child))))))
