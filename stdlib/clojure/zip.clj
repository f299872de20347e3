(ns clojure.zip
  "Places in trees: navigation and functional changes, which do not affect the original tree."
  (:refer-clojure :exclude [replace remove next]))

(defn zipper
  "Returns a place at the root of a tree.
  branch? tells whether a node can have children, children returns them, and make-node builds a node of another
  node and children."
  {:examples '[[(node (down (zipper vector? seq (fn [_ xs] (vec xs)) [1 2]))) 1]]}
  [branch? children make-node root]
  ^{:zip/branch? branch? :zip/children children :zip/make-node make-node}
  [root nil])

(defn seq-zip
  "Returns a place at the root of nested sequences."
  {:examples '[[(node (down (seq-zip '(1 2)))) 1]]}
  [root]
  (zipper seq? identity (fn [node children] (with-meta children (meta node))) root))

(defn vector-zip
  "Returns a place at the root of nested vectors."
  {:examples '[[(root (edit (down (vector-zip [1 [2]])) inc)) [2 [2]]]]}
  [root]
  (zipper vector? seq (fn [node children] (with-meta (vec children) (meta node))) root))

(defn xml-zip
  "Returns a place at the root of an XML tree of maps with :content."
  {:examples '[[(node (down (xml-zip {:tag :a :content ["b"]}))) "b"]]}
  [root]
  (zipper (complement string?) (comp seq :content)
          (fn [node children]
            (assoc node :content (and children (apply vector children))))
          root))

(defn node
  "Returns the node at a place."
  {:examples '[[(node (vector-zip [1])) [1]]]}
  [loc]
  (nth loc 0))

(defn branch?
  "Tells whether the node at a place can have children."
  {:examples '[[(branch? (vector-zip [1])) true]]}
  [loc]
  ((:zip/branch? (meta loc)) (node loc)))

(defn children
  "Returns the children of the node at a place."
  {:examples '[[(children (vector-zip [1 2])) (1 2)]]}
  [loc]
  (if (branch? loc)
    ((:zip/children (meta loc)) (node loc))
    (throw (ex-info "called children on a leaf node" {:node (node loc)}))))

(defn make-node
  "Returns a node of the same kind as another, with other children."
  {:examples '[[(make-node (vector-zip [1]) [1] '(2 3)) [2 3]]]}
  [loc node children]
  ((:zip/make-node (meta loc)) node children))

(defn- at
  "Returns a place of the same tree."
  [loc node path]
  (with-meta [node path] (meta loc)))

(defn path
  "Returns the nodes above a place, from the root on."
  {:examples '[[(path (down (vector-zip [1]))) [[1]]]]}
  [loc]
  (:pnodes (nth loc 1)))

(defn lefts
  "Returns the nodes to the left of a place."
  {:examples '[[(lefts (right (down (vector-zip [1 2])))) (1)]]}
  [loc]
  (seq (:l (nth loc 1))))

(defn rights
  "Returns the nodes to the right of a place."
  {:examples '[[(rights (down (vector-zip [1 2]))) (2)]]}
  [loc]
  (:r (nth loc 1)))

(defn down
  "Returns the place of the leftmost child, or nil."
  {:examples '[[(node (down (vector-zip [1 2]))) 1]]}
  [loc]
  (when (branch? loc)
    (let [[parent path] loc
          [child & more :as all] (children loc)]
      (when all
        (at loc child {:l []
                       :pnodes (if path (conj (:pnodes path) parent) [parent])
                       :ppath path
                       :r more})))))

(defn up
  "Returns the place of the parent, or nil at the root."
  {:examples '[[(node (up (down (vector-zip [1])))) [1]]]}
  [loc]
  (let [[node {:keys [l ppath pnodes r changed?]}] loc]
    (when pnodes
      (let [parent (peek pnodes)]
        (if changed?
          (at loc
              (make-node loc parent (concat l (cons node r)))
              (and ppath (assoc ppath :changed? true)))
          (at loc parent ppath))))))

(defn root
  "Returns the root node, with all changes."
  {:examples '[[(root (replace (down (vector-zip [1 2])) :x)) [:x 2]]]}
  [loc]
  (if (= :end (nth loc 1))
    (node loc)
    (let [parent (up loc)]
      (if parent
        (recur parent)
        (node loc)))))

(defn right
  "Returns the place of the sibling to the right, or nil."
  {:examples '[[(node (right (down (vector-zip [1 2])))) 2]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc
        [sibling & more :as all] r]
    (when (and path all)
      (at loc sibling (assoc path :l (conj l node) :r more)))))

(defn rightmost
  "Returns the place of the rightmost sibling, or the place itself."
  {:examples '[[(node (rightmost (down (vector-zip [1 2 3])))) 3]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (if (and path r)
      (at loc (last r) (assoc path :l (apply conj l node (butlast r)) :r nil))
      loc)))

(defn left
  "Returns the place of the sibling to the left, or nil."
  {:examples '[[(node (left (right (down (vector-zip [1 2]))))) 1]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (when (and path (seq l))
      (at loc (peek l) (assoc path :l (pop l) :r (cons node r))))))

(defn leftmost
  "Returns the place of the leftmost sibling, or the place itself."
  {:examples '[[(node (leftmost (rightmost (down (vector-zip [1 2 3]))))) 1]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (if (and path (seq l))
      (at loc (first l) (assoc path :l [] :r (concat (rest l) [node] r)))
      loc)))

(defn insert-left
  "Inserts a sibling to the left of a place."
  {:examples '[[(root (insert-left (down (vector-zip [1])) 0)) [0 1]]]}
  [loc item]
  (let [[node {:keys [l] :as path}] loc]
    (if (nil? path)
      (throw (ex-info "Insert at top" {:node node}))
      (at loc node (assoc path :l (conj l item) :changed? true)))))

(defn insert-right
  "Inserts a sibling to the right of a place."
  {:examples '[[(root (insert-right (down (vector-zip [1])) 2)) [1 2]]]}
  [loc item]
  (let [[node {:keys [r] :as path}] loc]
    (if (nil? path)
      (throw (ex-info "Insert at top" {:node node}))
      (at loc node (assoc path :r (cons item r) :changed? true)))))

(defn replace
  "Replaces the node at a place."
  {:examples '[[(root (replace (down (vector-zip [1])) :x)) [:x]]]}
  [loc node]
  (let [[_ path] loc]
    (at loc node (and path (assoc path :changed? true)))))

(defn edit
  "Replaces the node at a place with (f node & args)."
  {:examples '[[(root (edit (down (vector-zip [1])) + 5)) [6]]]}
  [loc f & args]
  (replace loc (apply f (node loc) args)))

(defn insert-child
  "Inserts a child before all others."
  {:examples '[[(root (insert-child (vector-zip [1]) 0)) [0 1]]]}
  [loc item]
  (replace loc (make-node loc (node loc) (cons item (children loc)))))

(defn append-child
  "Inserts a child after all others."
  {:examples '[[(root (append-child (vector-zip [1]) 2)) [1 2]]]}
  [loc item]
  (replace loc (make-node loc (node loc) (concat (children loc) [item]))))

(defn next
  "Returns the next place in depth-first order; after the last one, a place for which end? holds."
  {:examples '[[(node (next (vector-zip [1 2]))) 1]]}
  [loc]
  (if (= :end (nth loc 1))
    loc
    (or (and (branch? loc) (down loc))
        (right loc)
        (loop [above loc]
          (if (up above)
            (or (right (up above)) (recur (up above)))
            [(node above) :end])))))

(defn prev
  "Returns the previous place in depth-first order, or nil at the root."
  {:examples '[[(node (prev (next (next (vector-zip [1 2]))))) 1]]}
  [loc]
  (if-let [sibling (left loc)]
    (loop [loc sibling]
      (if-let [child (and (branch? loc) (down loc))]
        (recur (rightmost child))
        loc))
    (up loc)))

(defn end?
  "Tells whether a traversal with next is at its end."
  {:examples '[[(end? (next (vector-zip []))) true]]}
  [loc]
  (= :end (nth loc 1)))

(defn remove
  "Removes the node at a place, and returns the place before it in depth-first order."
  {:examples '[[(root (remove (down (vector-zip [1 2])))) [2]]]}
  [loc]
  (let [[node {:keys [l ppath pnodes r] :as path}] loc]
    (cond
      (nil? path) (throw (ex-info "Remove at top" {:node node}))
      (seq l) (loop [loc (at loc (peek l) (assoc path :l (pop l) :changed? true))]
                (if-let [child (and (branch? loc) (down loc))]
                  (recur (rightmost child))
                  loc))
      :else (at loc
                (make-node loc (peek pnodes) r)
                (and ppath (assoc ppath :changed? true))))))
