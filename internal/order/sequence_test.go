package order_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// tables say of what kind their rows are, in the words of doc.go, and how the statements of the test name a row. Rows
// without a kind "may be written at any moment", or are written outside of transactions.
var tables = map[string]struct {
	kind string
	row  *regexp.Regexp
}{
	"orders":            {"orders", regexp.MustCompile(`'[0-9a-f-]{36}'`)},
	"buyers":            {"buyers", regexp.MustCompile(`'buyer-\d'`)},
	"idempotency_keys":  {"idempotency keys", regexp.MustCompile(`'key-[^']*'`)},
	"deliveries":        {"idempotency keys", regexp.MustCompile(`'key-[^']*'`)},
	"skus":              {"SKUs", regexp.MustCompile(`'sku-\d'`)},
	"buyer_units":       {"units that buyers have of SKUs with a limit", regexp.MustCompile(`'sku-\d'(, ?'buyer-\d')?`)},
	"payments":          {"payments", regexp.MustCompile(`'(buyer:|pi-)[^']*'`)},
	"order_lines":       {},
	"movements":         {},
	"idempotency_purge": {},
}

var (
	locking = regexp.MustCompile("^(INSERT|UPDATE|DELETE|REPLACE) |FOR UPDATE")
	tableOf = regexp.MustCompile("\\b(?:FROM|INTO|UPDATE|JOIN) `?([a-z_]+)")
)

// sequence checks the statements of transactions that come one after the other.
type sequence struct {
	t     *testing.T
	kinds []string // as in doc.go

	mu     sync.Mutex
	seen   map[string]bool // kinds
	locked map[string]bool // rows, by this transaction
	kind   int             // of the last of them
	placed bool            // orders, by this transaction: their payments are as new
	row    string          // the last of its kind that the transaction may have waited for
}

func (s *sequence) judge(statement string) testserver.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if statement == "START TRANSACTION" || statement == "COMMIT" {
		s.locked, s.kind, s.row, s.placed = map[string]bool{}, 0, "", false
	}
	if !locking.MatchString(statement) {
		return testserver.Pass
	}
	name := append(tableOf.FindStringSubmatch(statement), "", "")[1]
	table, known := tables[name]
	if !known {
		s.t.Errorf("doc.go does not say when rows of table %q are locked: %s", name, statement)
	}
	if table.kind == "" {
		return testserver.Pass
	}
	rows := table.row.FindAllString(statement, -1)
	if strings.Contains(statement, "ORDER BY name") {
		slices.Sort(rows)
	}
	s.placed = s.placed || strings.HasPrefix(statement, "INSERT INTO `orders`")
	kind, isNew := slices.Index(s.kinds, table.kind), s.placed && (name == "orders" || name == "payments")
	waits := !strings.Contains(statement, "SKIP LOCKED") && !strings.Contains(statement, "NOWAIT")
	s.seen[table.kind] = s.seen[table.kind] || len(rows) > 0
	for _, row := range rows {
		known := s.locked[name+row]
		s.locked[name+row] = true
		if known || isNew {
			continue
		}
		if kind < s.kind || kind == s.kind && waits && row < s.row {
			s.t.Errorf("%s %s behind %s %s: %s", table.kind, row, s.kinds[s.kind], s.row, statement)
		}
		if kind != s.kind {
			s.kind, s.row = kind, ""
		}
		if waits {
			s.row = row
		}
	}
	return testserver.Pass
}

// "Every transaction of the shop locks rows in one sequence", which doc.go names.
func TestOneSequenceOfLocks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	line := regexp.MustCompile(`(?m)in one sequence, .*:\n//\n//\t(.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatalf("doc.go does not say in which sequence rows are locked, %v", err)
	}
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		s := &sequence{t: t, kinds: strings.Split(string(line[1]), " -> "), seen: map[string]bool{}}
		database := kind.New(t, "")
		operator := setup(t, database.Migrated(t))
		b := setup(t, database.Through(t, s.judge).Open(t), func(c *config) { c.maxOpen = 100 })

		var skus []stock.SKU
		for i, name := range []string{"sku-0", "sku-3", "sku-1", "sku-2"} { // the first is free
			skus = append(skus, stock.SKU{Name: name, Price: stock.Money{Minor: int64(i), Currency: "EUR"}, Level: stock.Level{Supplied: 100, Available: 100}, CreatedAt: time.Now()})
		}
		wantErr(t, "create", b.db.Create(t.Context(), skus...), nil)
		b.limit(t, "sku-0", 50)
		b.limit(t, "sku-1", 50)
		b.limit(t, "sku-3", 50)
		for range 2 { // the second time, it is replayed
			_, _, err := b.db.Supply(t.Context(), stock.Delivery{SKU: "sku-1", Key: "key-delivery", Units: 1, At: time.Now()})
			wantErr(t, "delivery", err, nil)
		}

		for _, name := range strategy.Names() {
			g := &gathering{bundle: b.by(name)}
			var carts []order.Request
			for i, skus := range [][]string{{"sku-3", "sku-1", "sku-2"}, {"sku-2"}, {"sku-2", "sku-1", "sku-3"}} {
				r := order.Request{Buyer: nth(2 - i), Key: "key-" + nth(2-i) + "-" + name}
				for _, sku := range skus {
					r.Lines = append(r.Lines, order.Line{SKU: sku, Units: 1})
				}
				carts = append(carts, r)
			}
			carts[1].Lines[0].Units = 101 // sold out
			for _, buyer := range []string{nth(4), nth(3)} {
				carts = append(carts, purchase(buyer, "key-"+buyer+"-"+name, "sku-0", 1))
			}
			for range 2 { // the second time, they are replayed
				if name == "lanes" || name == "batch" {
					g.together(t, "sku-1", carts...)
					continue
				}
				for _, r := range carts {
					_, _, _ = g.Place(t.Context(), r)
				}
			}
		}

		var endings []order.Ending
		for _, buyer := range []string{nth(2), nth(0)} {
			placed, err := b.Orders(t.Context(), buyer, "", 100)
			if err != nil || len(placed) != len(strategy.Names()) {
				t.Errorf("%d orders, %v", len(placed), err)
			}
			for i, o := range placed {
				e := order.Ending{OrderID: o.ID, Buyer: o.Buyer, As: []order.Status{order.Paid, order.Cancelled, order.Expired}[i%3]}
				switch {
				case e.As == order.Paid && i < 3:
					e.Payment = pays("pi-"+buyer, o)
				case e.As == order.Expired:
					operator.makeDue(t, o)
				case i > 2:
					e.Key = "key-" + buyer + "-end" + o.ID
				}
				endings = append(endings, e)
			}
		}
		for i, o := range b.lanes.End(t.Context(), endings...) {
			if o.Err != nil || !o.First {
				t.Errorf("%s: %s, %v", endings[i].As, o.Order.Status, o.Err)
			}
		}
		_, err := b.db.PurgeKeys(t.Context(), 0)
		wantErr(t, "purge", err, nil)
		for _, kind := range s.kinds {
			if !s.seen[kind] {
				t.Errorf("no transaction locks %s", kind)
			}
		}
	})
}
