package orderhttp

import (
	"net/http"
	"regexp"

	"github.com/google/uuid"
)

// requestIDRule is what an id may look like that somebody else has given: it is
// answered, logged, and told by telephone.
var requestIDRule = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,64}$`)

// requestID returns the id that a request brings along, or a new one if there is
// none that may be used.
func requestID(h http.Header) string {
	if given := h.Values(headerRequestID); len(given) == 1 && requestIDRule.MatchString(given[0]) {
		return given[0]
	}
	return uuid.Must(uuid.NewV7()).String()
}
