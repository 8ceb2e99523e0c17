package orderhttp_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/stock"
)

// Kinds of shops, as a bad request may need one.
const (
	plainShop = ""
	labShop   = "lab"
	tokenShop = "tokens"
)

const withKey = "Idempotency-Key: key-1"

// badRequest is a request and how it must be refused.
type badRequest struct {
	shop           string
	method, target string
	headers        []string
	body           string
	status         int
	slug           string
}

// "Bad input never is a 5xx": each has its 4xx, as openapi.yaml has it, and changes
// no row.
func TestBadRequests(t *testing.T) {
	table := map[string]badRequest{}
	for _, part := range []map[string]badRequest{badBodies(), badHeaders(), badLessons(), badURLs(), badTokens(t)} {
		maps.Copy(table, part)
	}
	t.Logf("%d bad requests", len(table))
	if len(table) < 150 {
		t.Errorf("got %d rows, want 150 at least", len(table))
	}
	shops := map[string]*refusing{
		plainShop: newRefusing(t, nil),
		labShop:   newRefusing(t, lab),
		tokenShop: newRefusing(t, func(c *orderhttp.Config) { c.Buyers = tokens(t, shopSecret) }),
	}
	for name, bad := range table {
		t.Run(name, func(t *testing.T) { shops[bad.shop].refuse(t, bad) })
	}
}

// Each path with each method that it does not take.
func TestBadRequests_methods(t *testing.T) {
	for name, shop := range map[string]*refusing{"buyers": newRefusing(t, nil), "operator": newRefusingOperator(t)} {
		t.Run(name, shop.refuseMethods)
	}
}

func (s *refusing) refuseMethods(t *testing.T) {
	taken := map[string]string{}
	for _, route := range s.asked.(*gin.Engine).Routes() {
		taken[route.Path] += " " + route.Method + " "
	}
	for path, methods := range taken {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "SELL", "get"} {
			if strings.Contains(methods, " "+method+" ") {
				continue
			}
			target := strings.NewReplacer(":id", "ANN", ":sku", "mug", ":profile", "heap").Replace(path)
			t.Run(method+" "+path, func(t *testing.T) {
				s.refuse(t, badRequest{
					method: method, target: target, headers: []string{asOperator},
					status: http.StatusMethodNotAllowed, slug: "method-not-allowed",
				})
			})
		}
	}
}

// refusing is a shop with 5 mugs, one of which ann has ordered, no hats, and pens
// in another currency.
type refusing struct {
	*bundle
	asked http.Handler
	anns  string // order
	rows  map[string][]map[string]any
}

func newRefusing(t *testing.T, change func(*orderhttp.Config)) *refusing {
	t.Helper()
	b := setup(t, change)
	b.supply(t, "mug", 5)
	b.supply(t, "hat", 0)
	b.supplyAt(t, stock.Money{Minor: 1, Currency: "USD"}, "pen", 5)
	ann := "Shop-Buyer: ann"
	if b.config.Buyers != nil {
		ann = shows(t, shopSecret, "ann")
	}
	w := b.buy(t, "anns-key", goodOrder, ann)
	wantStatus(t, w, http.StatusCreated)
	anns := strings.TrimPrefix(w.Header().Get("Location"), "/v1/orders/")
	return &refusing{bundle: b, asked: b.handler, anns: anns, rows: b.allRows(t)}
}

// refuse sends a bad request and checks all that is promised of its answer.
func (s *refusing) refuse(t *testing.T, bad badRequest) {
	t.Helper()
	w := s.callOn(t, s.asked, bad.method, strings.ReplaceAll(bad.target, "ANN", s.anns), bad.body, bad.headers...)
	problem := wantProblem(t, w, bad.status, bad.slug)
	if problem["retry_safe"] != false {
		t.Error("got retry_safe, want none: the same request is refused again")
	}
	detail := fmt.Sprint(problem["detail"])
	if len(detail) > 300 {
		t.Errorf("got a detail of %d characters, want a short one", len(detail))
	}
	if bad.slug == "lab-off" && !strings.Contains(detail, "--lab") {
		t.Errorf("got detail %q, want it to say how to switch teaching mode on", detail)
	}
	if allow := w.Header().Get("Allow"); (allow != "") != (bad.status == http.StatusMethodNotAllowed) {
		t.Errorf("got Allow %q with status %d, want one with 405 alone", allow, bad.status)
	}
	realm := `Bearer realm="shop"`
	if s.asked == s.operator {
		realm = `Bearer realm="shop operator"`
	}
	www := map[string]string{"no-token": realm, "bad-token": realm + `, error="invalid_token"`}
	if got := w.Header().Get("WWW-Authenticate"); got != www[bad.slug] {
		t.Errorf("got WWW-Authenticate %q, want %q", got, www[bad.slug])
	}
	now := s.allRows(t)
	if diff := cmp.Diff(s.rows, now); diff != "" {
		t.Errorf("rows changed:\n%s", diff)
	}
	s.rows = now
}

// allRows reads everything that a shop keeps.
func (b *bundle) allRows(t *testing.T) map[string][]map[string]any {
	t.Helper()
	tables, err := b.db.Migrator().GetTables()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]map[string]any{}
	for _, table := range tables {
		var rows []map[string]any
		if err := b.db.Table(table).Find(&rows).Error; err != nil {
			t.Fatal(err)
		}
		all[table] = rows
	}
	return all
}
