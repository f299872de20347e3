(ns ReentrantLock
  "`java.util.concurrent.locks.ReentrantLock`: a lock that the only thread always acquires.")

(deftype ^{:package "java.util.concurrent.locks"} ReentrantLock [^:unsynchronized-mutable holds]
  java.lang.Object
  (getHoldCount [this] holds)
  (isHeldByCurrentThread [this] (pos? holds))
  (isLocked [this] (pos? holds))
  (lock [this] (set! holds (inc holds)) nil)
  (tryLock [this] (set! holds (inc holds)) true)
  (tryLock [this _time _unit] (set! holds (inc holds)) true)
  (unlock [this]
    (when (zero? holds) (throw (IllegalMonitorStateException.)))
    (set! holds (dec holds))
    nil))

(defn new
  "Returns a lock that is not held."
  {:examples '[[(.isLocked (doto (java.util.concurrent.locks.ReentrantLock.) (.lock))) true]]}
  ([] (->ReentrantLock 0))
  ([_fair] (->ReentrantLock 0)))
