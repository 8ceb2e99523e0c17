package app

import "database/sql"

// OrderConnections returns the pool that orders take their connections from.
func (s *Shop) OrderConnections() (*sql.DB, error) { return s.parts.database.db.DB() }

// HeadStarts is how many lanes may have one.
func (s *Shop) HeadStarts() int { return s.parts.database.headStarts() }
