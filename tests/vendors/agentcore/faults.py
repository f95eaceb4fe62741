#!/usr/bin/env python3
"""The provider `agentcore` through a proxy that breaks things, with the stand-in behind it, which boto3 reads.

Usage: faults.py MEMHOST COMPONENT PORT
"""

import re
import sys
from pathlib import Path

import boto3

sys.path.insert(0, str(Path(__file__).parent.parent))
from faults import run  # noqa: E402
from serve import ID, KEY, MEMORY, REGION, SECRET, SERVICE  # noqa: E402


def main(memhost, component, port):
    aws = boto3.client(SERVICE, region_name=REGION, endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id=ID,
                       aws_secret_access_key=SECRET)

    def records():
        pages = aws.get_paginator("list_memory_records").paginate(memoryId=MEMORY, namespacePath="/memhost/acme/")
        return [record for page in pages for record in page["memoryRecordSummaries"]]

    for record in records():
        aws.delete_memory_record(memoryId=MEMORY, memoryRecordId=record["memoryRecordId"])
    run(memhost, component, port, provider="agentcore", texts=lambda: [record["content"]["text"] for record in records()],
        config=lambda url: {"url": url, "memoryId": MEMORY}, ids=re.compile(rb'(?<="mem-)[0-9a-f]{8}|(?<=\d#)[0-9a-f]{8}'),
        secret=("AWS_KEY", KEY, {"kind": "sigv4", "service": SERVICE, "region": REGION}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
