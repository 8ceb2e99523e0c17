-- How long an order holds its units unpaid. Orders from before this file get a
-- day that never comes: they can be paid and cancelled, and are not expired.

-- +goose Up
ALTER TABLE orders ADD COLUMN expires_at DATETIME(6) NOT NULL DEFAULT '9999-12-31 23:59:59.000000';

-- The pending orders, the first to expire first.
CREATE INDEX orders_due ON orders (status, expires_at, id);
