// Package designs has what others have built to sell a scarce thing to a crowd, each as the smallest honest program,
// under the same load, the same crash and the same verdict, beside the strategies of this shop.
//
// Each design is a file. rows.go has the statements that they share, load.go the crowd, sale.go the sales with a fault,
// verdict.go what is wrong with their orders, report.go what is shown, and command.go `loadtest designs`. All designs
// write the rows of the shop: skus, orders and order_lines, by one database/sql pool with the shop's 32 connections and
// its isolation, READ COMMITTED. They write less than the strategies of the shop, which also keep the ledger and the
// idempotency keys of buyers.
package designs
