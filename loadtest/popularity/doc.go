// Package popularity says who wants which SKU: all the same one, or each in
// proportion to its rank (Zipf), which is how wishes are spread in most shops.
package popularity
