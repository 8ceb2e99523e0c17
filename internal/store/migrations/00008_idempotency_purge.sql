-- Keys are not kept for ever. One row says from before which time they may be
-- gone, so that the audit can tell a key that was purged from one that is lost.

-- +goose Up
CREATE TABLE IF NOT EXISTS idempotency_purge (
    id           INT         NOT NULL PRIMARY KEY CHECK (id = 1),
    purged_until DATETIME(6) NOT NULL -- never goes back
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

REPLACE INTO idempotency_purge VALUES (1, '1000-01-01 00:00:00.000000');

-- The oldest keys, for the purge.
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
