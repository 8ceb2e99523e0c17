package orderstore

import (
	"context"

	"example.com/shop/internal/order"
)

// withLines reads the lines of all these orders at once. Lines are written with
// their order and never change, so that they need not be of the same snapshot.
func (s *Store) withLines(ctx context.Context, rows []orderRow) ([]order.Order, error) {
	orders := make([]order.Order, len(rows))
	if len(rows) == 0 {
		return orders, nil
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	var found []lineRow
	err := s.db.WithContext(ctx).Where("order_id IN ?", ids).Order("order_id, line_no").Find(&found).Error
	if err != nil {
		return nil, readError(err, "lines of orders")
	}
	lines := map[string][]lineRow{}
	for _, line := range found {
		lines[line.OrderID] = append(lines[line.OrderID], line)
	}
	for i, row := range rows {
		orders[i] = row.order(lines[row.ID])
	}
	return orders, nil
}

// withItsLines is withLines of one order.
func (s *Store) withItsLines(ctx context.Context, row orderRow) (order.Order, error) {
	orders, err := s.withLines(ctx, []orderRow{row})
	if err != nil {
		return order.Order{}, err
	}
	return orders[0], nil
}
