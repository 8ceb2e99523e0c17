-- +goose Up
CREATE TABLE IF NOT EXISTS orders (
    id              VARCHAR(36)  NOT NULL PRIMARY KEY, -- UUIDv7: later orders sort last
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,             -- not unique here: the audit compares it with its own table
    status          VARCHAR(16)  NOT NULL,
    total_minor     BIGINT       NOT NULL CHECK (total_minor >= 0),
    currency        CHAR(3)      NOT NULL,
    created_at      DATETIME(6)  NOT NULL
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- A buyer's orders, the latest first: ids sort by time.
CREATE INDEX orders_of_buyer ON orders (buyer, id);
