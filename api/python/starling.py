"""Asks a Starling cluster: one file, nothing but Python's own library (3.8 or newer).

    from starling import Starling

    cluster = Starling()                     # of this machine, or as STARLING_ADDRESS says
    cluster.submit({"name": "hello", "type": "batch",
                    "tasks": [{"name": "main", "instances": 1, "command": ["echo", "hi"]}]})
    for change in cluster.watch(job="hello", kinds=["job"]):
        if change.get("job", {}).get("final"):
            break
    print(cluster.logs("hello.main[0]").decode())

Fields are those of /v1/openapi.json; numbers of 64 bits, such as indexes, are strings. What goes wrong is a Failure.
"""
import base64
import glob
import http.client
import json
import os
import socket
import ssl
import tempfile
import time
import urllib.parse
import uuid

_PREFIX = "starling-credentials-1:"


class Failure(Exception):
    """What a peer, or the way to it, says: code is one word, such as "not_found" or "unavailable"."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Starling:
    """One peer of a cluster. Address is "HOST:PORT" or "unix:PATH"; credentials is the line that `starling user add` prints.

    Without an address it is that of STARLING_ADDRESS, the one in the credentials, or the only peer of this machine. Without
    credentials they are those that `starling login` has kept. A peer of this machine knows by its socket who asks.
    """

    def __init__(self, address=None, credentials=None, timeout=60):
        self.timeout = timeout
        self._told = _read(credentials)
        address = address or os.environ.get("STARLING_ADDRESS", "")
        if not address.startswith("unix:") and not credentials:
            address = _local(address) or address
        if not address and self._told:
            address = self._told["addresses"][0]
        if not address:
            raise Failure("invalid", "no address: set STARLING_ADDRESS, or give one")
        self.address = address
        self._tls = None if address.startswith("unix:") else _tls(self._told)
        self._seen = 0

    def call(self, method, **request):
        """Asks a procedure of the API, such as call("Why", job="web"), and returns its answer."""
        with self._ask("POST", "/starling.v1.Starling/" + method, json.dumps(request)) as answer:
            told = json.loads(answer.read())
        self._seen = max(self._seen, int(told.get("index", 0)))
        return told

    def submit(self, spec, against=0, request_id=None):
        """Brings a job, or a new version of one. Sent again with the same request_id, it counts once."""
        return self.call("SubmitJob", spec=spec, against=against, request_id=request_id or uuid.uuid4().hex)

    def stop(self, job, request_id=None):
        """Ends a job for good."""
        return self.call("KillJob", job=job, request_id=request_id or uuid.uuid4().hex)

    def status(self, job):
        """Tells how a job stands, with what was written before."""
        return self.call("JobStatus", job=job, min_index=self._seen)

    def logs(self, instance, stream="stdout", tail=None):
        """Returns what an instance such as web.server[2] has written till now."""
        query = {"of": instance, "stream": stream}
        if tail is not None:
            query["tail"] = tail
        with self._ask("GET", "/v1/logs?" + urllib.parse.urlencode(query)) as answer:
            return answer.read()

    def watch(self, after=None, once=False, **only):
        """Yields what there is, a "synced", and then each change; filters are kinds, job, pool, node and labels.

        A connection that breaks is made again, and nothing is lost. With after, which is the "resume" of what was read last,
        only changes behind it come. With once it ends when all that there is was told. When what was read last is of a past that
        is lost, as after a restore from an older backup, it begins anew with what there is, and a "synced".
        """
        while True:
            query = dict(only, once=str(once).lower(), min_index=self._seen)
            if after is not None:
                query["after"] = after
            try:
                for change in self._lines("/v1/events?" + urllib.parse.urlencode(query, doseq=True)):
                    if int(change["resume"]) > 0:
                        after = change["resume"]
                    yield change
                if once:
                    return
            except Failure as failure:
                if failure.code not in ("unavailable", "not_found") or after is None or once:
                    raise
                if failure.code == "not_found":
                    after, self._seen = None, 0
            time.sleep(1)

    def _lines(self, path):
        with self._ask("GET", path) as answer:
            try:
                for line in answer:
                    told = json.loads(line)
                    if "error" in told:
                        raise Failure(told["error"]["code"], told["error"]["message"])
                    yield told
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Failure("unavailable", "%s: %s" % (self.address, error)) from error

    def _ask(self, method, path, body=None):
        connection = self._connection()
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Failure("unavailable", "%s: %s" % (self.address, error)) from error
        if answer.status == 200:
            return answer
        text = answer.read().decode(errors="replace")
        connection.close()
        try:
            told = json.loads(text)
        except ValueError:
            told = {"code": "unavailable", "message": "%s: %d %s" % (self.address, answer.status, text)}
        raise Failure(told.get("code", "unavailable"), told.get("message", text))

    def _connection(self):
        if self._tls is None:
            return _Local(self.address[len("unix:"):], self.timeout)
        host, _, port = self.address.rpartition(":")
        return _Remote(host.strip("[]"), int(port), self._tls, self.timeout)


class _Local(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Remote(http.client.HTTPSConnection):
    def __init__(self, host, port, tls, timeout):
        super().__init__(host, port, context=tls, timeout=timeout)
        self._own = tls

    def connect(self):
        # Names of hosts mean nothing: all nodes of the cluster, and nothing else, are called so.
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._own.wrap_socket(plain, server_hostname="node.starling")


def _local(address):
    folder = "/run/starling"
    if os.geteuid() != 0:
        folder = os.environ.get("XDG_RUNTIME_DIR", "")
        folder = os.path.join(folder, "starling") if folder else os.path.join(
            tempfile.gettempdir(), "starling-%d" % os.geteuid())
    name = glob.escape(address.replace("localhost:", "127.0.0.1:")) if address else "*"
    found = glob.glob(os.path.join(folder, name + ".sock"))
    return "unix:" + found[0] if len(found) == 1 else None


def _read(line):
    if line is None:
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        path = os.environ.get("STARLING_CREDENTIALS") or os.path.join(config, "starling", "credentials")
        if not os.path.exists(path):
            return None
        with open(path) as file:
            line = next((one for one in file if one.strip()), "")
    line = line.strip()
    if not line.startswith(_PREFIX):
        raise Failure("invalid", "credentials begin with " + _PREFIX)
    text = line[len(_PREFIX):]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _tls(told):
    if told is None:
        raise Failure("denied", "no credentials: ask an admin for `starling user add NAME --role ROLE`, and keep what it prints "
                                "with `starling login`")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.load_verify_locations(cadata=base64.b64decode(told["ca"]))
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # only its owner can read it
        for name, part in (("CERTIFICATE", "certificate"), ("PRIVATE KEY", "key")):
            file.write("-----BEGIN %s-----\n%s-----END %s-----\n" % (
                name, base64.encodebytes(base64.b64decode(told[part])).decode(), name))
        file.flush()
        tls.load_cert_chain(file.name)
    return tls
