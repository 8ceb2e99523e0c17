-- +goose NO TRANSACTION
-- +goose Up
-- What the pending and paid orders of a buyer have of a SKU that has a limit. A row is written while that of its SKU is
-- locked.
CREATE TABLE IF NOT EXISTS buyer_units (
    sku   VARCHAR(64) NOT NULL,
    buyer VARCHAR(64) NOT NULL,
    units BIGINT      NOT NULL,
    PRIMARY KEY (sku, buyer)
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
REPLACE INTO buyer_units
    SELECT l.sku, o.buyer, SUM(l.units)
    FROM skus AS s JOIN order_lines AS l ON l.sku = s.name JOIN orders AS o ON o.id = l.order_id
    WHERE s.limit_per_buyer > 0 AND o.status IN ('pending', 'paid') GROUP BY l.sku, o.buyer;
