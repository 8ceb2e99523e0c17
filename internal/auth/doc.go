// Package auth mints and verifies the bearer tokens by which buyers are known.
//
// A token is a JWT (RFC 7519), signed with HMAC-SHA-256 by a secret that all
// instances of a shop share, and good for nothing but to say who buys:
//
//	sub  the buyer's name, as order.CheckBuyer wants it
//	aud  "shop:buyer", so that a token for another purpose buys nothing
//	nbf  not good before; whole seconds since 1970
//	exp  not good from then on; at most MaxLifetime after nbf
//	iat  when it was made; may be left out
//
// Other claims are ignored. Clocks may differ by Leeway.
//
// A few thousand tokens that were good are remembered by their SHA-256, so that a
// buyer's next request does not cost a signature and two JSON objects. A token ends
// when it says so all the same: its dates are looked at each time.
//
// # What is refused
//
// The algorithm is pinned: whatever a token's header asks for, only HS256 is
// computed, and a token that names another one, or none, is refused unread. So
// are tokens that two readers could understand differently: repeated names,
// spellings that base64 has but needs not, fractions and exponents in dates, line
// breaks, invalid UTF-8, and headers that demand an extension (crit). A token has
// at most MaxToken bytes. RFC 8725 says why.
//
// # Errors
//
// Verify's errors all match ErrToken, and one of the sentinels that says which
// rule was broken. They never contain the token or a part of it.
//
// # Secrets
//
// CheckSecret is the policy for them: at least MinSecret bytes of printable
// ASCII, and none of those that tutorials publish. ReadSecretFile wants a file
// that only its owner, and perhaps its group, can read; KeptSecret makes one where
// there is none. A Secret does not print: whatever the verb, a log gets
// "[secret]". The operator's token is a Secret that is shown as it is.
package auth
