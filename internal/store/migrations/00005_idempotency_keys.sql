-- Which request made which order. Two requests with one key meet at the primary
-- key: the second waits for the first's transaction, then is refused.

-- +goose Up
CREATE TABLE IF NOT EXISTS idempotency_keys (
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    fingerprint     VARCHAR(64)  NOT NULL, -- SHA-256 of the request: the same key with another request is refused
    order_id        VARCHAR(36)  NOT NULL,
    created_at      DATETIME(6)  NOT NULL,
    PRIMARY KEY (buyer, idempotency_key)
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
