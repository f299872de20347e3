#(+ %1 %&) #{1 2} #"a+\d" #_skipped ##Inf #?(:clj 1 :default 2) #?@(:default [3]) #:ns{:a 1 :_/b 2} #::{:c 3}
