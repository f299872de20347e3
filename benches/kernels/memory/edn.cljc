;; `path` names a file with five megabytes of EDN.
(require '[clojure.edn :as edn])
(println (count (edn/read-string
                 #?(:cljs (.toString (.readFileSync (js/require "fs") path) "utf8")
                    :default (slurp path)))))
