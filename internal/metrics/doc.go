// Package metrics counts what a shop does, for Prometheus.
//
//	m := metrics.New(metrics.Build{Version: "v1.2.0"})
//	locker := lock.New(backend, lock.Options{Observer: m.Lock("redis")})
//	m.Database(conns)
//	operators.Handle("/metrics", m.Handler())
//
// A Metrics has a registry of its own: several shops in one process do not add to
// each other's numbers, except for those of the process and of Go.
//
//	shop_orders_total{action,outcome}      place, pay, cancel; placed, paid, cancelled, replayed (had come
//	                                       to that before, also without a key), or the last part of the
//	                                       problem's type, such as sold-out
//	shop_http_requests_total{method,route,status}
//	shop_http_request_duration_seconds{method,route}
//	shop_lock_wait_seconds{lock,kind}      how long a caller waited, with or without success
//	shop_lock_hold_seconds{lock,kind}
//	shop_lock_acquisitions_total{lock,kind,result}  acquired, timeout, queue-full, no-answer, gave-up, refused
//	shop_lock_contended_total{lock,kind}   another instance had it
//	shop_lock_handovers_total{lock,kind}   passed on in this process without asking the store
//	shop_lock_renewals_total{lock,kind,result}
//	shop_lock_lost_total{lock,kind}        ended before it was given back
//	shop_lane_batch_orders                 orders that a lane placed in one transaction
//	shop_sold_out_remembered_total         orders refused without asking anybody: their SKU is remembered to be sold out
//	shop_queue_length{queue}               callers that stand in line now
//	shop_job_runs_total{job,result}        ok, failed
//	shop_job_items_total{job}              such as orders expired
//	shop_job_leader{job}                   1 on the instance that runs it
//	shop_job_last_success_timestamp_seconds{job}
//	shop_redis_pool_*, go_sql_*            connections
//	shop_build_info                        what runs
//	go_*, process_*
//
// What is promised:
//
//   - Every label has few values, all of them this program's: no key, no SKU, no
//     buyer, no path that a client made up.
//   - All counters of a lock and a job are there from the beginning, at 0, so that
//     their first increase is seen.
//   - Names and types follow the conventions of Prometheus.
package metrics
