(ns clojure.repl
  "Lists and documentation of the names that exist."
  (:require [clojure.string :as string]))

(defn- public-vars
  [namespace]
  (sort-by (comp str key) (ns-publics namespace)))

(defn- print-doc
  [{:keys [ns name arglists macro doc]}]
  (println "-------------------------")
  (println (if ns (str (ns-name ns) "/" name) name))
  (when arglists (prn (seq arglists)))
  (when macro (println "Macro"))
  (when doc (println (str "  " doc))))

(defmacro doc
  "Prints the documentation of a name."
  {:examples '[[(with-out-str (doc identity))
                "-------------------------\nclojure.core/identity\n([x])\n  Returns its argument.\n"]]}
  [name]
  (cond
    (special-symbol? name) `(println ~(str "-------------------------\n" name "\nSpecial Form"))
    (find-ns name) `(print-doc-of (find-ns '~name))
    :else `(print-doc-of (resolve '~name))))

(defn print-doc-of
  "Prints the documentation of a var or namespace; nothing for nil."
  [x]
  (cond
    (var? x) (print-doc (meta x))
    (some? x) (print-doc (assoc (meta x) :name (ns-name x)))))

(defn find-doc
  "Prints the documentation of all vars whose name or documentation matches a pattern."
  [re-string-or-pattern]
  (let [re (re-pattern re-string-or-pattern)]
    (doseq [namespace (all-ns)
            [_ v] (public-vars namespace)
            :let [{:keys [doc name] :as m} (meta v)]
            :when (or (re-find re (str name)) (and doc (re-find re doc)))]
      (print-doc m))))

(defn apropos
  "Returns the names, with their namespaces, that contain a string or match a pattern."
  {:examples '[[(apropos "reduce-kv") (clojure.core/reduce-kv)]]}
  [str-or-pattern]
  (let [matches? (if (instance? java.util.regex.Pattern str-or-pattern)
                   #(some? (re-find str-or-pattern %))
                   #(string/includes? % (str str-or-pattern)))]
    (sort (mapcat (fn [namespace]
                    (let [home (str (ns-name namespace))]
                      (map #(symbol home (str %))
                           (filter (comp matches? str) (keys (ns-publics namespace))))))
                  (all-ns)))))

(defn dir-fn
  "Returns the sorted public names of a namespace."
  {:examples '[[(take 2 (dir-fn 'clojure.set)) (difference index)]]}
  [namespace]
  (sort-by str (keys (ns-publics (the-ns (get (ns-aliases *ns*) namespace namespace))))))

(defmacro dir
  "Prints the public names of a namespace, one per line."
  {:examples '[[(do (require 'clojure.template) (with-out-str (dir clojure.template))) "apply-template\ndo-template\n"]]}
  [nsname]
  `(doseq [v# (dir-fn '~nsname)]
     (println v#)))

(defn root-cause
  "Returns the root cause of an exception."
  {:examples '[[(ex-message (root-cause (ex-info "a" {} (ex-info "b" {})))) "b"]]}
  [ex]
  (last (take-while some? (iterate ex-cause ex))))

(defn demunge
  "Returns a name unchanged: names are never encoded here."
  {:examples '[[(demunge "a-b") "a-b"]]}
  [fn-name]
  fn-name)

(defn pst
  "Prints an exception, the last one at the prompt if none is given, and its origin."
  ([] (pst 12))
  ([e-or-depth]
   (if (instance? Throwable e-or-depth)
     (pst e-or-depth 12)
     (when-let [e *e] (pst (root-cause e) e-or-depth))))
  ([e depth]
   (println (str (.getSimpleName (class e)) " " (ex-message e)
                 (when-let [data (not-empty (ex-data e))] (str " " (pr-str data)))))
   (doseq [[function] (take depth (:trace (Throwable->map e)))]
     (println (str "\t" function)))
   (when-let [cause (ex-cause e)]
     (println "Caused by:")
     (pst cause depth))))
