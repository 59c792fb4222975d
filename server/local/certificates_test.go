package local

import (
	"bytes"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/auth/ca"
)

// The CA of a folder stays, until it is about to expire.
func TestAuthorityIsRenewed(t *testing.T) {
	dir := t.TempDir()
	made, err := loadOrMake(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := loadOrMake(dir); err != nil || !bytes.Equal(again.CA, made.CA) {
		t.Errorf("a second start has another CA: %v", err)
	}
	old, err := ca.New("espalier", renewal-time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Save(dir); err != nil {
		t.Fatal(err)
	}
	renewed, err := loadOrMake(dir)
	if err != nil || bytes.Equal(renewed.CA, old.CA) || time.Until(renewed.Expires()) < renewal {
		t.Errorf("one that is about to expire is still used: %v", err)
	}
	if again, err := loadOrMake(dir); err != nil || !bytes.Equal(again.CA, renewed.CA) {
		t.Errorf("the new one is not kept: %v", err)
	}
}
