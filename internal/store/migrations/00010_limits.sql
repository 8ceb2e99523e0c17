-- How much a buyer may hold and buy. The table has a row for each buyer whose
-- orders were limited: it is locked while one of them is placed, so that the next
-- one counts it. Rows stay.

-- +goose Up
CREATE TABLE IF NOT EXISTS buyers (
    buyer VARCHAR(64) NOT NULL PRIMARY KEY
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- Units that a buyer may have of it; 0 for any number.
ALTER TABLE skus ADD COLUMN limit_per_buyer BIGINT NOT NULL DEFAULT 0 CHECK (limit_per_buyer >= 0);

-- A buyer's orders by state, the first to expire first.
CREATE INDEX orders_of_buyer_by_status ON orders (buyer, status, expires_at);
