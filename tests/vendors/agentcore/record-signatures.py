#!/usr/bin/env python3
"""Signs requests with botocore's own signer, for the tests of the host's: one line of JSON for each.

Usage: record-signatures.py > host/sandbox/src/egress/secret/sign/botocore.jsonl
"""

import datetime
import json

import botocore
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

AT = datetime.datetime(2026, 11, 23, 18, 5, 9, tzinfo=datetime.timezone.utc)
HOST = "https://bedrock-agentcore.eu-central-1.amazonaws.com"
REQUESTS = [
    ("POST", f"{HOST}/memories/m-1/events", {"content-type": "application/json"}, b'{"actorId":"a","payload":[]}', None),
    ("GET", f"{HOST}/memories/m-1/memoryRecord/mem%20a%2Fb", {}, b"", None),
    ("DELETE", f"{HOST}/memories/m-1/actor/a/sessions/s/events/0000%23a", {}, b"", "the-session-token//+="),
    ("GET", f"{HOST}/b/../a//c/./?z=1&a=2&a=1&b&c=%20x", {"x-amz-meta": "  two   words "}, b"", None),
    ("PUT", "http://127.0.0.1:7830/", {"content-type": "text/plain; charset=utf-8"}, "é".encode(), None),
]


def sign(method, url, headers, body, token):
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token)
    signer = botocore.auth.SigV4Auth(credentials, "bedrock-agentcore", "eu-central-1")
    signer.add_auth(request)
    return {"method": method, "url": url, "headers": headers, "body": body.decode(), "token": token,
            "authorization": request.headers["Authorization"]}


class At(datetime.datetime):
    @classmethod
    def now(cls, *_):
        return AT

    @classmethod
    def utcnow(cls):
        return AT.replace(tzinfo=None)


def main():
    # The signer reads the time in more than one way, depending on the version.
    botocore.auth.datetime = type("Frozen", (), {"datetime": At, "timezone": datetime.timezone})
    if hasattr(botocore.auth, "get_current_datetime"):
        botocore.auth.get_current_datetime = lambda *_, **__: AT.replace(tzinfo=None)
    print(json.dumps({"of": f"botocore {botocore.__version__}", "at": AT.isoformat().replace("+00:00", "Z"),
                      "by": "tests/vendors/agentcore/record-signatures.py"}))
    for request in REQUESTS:
        print(json.dumps(sign(*request)))


if __name__ == "__main__":
    main()
