package steps

import (
	"context"
	"fmt"
	"strings"

	"example.com/shop/loadtest/verdict"
)

// judge compares what the buyers were told with the shop's audit, as is done after
// a race.
func (s *stage) judge(ctx context.Context, stock int64) (sold int64, j verdict.Judgement, err error) {
	audit, err := s.pair.shop(2).Audit(ctx, s.sku)
	if err != nil {
		return 0, j, fmt.Errorf("audit: %w", err)
	}
	told := verdict.Told{Supplied: stock}
	for _, r := range s.requests {
		switch answer, err := r.outcome(); {
		case err != nil:
			told.Unknown++
		case answer.OrderID != "":
			told.Orders++
		case answer.Problem.SoldOut():
			told.Refused++
		default:
			told.Failed++
		}
	}
	books := verdict.Books{
		Supplied: audit.Books.Supplied, Orders: audit.Books.Orders,
		Units: audit.Books.OrderedUnits, Oversold: audit.Books.Oversold,
	}
	for _, d := range audit.Differences {
		books.Differences = append(books.Differences, d.Invariant+" "+d.Detail)
	}
	return audit.Books.OrderedUnits, verdict.Judge(books, told), nil
}

// outcome is what came of it, in a sentence.
func (s *stage) outcome(stock, sold int64, j verdict.Judgement) string {
	units := fmt.Sprintf("%d of %d units sold", sold, stock)
	if stock == 1 {
		units = fmt.Sprintf("%d sold of 1 unit", sold)
	}
	var said []string
	for i, r := range s.requests {
		who := r.actor
		if i > 1 {
			who += " again"
		}
		said = append(said, who+": "+answerText(r.outcome()))
	}
	how := "."
	switch j.Verdict {
	case verdict.Oversold:
		how = fmt.Sprintf(", %d too many.", j.Oversold)
	case verdict.Undersold:
		how = fmt.Sprintf(": B waited %v for a lock that should live %v, in vain.", 2*s.pair.where.Wait, s.pair.where.TTL)
	case verdict.Inconsistent:
		how = ", and the books disagree: " + strings.Join(j.Findings, "; ") + "."
	case verdict.Correct:
	}
	return units + how + " " + strings.Join(said, "; ") + "."
}

// soldTooMuch returns the index of the write that sold more than was there; -1 if
// none did.
func soldTooMuch(events []Event, stock int64) int {
	var sold int64
	for i, e := range events {
		if e.Kind == SQL && strings.HasPrefix(e.Text, "UPDATE skus") && e.Answer == "1 row" {
			if sold++; sold > stock {
				return i
			}
		}
	}
	return -1
}
