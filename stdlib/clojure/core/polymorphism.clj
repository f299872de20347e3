(in-ns 'clojure.core)

;; Multimethods

(defmacro defmulti
  "Defines a function that chooses a method by the result of dispatch-fn for its arguments.
  Options are :default, the dispatch value of the method for all others, and :hierarchy, a var or atom."
  {:arglists '([name docstring? attr-map? dispatch-fn & options])
   :examples '[[(do (defmulti area :shape)
                    (defmethod area :square [{:keys [side]}] (* side side))
                    (area {:shape :square :side 3}))
                9]]}
  [mm-name & options]
  (let [docstring (when (string? (first options)) (first options))
        options (if docstring (next options) options)
        attributes (when (map? (first options)) (first options))
        options (if attributes (next options) options)
        dispatch-fn (first options)
        {:keys [default hierarchy] :or {default :default}} (apply hash-map (next options))
        mm-name (vary-meta mm-name merge attributes (when docstring {:doc docstring}))]
    `(let [existing# (def ~mm-name)]
       (when-not (and (bound? existing#) (multimethod? @existing#))
         (def ~mm-name (new-multimethod '~mm-name ~dispatch-fn ~default ~hierarchy))))))

(defn multimethod?
  "Tells whether x was made by defmulti."
  {:examples '[[(multimethod? inc) false]]}
  [x]
  (try (boolean (methods x))
       (catch Exception _ false)))

(defn- root-of
  [v]
  (when (and (var? v) (bound? v)) @v))

(defmacro defmethod
  "Adds a method to a multimethod, for a dispatch value."
  {:arglists '([multifn dispatch-val & fn-tail])}
  [multifn dispatch-val & fn-tail]
  `(add-method ~multifn ~dispatch-val (fn ~@fn-tail)))

;; Protocols

(defn- qualified
  "Returns the symbol sym with the name of the current namespace, or of the package that its metadata names."
  [sym]
  (symbol (str (or (:package (meta sym)) (ns-name *ns*))) (name sym)))

(defn- parse-sig
  "Returns a method of a protocol: its name, its argument vectors and its docstring."
  [sig]
  {:name (first sig)
   :arglists (apply list (filter vector? (rest sig)))
   :doc (first (filter string? (rest sig)))})

(defmacro defprotocol
  "Defines a set of functions that types implement: each calls the implementation for its first argument."
  {:arglists '([name docstring? options* & sigs])
   :examples '[[(do (defprotocol Shape (area [shape] "The area."))
                    (extend-type String Shape (area [s] (count s)))
                    (area "abc"))
                3]]}
  [pname & body]
  (let [docstring (when (string? (first body)) (first body))
        body (if docstring (next body) body)
        options (loop [options {} body body]
                  (if (keyword? (first body))
                    (recur (assoc options (first body) (second body)) (nnext body))
                    options))
        sigs (map parse-sig (filter seq? body))
        sig-map (into {} (map (fn [{:keys [name arglists doc]}]
                                [(keyword name) {:name (list 'quote name)
                                                 :arglists (list 'quote arglists)
                                                 :doc doc}]))
                      sigs)]
    `(do
       (def ~(vary-meta pname assoc :doc docstring)
         (new-protocol '~(qualified pname) ~sig-map ~options))
       ~@(map (fn [{:keys [name arglists doc]}]
                `(def ~(vary-meta name assoc :doc doc :arglists (list 'quote arglists))
                   (protocol-method ~pname ~(keyword name))))
              sigs)
       '~pname)))

(defmacro definterface
  "Defines an interface: a class that types may implement, whose methods are called with a dot."
  {:examples '[[(do (definterface Named (^String label [])) (deftype Tag [x] Named (label [_] x)) (.label (->Tag "t"))) "t"]]}
  [iname & sigs]
  (declare-methods (map first sigs))
  `(do (def ~iname (new-protocol '~(qualified iname)
                                 ~(into {} (map (fn [[method sigs]]
                                                  [(keyword method) {:name (list 'quote method)
                                                                     :arglists (list 'quote (map second sigs))
                                                                     :doc nil}]))
                                        (group-by first sigs))
                                 {}))
       '~iname))

(defmacro gen-class
  "Does nothing, as in Clojure while no class files are written."
  {:examples '[[(gen-class :name my.Class) nil]]}
  [& _options]
  nil)

(defn- grouped
  "Groups the bodies of extend-type, defrecord and so on: each symbol and the forms after it."
  [specs]
  (loop [groups [] specs (seq specs)]
    (if specs
      (recur (conj groups [(first specs) (take-while seq? (next specs))])
             (seq (drop-while seq? (next specs))))
      groups)))

(defn- with-other-arities
  "Returns the methods of one interface, with the arities that other interfaces of the type have for the same names."
  [methods all]
  (let [arity #(let [params (second %)] (when (vector? params) [(first %) (count params)]))
        names (set (map first methods))
        own (set (map arity methods))]
    (concat methods
            (filter #(and (names (first %)) (arity %) (not (own (arity %)))) all))))

(def ^:private primitive-tests
  "The tests that the hints of primitive parameters stand for."
  '{long integer?, int integer?, short integer?, byte integer?, double float?, float float?, boolean boolean?, char char?})

(defn- hint-test
  "Returns the form that tests whether a local has the class in a parameter's hint; nil without a hint."
  [param local]
  (let [tag (:tag (meta param))]
    (cond
      (or (nil? tag) (= 'Object tag)) nil
      (primitive-tests tag) (list (primitive-tests tag) local)
      :else `(or (nil? ~local) (instance? ~tag ~local)))))

(defn- by-hints
  "Combines several methods with the same name and number of parameters: the first whose hints match the arguments is called."
  [overloads]
  (let [method-name (ffirst overloads)
        params (second (first overloads))
        locals (mapv (fn [_] (gensym "arg__")) params)
        tests (fn [[_ params]]
                (keep identity (map hint-test (next params) (next locals))))
        ;; Less specific hints come last.
        ordered (sort-by (comp - count tests) overloads)]
    `(~method-name ~locals
       (cond
         ~@(mapcat (fn [[_ params & body :as method]]
                     [(cons `and (tests method))
                      `(let [~@(interleave (map #(with-meta % nil) params) locals)] ~@body)])
                   ordered)
         :else (throw (IllegalArgumentException.
                       ~(str "No matching method found: " method-name)))))))

(defn- without-overloads
  "Returns the methods, combined so that no two have the same name and number of parameters."
  [methods]
  (let [arity (fn [method]
                (when (vector? (second method)) [(first method) (count (second method))]))
        all (group-by arity methods)]
    (map (fn [method]
           (let [overloads (get all (arity method))]
             (if (and (arity method) (next overloads)) (by-hints overloads) method)))
         (filter (fn [method]
                   (or (nil? (arity method)) (identical? method (first (get all (arity method))))))
                 methods))))

(defn- all-arities
  "Returns the groups of a type's body in which each method has all of its arities."
  [groups]
  (let [groups (map (fn [[protocol methods]] [protocol (without-overloads methods)]) groups)
        all (mapcat second groups)]
    (map (fn [[protocol methods]] [protocol (with-other-arities methods all)]) groups)))

(defn- method-map
  "Returns a map form of method names to fn forms; arities of one name become one function."
  [methods arity]
  (into {}
        (map (fn [[method-name forms]]
               [(keyword (name method-name))
                `(fn ~@(mapcat (fn [form]
                                 (if (vector? (second form))
                                   [(arity (next form))]
                                   (map arity (next form))))
                               forms))]))
        (group-by first methods)))

(defn- protocol?
  [x]
  (and (map? x) (contains? x :impls)))

(defn- extends-class?
  "Tells whether a symbol in a type's body names a class rather than a protocol."
  [sym]
  (let [found (resolve sym)]
    (not (and (var? found) (protocol? (root-of found))))))

(defmacro extend-type
  "Adds implementations of protocols to a type."
  {:arglists '([type & protocols-and-methods])}
  [t & specs]
  `(extend ~t
     ~@(mapcat (fn [[protocol methods]]
                 [protocol (method-map methods seq)])
               (grouped specs))))

(defmacro extend-protocol
  "Adds an implementation of one protocol to several types."
  {:arglists '([protocol & types-and-methods])}
  [protocol & specs]
  `(do ~@(map (fn [[t methods]]
                `(extend-type ~t ~protocol ~@methods))
              (grouped specs))))

(defn- method-symbol
  "Returns the symbol under which an object stores its own method of a protocol or class."
  [protocol method]
  (let [found (resolve protocol)]
    (if (and (var? found) (protocol? (root-of found)))
      (symbol (namespace (:name @found)) (name method))
      (symbol "host" (name method)))))

(defmacro reify
  "Returns an object that implements protocols, with methods that close over the surrounding locals."
  {:arglists '([& protocols-and-methods])
   :examples '[[(do (defprotocol Greeter (greet [g]))
                    (let [word "hi"] (greet (reify Greeter (greet [_] word)))))
                "hi"]]}
  [& specs]
  (let [groups (all-arities (grouped specs))]
    (declare-methods (mapcat #(map first (second %)) groups))
    `(new-reified
       ~(mapv (fn [[protocol _]] (if (extends-class? protocol) `'~protocol `(:name ~protocol)))
              groups)
       ~(into {}
              (mapcat (fn [[protocol methods]]
                        (map (fn [[method f]]
                               [(list 'quote (method-symbol protocol method)) f])
                             (method-map methods seq))))
              groups))))

;; Records and types

(defn- with-fields
  "Returns an arity of a method in which the fields are locals, except those that a parameter shadows."
  [fields mutable]
  (fn [[params & body]]
    (let [this (gensym "this__")
          hidden (set (filter symbol? (flatten (rest params))))
          visible (remove hidden fields)]
      (list (into [this] (rest params))
            `(let [~@(mapcat (fn [field] [field `(field-of ~this ~(keyword field))]) visible)
                   ~(first params) ~this]
               ~@(if-let [mutable (seq (filter (set mutable) visible))]
                   [(list* 'fields* this (vec mutable) body)]
                   body))))))

(defn- check-type
  "Rejects a definition of a type with malformed fields or methods."
  [macro tname fields specs]
  (when-not (symbol? tname)
    (refuse-form "E0219" tname nil (str "`" macro "` needs a name for the type") (str "(" macro " Name [field ...])")))
  (when-not (vector? fields)
    (refuse-form "E0219" fields nil
                 (str "`" macro "` needs a vector of fields after the name")
                 (str "(" macro " " tname " [field ...] Protocol (method [this] ...))")))
  (run! (fn [[protocol methods]]
          (let [found (when (symbol? protocol) (resolve protocol))
                known (when (and (var? found) (protocol? (root-of found))) (:sigs @found))]
            (when known
              (run! (fn [method]
                      (when-not (contains? known (keyword (name (first method))))
                        (refuse-form "E0219" method nil
                                     (str "the protocol `" protocol "` has no method `" (first method) "`")
                                     (str "it has: " (apply str (interpose ", " (map name (keys known))))))))
                    methods))))
        (grouped specs)))

(defn- type-forms
  "Returns the forms shared by defrecord and deftype."
  [tname fields specs constructor]
  (let [positional (symbol (str "->" tname))
        mutable (mapv #(with-meta % nil)
                      (filter #(let [{:keys [unsynchronized-mutable volatile-mutable]} (meta %)]
                                 (or unsynchronized-mutable volatile-mutable))
                              fields))
        hinted (mapv #(with-meta % (select-keys (meta %) [:tag])) fields)
        fields (mapv #(with-meta % nil) fields)
        groups (all-arities (grouped specs))]
    (declare-methods (concat fields (mapcat #(map first (second %)) groups)))
    `((def ~tname (new-type '~(qualified tname) ~(mapv keyword fields) ~(mapv keyword mutable)
                             ~(= constructor `new-record)))
      (defn ~positional
        ~(str "Returns a " tname " with these values of its fields.")
        ~hinted
        (~constructor ~tname ~@fields))
      ;; The constructor of a host class is in its namespace.
      ~@(when-not (:package (meta tname))
          [`(make-constructor '~tname
                              ~(if (= constructor `new-record)
                                 `(fn (~fields (~positional ~@fields))
                                      ([~@fields meta# more#]
                                       (with-meta (into (~positional ~@fields) more#) meta#)))
                                 positional)
                              '~fields)])
      ~@(map (fn [[protocol methods]]
               (let [methods (method-map methods (with-fields fields mutable))]
                 (if (extends-class? protocol)
                   `(add-methods ~tname '~protocol ~methods)
                   `(let [methods# ~methods]
                      (add-methods ~tname ~protocol methods#)
                      (extend ~tname ~protocol methods#)))))
             groups))))

(defn- make-map-constructor
  "Makes (Name/create map) call f in the current namespace, for defrecord."
  [tname f]
  (intern (symbol (str (ns-name *ns*) "." tname)) 'create f)
  nil)

(defn make-constructor
  "Makes (Name. ...) call f in the current namespace, and (Name/getBasis) return the fields, for defrecord and deftype."
  [tname f fields]
  (let [constructors (symbol (str (ns-name *ns*) "." tname))]
    (intern (create-ns constructors) 'new f)
    (intern constructors 'getBasis (fn [] fields))
    (alias tname constructors)
    nil))

(defmacro defrecord
  "Defines a type of maps with fields, the constructors ->Name and map->Name, and implementations of protocols."
  {:arglists '([name [& fields] & protocols-and-methods])
   :examples '[[(do (defrecord Point [x y]) (:x (->Point 1 2))) 1]]}
  [rname fields & specs]
  (check-type 'defrecord rname fields specs)
  (let [from-map (symbol (str "map->" rname))]
    `(do ~@(type-forms rname fields specs `new-record)
         (defn ~from-map
           ~(str "Returns a " rname " with the values of a map.")
           [~'m]
           (record-from-map ~rname ~'m))
         (make-map-constructor '~rname ~from-map)
         ~rname)))

(defmacro deftype
  "Defines a type of objects with fields, the constructor ->Name, and implementations of protocols."
  {:arglists '([name [& fields] & protocols-and-methods])
   :examples '[[(do (deftype Box [x]) (.-x (->Box 1))) 1]]}
  [tname fields & specs]
  (check-type 'deftype tname fields specs)
  `(do ~@(type-forms tname fields specs `new-instance)
       ~tname))
