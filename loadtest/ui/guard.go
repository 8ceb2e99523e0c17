package ui

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy lets the page load what is served beside it, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard turns away what other pages send. name is the host that was listened on.
func guard(name string, next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !known(r.Host, name) {
			refuse(w, http.StatusMisdirectedRequest, Problem{Text: "this is not the host that the lab listens on"})
			return
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// known reports whether a Host can only be meant for this server. A name may be
// made to lead anywhere by whoever owns it, an address may not.
func known(host, name string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || strings.EqualFold(host, name)
}
