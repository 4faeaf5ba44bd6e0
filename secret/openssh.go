package secret

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
)

// KeyPair is a key pair in the formats of OpenSSH: the private key as a file, the public one as a line.
type KeyPair struct{ Private, Public []byte }

const keyType = "ssh-ed25519"

func newKeyPair(key ed25519.PrivateKey) KeyPair {
	public := fields(keyType, string(key.Public().(ed25519.PublicKey)))
	// This is openssh-key-v1, as PROTOCOL.key of OpenSSH has it. Two equal numbers tell whether a key was decrypted; this
	// is not encrypted, so that they may be any, and are zero lest the file differ from machine to machine.
	private := append(make([]byte, 8), public...)
	private = append(private, fields(string(key), "")...) // no comment
	for pad := byte(1); len(private)%8 != 0; pad++ {
		private = append(private, pad)
	}
	file := append([]byte("openssh-key-v1\x00"), fields("none", "none", "")...)
	file = binary.BigEndian.AppendUint32(file, 1) // the number of keys
	file = append(file, fields(string(public), string(private))...)
	return KeyPair{
		Private: pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: file}),
		Public:  []byte(keyType + " " + base64.StdEncoding.EncodeToString(public) + "\n"),
	}
}

// fields writes texts, each behind its length.
func fields(all ...string) (bytes []byte) {
	for _, one := range all {
		bytes = append(binary.BigEndian.AppendUint32(bytes, uint32(len(one))), one...)
	}
	return bytes
}
