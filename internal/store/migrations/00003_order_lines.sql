-- +goose Up
CREATE TABLE IF NOT EXISTS order_lines (
    order_id    VARCHAR(36) NOT NULL,
    sku         VARCHAR(64) NOT NULL,
    line_no     INT         NOT NULL,                          -- 1, 2, ...: as the buyer wrote them
    units       BIGINT      NOT NULL CHECK (units > 0),
    price_minor BIGINT      NOT NULL CHECK (price_minor >= 0), -- of one unit, when the order was placed
    currency    CHAR(3)     NOT NULL,
    PRIMARY KEY (order_id, sku)                                -- a SKU stands in an order once
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

-- All that was ordered of one SKU, for its audit.
CREATE INDEX order_lines_of_sku ON order_lines (sku, order_id);
