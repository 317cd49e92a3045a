//go:build kubernetes

package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
)

// adoption is how long the operator may take to read an upload and verify its digest.
const adoption = 5 * time.Minute

// upload puts a packed work directory into an operator's store, and returns its name for a job and the operator's. The bytes go straight
// to the store by a presigned URL: the client needs no keys.
func (h *handler) upload(ctx context.Context, packed []byte) (workdir, owner string, err error) {
	digest := fmt.Sprintf("%x", sha256.Sum256(packed))
	q, err := h.in.ask(ctx, map[string]any{"ask": config.AskUpload, "digest": digest, "bytes": int64(len(packed))})
	if err == nil {
		defer q.forget()
		err = q.wait(ctx, patience)
	}
	if err != nil {
		return "", "", err
	}
	if place := q.text("url"); place != "" {
		if err = h.put(ctx, place, packed); err != nil {
			return "", "", err
		}
		if err = q.amend(ctx, "sent", true); err != nil {
			return "", "", err
		}
		if err = q.wait(ctx, adoption); err != nil {
			return "", "", err
		}
	}
	return store.Scheme + digest, q.text("operator"), nil
}

// put writes to a URL, in up to three tries.
func (h *handler) put(ctx context.Context, place string, data []byte) error {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errkind.Errorf(errkind.Corrupt, "the operator has lent no URL: %.80q", place)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if h.storeAddress != "" { // the Host header stays: it is signed
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, h.storeAddress)
		}
	}
	const tries = 3
	for try := 1; ; try++ {
		again, err := putOnce(ctx, &http.Client{Transport: transport}, u.String(), data)
		if err == nil || !again || try == tries || ctx.Err() != nil {
			return h.explainPut(err, u)
		}
		select {
		case <-time.After(time.Duration(try) * look):
		case <-ctx.Done():
		}
	}
}

// explainPut explains a failed upload; nil for nil.
func (h *handler) explainPut(err error, u *url.URL) error {
	var lost net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &lost) && h.storeAddress != "":
		return errkind.Errorf(errkind.Unavailable, "the store can't be reached at --store-address %s: %w", h.storeAddress, withoutURL(err))
	case errors.As(err, &lost):
		return errkind.Errorf(errkind.Unavailable, "the store at %s can't be reached from here: %w: name another way to it with "+
			"--store-address HOST:PORT, such as that of a kubectl port-forward", u.Host, withoutURL(err))
	}
	return fmt.Errorf("uploading to the store at %s: %w", u.Host, err)
}

// withoutURL strips the URL from an error, since it grants writing.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// putOnce tries once, and reports whether a retry may help.
func putOnce(ctx context.Context, c *http.Client, place string, data []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, place, bytes.NewReader(data))
	if err != nil {
		return false, withoutURL(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return true, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // for the message
	return resp.StatusCode >= http.StatusInternalServerError, errkind.Errorf(errkind.Unavailable, "it answers %s: %s", resp.Status,
		strings.TrimSpace(string(said)))
}
