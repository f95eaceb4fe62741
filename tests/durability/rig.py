"""A file system in a file, and a host on it. Both recipes need root and loop devices."""

import fcntl
import http.client
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

# <linux/ext4.h>: stop the file system at once, and do not flush its journal first.
EXT4_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = 2
TOKEN = "a-token-of-the-operator-for-durability"


class FileSystem:
    """ext4 in a sparse file, mounted through a loop device."""

    def __init__(self, mib):
        self.work = tempfile.mkdtemp(prefix="memhost-durability-")
        self.image, self.path = os.path.join(self.work, "disk"), os.path.join(self.work, "mnt")
        os.mkdir(self.path)
        with open(self.image, "wb") as file:
            file.truncate(mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", self.image], check=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.path], check=True)

    def cut_the_power(self):
        handle = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        os.close(handle)

    def unmount(self):
        for _ in range(100):
            if subprocess.run(["umount", self.path], stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.05)
        subprocess.run(["umount", "-l", self.path], check=True)

    def free(self):
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    def remove(self):
        self.unmount()
        subprocess.run(["rm", "-rf", self.work], check=True)


class Host:
    """`memhost serve` in a directory of its own."""

    def __init__(self, memhost, directory, config=""):
        data = os.path.join(directory, "data")
        settings = os.path.join(os.path.dirname(directory), "memhost.toml")
        with open(settings, "w") as file:
            file.write(config)
        cache = os.path.join(tempfile.gettempdir(), "memhost-durability-cache")
        os.makedirs(cache, mode=0o700, exist_ok=True)
        environment = dict(os.environ, MEMHOST_OPERATOR_TOKEN=TOKEN, MEMHOST_CACHE_DIR=cache, RUST_BACKTRACE="0")
        command = [memhost, "--log", "memhost=warn", "serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--config", settings]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        self.port = None
        for line in self.process.stdout:
            found = re.search(rb"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        if self.port is None:
            raise SystemExit(f"the host did not start, exit code {self.process.wait()}:\n{self.said()}")

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def client(self, token=TOKEN, timeout=30):
        return Client(self.port, token, timeout)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Client:
    """One connection, for one thread."""

    def __init__(self, port, token, timeout):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.token = token

    def call(self, method, path, body=None):
        """Answers the status, the JSON and the headers; None where there is no answer."""
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return None, None, {}
        try:
            value = json.loads(text)
        except ValueError:
            value = text.decode(errors="replace")
        return answer.status, value, dict(answer.getheaders())

    def pages(self, path, key="items"):
        """Every item of a list of the control plane."""
        cursor = ""
        while True:
            status, page, _ = self.call("GET", f"{path}?limit=1000{cursor}")
            assert status == 200, (path, status, page)
            yield from page[key]
            if not page.get("nextCursor"):
                return
            cursor = "&cursor=" + page["nextCursor"]

    def records(self, company):
        """Every record of a company, by its text."""
        found, cursor = {}, None
        while True:
            body = {"scope": {"companyId": company}, "limit": 1000, **({"cursor": cursor} if cursor else {})}
            status, page, _ = self.call("POST", f"/runtime/v1/companies/{company}/list", body)
            assert status == 200, (company, status, page)
            found.update((item["text"], item["handle"]) for item in page["items"])
            cursor = page.get("nextCursor")
            if not cursor:
                return found


def make(client, company):
    """Makes a company. It may be there."""
    status, answer, _ = client.call("PUT", f"/control/v1/companies/{company}")
    assert status in (200, 201), (company, status, answer)


def write(client, company, text):
    """Writes one record."""
    source = {"kind": "manual_note", "companyId": company}
    body = {"scope": {"companyId": company}, "source": source, "records": [{"text": text}]}
    answer = client.call("POST", f"/runtime/v1/companies/{company}/records", body)
    assert answer[0] != 400, answer
    return answer


def emit(client, company, name, metadata):
    """Sends one event."""
    event = {"eventId": name, "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "claude", "details": metadata}
    answer = client.call("POST", f"/runtime/v1/companies/{company}/events", {"events": [event]})
    assert answer[0] != 400, answer
    return answer


class Threads:
    """Runs each function again and again until `end`, and raises what one of them raised."""

    def __init__(self, *works):
        self.ended, self.failure = threading.Event(), None
        self.threads = [threading.Thread(target=self.run, args=(work,), daemon=True) for work in works]
        for thread in self.threads:
            thread.start()

    def run(self, work):
        try:
            while not self.ended.is_set():
                work()
        except BaseException as error:  # Shown by `end`.
            self.failure = error
            self.ended.set()

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(60)
        if self.failure:
            raise self.failure


def arguments(rounds):
    if len(sys.argv) < 2:
        raise SystemExit(f"usage: {sys.argv[0]} MEMHOST [ROUNDS]")
    if os.geteuid() != 0:
        raise SystemExit("this mounts a file system: run it as root")
    return os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else rounds
