1 -2 3N 4.5M 6/7 0x1F 36rZZ 017 1e-3 \a \newline \u0041 \o101 "t\tq\"u\u00e9" :k ::l :n/m sym ns/sym nil true
