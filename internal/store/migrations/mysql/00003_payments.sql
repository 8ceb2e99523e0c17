-- +goose NO TRANSACTION
-- +goose Up
-- What payment providers said. Rows stay: a provider may repeat a payment at any time, and money that was refused has to
-- be refunded.
CREATE TABLE IF NOT EXISTS payments (
    id           VARCHAR(255) NOT NULL PRIMARY KEY, -- the provider's; "buyer:" and the order's id where the buyer's own word counts
    order_id     VARCHAR(36)  NOT NULL,
    amount_minor BIGINT       NOT NULL,
    currency     CHAR(3)      NOT NULL,
    refusal      VARCHAR(32)  NOT NULL,             -- why it does not pay the order; empty for the one payment of a paid order
    created_at   DATETIME(6)  NOT NULL,
    refunded_at  DATETIME(6)  NULL,
    INDEX payments_of_order (refusal, order_id)
) /*!80017 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
INSERT IGNORE INTO payments
    SELECT CONCAT('buyer:', id), id, total_minor, currency, '', created_at, NULL FROM orders WHERE status = 'paid';

-- When an order would have expired, had its hold not been extended. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @add = IF((SELECT COUNT(*) FROM information_schema.columns
               WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'first_expiry') > 0, 'DO 0',
    'ALTER TABLE orders ADD COLUMN first_expiry DATETIME(6) NULL');
PREPARE add_column FROM @add;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
