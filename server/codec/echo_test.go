package codec

import (
	"bytes"
	"testing"
)

func TestEchoKnowsBytesByTheirPlace(t *testing.T) {
	var e echo
	data := []byte("{}\n")
	e.remember(data, "stamp")
	if got := e.recall(bytes.Clone(data)); got != nil {
		t.Errorf("other bytes that say the same are taken for what was written: %v", got)
	}
	if got := e.recall(data[:2]); got != nil {
		t.Errorf("a part is taken for the whole: %v", got)
	}
	if got := e.recall(data); got != "stamp" {
		t.Errorf("got %v", got)
	}
	if got := e.recall(data); got != nil {
		t.Errorf("not forgotten: %v", got)
	}
	large := make([]byte, maxEcho+1)
	e.remember(large, "stamp")
	if got := e.recall(large); got != nil {
		t.Errorf("remembers what is large: %v", got)
	}
	if e.recall(nil) != nil {
		t.Error("remembers nothing at all")
	}
}
