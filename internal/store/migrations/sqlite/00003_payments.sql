-- +goose Up
CREATE TABLE IF NOT EXISTS payments (
    id           VARCHAR(255) NOT NULL PRIMARY KEY, -- the provider's; "buyer:" and the order's id where the buyer's own word counts
    order_id     VARCHAR(36)  NOT NULL,
    amount_minor BIGINT       NOT NULL,
    currency     CHAR(3)      NOT NULL,
    refusal      VARCHAR(32)  NOT NULL,             -- why it does not pay the order; empty for the one payment of a paid order
    created_at   DATETIME(6)  NOT NULL,
    refunded_at  DATETIME(6)  NULL
);
CREATE INDEX IF NOT EXISTS payments_of_order ON payments (refusal, order_id);
INSERT OR IGNORE INTO payments
    SELECT 'buyer:' || id, id, total_minor, currency, '', created_at, NULL FROM orders WHERE status = 'paid';
ALTER TABLE orders ADD COLUMN first_expiry DATETIME(6) NULL; -- when it would have expired, had its hold not been extended
