package store

// For tests of what no database can be made to say at will.
var (
	SQLiteFault     = sqliteFault
	MySQLConfig     = mysqlConfig
	MigrationConfig = migrationConfig
)
