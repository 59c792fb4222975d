package kinds

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Quantities with large exponents are refused in the time that it takes to read them,
// however they are written. Other texts that look like them are not.
func TestLargeExponents(t *testing.T) {
	const far = `99999999`
	for text, refused := range map[string]bool{
		`{"spec":{"overhead":{"cpu":"9e` + far + `"}}}`:                                                        true,
		`{"spec":{"overhead":{"cpu":9e` + far + `}}}`:                                                          true,
		`{"spec":{"overhead":{"cpu":-9.5E-` + far + `}}}`:                                                      true,
		`{"spec":{"overhead":{"cpu":" 9e+000` + far + ` "}}}`:                                                  true,
		`{"spec":{"overhead":{"cpu":"\u0039e` + far + `"}}}`:                                                   true,
		`{"spec":{"overhead":{"cpu":"9\u0065` + far + `"}}}`:                                                   true,
		`{"metadata":{"annotations":{"a":" 9e` + far + ` \" x"}},"spec":{"overhead":{"cpu":"9e` + far + `"}}}`: true,
		"spec: {overhead: {cpu: 9e" + far + "}}":                                                               true,
		"spec: {overhead: {cpu: \"\\x39e" + far + "\"}}":                                                       true,
		`{"metadata":{"annotations":{"a":"9e` + far + `","9e` + far + `":"x"},"uid":"8bd3e12345"}}`:            false,
		`{"spec":{"overhead":{"cpu":"1e9999"}}}`:                                                               false,
		`{"spec":{"overhead":{"cpu":"1e-0000000009"}}}`:                                                        false,
	} {
		began := time.Now()
		err := LongQuantity([]byte(text), func(short []byte) error { return yaml.Unmarshal(short, &corev1.Pod{}) })
		if (err != nil) != refused || time.Since(began) > time.Second {
			t.Errorf("%s: %v after %s", text, err, time.Since(began))
		}
	}
}

// UIDs are no numbers, whatever they begin with: objects that have them are read once.
func TestUIDIsNoExponent(t *testing.T) {
	for _, uid := range []string{"e22147b6-038f-4f96-a0f5-1579956521aa", "9e22147b-038f-4f96-a0f5-157995652100"} {
		err := LongQuantity([]byte(`{"metadata":{"uid":"`+uid+`"}}`), func([]byte) error { return errors.New("read twice") })
		if err != nil {
			t.Errorf("%s: %v", uid, err)
		}
	}
}

func TestLargeExponentsInProtobuf(t *testing.T) {
	cpu := func(text string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse(text)}}}
	}
	long := strings.Repeat("1", 'e') // its length is written as e
	for name, pod := range map[string]*corev1.Pod{
		"exponent":                 cpu("9e9999"),
		"integer":                  cpu("1"),
		"length":                   {ObjectMeta: metav1.ObjectMeta{Name: long, Annotations: map[string]string{long: long}}},
		"integer and field number": {Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 'e', Image: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/app:v1"}}}},
		"text":                     {ObjectMeta: metav1.ObjectMeta{UID: "e22147b6-038f-4f96-a0f5-1579956521aa", Annotations: map[string]string{"a": "9e99999999"}}},
	} {
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		err = LongQuantity(append([]byte("k8s\x00"), data...), func(short []byte) error { return (&corev1.Pod{}).Unmarshal(short[4:]) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	quantity := []byte("\n\n9e99999999") // field 1, 10 bytes
	err := LongQuantity(append([]byte("k8s\x00"), quantity...), func(short []byte) error { return (&resource.Quantity{}).Unmarshal(short[4:]) })
	if !errors.Is(err, resource.ErrFormatWrong) && !errors.Is(err, resource.ErrSuffix) {
		t.Error(err)
	}
	if compareQuantities("9e99999999", "1") != 1 {
		t.Error("a quantity that cannot be read is compared as text")
	}
}
