(in-ns 'clojure.core)

;; proxy: objects that implement methods of classes and interfaces

(defn- with-this
  "Returns a method of proxy in the form that reify expects: the object is the first parameter of each arity."
  [[method & arities]]
  (map (fn [[params & body]] (list* method (into ['this] params) body))
       (if (vector? (first arities)) [arities] arities)))

(def ^:private thread-local-methods
  "The methods that a ThreadLocal has in addition to those of a proxy."
  '((get [this]
      (when (nil? @held) (vreset! held [(.initialValue this)]))
      (first @held))
    (remove [this] (vreset! held nil) nil)
    (set [this x] (vreset! held [x]) nil)))

(defmacro proxy
  "Returns an object that implements interfaces with these methods, in which `this` is the object. Of the classes, only ThreadLocal has methods
  in addition to those given."
  {:arglists '([class-and-interfaces args & methods])
   :examples '[[(str (proxy [Object] [] (toString [] "a"))) "a"]
               [(.get (proxy [ThreadLocal] [] (initialValue [] 1))) 1]]}
  [class-and-interfaces args & methods]
  (let [own (mapcat with-this methods)
        local? (some #(= "ThreadLocal" (last (clojure.string/split (name %) #"\."))) class-and-interfaces)]
    (if local?
      (let [names (set (map first own))
            initial (when-not (names 'initialValue) '((initialValue [this] nil)))]
        `(let [~'held (volatile! nil)]
           (reify ~@class-and-interfaces ~@own ~@initial ~@(remove #(names (first %)) thread-local-methods))))
      `(do ~@args (reify ~@class-and-interfaces ~@own)))))
