package stock_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

// docs/architecture.md has the words of each invariant.
func TestPromises(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range stock.Promises() {
		if row := fmt.Sprintf("| %s | %s |", p.Invariant, p.Text); !strings.Contains(string(page), row) {
			t.Errorf("docs/architecture.md does not have %q", row)
		}
	}
}
