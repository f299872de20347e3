(ns URL
  "`java.net.URL`: addresses as text and parts. Nothing is fetched from them.")

(deftype ^{:package "java.net"} URL [uri]
  java.lang.Object
  (equals [this other] (and (instance? URL other) (= (str uri) (str other))))
  (getAuthority [this] (.getRawAuthority uri))
  (getFile [this] (str (.getRawPath uri) (when-let [query (.getRawQuery uri)] (str "?" query))))
  (getHost [this] (or (.getHost uri) ""))
  (getPath [this] (or (.getRawPath uri) ""))
  (getPort [this] (.getPort uri))
  (getProtocol [this] (.getScheme uri))
  (getQuery [this] (.getRawQuery uri))
  (getRef [this] (.getRawFragment uri))
  (getUserInfo [this] (.getUserInfo uri))
  (hashCode [this] (.hashCode uri))
  (hasheq [this] (hash (str uri)))
  (toExternalForm [this] (str uri))
  (toString [this] (str uri))
  (toURI [this] (java.net.URI. (str uri))))

(defn new
  "Returns an address from its text."
  {:examples '[[(.getHost (java.net.URL. "http://example.com/a")) "example.com"]]}
  [text]
  (let [uri (URI/unchecked text)]
    (cond
      (nil? (.getScheme uri)) (throw (java.net.MalformedURLException. (str "no protocol: " text)))
      (contains? #{"file" "ftp" "http" "https" "jar" "mailto"} (clojure.string/lower-case (.getScheme uri))) (->URL uri)
      :else (throw (java.net.MalformedURLException. (str "unknown protocol: " (.getScheme uri)))))))
