package kinds

import (
	"encoding/json"
	"testing"
)

// FuzzKinds writes and reads any object as any kind. Nothing may panic, and what clients
// send may not make a default or a step fail: package builtin panics then.
func FuzzKinds(f *testing.F) {
	all := All()
	for i, k := range all {
		g := grower{n: 2, variant: "distinct", smallest: 1}
		b, err := json.Marshal(g.object(k.object(), i, true))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b, []byte(`{}`))
		f.Add(uint8(i), b, b)
		f.Add(uint8(i), []byte(`{"spec":null,"metadata":null,"status":null}`), b)
	}
	f.Add(uint8(0), []byte(`{"spec":{"containers":[null,{"resources":{"limits":{"cpu":"1e1000000","memory":"-0"}}}]}}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, which uint8, data, before []byte) {
		k := all[int(which)%len(all)]
		tree, old := shaped(k, data), shaped(k, before)
		if tree == nil {
			return
		}
		if _, err := k.Default(tree); err != nil {
			t.Errorf("%s: %v", k.Kind, err)
		}
		if _, err := k.Prepare(tree, old); err != nil {
			t.Errorf("%s: %v", k.Kind, err)
		}
		if _, err := k.PrepareStatus(tree, old); err != nil {
			t.Errorf("%s: %v", k.Kind, err)
		}
		everything(k, tree, old)
	})
}

// shaped reads an object, nil if it is none. What has not the form of its type is
// dropped, as decoding into Go types has done on the server.
func shaped(k *Kind, data []byte) map[string]any {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	m, _ := shape(&fieldType{form: objectForm, object: k.object()}, v).(map[string]any)
	return m
}

func shape(t *fieldType, v any) any {
	switch x := v.(type) {
	case string:
		if t.form == stringForm || t.form == quantityForm || t.form == intOrStringForm || t.form == anyForm {
			return x
		}
	case float64:
		switch t.form {
		case integerForm, intOrStringForm, anyForm:
			return int64(x)
		case floatForm:
			return x
		}
	case bool:
		if t.form == boolForm || t.form == anyForm {
			return x
		}
	case []any:
		if t.form != listForm {
			return nil
		}
		list := []any{}
		for _, item := range x {
			list = append(list, shape(t.items, item))
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for name, value := range x {
			of := t.items
			if t.form == objectForm {
				of = t.object.fields[name]
			} else if t.form != mapForm {
				return nil
			}
			if of == nil {
				continue
			}
			if member := shape(of, value); member != nil {
				m[name] = member
			}
		}
		return m
	}
	return nil
}
