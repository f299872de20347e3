(ns clojure.set
  "Operations of relational algebra on sets.")

(defn- larger-first
  [sets]
  (sort-by count > sets))

(defn union
  "Returns a set of the items that are in any of the sets."
  {:examples '[[(union #{1} #{2}) #{1 2}]
               [(union) #{}]]}
  ([] #{})
  ([s1] s1)
  ([s1 s2]
   (if (< (count s1) (count s2))
     (reduce conj s2 s1)
     (reduce conj s1 s2)))
  ([s1 s2 & sets]
   (let [[largest & others] (larger-first (list* s1 s2 sets))]
     (reduce into largest others))))

(defn intersection
  "Returns a set of the items that are in all of the sets."
  {:examples '[[(intersection #{1 2} #{2 3}) #{2}]]}
  ([s1] s1)
  ([s1 s2]
   (if (< (count s2) (count s1))
     (recur s2 s1)
     (reduce (fn [result item]
               (if (contains? s2 item) result (disj result item)))
             s1 s1)))
  ([s1 s2 & sets]
   (reduce intersection (sort-by count (list* s1 s2 sets)))))

(defn difference
  "Returns a set of the items of the first set that are in none of the others."
  {:examples '[[(difference #{1 2 3} #{2} #{3}) #{1}]]}
  ([s1] s1)
  ([s1 s2]
   (if (< (count s1) (count s2))
     (reduce (fn [result item]
               (if (contains? s2 item) (disj result item) result))
             s1 s1)
     (reduce disj s1 s2)))
  ([s1 s2 & sets]
   (reduce difference s1 (cons s2 sets))))

(defn select
  "Returns a set of the items for which pred holds."
  {:examples '[[(select odd? #{1 2 3}) #{1 3}]]}
  [pred xset]
  (reduce (fn [result item] (if (pred item) result (disj result item)))
          xset xset))

(defn project
  "Returns a set of the maps of xrel with only the keys ks."
  {:examples '[[(project #{{:a 1 :b 2}} [:a]) #{{:a 1}}]]}
  [xrel ks]
  (with-meta (set (map #(select-keys % ks) xrel)) (meta xrel)))

(defn rename-keys
  "Returns the map with the keys in kmap renamed to the vals in kmap."
  {:examples '[[(rename-keys {:a 1 :b 2} {:a :c}) {:b 2 :c 1}]]}
  [map kmap]
  (reduce (fn [result [old new]]
            (if (contains? map old)
              (assoc result new (get map old))
              result))
          (apply dissoc map (keys kmap))
          kmap))

(defn rename
  "Returns a set of the maps of xrel with the keys in kmap renamed to the vals in kmap."
  {:examples '[[(rename #{{:a 1}} {:a :b}) #{{:b 1}}]]}
  [xrel kmap]
  (with-meta (set (map #(rename-keys % kmap) xrel)) (meta xrel)))

(defn index
  "Returns a map of the distinct values of ks in xrel to the set of maps that have them."
  {:examples '[[(index #{{:a 1 :b 2}} [:a]) {{:a 1} #{{:a 1 :b 2}}}]]}
  [xrel ks]
  (reduce (fn [result item]
            (update result (select-keys item ks) (fnil conj #{}) item))
          {} xrel))

(defn map-invert
  "Returns the map with its vals as keys and its keys as vals."
  {:examples '[[(map-invert {:a 1}) {1 :a}]]}
  [m]
  (reduce-kv (fn [result k v] (assoc result v k)) {} m))

(defn- joined
  "Joins each map of s with those that the index idx has for it; k returns the key to look up."
  [idx s k]
  (reduce (fn [result item]
            (reduce #(conj %1 (merge %2 item)) result (idx (k item))))
          #{} s))

(defn join
  "Returns a set of the merged maps of two relations that agree on the keys both have, or on the keys in km."
  {:examples '[[(join #{{:a 1 :b 2}} #{{:a 1 :c 3}}) #{{:a 1 :b 2 :c 3}}]]}
  ([xrel yrel]
   (if (and (seq xrel) (seq yrel))
     (let [ks (intersection (set (keys (first xrel))) (set (keys (first yrel))))
           [r s] (if (<= (count xrel) (count yrel)) [xrel yrel] [yrel xrel])]
       (joined (index r ks) s #(select-keys % ks)))
     #{}))
  ([xrel yrel km]
   (let [[r s k] (if (<= (count xrel) (count yrel))
                   [xrel yrel (map-invert km)]
                   [yrel xrel km])]
     (joined (index r (vals k)) s #(rename-keys (select-keys % (keys k)) k)))))

(defn subset?
  "Tells whether all items of set1 are in set2."
  {:examples '[[(subset? #{1} #{1 2}) true]]}
  [set1 set2]
  (and (<= (count set1) (count set2))
       (every? #(contains? set2 %) set1)))

(defn superset?
  "Tells whether all items of set2 are in set1."
  {:examples '[[(superset? #{1 2} #{1}) true]]}
  [set1 set2]
  (subset? set2 set1))
