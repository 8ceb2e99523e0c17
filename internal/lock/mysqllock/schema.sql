-- One row for each key, held or free. Text is compared by its bytes: 'abc', 'ABC'
-- and 'abc ' are three keys. All times are UTC, by the clock of this server.
CREATE TABLE IF NOT EXISTS `locks` (
  `name`     VARBINARY(512)  NOT NULL COMMENT 'the key',
  `owner`    VARBINARY(255)  NOT NULL COMMENT 'who holds it; empty: free',
  `fence`    BIGINT          NOT NULL COMMENT 'the highest that was ever used',
  `deadline` DATETIME(6)     NOT NULL COMMENT 'when the lease runs out, or when it was released',
  PRIMARY KEY (`name`)
) ENGINE = InnoDB
