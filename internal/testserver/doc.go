// Package testserver gives tests real servers in containers: Redis, Valkey, MySQL, MariaDB and ZooKeeper. Its few other
// helpers, for networks that fail and for polling, need no container.
//
// The tests of a package share one container of each kind, which the first test that asks for it starts. TestMain removes
// them:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) } // and looks for leaked goroutines
//
// A test asks for an address or a data source name:
//
//	addr := testserver.Redis(t)   // host:port, shared by the package: use keys of the test's own
//	dsn := testserver.MySQL(t)    // an empty schema of the test's own, dropped when it ends
//
// A test that breaks its server starts one of its own, as by StartRedis, which keeps its address over a restart. A Redis
// Cluster, or a master with its Sentinels, is several processes in one container, which KillProcess ends one by one.
//
// A program that is no test, as the load test, calls OpenRedis and its like.
//
// # Without Docker
//
// The test skips and says what it needs. With CI=true it fails instead: there, a skipped test is a test that nobody ran.
// -short skips too, except with CI=true.
//
// # Images
//
// The official images are the default. SHOP_TEST_REDIS_IMAGE, SHOP_TEST_REDIS7_IMAGE, SHOP_TEST_VALKEY_IMAGE,
// SHOP_TEST_MYSQL_IMAGE, SHOP_TEST_MARIADB_IMAGE and SHOP_TEST_ZOOKEEPER_IMAGE name others, which have to understand the
// official images' variables and options. The value none says that this machine has no such image: the tests skip even
// with CI=true. The version of each server is logged (go test -v).
//
// A run that is killed, by go test's -timeout or an interrupt, leaves its containers to testcontainers' reaper. Where that
// is switched off, remove them by their label org.testcontainers=true.
//
// The shared servers are tuned for tests and lose everything in a crash; those of StartMariaDB and StartZooKeeper are
// durable.
package testserver
