package logbook_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/observe/logbook"
)

// "Several goroutines may write to it at once, and a test may read it meanwhile."
func TestBook(t *testing.T) {
	t.Parallel()
	const writers, lines = 8, 100
	var book logbook.Book
	if book.Has("writer") || book.String() != "" {
		t.Errorf("got %q of an empty book", &book)
	}
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for range lines {
				line := fmt.Sprintf("writer %d\n", i)
				fmt.Fprint(&book, line)
				if !book.Has(line) {
					t.Errorf("want %q, which was written, in\n%s", line, &book)
				}
			}
		})
	}
	all.Wait()
	for i := range writers {
		if got := strings.Count(book.String(), fmt.Sprintf("writer %d\n", i)); got != lines {
			t.Errorf("writer %d: got %d lines, want %d, each whole", i, got, lines)
		}
	}
}
