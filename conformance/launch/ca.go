package launch

import (
	"time"

	"github.com/espalier-dev/espalier/server/auth/ca"
)

// A CA signs the certificates of one server and of its clients.
type CA = ca.CA

// NewCA makes a CA.
func NewCA() (*CA, error) {
	return ca.New("espalier conformance", 48*time.Hour)
}
