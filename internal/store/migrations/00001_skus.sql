-- One set of files for MySQL, MariaDB and SQLite. What makes that possible:
--
--   * VARCHAR, CHAR, BIGINT and DATETIME(6) mean the same to all three, as the
--     rows use them. Times are UTC.
--   * A table ends with two comments that only one server each reads as SQL:
--     /*!80017 ... */ is run by MySQL from 8.0.17 on, /*M!100200 ... */ by MariaDB
--     from 10.2 on; SQLite skips both. They make text compare byte by byte, with
--     trailing spaces, as SQLite does by itself. The servers' default would take
--     "abc", "ABC" and "abc " for the same key.
--   * MySQL commits each CREATE and ALTER by itself, so that a migration killed
--     half-way leaves behind what it has made; then the whole file runs again. So
--     each statement must be fit for that: a table is made IF NOT EXISTS, a row by
--     REPLACE, and a column or an index that is there counts as made.
--   * A statement ends where a line ends with a semicolon.
--
-- There are no foreign keys. InnoDB would read-lock the parent's row in each
-- order, and buyers of one SKU would wait for each other once more. `shop audit`
-- looks for rows without their counterpart.
--
-- Once a file has been released it is never changed; the next one corrects it.

-- +goose Up
CREATE TABLE IF NOT EXISTS skus (
    name        VARCHAR(64) NOT NULL PRIMARY KEY,
    price_minor BIGINT      NOT NULL CHECK (price_minor >= 0), -- cents, of one unit
    currency    CHAR(3)     NOT NULL,
    supplied    BIGINT      NOT NULL CHECK (supplied >= 0),
    available   BIGINT      NOT NULL CHECK (available >= 0),   -- the last line of defence: never below zero
    reserved    BIGINT      NOT NULL CHECK (reserved >= 0),
    sold        BIGINT      NOT NULL CHECK (sold >= 0),
    fence       BIGINT      NOT NULL,                          -- the highest one that wrote this row; 0 before the first
    created_at  DATETIME(6) NOT NULL
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
