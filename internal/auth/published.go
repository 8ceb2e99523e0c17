package auth

import "strings"

// publishedSecrets are those of this repository's demo, of jwt.io, of libraries'
// examples, of RFC 7515 and of widespread templates, in lower case.
func publishedSecrets() []string {
	return []string{
		"lab-only",
		"secret", "shop", "password", "changeme", "change-me", "change_me", "changeit", "jwt_secret", "jwt-secret", "mysecret", "my-secret",
		"secretkey", "secret-key", "supersecret", "super-secret", "topsecret", "default", "example", "admin", "test",
		"0123456789", "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz",
		"abcdefghijklmnopqrstuvwxyz123456", "abcdefghijklmnopqrstuvwxyz012345",
		"your-secret-key", "your_secret_key", "your-jwt-secret", "your_jwt_secret", "your_jwt_secret_key",
		"your-256-bit-secret", "your-384-bit-secret", "your-512-bit-secret",
		"a-string-secret-at-least-256-bits-long",
		"a-valid-string-secret-that-is-at-least-512-bits-long-which-is-very-long",
		"allyourbase",
		"super-secret-jwt-token-with-at-least-32-characters-long",
		"your-super-secret-jwt-token-with-at-least-32-characters-long",
		"your-super-secret-key-change-this-in-production",
		"change-me-to-a-random-string-of-32-bytes",
		"aym1sysppbydfgzld3umj1qzkobwvmkoqq-estjqlr_t-1qs0gzh75aktmn3yj0ips4hcguutwjazzr1z9caow",
	}
}

// published returns the published secret that text is, in capitals or not, once
// or repeated until it seemed long enough.
func published(text string) (name string, ok bool) {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, name := range publishedSecrets() {
		if lower != "" && strings.Trim(strings.ReplaceAll(lower, name, ""), " -_") == "" {
			return name, true
		}
	}
	return "", false
}
