package orderhttp

import (
	"encoding/base64"
	"fmt"

	"example.com/shop/internal/stock"
)

// A cursor is the name after which the next page begins, encoded so that nobody
// builds one by hand and is surprised by a later format.
func cursorAfter(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(name))
}

// readCursor returns the name in a cursor; empty for none.
func readCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	name, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || !stock.ValidName(string(name)) {
		return "", fmt.Errorf("%w: cursor: want a next_cursor as it was answered", errMalformed)
	}
	return string(name), nil
}
