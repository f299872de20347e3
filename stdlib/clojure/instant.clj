(ns clojure.instant
  "Parsing of instants, as written after #inst."
  (:require [clojure.edn :as edn]))

(defn read-instant-date
  "Returns the instant that a text such as 2026-11-22T10:00:00.000Z names; its later parts may be left out."
  {:examples '[[(read-instant-date "2020-01-01") #inst "2020-01-01T00:00:00.000-00:00"]]}
  [cs]
  (edn/read-string (str "#inst " (pr-str (str cs)))))
