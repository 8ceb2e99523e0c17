// Package servers starts real servers in containers: those of a race (MySQL, six
// Redis, of which five are for Redlock, and a ZooKeeper), or one alone. They keep
// nothing: Close removes them, and where the process is killed before that, the reaper
// of testcontainers does.
//
// SHOP_TEST_MYSQL_IMAGE, SHOP_TEST_MARIADB_IMAGE, SHOP_TEST_REDIS_IMAGE and
// SHOP_TEST_ZOOKEEPER_IMAGE name other images, as for the tests.
package servers
