// Package verdict compares the two sides of a race's story: the books of the
// shop and what the buyers were told. It asks nobody; both sides are handed in.
//
// Units are counted from orders, never from a stock column: a lost update
// oversells while the column reads zero.
//
//   - Oversold: units in accepted orders beyond those supplied.
//   - Undersold: units in no order, as far as buyers went away without one. Units
//     of cancelled orders are not counted, and of refused carts only those of one
//     SKU are: of another, it is not known which SKU was missing.
//   - The buyers' side agrees if each order that a buyer was told of exists, no
//     two buyers were told of the same one, and there is no other. Where some
//     buyers never had an answer, there may be up to as many others; that is
//     noted and is nobody's fault. An order that was sent twice with one key is one.
//   - Of several SKUs, each is judged by itself. What is oversold and undersold is
//     added up, never one against the other.
package verdict
