package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// amazon is where a store is unless another is named.
const amazon = "https://s3.amazonaws.com"

// triesMax is how often a request to the store is tried: some seconds long.
const triesMax = 4

// answerMax is how long a store that was asked may be silent.
const answerMax = 10 * time.Second

// bucket is a depot in a store.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func openBucket(p Place) (*bucket, error) {
	name, prefix, _ := strings.Cut(strings.TrimPrefix(p.To, scheme), "/")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	at := p.Endpoint
	if at == "" {
		at = amazon
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the store's endpoint %q is not a URL such as https://s3.example.com", at)
	}
	known := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.EnvMinio{},
		&credentials.FileAWSCredentials{}, &credentials.IAM{}})
	if p.CredentialsFile != "" {
		known = credentials.NewFileAWSCredentials(p.CredentialsFile, "")
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("the store at %s: %w", at, err)
	}
	transport.ResponseHeaderTimeout = answerMax
	client, err := minio.New(u.Host, &minio.Options{Creds: known, Secure: u.Scheme == "https",
		Region: p.Region, MaxRetries: triesMax, Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("the store at %s: %w", at, err)
	}
	return &bucket{client, name, prefix}, nil
}

// failed says what could not be done, and what may help.
func (b *bucket) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s in s3://%s/%s at %s: %w", what, b.name, b.prefix, b.client.EndpointURL(), err)
	switch minio.ToErrorResponse(errors.Unwrap(err)).Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("%w\nhint: make the bucket, or name another", err)
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Errorf("%w\nhint: give credentials by a file or by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", err)
	}
	return err
}

// List implements Depot.
func (b *bucket) List(ctx context.Context) ([]File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []File
	for object := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if object.Err != nil {
			return nil, b.failed("list what is there", object.Err)
		}
		all = append(all, File{strings.TrimPrefix(object.Key, b.prefix), object.Size})
	}
	return all, nil
}

// Put implements Depot.
func (b *bucket) Put(ctx context.Context, name, file string) error {
	_, err := b.client.FPutObject(ctx, b.name, b.prefix+name, file, minio.PutObjectOptions{
		ContentType: "application/octet-stream"})
	return b.failed("keep "+name, err)
}

// Fetch implements Depot.
func (b *bucket) Fetch(ctx context.Context, name string, to io.Writer) error {
	from, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err == nil {
		defer from.Close()
		_, err = io.Copy(to, from)
	}
	return b.failed("fetch "+name, err)
}

// Delete implements Depot.
func (b *bucket) Delete(ctx context.Context, name string) error {
	return b.failed("delete "+name, b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}
