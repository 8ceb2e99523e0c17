package client

import (
	"context"
	"net/http"
	"os"
	"testing"

	"example.com/client/openapi"
)

// The client that oapi-codegen generates from openapi.yaml, with its defaults, buys at $SHOP with $TOKEN, and
// pays at $OPERATOR_API with $PAYMENTS: .ci/openapi.
func TestClient(t *testing.T) {
	ctx := t.Context()
	shop := must(openapi.NewClientWithResponses(os.Getenv("SHOP"),
		openapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
			return nil
		})))
	buy := func(key, sku string, quantity int64) *openapi.PlaceOrderResponse {
		return must(shop.PlaceOrderWithResponse(ctx, &openapi.PlaceOrderParams{IdempotencyKey: key},
			openapi.NewOrder{Lines: []openapi.NewLine{{Sku: sku, Quantity: quantity}}}))
	}

	limit := 1
	skus := must(shop.ListSKUsWithResponse(ctx, &openapi.ListSKUsParams{Limit: &limit}))
	price := openapi.Money{Minor: 1250, Currency: "EUR"}
	equal(t, body(t, skus.JSON200, skus).Skus[0], openapi.SKU{Sku: "demo-mug", Price: price, Supplied: 1000, Available: 1000})

	placed := buy("cart-1", "demo-mug", 2)
	order := body(t, placed.JSON201, placed)
	equal(t, order.Status, openapi.Pending)
	equal(t, order.Lines[0], openapi.Line{Sku: "demo-mug", Quantity: 2, Price: price})
	equal(t, order.ExpiresAt.After(order.CreatedAt), true)
	equal(t, placed.Headers201.Location, "/v1/orders/"+order.Id)
	equal(t, placed.Headers201.IdempotentReplayed, nil)
	provider := must(openapi.NewClientWithResponses(os.Getenv("OPERATOR_API"),
		openapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("PAYMENTS"))
			return nil
		})))
	pay := func(id string) *openapi.PayOrderResponse {
		return must(provider.PayOrderWithResponse(ctx, order.Id, nil, openapi.NewPayment{PaymentId: id, Amount: order.Total}))
	}
	paid := pay("pi_1")
	equal(t, body(t, paid.JSON200, paid).Status, openapi.Paid)
	twice := pay("pi_2")
	problem := body(t, twice.ApplicationproblemJSON409, twice)
	equal(t, problem.Type, openapi.ProblemsalreadyPaid)
	equal(t, *problem.Refund, true)

	replay := buy("cart-1", "demo-mug", 2)
	equal(t, body(t, replay.JSON201, replay).Id, order.Id)
	equal(t, *replay.Headers201.IdempotentReplayed, "true")
	reused := buy("cart-1", "demo-mug", 3)
	problem = body(t, reused.ApplicationproblemJSON422, reused)
	equal(t, problem.Type, openapi.ProblemskeyReused)
	equal(t, problem.Status, http.StatusUnprocessableEntity)

	placed = buy("cart-2", "demo-mug", 1)
	order = body(t, placed.JSON201, placed)
	cancelled := must(shop.CancelOrderWithResponse(ctx, order.Id, nil))
	equal(t, body(t, cancelled.JSON200, cancelled).Status, openapi.Cancelled)
	late := pay("pi_3")
	problem = body(t, late.ApplicationproblemJSON409, late)
	equal(t, problem.Type, openapi.ProblemsorderEnded)
	equal(t, *problem.OrderStatus, openapi.Cancelled)

	refused := buy("cart-3", "demo-print", 2) // there is one
	problem = body(t, refused.ApplicationproblemJSON409, refused)
	equal(t, problem.Type, openapi.ProblemssoldOut)
	equal(t, problem.RetrySafe, false)

	mug := must(shop.GetSKUWithResponse(ctx, "demo-mug"))
	equal(t, body(t, mug.JSON200, mug), openapi.SKU{Sku: "demo-mug", Price: price, Supplied: 1000, Available: 998, Sold: 2})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// body returns the typed body of an answer. An answer of another status has none, which fails the test.
func body[T any](t *testing.T, typed *T, answer interface {
	Status() string
	GetBody() []byte
}) T {
	t.Helper()
	if typed == nil {
		t.Fatalf("got %s: %s, want a %T", answer.Status(), answer.GetBody(), typed)
	}
	return *typed
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
