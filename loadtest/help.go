package main

const description = `Shows how a shop oversells, and what keeps it from doing so.

For each strategy it starts three instances of the shop on a fresh embedded database, puts 100 units
up for sale, and lets 1,000 buyers buy at the same moment over HTTP. Then it counts.

'loadtest step' plays two buyers against each other, step by step, and 'loadtest compare' sets two
reports side by side. Each has a --help of its own.`

const lessons = `
Examples:
  go run ./loadtest                                   none, mutex and redis, compared
  go run ./loadtest --strategies mutex --instances 1  a mutex is enough for one instance
  go run ./loadtest --strategies none --think 0s      it oversells without a pause, too
  go run ./loadtest --strategies all --buyers 5000    everything that needs no server
  go run ./loadtest --strategies all --servers docker everything, on servers in containers
  go run ./loadtest --html report.html                with charts and the timeline of the race
  go run ./loadtest --ui 127.0.0.1:8090               in the browser: choose, run and watch
  go run ./loadtest --json -                          for programs
  go run ./loadtest --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest --target http://localhost:8080    a shop that runs: shop serve --lab
  go run ./loadtest --rate 200 --duration 10s         open model: orders come whatever the shop does
  go run ./loadtest --requests 5000 --buyers 50       closed model: each orders again when answered
  go run ./loadtest --skus 20 --skew 1.1 --lines 3 --cancel 0.1 --retry 0.2   a shop's daily mix
  go run ./loadtest compare before.json after.json    two reports of --json (compare --help)
  go run ./loadtest step all                          why: two buyers, step by step (step --help)

The columns:
  supplied   units that were put up for sale
  orders     orders that the shop's audit found after the race, cancelled ones too; with --lines,
             those that buyers were told of
  oversold   units in orders beyond those supplied; counted from orders, because a lost update
             oversells while the stock column reads zero. Of several SKUs, each counts by itself:
             what is left of one makes up for none of another
  undersold  units in no order although buyers went away without one; units that were cancelled do
             not count, nor refused carts of several SKUs
  refused    buyers who were told that it is sold out
  errors     buyers with another answer, or none after several tries; with --rate, also orders that
             were due while all buyers waited for answers
  orders/s   orders per second, from the moment all buyers were let go to the last answer
  p50, p99   how long half, and 99 of 100, of the buyers waited, from that same moment: a buyer who
             stood in a queue waited too. With --rate, from the moment at which the order was due,
             with --duration or --requests alone, from the answer to the buyer's order before
  verdict    correct; oversold; undersold; or inconsistent: neither, but the shop's books disagree
             with themselves or with what the buyers were told

With --rate, --duration or --requests, read orders for buyers here and below the table: a buyer may
send many.

A strategy whose server is not there is listed below the table, and as "not_run" in the JSON.

The JSON of --json has one of these four words as "verdict".

Exit code: 0 if every strategy that promises to be correct was and left no buyer without an answer
(errors 0), 1 if one did not or the test could not be done, 2 if the flags make no sense.
That 'none' and 'mutex' oversell is what they are for. Some wrong ones need a crash or a pause at
the wrong moment and look correct in a race.
`
