-- When a daily job last began a run that it finished: an instance that takes the
-- job over does not run it again, and does not leave a day out.

-- +goose Up
CREATE TABLE IF NOT EXISTS job_runs (
    job    VARCHAR(64) NOT NULL PRIMARY KEY,
    ran_at DATETIME(6) NOT NULL
) /*!80017 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin */ /*M!100200 ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;
