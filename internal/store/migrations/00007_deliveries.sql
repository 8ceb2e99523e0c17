-- Which request brought which units in. Two requests with one key meet at the
-- primary key: the second waits for the first's transaction, then is told what
-- that one was told. Rows stay: there are few, and an old delivery that is told
-- again must not count again.

-- +goose Up
CREATE TABLE IF NOT EXISTS deliveries (
    sku             VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    movement_id     VARCHAR(36)  NOT NULL,
    units           BIGINT       NOT NULL CHECK (units > 0),
    supplied        BIGINT       NOT NULL, -- the level after it, as it was answered
    available       BIGINT       NOT NULL,
    reserved        BIGINT       NOT NULL,
    sold            BIGINT       NOT NULL,
    PRIMARY KEY (sku, idempotency_key)
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
