// Package designs has what others have built to sell a scarce thing to a crowd, each as the smallest honest program, under the
// same load, the same crash and the same verdict, beside the strategies of this shop.
package designs
