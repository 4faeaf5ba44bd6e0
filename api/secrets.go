package api

import (
	"context"
	"fmt"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

// PutSecret has what a secret holds sealed, and keeps that as its next version.
func (s *server) PutSecret(ctx context.Context,
	request *starlingv1.PutSecretRequest) (*starlingv1.PutSecretResponse, error) {
	problems := append(requestIDProblems(request.GetRequestId()),
		secretProblems(request.GetPool(), request.GetName())...)
	switch size := len(request.GetValue()); {
	case request.GetFromVersion() == 0 && (size == 0 || size > access.SecretBytesMax):
		problems = append(problems, terms.Problem{Path: "value",
			Reason: fmt.Sprintf("must have 1 to %d bytes, has %d", access.SecretBytesMax, size)})
	case request.GetFromVersion() != 0 && size != 0:
		problems = append(problems, terms.Problem{Path: "value", Reason: "must be empty where an earlier version is put again"})
	}
	if len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	pool := terms.PoolPath(request.GetPool())
	state, err := s.stateAt(ctx, 0)
	if err != nil {
		return nil, err
	}
	put := &command.PutSecret{RequestID: request.GetRequestId(),
		Secret: access.Secret{Pool: pool, Name: request.GetName()}}
	if err = s.rightful(ctx, s.signed(ctx, put)); err != nil {
		return nil, err
	}
	if put.Secret, err = s.sealed(ctx, state, request); err != nil {
		return nil, err
	}
	receipt, err := s.submit(ctx, put)
	if err != nil {
		return nil, err
	}
	puts := view.SecretPuts{First: put.Secret}
	if err = s.backend.Remembered(ctx, receipt.Index, puts.Read); err != nil {
		return nil, err
	}
	if state, err = s.stateAt(ctx, uint64(receipt.Index)); err != nil {
		return nil, err
	}
	return &starlingv1.PutSecretResponse{Index: uint64(receipt.Index), Version: puts.Version(state.Registry())}, nil
}

// sealed has what is put sealed; what is put again is sealed already.
func (s *server) sealed(ctx context.Context, state *cluster.State,
	request *starlingv1.PutSecretRequest) (access.Secret, error) {
	pool, from := terms.PoolPath(request.GetPool()), request.GetFromVersion()
	if from != 0 {
		if kept := state.Registry().Secret(pool, request.GetName(), from); kept != nil {
			return *kept, nil
		}
		return access.Secret{}, &wire.Failure{Code: wire.NotFound, Decided: true, Reason: fmt.Sprintf(
			"pool %s has no version %d of secret %s: see \"starling secret ls\"", pool, from, request.GetName())}
	}
	sealed, err := s.backend.SealSecret(ctx, pool, request.GetName(), request.GetValue())
	if err != nil {
		err = fmt.Errorf("have the secret sealed: %w", err)
	}
	return sealed, err
}

func secretProblems(pool, name string) (problems []terms.Problem) {
	if reason := terms.PoolPath(pool).Problem(); reason != "" {
		problems = append(problems, terms.Problem{Path: "pool", Reason: reason})
	}
	if reason := terms.NameProblem(name, false); reason != "" {
		problems = append(problems, terms.Problem{Path: "name", Reason: terms.Shown(reason, name)})
	}
	return problems
}

// ListSecrets lists the secrets of the pools that the caller sees.
func (s *server) ListSecrets(ctx context.Context,
	request *starlingv1.ListSecretsRequest) (*starlingv1.ListSecretsResponse, error) {
	state, err := s.stateAt(ctx, 0)
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.ListSecretsResponse{Index: uint64(state.Index), Time: timestamp(state.Time)}
	sees := s.seer(ctx)
	used, last := view.JobsBySecret(state), (*starlingv1.Secret)(nil)
	for _, one := range state.Registry().SecretsOf(terms.PoolPath(request.GetPool())) {
		if !sees(one.Pool) {
			continue
		}
		name := string(one.Pool) + "/" + one.Name
		if last == nil || last.Pool != string(one.Pool) || last.Name != one.Name {
			last = &starlingv1.Secret{Pool: string(one.Pool), Name: one.Name, Jobs: used[name]}
			answer.Secrets = append(answer.Secrets, last)
		}
		last.Version, last.PutAt = one.Version, timestamp(one.At)
		last.Versions = append(last.Versions, &starlingv1.SecretVersion{Version: one.Version, PutAt: timestamp(one.At),
			Jobs: used[fmt.Sprint(name, "@", one.Version)]})
	}
	return answer, nil
}

// RemoveSecret ends a secret, or a version of it.
func (s *server) RemoveSecret(ctx context.Context,
	request *starlingv1.RemoveSecretRequest) (*starlingv1.RemoveSecretResponse, error) {
	problems := append(requestIDProblems(request.GetRequestId()),
		secretProblems(request.GetPool(), request.GetName())...)
	receipt, err := s.submit(ctx, &command.RemoveSecret{RequestID: request.GetRequestId(),
		Pool: terms.PoolPath(request.GetPool()), Name: request.GetName(), Version: request.GetVersion()}, problems...)
	return &starlingv1.RemoveSecretResponse{Index: uint64(receipt.Index)}, err
}
