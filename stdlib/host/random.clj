(ns Random
  "`java.util.Random`: pseudo-random numbers from a seed, equal to those of Java.")

(deftype ^{:package "java.util"} Random [^:unsynchronized-mutable seed ^:unsynchronized-mutable spare]
  java.lang.Object
  (bits [this n]
    (let [next-seed (bit-and (unchecked-add (unchecked-multiply seed 0x5DEECE66D) 0xB) 0xFFFFFFFFFFFF)]
      (set! seed next-seed)
      (unchecked-int (unsigned-bit-shift-right next-seed (- 48 n)))))
  (nextBoolean [this] (not (zero? (.bits this 1))))
  (nextBytes [this bytes]
    (loop [idx 0 word 0]
      (when (< idx (count bytes))
        (let [word (if (zero? (rem idx 4)) (.bits this 32) (bit-shift-right word 8))]
          (aset bytes idx (unchecked-byte word))
          (recur (inc idx) word)))))
  (nextDouble [this]
    (let [high (.bits this 26)
          low (.bits this 27)]
      (* (+ (bit-shift-left high 27) low) (/ 1.0 (bit-shift-left 1 53)))))
  (nextFloat [this] (float (/ (.bits this 24) (double (bit-shift-left 1 24)))))
  (nextGaussian [this]
    (if-some [held spare]
      (do (set! spare nil) held)
      (loop []
        (let [x (- (* 2 (.nextDouble this)) 1)
              y (- (* 2 (.nextDouble this)) 1)
              s (+ (* x x) (* y y))]
          (if (or (>= s 1) (zero? s))
            (recur)
            (let [scale (Math/sqrt (/ (* -2 (Math/log s)) s))]
              (set! spare (* y scale))
              (* x scale)))))))
  (nextInt [this] (.bits this 32))
  (nextInt [this bound]
    (when-not (pos? bound)
      (throw (IllegalArgumentException. "bound must be positive")))
    (if (zero? (bit-and bound (dec bound)))
      (unchecked-int (bit-shift-right (* bound (.bits this 31)) 31))
      (loop []
        (let [found (.bits this 31)
              value (rem found bound)]
          (if (neg? (unchecked-int (+ (- found value) (dec bound))))
            (recur)
            value)))))
  (nextInt [this origin bound] (+ origin (.nextInt this (- bound origin))))
  (nextLong [this]
    (let [high (.bits this 32)
          low (.bits this 32)]
      (unchecked-add (bit-shift-left high 32) low)))
  (setSeed [this from]
    (set! seed (bit-and (bit-xor from 0x5DEECE66D) 0xFFFFFFFFFFFF))
    (set! spare nil)
    nil))

(defn new
  "Returns a generator of random numbers, from a seed if one is given."
  {:examples '[[(.nextInt (java.util.Random. 42) 10) 0]
               [(.nextLong (java.util.Random. 42)) -5025562857975149833]]}
  ([] (java.util.Random. (long (rand 9007199254740992))))
  ([seed] (doto (->Random 0 nil) (.setSeed seed))))
