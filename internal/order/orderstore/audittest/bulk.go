package audittest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// bulkRows is how many rows one INSERT has.
const bulkRows = 200

// bulk writes rows to one table, many in each statement.
type bulk struct {
	tx      *sql.Tx
	table   string
	columns []string
	values  []any
	full    *sql.Stmt // for bulkRows
}

func (b *bulk) add(ctx context.Context, row ...any) (err error) {
	if b.values = append(b.values, row...); len(b.values) < bulkRows*len(b.columns) {
		return nil
	}
	if b.full == nil {
		if b.full, err = b.tx.PrepareContext(ctx, b.insert(bulkRows)); err != nil {
			return fmt.Errorf("fill %s: %w", b.table, err)
		}
	}
	if _, err := b.full.ExecContext(ctx, b.values...); err != nil {
		return fmt.Errorf("fill %s: %w", b.table, err)
	}
	b.values = b.values[:0]
	return nil
}

// flush writes the rows that do not fill a statement.
func (b *bulk) flush(ctx context.Context) error {
	if len(b.values) == 0 {
		return nil
	}
	if _, err := b.tx.ExecContext(ctx, b.insert(len(b.values)/len(b.columns)), b.values...); err != nil {
		return fmt.Errorf("fill %s: %w", b.table, err)
	}
	b.values = b.values[:0]
	return nil
}

func (b *bulk) insert(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(b.columns)-1) + ")"
	return "INSERT INTO " + b.table + " (" + strings.Join(b.columns, ", ") + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}
