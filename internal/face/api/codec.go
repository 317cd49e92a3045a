package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strict is JSON as this API speaks it: an unknown field is an error, since somebody meant something by it; every field
// that has a value is written, 0 and false too; and the same message is always the same bytes.
type strict struct{ name string }

// codecs are the names under which clients ask for JSON.
func codecs() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithCodec(strict{"json"}), connect.WithCodec(strict{"json; charset=utf-8"})}
}

// Name is part of connect.Codec.
func (s strict) Name() string { return s.name }

// Marshal is part of connect.Codec.
func (s strict) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	loose, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, loose); err != nil { // protojson varies its blanks on purpose
		return nil, err
	}
	return b.Bytes(), nil
}

// Unmarshal is part of connect.Codec.
func (s strict) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	if len(data) == 0 {
		return errors.New("the body is empty; want a JSON object, {} at least")
	}
	return protojson.Unmarshal(data, m)
}
