package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// picture returns what a pattern matches in a section of architecture.md.
func picture(t *testing.T, section, pattern string) [][]string {
	t.Helper()
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## "+section+"\n")
	drawn, _, _ := strings.Cut(rest, "\n## ")
	return regexp.MustCompile(pattern).FindAllStringSubmatch(drawn, -1)
}

// Every package is in the picture, and the arrows from a package lead to exactly the packages that it imports, directly or
// through others.
func TestArchitecture_packages(t *testing.T) {
	t.Parallel()
	nodes, arrows, imports := map[string]string{}, map[string][]string{}, map[string][]string{}
	for _, node := range picture(t, "The packages", `(\w+)\["([\w/]+).*?"\](?: --> (.*))?`) {
		nodes[node[2]], arrows[node[1]] = node[1], strings.Fields(strings.ReplaceAll(node[3], "&", ""))
	}
	nodeOf := func(folder string) string {
		for folder != "." && nodes[folder] == "" {
			folder = filepath.Dir(folder)
		}
		return nodes[folder]
	}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		folder := strings.TrimPrefix(filepath.Dir(path), "../")
		ours := regexp.MustCompile(`^\.\./(cmd|internal|loadtest)/.*\.go$`).MatchString(path)
		if err != nil || !ours || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil || nodeOf(folder) == "" {
			t.Errorf("%s: not in the picture, %v", path, err)
			return nil
		}
		for _, i := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "example.com/shop/")
			if from, to := nodeOf(folder), nodeOf(imported); ours && from != to {
				imports[from] = append(imports[from], to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, node := range nodes {
		if diff := cmp.Diff(reached(imports, node), reached(arrows, node)); diff != "" {
			t.Errorf("%s (-imports +picture):\n%s", folder, diff)
		}
	}
}

// reached returns the nodes that the arrows from a node lead to, directly or through others.
func reached(arrows map[string][]string, node string) []string {
	seen := map[string]bool{}
	for next := slices.Clone(arrows[node]); len(next) > 0; next = next[1:] {
		if !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, arrows[next[0]]...)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Each call of the service does to an order in each state what the picture says.
func TestArchitecture_order(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := storetest.SQLite(t)
	seller := batch.New(batch.Config{Shop: strategy.Shop{Store: db}})
	defer seller.Close()
	service := order.New(order.Config{Store: db, Strategy: seller, Ends: seller})
	level := stock.Level{Supplied: 100, Available: 100}
	if err := db.Create(ctx, stock.SKU{Name: "mug", Price: stock.Money{Minor: 1, Currency: "EUR"}, Level: level}); err != nil {
		t.Fatal(err)
	}
	do := func(call string, o order.Order) { // the order's status will tell what the call did
		switch own := (order.EndRequest{Buyer: o.Buyer, OrderID: o.ID}); call {
		case "Cancel":
			_, _ = service.Cancel(ctx, own)
		case "ExpireDue":
			_, _ = service.ExpireDue(ctx, 10)
		case "Extend":
			_, _ = service.Extend(ctx, o.ID)
		case "Pay":
			_, _ = service.Pay(ctx, own)
		case "PaymentFailed":
			_, _ = service.PaymentFailed(ctx, o.ID, true)
		case "TakePayment":
			_, _ = service.TakePayment(ctx, order.Payment{ID: o.ID, OrderID: o.ID, Amount: o.Total})
		}
	}
	ends := map[string]string{"pending": "", "due": "", "paid": "Pay", "cancelled": "Cancel", "expired": "ExpireDue"}
	did := map[string][]string{}
	for _, call := range []string{"Cancel", "ExpireDue", "Extend", "Pay", "PaymentFailed", "TakePayment"} {
		for from, end := range ends {
			service.Hold = time.Hour
			if from == "due" || from == "expired" {
				service.Hold = time.Microsecond
			}
			lines := []order.Line{{SKU: "mug", Units: 1}}
			o, _, err := service.Place(ctx, order.Request{Buyer: "ann", Key: call + from, Lines: lines})
			for due := []order.Order{}; err == nil && service.Hold < time.Hour && len(due) == 0; {
				due, err = db.Due(ctx, order.Order{}, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			do(end, o)
			do(call, o)
			if o, err = service.Order(ctx, o.Buyer, o.ID); err != nil || string(o.Status) != from {
				did[from+" --> "+string(o.Status)] = append(did[from+" --> "+string(o.Status)], call)
			}
		}
	}
	drawn := map[string][]string{}
	for _, arrow := range picture(t, "An order", `(\w+ --> (?:paid|cancelled|expired)): (.*)`) {
		drawn[arrow[1]] = strings.Split(arrow[2], ", ")
	}
	if diff := cmp.Diff(drawn, did); diff != "" {
		t.Errorf("(-picture +service):\n%s", diff)
	}
}
