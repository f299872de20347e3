(ns URI
  "`java.net.URI`: resource identifiers and their parts, according to RFC 2396.")

(def ^:private parts
  "Scheme, authority, path, query and fragment."
  #"(?s)(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?")

(defn- decoded
  "Returns a part with its escapes decoded."
  [part]
  (when part
    (java.net.URLDecoder/decode (clojure.string/replace part "+" "%2B") "UTF-8")))

(defn- authority-parts
  "Returns user, host and port of an authority."
  [authority]
  (when authority
    (let [[_ user host port] (re-matches #"(?:([^@]*)@)?(\[[^\]]*\]|[^:]*)(?::(\d*))?" authority)]
      (when (seq host)
        [user host (if (seq port) (parse-long port) -1)]))))

(defn- without-dots
  "Returns a path without the segments `.` and `..` that can be resolved."
  [path]
  (let [absolute (clojure.string/starts-with? path "/")
        segments (clojure.string/split path #"/" -1)
        last-segment (peek segments)
        kept (reduce (fn [kept segment]
                       (cond
                         (= "." segment) kept
                         (and (= ".." segment) (seq kept) (not= ".." (peek kept))) (pop kept)
                         (= "" segment) kept
                         :else (conj kept segment)))
                     []
                     segments)
        slash (and (seq kept) (contains? #{"" "." ".."} last-segment))]
    (str (when absolute "/") (clojure.string/join "/" kept) (when slash "/"))))

(defn- joined
  "Returns the text of an identifier from its parts."
  [scheme authority path query fragment]
  (str (when scheme (str scheme ":"))
       (when authority (str "//" authority))
       path
       (when query (str "?" query))
       (when fragment (str "#" fragment))))

(deftype ^{:package "java.net"} URI [text scheme authority path query fragment]
  java.lang.Comparable
  (compareTo [this other] (compare text (str other)))
  (equals [this other] (and (instance? URI other) (= text (str other))))
  (getAuthority [this] (decoded authority))
  (getFragment [this] (decoded fragment))
  (getHost [this] (second (authority-parts authority)))
  (getPath [this] (when-not (.isOpaque this) (decoded path)))
  (getPort [this] (or (nth (authority-parts authority) 2 nil) -1))
  (getQuery [this] (decoded query))
  (getRawAuthority [this] authority)
  (getRawFragment [this] fragment)
  (getRawPath [this] (when-not (.isOpaque this) path))
  (getRawQuery [this] query)
  (getRawSchemeSpecificPart [this] (joined nil authority path query nil))
  (getScheme [this] scheme)
  (getSchemeSpecificPart [this] (decoded (joined nil authority path query nil)))
  (getUserInfo [this] (decoded (first (authority-parts authority))))
  (hashCode [this] (.hashCode text))
  (hasheq [this] (hash text))
  (isAbsolute [this] (some? scheme))
  (isOpaque [this] (and (some? scheme) (nil? authority) (not (clojure.string/starts-with? path "/"))))
  (normalize [this]
    (if (or (.isOpaque this) (= path (without-dots path)))
      this
      (java.net.URI. (joined scheme authority (without-dots path) query fragment))))
  (resolve [this other]
    (let [other (if (string? other) (java.net.URI. other) other)]
      (cond
        (or (.isOpaque this) (.isOpaque other) (.isAbsolute other)) other
        (.getRawAuthority other)
        (java.net.URI. (joined scheme (.getRawAuthority other) (.getRawPath other) (.getRawQuery other)
                               (.getRawFragment other)))
        (and (= "" (.getRawPath other)) (nil? (.getRawQuery other)) (some? (.getRawFragment other)))
        (java.net.URI. (joined scheme authority path query (.getRawFragment other)))
        :else
        (let [given (.getRawPath other)
              full (if (clojure.string/starts-with? given "/")
                     given
                     (without-dots (str (subs path 0 (inc (or (clojure.string/last-index-of path "/") -1))) given)))]
          (java.net.URI. (joined scheme authority full (.getRawQuery other) (.getRawFragment other)))))))
  (toASCIIString [this] text)
  (toString [this] text)
  (toURL [this] (java.net.URL. text)))

(defn- check
  "Rejects a text that is not a resource identifier."
  [text]
  (when-let [at (first (keep-indexed (fn [idx c] (when (clojure.string/includes? " <>\"{}|\\^`\n\t" (str c)) idx)) text))]
    (throw (java.net.URISyntaxException.
            (str "Illegal character in " (if (clojure.string/includes? (subs text 0 at) "?") "query" "path") " at index " at ": " text))))
  (when (re-find #"%(?![0-9a-fA-F]{2})" text)
    (throw (java.net.URISyntaxException. (str "Malformed escape pair: " text))))
  (when (re-find #"^(?:[^a-zA-Z/?#.%][^/?#]*|[a-zA-Z]*[^a-zA-Z0-9+.\-/?#:][^/?#:]*):" text)
    (throw (java.net.URISyntaxException. (str "Illegal character in scheme name at index 0: " text)))))

(defn unchecked
  "Returns the identifier for a text that may contain any characters."
  {:examples '[[(.getPath (URI/unchecked "a b")) "a b"]]}
  [text]
  (let [[_ scheme authority path query fragment] (re-matches parts text)]
    (->URI text scheme (not-empty authority) path query fragment)))

(defn new
  "Returns the identifier from its text, or from scheme, part and fragment, or from all parts."
  {:examples '[[(.getHost (java.net.URI. "http://example.com:80/a?b=c#d")) "example.com"]
               [(str (java.net.URI. "http" "example.com" "/a" nil)) "http://example.com/a"]]}
  ([text]
   (check text)
   (unchecked text))
  ([scheme part fragment] (java.net.URI. (joined scheme nil part nil fragment)))
  ([scheme host path fragment] (java.net.URI. (joined scheme host path nil fragment)))
  ([scheme authority path query fragment] (java.net.URI. (joined scheme authority path query fragment)))
  ([scheme user host port path query fragment]
   (java.net.URI. (joined scheme
                          (when host (str (when user (str user "@")) host (when-not (neg? port) (str ":" port))))
                          path query fragment))))

(defn create
  "Returns the identifier from its text; throws an IllegalArgumentException if it is malformed."
  {:examples '[[(.getPath (java.net.URI/create "/a/b")) "/a/b"]]}
  [text]
  (try
    (java.net.URI. text)
    (catch java.net.URISyntaxException e
      (throw (IllegalArgumentException. (ex-message e) e)))))
