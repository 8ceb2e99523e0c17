// Package testserver gives tests real servers in containers: Redis, Valkey, MySQL, MariaDB and ZooKeeper.
//
// A package has one container of each kind it asks for. It is started by the first test that needs it and removed when
// the package's tests have ended, also when they failed. That is the work of TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
//
// or, in a package that also looks for leaked goroutines, with the containers gone before the search begins:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }
//
// A test then asks for an address or a data source name:
//
//	addr := testserver.Redis(t)   // host:port, shared by the package: use keys of the test's own
//	addr := testserver.Redis7(t)  // the same on Redis 7
//	addr := testserver.Valkey(t)  // the same on Valkey 9
//	dsn := testserver.MySQL(t)    // an empty schema of the test's own, dropped when it ends
//	dsn := testserver.MariaDB(t)  // the same
//	addr := testserver.ZooKeeper(t)
//
// A test that breaks its server takes one of its own, which keeps its address over a restart:
//
//	server := testserver.StartRedis(t)
//	server.Pause(t)
//
// A cluster, or a master with its Sentinels, is several processes in one container. Each test starts its own, reaches them
// at the addresses that they tell each other, on 127.0.0.1, and can kill them one by one:
//
//	nodes := testserver.StartRedisCluster(t)
//	master, sentinels := testserver.StartRedisSentinel(t)
//	testserver.KillSentinelMaster(t, master, sentinels)
//
// An ensemble of ZooKeepers is a container for each, with the faults of a server of one's own:
//
//	servers := testserver.StartZooKeeperEnsemble(t)
//	testserver.ZooKeeperLeader(t, servers).Kill(t)
//
// What a network does on the way is up to the test, which carries the bytes itself, or only listens:
//
//	addr := testserver.Relay(t, addr, func(client, server net.Conn) { ... })
//	wire := testserver.NewWiretap(t, addr)
//
// Whether a client insists on TLS is tried on servers with a certificate of the test's own, and on one without TLS:
//
//	server := testserver.StartMySQLTLS(t, testserver.Certificate{CA: ca, Cert: cert, Key: key})
//	server := testserver.StartMySQLPlaintext(t)
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
// with CI=true. The real version of each server is logged once (visible with go test -v).
//
// A run that is killed, by go test's -timeout or a panic, leaves its containers to testcontainers' reaper. Where that is
// switched off, remove them by their label org.testcontainers=true.
//
// The shared servers are tuned for tests and lose everything in a crash; those of StartMySQL, StartMariaDB
// and the ZooKeepers that a test starts are durable.
package testserver
