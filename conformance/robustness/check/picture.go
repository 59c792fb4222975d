package check

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// ErrNothing is the error of a picture that would show nothing.
var ErrNothing = errors.New("the history has no operations of this key that say anything")

// Picture writes porcupine's picture of a key's operations into an HTML file: the longest
// orders that it found, and what does not fit. The key is that of a Violation.
func Picture(path string, h *history.History, key string) error {
	if h == nil {
		return fmt.Errorf("drawing %s failed: there is no history", key)
	}
	ix := newIndex(h)
	steps := linearSteps(ix, key, keysOf(ix)[key])
	if len(steps) == 0 {
		return fmt.Errorf("drawing %s failed: %w", key, ErrNothing)
	}
	// An operation without end would make everything else too small to see.
	end := int64(0)
	for i := range steps {
		end = max(end, steps[i].Call)
		if steps[i].Return != forever {
			end = max(end, steps[i].Return)
		}
	}
	for i := range steps {
		steps[i].Return = min(steps[i].Return, end+1)
	}
	_, info := porcupine.CheckOperationsVerbose(model(), steps, keyTime)
	var notes []porcupine.Annotation
	for _, f := range h.Faults {
		notes = append(notes, porcupine.Annotation{Tag: "faults", Start: f.Begin, End: max(f.Begin, min(f.End, end)), Description: f.Name, BackgroundColor: "#ffb3b3"})
	}
	if o := ix.objects[key]; o != nil {
		for i := range o.versions {
			v := &o.versions[i]
			at := ix.earliestOf(v.revision)
			notes = append(notes, porcupine.Annotation{Tag: "etcd", Start: at, End: min(max(at, ix.latestOf(v.revision)), end+1), Description: fmt.Sprintf("revision %d", v.revision), Details: shows(v.item)})
		}
	}
	info.AddAnnotations(notes)
	if err := porcupine.VisualizePath(model(), info, path); err != nil {
		return fmt.Errorf("drawing %s failed: %w", key, err)
	}
	return nil
}
