package stock_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

// The operator's guide has the words of each invariant.
func TestPromises(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range stock.Promises() {
		if row := fmt.Sprintf("| %s | %s |", p.Invariant, p.Text); !strings.Contains(string(guide), row) {
			t.Errorf("docs/operations.md does not have %q", row)
		}
	}
}
