package lock

import "time"

// SetPatience shortens how long a subscription may be silent.
func (r *Redis) SetPatience(d time.Duration) { r.wake.patience = d }
