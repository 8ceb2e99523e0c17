package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"example.com/shop/internal/app"
)

// childVariable makes this program an instance of the shop.
const childVariable = "LOADTEST_STEP_SHOP"

// stopping is how long a shop has to stop.
const stopping = 15 * time.Second

// hello is what a child says once it serves, or why it cannot.
type hello struct{ URL, Error string }

// Child runs an instance of the shop if this process was started as one, and
// reports whether it was. It ends with stdin: when the Player closes it, or the
// process of the Player is gone.
func Child(getenv func(string) string, stdin io.Reader, stdout io.Writer) (was bool, err error) {
	if getenv(childVariable) == "" {
		return false, nil
	}
	var where place
	in := json.NewDecoder(stdin)
	if err := in.Decode(&where); err != nil {
		return true, fmt.Errorf("read where to keep things: %w", err)
	}
	shop, err := app.Start(context.Background(), where.settings())
	if err != nil {
		return true, json.NewEncoder(stdout).Encode(hello{Error: err.Error()})
	}
	if err := json.NewEncoder(stdout).Encode(hello{URL: shop.URL()}); err != nil {
		return true, err
	}
	_, _ = io.Copy(io.Discard, stdin)
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	return true, shop.Shutdown(ctx)
}
