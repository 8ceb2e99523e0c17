-- +goose Up
CREATE TABLE IF NOT EXISTS buyer_units (
    sku   VARCHAR(64) NOT NULL,
    buyer VARCHAR(64) NOT NULL,
    units BIGINT      NOT NULL,
    PRIMARY KEY (sku, buyer)
);
REPLACE INTO buyer_units
    SELECT l.sku, o.buyer, SUM(l.units)
    FROM skus AS s JOIN order_lines AS l ON l.sku = s.name JOIN orders AS o ON o.id = l.order_id
    WHERE s.limit_per_buyer > 0 AND o.status IN ('pending', 'paid') GROUP BY l.sku, o.buyer;
