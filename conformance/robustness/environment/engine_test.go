package environment

import "testing"

// Kine is one member without a file system of its own; etcd is as it was before there were other engines.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		o    Options
		fits bool
	}{
		{Options{Members: 3, Disk: 1}, true},
		{Options{Engine: Etcd, Members: 1}, true},
		{Options{Engine: SQLite, Members: 1}, true},
		{Options{Engine: Postgres, Members: 3}, false},
		{Options{Engine: SQLite, Members: 1, Disk: 1}, false},
	} {
		if err := c.o.fits(); (err == nil) != c.fits {
			t.Errorf("%v with %d members and a disk of %d bytes: %v", c.o.Engine, c.o.Members, c.o.Disk, err)
		}
	}
	if _, err := EngineNamed("mysql"); err == nil {
		t.Error("there is no engine mysql")
	}
	if e, err := EngineNamed("etcd"); err != nil || e.Kine() || e != Etcd || Engine("").String() != "etcd" {
		t.Error(e, err)
	}
}
