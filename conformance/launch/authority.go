package launch

import (
	"time"

	"github.com/espalier-dev/espalier/internal/authority"
)

// An Authority signs the certificates of one server and of its clients.
type Authority = authority.Authority

// NewAuthority makes a CA.
func NewAuthority() (*Authority, error) {
	return authority.New("espalier conformance", 48*time.Hour)
}
