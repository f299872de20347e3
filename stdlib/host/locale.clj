(ns Locale
  "`java.util.Locale/...`: the locales whose letters change case as everywhere but in Turkish, for programs that ask for one.")

(def ENGLISH
  "English."
  (reify Object (toString [_] "en")))

(def ROOT
  "No language in particular."
  (reify Object (toString [_] "")))

(def US
  "English of the United States."
  (reify Object (toString [_] "en_US")))
