-- The schema for MySQL and MariaDB; ../sqlite has the same for SQLite.
--
-- A table ends with two comments that only one server each reads as SQL: /*!80017 ... */ is run by MySQL from 8.0.17
-- on, /*M!100200 ... */ by MariaDB from 10.2 on. They make text compare byte by byte, with trailing spaces. The
-- servers' default would take "abc", "ABC" and "abc " for one key. An index of the keys is longer than the row format
-- COMPACT allows, which a server may have as its default.
--
-- `shop serve` and the other commands compare the tables with the column definitions below, which they read from this
-- text: name, type, NULL or NOT NULL, in this order.
--
-- MySQL commits each CREATE by itself, so that a migration killed half-way leaves behind what it has made; then the
-- whole file runs again. Each statement must be fit for that.
--
-- There are no foreign keys. InnoDB would read-lock the parent's row in each order, and buyers of one SKU would wait
-- for each other once more. `shop audit` looks for rows without their counterpart.

-- +goose NO TRANSACTION
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
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

CREATE TABLE IF NOT EXISTS orders (
    id              VARCHAR(36)  NOT NULL PRIMARY KEY, -- UUIDv7: later orders sort last
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,             -- not unique here: the audit compares it with its own table
    status          VARCHAR(16)  NOT NULL,
    total_minor     BIGINT       NOT NULL CHECK (total_minor >= 0),
    currency        CHAR(3)      NOT NULL,
    created_at      DATETIME(6)  NOT NULL,
    expires_at      DATETIME(6)  NOT NULL,             -- it holds its units unpaid until then
    INDEX orders_of_buyer (buyer, id), -- the latest first: ids sort by time
    INDEX orders_of_buyer_by_status (buyer, status, expires_at),
    INDEX orders_due (status, expires_at, id)
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

CREATE TABLE IF NOT EXISTS order_lines (
    order_id    VARCHAR(36) NOT NULL,
    sku         VARCHAR(64) NOT NULL,
    line_no     INT         NOT NULL,                          -- 1, 2, ...: as the buyer wrote them
    units       BIGINT      NOT NULL CHECK (units > 0),
    price_minor BIGINT      NOT NULL CHECK (price_minor >= 0), -- of one unit, when the order was placed
    currency    CHAR(3)     NOT NULL,
    PRIMARY KEY (order_id, sku),                               -- a SKU stands in an order once
    INDEX order_lines_of_sku (sku, order_id) -- for the SKU's audit
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- The ledger: rows are added, never changed. Each says what it adds to the counts of its SKU; their sums are the
-- counts.
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
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- Which request made or ended which order. Two requests with one key meet at the primary key: the second waits for the
-- first's transaction.
CREATE TABLE IF NOT EXISTS idempotency_keys (
    buyer           VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    fingerprint     VARCHAR(64)  NOT NULL, -- of the request: the same key with another request is refused
    order_id        VARCHAR(36)  NOT NULL,
    created_at      DATETIME(6)  NOT NULL,
    PRIMARY KEY (buyer, idempotency_key),
    INDEX idempotency_keys_by_age (created_at) -- the oldest keys, for the purge
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- Keys are not kept for ever. One row says from before which time they may be gone, so that the audit can tell a purged
-- key from a lost one.
CREATE TABLE IF NOT EXISTS idempotency_purge (
    id           INT         NOT NULL PRIMARY KEY CHECK (id = 1),
    purged_until DATETIME(6) NOT NULL -- never goes back
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
INSERT IGNORE INTO idempotency_purge VALUES (1, '1000-01-01 00:00:00.000000');

-- Which request brought which units in. Rows stay: a delivery that is sent again must not count again.
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
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- A row for each buyer whose orders were limited, or sold in a batch: it is locked while one of them is placed, so that
-- the next one counts it. Rows stay.
CREATE TABLE IF NOT EXISTS buyers (buyer VARCHAR(64) NOT NULL PRIMARY KEY)
    /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- The days on which a daily job has run, and the hours in which it was begun.
CREATE TABLE IF NOT EXISTS job_runs (job VARCHAR(64) NOT NULL, day CHAR(10) NOT NULL, PRIMARY KEY (job, day))
    /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
