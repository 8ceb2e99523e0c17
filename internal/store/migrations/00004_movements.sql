-- The ledger: rows are added, never changed. Each says what it adds to the counts
-- of its SKU; their sums are the counts.

-- +goose Up
CREATE TABLE IF NOT EXISTS movements (
    sku        VARCHAR(64) NOT NULL,
    id         VARCHAR(36) NOT NULL, -- UUIDv7
    kind       VARCHAR(16) NOT NULL, -- supply, reserve
    order_id   VARCHAR(36) NULL,     -- NULL for a supply
    supplied   BIGINT      NOT NULL,
    available  BIGINT      NOT NULL,
    reserved   BIGINT      NOT NULL,
    sold       BIGINT      NOT NULL,
    fence      BIGINT      NOT NULL, -- 0 where the strategy has none
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (sku, id),           -- a SKU's ledger lies together, in the order of time
    UNIQUE (order_id, sku, kind)     -- an order reserves its units once; rows without an order are all distinct
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
