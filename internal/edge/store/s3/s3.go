// Package s3 is the store in a bucket of S3 or of a server that speaks its language. It needs strong consistency (what was written is read
// and listed by the next reader), which S3 and the usual servers have.
//
//	objects/DIGEST          the objects; multipart uploads go to the same key, where nobody sees them before they are complete
//	names/NAME.json         the names
//	renewed/DIGEST          written when an object that is old is renewed: its time is the object's
//	removing/DIGEST/WHO     somebody is about to remove the object
//	incoming/PLACE          where somebody was let to write one object
package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Name is the kind's word.
const Name = "s3"

const (
	objects  = "objects/"
	names    = "names/"
	renewed  = "renewed/"
	removing = "removing/"
	incoming = "incoming/"
	clock    = "clock"
)

// Options of a store in a bucket.
type Options struct {
	// Endpoint is the server, as https://host:port; S3's own if it is empty. Region may be empty where the server says it.
	Endpoint, Bucket, Prefix, Region string
	// Access and Secret are the keys; those of the environment or of ~/.aws/credentials if they are empty.
	Access, Secret string
	// PartSize is how much one request sends at most, in bytes: 16 MiB, at least 5 MiB. AtOnce is how many of them are on the way at the
	// same time: 4. What is on the way is what a broken upload loses, and what is held in memory.
	PartSize int64
	AtOnce   int
	// Retries is how often a request is tried, with pauses between: 6.
	Retries int
	// Transport is used instead of Go's own; tests give one.
	Transport http.RoundTripper
}

// Store is the s3 kind of store.Store.
type Store struct {
	o    Options
	core minio.Core
}

var _ store.Lender = (*Store)(nil)

// Parse reads the spec of a store: s3://bucket/prefix?endpoint=https://host:port&region=name. Errors are of kind Invalid.
func Parse(spec string) (o Options, err error) {
	u, err := url.Parse(spec)
	if err != nil || u.Scheme != Name || u.Host == "" || u.User != nil || u.Fragment != "" {
		return o, errkind.Errorf(errkind.Invalid, "store %q: want s3://bucket/prefix?endpoint=https://host:port&region=name", spec)
	}
	for key := range u.Query() {
		if key != "endpoint" && key != "region" {
			return o, errkind.Errorf(errkind.Invalid, "store %q: %s is not known; want endpoint or region, and keys in the environment "+
				"(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)", spec, key)
		}
	}
	return Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: u.Query().Get("endpoint"), Region: u.Query().Get("region")},
		nil
}

// Open opens the store in a bucket, which must be there. Errors: Invalid (options), Denied (no keys, or wrong ones), NotFound (no
// bucket), Unavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	there, err := s.core.Client.BucketExists(ctx, o.Bucket)
	if err != nil {
		return nil, s.explain("look for the bucket", err)
	}
	if !there {
		return nil, errkind.Errorf(errkind.NotFound, "store %s: there is no bucket %s: make it, or name another", s, o.Bucket)
	}
	return s, nil
}

// New is Open of a store that nobody is asked for: what is wrong with it shows when it is used. Errors: Invalid, Denied (no keys).
func New(o Options) (*Store, error) {
	s := &Store{o: o}
	if s.o.Endpoint == "" {
		s.o.Endpoint = "https://s3.amazonaws.com"
	}
	if s.o.PartSize == 0 {
		s.o.PartSize = 16 << 20
	}
	if s.o.AtOnce == 0 {
		s.o.AtOnce = 4
	}
	if s.o.Retries == 0 {
		s.o.Retries = 6
	}
	u, err := url.Parse(s.o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, errkind.Errorf(errkind.Invalid, "store %s: the endpoint %q is no address: want https://host:port", s, o.Endpoint)
	}
	if s.o.Prefix != "" {
		if err = store.CheckName(s.o.Prefix); err != nil {
			return nil, err
		}
	}
	keys := credentials.NewStaticV4(o.Access, o.Secret, "")
	if o.Access == "" {
		keys = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	}
	if v, failed := keys.GetWithContext(nil); failed != nil || v.AccessKeyID == "" {
		return nil, errkind.Errorf(errkind.Denied, "store %s: there are no keys for it: set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials", s)
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https", Region: o.Region, Transport: o.Transport,
		MaxRetries: s.o.Retries})
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "store %s: %w", s, err)
	}
	s.core = minio.Core{Client: client}
	return s, nil
}

// String implements store.Store.
func (s *Store) String() string {
	text := Name + "://" + s.o.Bucket
	if s.o.Prefix != "" {
		text += "/" + s.o.Prefix
	}
	q := url.Values{}
	if s.o.Endpoint != "https://s3.amazonaws.com" {
		q.Set("endpoint", s.o.Endpoint)
	}
	if s.o.Region != "" {
		q.Set("region", s.o.Region)
	}
	if len(q) > 0 {
		text += "?" + strings.ReplaceAll(strings.ReplaceAll(q.Encode(), "%3A", ":"), "%2F", "/")
	}
	return text
}

// Close implements store.Store.
func (s *Store) Close() error { return nil }

func (s *Store) key(parts ...string) string {
	k := strings.Join(parts, "")
	if s.o.Prefix != "" {
		k = s.o.Prefix + "/" + k
	}
	return k
}

// gone says whether an error is that there is nothing under a key.
func gone(err error) bool {
	code := codeOf(err)
	return code == "NoSuchKey" || code == "NoSuchUpload" || code == "NotFound"
}

// codeOf is the server's error code; empty if there is none.
func codeOf(err error) string {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answer.Code
	}
	return ""
}

// explain gives an error of the server, or of the way there, its kind, and says what to do.
func (s *Store) explain(what string, err error) error {
	if err == nil || errkind.Of(err) != errkind.Unknown {
		return err
	}
	say := func(k errkind.Kind, err error, todo string) error {
		return errkind.Errorf(k, "store %s: %s: %w: %s", s, what, err, todo)
	}
	var answer minio.ErrorResponse
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return say(errkind.Unavailable, err, "it was given up")
	case errors.As(err, &answer) && answer.StatusCode == http.StatusInsufficientStorage, answer.Code == "XMinioStorageFull",
		answer.Code == "QuotaExceeded", answer.Code == "XMinioAdminBucketQuotaExceeded":
		return say(errkind.Exhausted, errors.Join(err, unix.ENOSPC), "make room there, or run `sluice store gc`")
	case answer.Code == "NoSuchBucket":
		return say(errkind.Unavailable, err, "make the bucket again, or name another")
	case answer.Code == "RequestTimeTooSkewed":
		return say(errkind.Unavailable, err, "set this machine's clock")
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return say(errkind.Denied, err, "give the keys the right to list, read, write and delete in the bucket")
	case answer.StatusCode >= http.StatusInternalServerError, answer.StatusCode == http.StatusTooManyRequests, answer.Code == "SlowDown":
		return say(errkind.Unavailable, err, "see that the server is well; it is safe to try again")
	case gone(err):
		return say(errkind.NotFound, err, "somebody has removed it")
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, unix.ECONNREFUSED),
		errors.Is(err, unix.ECONNRESET):
		return say(errkind.Unavailable, err, "see that the server answers; it is safe to try again")
	}
	return say(errkind.Unknown, err, "nothing was stored")
}

// head looks at the object under a key.
func (s *Store) head(ctx context.Context, key string) (minio.ObjectInfo, error) {
	info, err := s.core.StatObject(ctx, s.o.Bucket, key, minio.StatObjectOptions{})
	if gone(err) {
		return info, err
	}
	return info, s.explain("look at "+key, err)
}

// write puts a few bytes under a key.
func (s *Store) write(ctx context.Context, key string, data []byte) error {
	_, err := s.putBytes(ctx, key, data)
	return s.explain("write "+key, err)
}

func (s *Store) drop(ctx context.Context, key string) error {
	err := s.core.RemoveObject(ctx, s.o.Bucket, key, minio.RemoveObjectOptions{})
	if gone(err) {
		return nil
	}
	return s.explain("remove "+key, err)
}

// Now implements store.Store: the server's clock, in whole seconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	key := s.key(clock)
	if err := s.write(ctx, key, []byte(".")); err != nil {
		return time.Time{}, err
	}
	info, err := s.head(ctx, key)
	return info.LastModified, s.explain("read the clock", err)
}

// list calls each for the keys that begin so; the key is without what all have in common.
func (s *Store) list(ctx context.Context, prefix string, each func(rest string, o *minio.ObjectInfo) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	whole := s.key(prefix)
	for o := range s.core.ListObjectsIter(ctx, s.o.Bucket, minio.ListObjectsOptions{Prefix: whole, Recursive: true}) {
		if o.Err != nil {
			return s.explain("list "+whole, o.Err)
		}
		if strings.HasSuffix(o.Key, "/") {
			continue // some servers list folders
		}
		if err := each(strings.TrimPrefix(o.Key, whole), &o); err != nil {
			return err
		}
	}
	return s.explain("list "+whole, ctx.Err())
}

// conflicts is how often a server may say that something else under way is in the way of a write.
const conflicts = 5

// putBytes stores what fits in one request. The server checks it against both sums. A conflict is tried again, as S3 asks for; a gateway
// over a file system reports one if a folder's last name goes just as another comes.
func (s *Store) putBytes(ctx context.Context, key string, data []byte) (info minio.UploadInfo, err error) {
	sum, md := sha256.Sum256(data), md5.Sum(data) //nolint:gosec // as above
	for range conflicts {
		info, err = s.core.PutObject(ctx, s.o.Bucket, key, bytes.NewReader(data), int64(len(data)),
			base64.StdEncoding.EncodeToString(md[:]), hex.EncodeToString(sum[:]), minio.PutObjectOptions{DisableMultipart: true})
		if minio.ToErrorResponse(err).StatusCode != http.StatusConflict {
			break
		}
	}
	return info, err
}
