-- The schema for SQLite; ../mysql has the same tables for MySQL and MariaDB, and says what they are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS skus (
    name            VARCHAR(64) NOT NULL PRIMARY KEY,
    price_minor     BIGINT      NOT NULL CHECK (price_minor >= 0),     -- cents, of one unit
    currency        CHAR(3)     NOT NULL,
    limit_per_buyer BIGINT      NOT NULL DEFAULT 0 CHECK (limit_per_buyer >= 0), -- units; 0 for any number
    supplied        BIGINT      NOT NULL CHECK (supplied >= 0),
    available       BIGINT      NOT NULL CHECK (available >= 0),       -- the last line of defence: never below zero
    reserved        BIGINT      NOT NULL CHECK (reserved >= 0),
    sold            BIGINT      NOT NULL CHECK (sold >= 0),
    fence           BIGINT      NOT NULL,                              -- the highest one that wrote this row; 0 before the first
    created_at      DATETIME(6) NOT NULL
);

CREATE TABLE IF NOT EXISTS orders (
    id              VARCHAR(36)  NOT NULL PRIMARY KEY, -- UUIDv7: later orders sort last
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,             -- not unique here: the audit compares it with its own table
    status          VARCHAR(16)  NOT NULL,
    total_minor     BIGINT       NOT NULL CHECK (total_minor >= 0),
    currency        CHAR(3)      NOT NULL,
    created_at      DATETIME(6)  NOT NULL,
    expires_at      DATETIME(6)  NOT NULL              -- it holds its units unpaid until then
);
CREATE INDEX IF NOT EXISTS orders_of_buyer ON orders (buyer, id); -- the latest first: ids sort by time
CREATE INDEX IF NOT EXISTS orders_of_buyer_by_status ON orders (buyer, status, expires_at);
CREATE INDEX IF NOT EXISTS orders_due ON orders (status, expires_at, id);

CREATE TABLE IF NOT EXISTS order_lines (
    order_id    VARCHAR(36) NOT NULL,
    sku         VARCHAR(64) NOT NULL,
    line_no     INT         NOT NULL,                          -- 1, 2, ...: as the buyer wrote them
    units       BIGINT      NOT NULL CHECK (units > 0),
    price_minor BIGINT      NOT NULL CHECK (price_minor >= 0), -- of one unit, when the order was placed
    currency    CHAR(3)     NOT NULL,
    PRIMARY KEY (order_id, sku)                                -- a SKU stands in an order once
);
CREATE INDEX IF NOT EXISTS order_lines_of_sku ON order_lines (sku, order_id); -- for the SKU's audit

CREATE TABLE IF NOT EXISTS movements (
    sku        VARCHAR(64) NOT NULL,
    id         VARCHAR(36) NOT NULL, -- UUIDv7
    kind       VARCHAR(16) NOT NULL, -- supply, reserve, sell, release
    order_id   VARCHAR(36) NULL,     -- NULL for a supply
    supplied   BIGINT      NOT NULL,
    available  BIGINT      NOT NULL,
    reserved   BIGINT      NOT NULL,
    sold       BIGINT      NOT NULL,
    fence      BIGINT      NOT NULL, -- 0 where the strategy has none
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (sku, id),           -- a SKU's ledger lies together, in the order of time
    UNIQUE (order_id, sku, kind)     -- an order moves its units once in each way; rows without an order are all distinct
);

CREATE TABLE IF NOT EXISTS idempotency_keys (
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    fingerprint     VARCHAR(64)  NOT NULL, -- of the request: the same key with another request is refused
    order_id        VARCHAR(36)  NOT NULL,
    created_at      DATETIME(6)  NOT NULL,
    PRIMARY KEY (buyer, idempotency_key)
);
CREATE INDEX IF NOT EXISTS idempotency_keys_by_age ON idempotency_keys (created_at); -- the oldest keys, for the purge

CREATE TABLE IF NOT EXISTS idempotency_purge (
    id           INT         NOT NULL PRIMARY KEY CHECK (id = 1),
    purged_until DATETIME(6) NOT NULL -- never goes back
);
INSERT OR IGNORE INTO idempotency_purge VALUES (1, '1000-01-01 00:00:00.000000');

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
);

CREATE TABLE IF NOT EXISTS buyers (buyer VARCHAR(64) NOT NULL PRIMARY KEY);

CREATE TABLE IF NOT EXISTS job_runs (job VARCHAR(64) NOT NULL, day CHAR(10) NOT NULL, PRIMARY KEY (job, day));
