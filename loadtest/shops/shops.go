package shops

import "context"

// Source opens the shops of a race.
type Source interface {
	// Open returns shops that answer. Close what it returns.
	Open(ctx context.Context) (*Set, error)

	// Stores says where the shops keep things, for people.
	Stores() Stores
}

// Stores are the servers behind the shops, as far as is known from here. They
// hold no password.
type Stores struct {
	Database, Redis string
}

// Set is the shops of one race.
type Set struct {
	URLs  []string
	close func() error
}

// Close stops what Open started. Its error is also that of a shop which stopped
// by itself.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
