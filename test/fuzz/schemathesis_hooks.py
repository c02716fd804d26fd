"""Makes every Idempotency-Key unique: a reused key replays the first response, about a project that may be deleted."""

import re
import uuid

import schemathesis

KEY = re.compile(r"[!#-~]{1,200}")


@schemathesis.hook
def before_call(ctx, case, kwargs):
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and KEY.fullmatch(key):
        case.headers["Idempotency-Key"] = f"{key}-{uuid.uuid4()}"
