(ns flow.arguments
  "Arguments of tool calls, as models and templates write them: conversion to the types of a JSON Schema, and its check.
  Keywords of a schema that are not known here, and `$ref`, are left to the tool."
  (:require [clojure.string :as str]))

(defn- key-text
  "Returns the name of a member, which is a keyword or a text."
  [key]
  (if (keyword? key) (subs (str key) 1) (str key)))

(defn- by-name [object]
  (into {} (map (fn [[key value]] [(key-text key) value])) object))

(defn- types [schema]
  (let [type (when (map? schema) (:type schema))]
    (if (string? type) [type] (vec type))))

(defn- is-of? [type value]
  (case type
    "string" (string? value)
    "integer" (or (integer? value) (and (float? value) (zero? (rem value 1))))
    "number" (number? value)
    "boolean" (boolean? value)
    "null" (nil? value)
    "object" (map? value)
    "array" (sequential? value)
    true))

(defn- fits-type? [schema value]
  (let [types (types schema)]
    (or (empty? types) (boolean (some (fn [type] (is-of? type value)) types)))))

;; Problems

(def ^:private most-problems 5)

(declare check)

(defn- at [path]
  (if (seq path) (str "`" (str/join "." path) "`") "the whole of the arguments"))

(defn- shown [value]
  (let [text (json/write-str value)]
    (if (< 60 (count text)) (str (subs text 0 60) "...") text)))

(def ^:private type-names
  {"string" "a text" "integer" "an integer" "number" "a number" "boolean" "true or false"
   "null" "null" "object" "an object" "array" "a list"})

(defn- same? [one other]
  (or (= one other) (and (number? one) (number? other) (== one other))))

(defn- constants [{:keys [enum] :as schema} value path]
  (cond
    (and (contains? schema :const) (not (same? (:const schema) value)))
    [(str (at path) " must be " (shown (:const schema)) ", got " (shown value))]

    (and (sequential? enum) (not-any? (fn [item] (same? item value)) enum))
    [(str (at path) " must be one of " (str/join ", " (map shown enum)) ", got " (shown value))]))

(defn- bound
  "Returns the problem of a number or size that is beyond a bound of a schema."
  [schema key beyond? size path words]
  (let [limit (get schema key)]
    (when (and (number? limit) (beyond? size limit))
      [(str (at path) " must " words " " limit ", got " size)])))

(defn- numbers [schema value path]
  (when (number? value)
    (concat (bound schema :minimum < value path "be at least")
            (bound schema :maximum > value path "be at most")
            (bound schema :exclusiveMinimum <= value path "be more than")
            (bound schema :exclusiveMaximum >= value path "be less than"))))

(defn- texts [{:keys [pattern] :as schema} value path]
  (when (string? value)
    (let [length (if (or (:minLength schema) (:maxLength schema)) (count (re-seq #"(?s)." value)) 0)]
      (concat (bound schema :minLength < length path "have a length of at least")
              (bound schema :maxLength > length path "have a length of at most")
              (when (and (string? pattern) (not (try (re-find (re-pattern pattern) value) (catch Exception _ true))))
                [(str (at path) " must match " pattern ", got " (shown value))])))))

(defn- lists [{:keys [items] :as schema} value path]
  (when (sequential? value)
    (concat (bound schema :minItems < (count value) path "have a length of at least")
            (bound schema :maxItems > (count value) path "have a length of at most")
            (when (map? items)
              (mapcat (fn [idx item] (check items item (conj path idx))) (range) value)))))

(defn- objects [{:keys [properties required additionalProperties patternProperties]} value path]
  (when (map? value)
    (let [known (by-name properties)
          given (by-name value)
          others (when (empty? patternProperties) (remove (fn [name] (contains? known name)) (keys given)))]
      (concat (map (fn [name] (str (at (conj path name)) " is missing"))
                   (remove (fn [name] (contains? given (str name))) required))
              (mapcat (fn [[name schema]] (when (contains? given name) (check schema (get given name) (conj path name)))) known)
              (cond
                (false? additionalProperties)
                (map (fn [name] (str (at (conj path name)) " is unknown"
                                     (when (seq known) (str ": expected " (str/join ", " (keys known))))))
                     others)

                (map? additionalProperties)
                (mapcat (fn [name] (check additionalProperties (get given name) (conj path name))) others))))))

(defn- alternatives [{:keys [anyOf oneOf allOf not]} value path]
  (concat (mapcat (fn [schema] (check schema value path)) allOf)
          (map (fn [_] (str (at path) " fits none of the alternatives, got " (shown value)))
               (filter (fn [schemas] (and (seq schemas) (every? (fn [schema] (seq (check schema value path))) schemas)))
                       [anyOf oneOf]))
          (when (and (map? not) (empty? (check not value path)))
            [(str (at path) " must be another value than " (shown value))])))

(defn- check [schema value path]
  (cond
    (false? schema) [(str (at path) " must be left out")]
    (not (map? schema)) nil
    (fits-type? schema value) (mapcat (fn [part] (part schema value path))
                                      [constants numbers texts lists objects alternatives])
    :else [(str (at path) " must be " (str/join " or " (map (fn [type] (get type-names type type)) (types schema)))
                ", got " (shown value))]))

(defn problems
  "Returns what is wrong with arguments, as texts; an empty vector if they fit the JSON Schema."
  {:examples '[[(flow.arguments/problems {:type "object" :properties {:id {:type "integer"}} :required ["id"]} {:id 1}) []]
               [(flow.arguments/problems {:properties {:id {:type "integer"}}} {:id "x"})
                ["`id` must be an integer, got \"x\""]]
               [(flow.arguments/problems {:required ["id"]} {}) ["`id` is missing"]]]}
  [schema arguments]
  (vec (take most-problems (check schema arguments []))))

;; Conversion

(defn- parsed
  "Returns the JSON value that a text is, if it has a type of the schema; otherwise the text."
  [schema text]
  (let [value (try (json/parse text) (catch Exception _ text))]
    (if (fits-type? schema value) value text)))

(defn converted
  "Returns arguments with values that can be meant in one way only in the types of a JSON Schema: a text that is the JSON of a
  number, as templates write it, and no value in place of null for what may be left out."
  {:examples '[[(flow.arguments/converted {:properties {:id {:type "integer"} :name {:type "string"}}} {:id "7" :name "7"})
                {:id 7 :name "7"}]
               [(flow.arguments/converted {:properties {:id {:type "integer"}}} {:id nil}) {}]]}
  [schema arguments]
  (let [value (if (and (string? arguments) (not (fits-type? schema arguments))) (parsed schema arguments) arguments)]
    (cond
      (not (map? schema)) value
      (map? value) (let [known (by-name (:properties schema))
                         required (set (map str (:required schema)))]
                     (into {}
                           (keep (fn [[key item]]
                                   (let [name (key-text key)
                                         schema (get known name)]
                                     (when-not (and (nil? item) schema (not (required name)) (seq (check schema nil [])))
                                       [key (converted schema item)]))))
                           value))
      (vector? value) (mapv (fn [item] (converted (:items schema) item)) value)
      :else value)))
