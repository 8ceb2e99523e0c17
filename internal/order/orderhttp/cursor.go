package orderhttp

import (
	"encoding/base64"
	"fmt"
	"strings"

	"example.com/shop/internal/stock"
)

// cursor is the kind of a list's cursors. Each holds the key of the last item
// shown, behind the kind's name: a cursor of one list, or of a later format, is
// refused by every other. It is encoded so that nobody builds one by hand.
type cursor struct {
	name  string
	valid func(key string) bool
}

func skuCursor() cursor   { return cursor{name: "sku1", valid: stock.ValidName} }
func orderCursor() cursor { return cursor{name: "order1", valid: validID} }

// after returns the cursor of the page that begins behind the item with this key.
func (k cursor) after(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(k.name + ":" + key))
}

// read returns the key in a cursor; empty for none.
func (k cursor) read(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
	name, key, _ := strings.Cut(string(plain), ":")
	if err != nil || name != k.name || !k.valid(key) {
		return "", fmt.Errorf("%w: cursor: want a next_cursor as this list answered it", errMalformed)
	}
	return key, nil
}
