;; The clock and the measuring loop, which stand before each kernel in every Clojure.
;; CPU time where the dialect can tell it: of the thread (in Flowstone the benchmark's host answers
;; System/nanoTime with it, on the JVM it leaves the collector and the compiler out), of the process in nbb.

#?(:joker (def started (joker.time/now)))

(defn clock []
  #?(:flowstone (System/nanoTime)
     :joker (joker.time/since started)
     :bb (System/nanoTime)
     :cljs (let [used (js/process.cpuUsage)]
             (* 1000 (+ (.-user used) (.-system used))))
     :clj (.getCurrentThreadCpuTime (java.lang.management.ManagementFactory/getThreadMXBean))
     :default (System/nanoTime)))

(defn measure [kernel runs warm-up-nanos]
  (let [result (kernel)
        begun (clock)]
    (loop [n 0]
      (when (and (< n 50) (< (- (clock) begun) warm-up-nanos))
        (kernel)
        (recur (inc n))))
    (loop [n 0 times []]
      (if (< n runs)
        (let [start (clock)]
          (kernel)
          (recur (inc n) (conj times (- (clock) start))))
        (do (println "result" (pr-str result))
            (println "nanoseconds" (nth (vec (sort times)) (quot runs 2))))))))
