(ns random)
(def kinds {})
