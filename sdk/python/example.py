"""Captures a note, finds it and forgets it. Give MEMHOST_URL, MEMHOST_TOKEN and MEMHOST_COMPANY."""

import os

from memhost_client import AuthenticatedClient
from memhost_client.api.memory import capture, forget, query
from memhost_client.models import (
    CaptureMode,
    CaptureRequest,
    CaptureResponse,
    ContextBundle,
    ForgetRequest,
    ForgetResponse,
    QueryRequest,
    Scope,
    SourceKind,
    SourcePayload,
    SourceRef,
)


def main() -> None:
    company = os.environ["MEMHOST_COMPANY"]
    client = AuthenticatedClient(
        base_url=os.environ["MEMHOST_URL"], token=os.environ["MEMHOST_TOKEN"]
    )
    scope = Scope(company_id=company)

    source = SourceRef(kind=SourceKind.MANUAL_NOTE, company_id=company)
    mode = CaptureMode.CAPTURE_RECORD
    payload = SourcePayload(text="Deploys are frozen on Fridays.")
    captured = capture.sync(
        company,
        client=client,
        body=CaptureRequest(scope=scope, source=source, payload=payload, mode=mode),
    )
    # Anything else is a Problem, or None where no answer came.
    if not isinstance(captured, CaptureResponse):
        raise SystemExit(f"it was not captured: {captured}")
    print(f"captured {len(captured.records)} record")

    found = query.sync(
        company, client=client, body=QueryRequest(scope=scope, query="when may I deploy?", top_k=5)
    )
    if not isinstance(found, ContextBundle):
        raise SystemExit(f"nothing was asked: {found}")
    print(f"found: {found.snippets[0].text}")

    forgotten = forget.sync(
        company, client=client, body=ForgetRequest(scope=scope, handles=captured.records)
    )
    if not isinstance(forgotten, ForgetResponse):
        raise SystemExit(f"it was not forgotten: {forgotten}")
    print(f"forgotten: {forgotten.outcomes[0].effect}")


if __name__ == "__main__":
    main()
