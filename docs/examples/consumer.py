"""Follows a metric, without loss: python3 consumer.py HOST:PORT USER SECRET_FILE METRIC NAME [JOURNAL [CA_FILE]]
The channel has the name NAME. Values become lines on stdout, then they are committed: after a kill one may come twice.
In the file JOURNAL (- for stdout) each comes once. CA_FILE is for TLS. Numbers are sections of the protocol's page.
"""
import base64, hashlib, hmac, os, secrets, socket, ssl, struct, sys, time

NOP, COLLECT, SUBSCRIBE, AUTH, DEF_CHANNEL, SET_CHANNEL, COMMIT, QUERY = 0, 1, 3, 6, 7, 8, 10, 12  # section 2
RESPONSE, GAP, NOTICE, PRODUCER_CAPS = 0xFFFFFFFF, 0xFFFFFFFC, 0xFFFFFFFB, 0xFFFFFFFE  # section 3
OK, AUTH_NEEDED, BUSY, STORAGE_FULL = 0, 1, 13, 17  # section 4
CURRENT, NO_ARGUMENTS = 0, struct.pack(">I", 0)  # sections 5 and 2.4


def text(string):  # sections 1 and 2.3: length, bytes, padding
    data = string.encode()
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


class Reader:  # takes one field after the other from a payload
    def __init__(self, payload):
        self.payload, self.at = payload, 0

    def take(self, layout):
        self.at, at = self.at + struct.calcsize(">" + layout), self.at
        fields = struct.unpack_from(">" + layout, self.payload, at)
        return fields if len(fields) > 1 else fields[0]

    def text(self):
        length = self.take("I")
        return self.take(f"{length}s{-length % 4}x").decode(errors="replace")

    def value(self, kind):  # section 2.3
        if kind == 9:
            return {self.text(): self.value(self.take("I")) for _ in range(self.take("I"))}
        if kind == 10:
            return [self.value(element) for element in [self.take("I")] for _ in range(self.take("I"))]
        return self.text() if kind in (7, 8) else self.take(" iIqQdI"[kind]) if kind <= 6 else None


class Connection:
    def __init__(self, address, ca=None):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=15)
        if ca:
            self.socket = ssl.create_default_context(cafile=ca).wrap_socket(self.socket, server_hostname=host)
        self.received, self.frames, self.passed_over, self.seq = b"", [], [], 0

    def send(self, command, arguments=b""):
        self.seq += 1
        self.socket.sendall(struct.pack(">III", 8 + len(arguments), command, self.seq) + arguments)
        return self.seq

    def message(self):  # the number of the next message, and a reader of the rest
        while not self.frames:
            try:
                more = self.socket.recv(65536)
            except TimeoutError:  # section 15
                self.send(NOP)
                more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("the producer has closed the connection")
            self.received += more
            while len(self.received) >= (end := 4 + int.from_bytes(self.received[:4], "big")) >= 8:  # section 1
                self.frames.append(Reader(self.received[4:end]))
                self.received = self.received[end:]
        return (reader := self.frames.pop(0)).take("I"), reader

    def ask(self, command, arguments=b""):  # the status and the result; what comes before them is kept for `follow`
        seq = self.send(command, arguments)
        while True:
            number, reader = self.message()
            if number != RESPONSE:
                self.passed_over.append((number, reader))
            elif (answer := response(reader))[0] == seq:
                return answer[1:]

    def login(self, user, password):  # section 11, RFC 5802 and RFC 7677
        def step(method, data):
            status, _ = self.ask(AUTH, text(method) + text(data))
            return self.message()[1].text() if status == AUTH_NEEDED else ""

        sign = lambda key, string: hmac.digest(key, string.encode(), "sha256")
        bare = "n=" + user.replace("=", "=3D").replace(",", "=2C") + ",r=" + secrets.token_urlsafe(24)
        challenge = step("scram-sha-256", "n,," + bare)
        nonce, salt, iterations = (part[2:] for part in challenge.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(salt), int(iterations))
        client_key, signed = sign(salted, "Client Key"), f"{bare},{challenge},c=biws,r={nonce}"
        proof = bytes(a ^ b for a, b in zip(client_key, sign(hashlib.sha256(client_key).digest(), signed)))
        verifier = step("", f"c=biws,r={nonce},p=" + base64.b64encode(proof).decode())
        expected = base64.b64encode(sign(sign(salted, "Server Key"), signed)).decode()
        if verifier != "v=" + expected or not nonce.startswith(bare.split(",r=")[1]):
            sys.exit("this is not the producer that knows the password")
        step("", "")


def response(reader):  # section 3.1
    seq, status, result = reader.take("III")
    if status not in (OK, AUTH_NEEDED):  # section 4
        raise (ConnectionError if status in (BUSY, STORAGE_FULL) else SystemExit)(f"status {status}: {reader.text()}")
    return seq, status, result


def opened(path, handled):
    output = open(1, "wb", buffering=0, closefd=False) if path == "-" else open(path, "a+b", buffering=0)
    if output.readable() and not output.seek(0):
        *lines, half = output.read().split(b"\n")
        output.truncate(output.tell() - len(half))  # half a line was not committed
        handled.update(line.decode().split(maxsplit=2)[:2] for line in lines)
    return output


def follow(connection, metric, name, output, handled):
    _, channel = connection.ask(DEF_CHANNEL, text("") + b"\0\0\0\1" + text("name") + b"\0\0\0\7" + text(name))  # 8.1
    connection.ask(SET_CHANNEL, struct.pack(">I", channel))
    _, bindings = connection.ask(QUERY, text("producer.bindings") + NO_ARGUMENTS)  # section 8.9
    done, uncommitted = 0, False
    while True:
        if uncommitted and not connection.frames:
            output.readable() and os.fsync(output.fileno())
            uncommitted = not connection.send(COMMIT, struct.pack(">QI", done, 1))  # section 2: through
        number, reader = connection.passed_over.pop(0) if connection.passed_over else connection.message()
        if number == RESPONSE:
            response(reader)
        elif number == PRODUCER_CAPS and reader.take("II"):  # sections 3.2 and 8.12
            offered = dict([(reader.text(), reader.value(reader.take("I"))) for _ in range(reader.take("I"))])
            done = int(handled.get(history := f"{channel}/{offered.get('generation')}", 0))
        elif number == NOTICE and (code := reader.take("II")[0]) in (2, 4, 5):  # section 3.5
            sys.exit(f"the producer ended the connection with notice {code}: {reader.text()}")
        elif number == bindings:  # section 3.6
            if (metric, {}) not in [(one["name"], one["arguments"]) for one in reader.value(reader.take("QQI")[2])]:
                _, bound = connection.ask(COLLECT, text(metric) + NO_ARGUMENTS)
                connection.ask(SUBSCRIBE, struct.pack(">II", bound, CURRENT))
        elif number < 0x80000000 or number == GAP:
            transaction, uncommitted = reader.take("Q"), True
            if transaction > done:  # section 5: what comes again has the id that it had
                fields = reader.take("IQQQI") if number == GAP else (reader.take("Q"), reader.value(reader.take("I")))
                output.write(f"{history} {transaction} {'GAP' if number == GAP else number} {fields}\n".encode())
                done = handled[history] = transaction


len(sys.argv) in (6, 7, 8) or sys.exit(__doc__)
address, user, secret_file, metric, name, journal, *ca = sys.argv[1:] + ["-"] * (len(sys.argv) == 6)
handled = {}  # the last transaction id of each channel, as long as the producer goes on from its own database
while True:
    try:
        connection = Connection(address, *ca)
        connection.login(user, open(secret_file, "rb").read().rstrip(b"\n"))
        follow(connection, metric, name, opened(journal, handled), handled)
    except OSError as error:
        print(f"{address}: {error}; the next attempt follows in a second", file=sys.stderr)
        time.sleep(1)
