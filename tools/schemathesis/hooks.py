"""Makes the values of a valid request agree with each other and with the platform under test.

A schema says what each value looks like. It cannot say that an end is later than its start, that an instant lies in the
future, that a workspace belongs to the team beside it, or that an idempotency key is used for one request only.
Requests that are invalid on purpose stay as they are.
"""

import base64
import json
import os
import uuid
from datetime import datetime, timedelta, timezone

from urllib.parse import unquote

import schemathesis
from hypothesis import strategies
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import converter
from schemathesis.specs.openapi.coverage import _schema as coverage

# Ids of objects that exist: see main.ts.
WORLD = json.loads(os.environ["ATOLL_WORLD"])

FORMATS = {
    "iana-time-zone": ["UTC", "Asia/Kathmandu", "Europe/Oslo", "America/St_Johns", "Australia/Lord_Howe"],
    "cidr-list": ["", "203.0.113.0/24", "203.0.113.9, 2001:db8::/32", "::1"],
}
for name, samples in FORMATS.items():
    schemathesis.openapi.format(name, strategies.sampled_from(samples))


def public_key(key):
    """RFC 4253, section 6.6, and RFC 8709, section 4: name and key, each after its length."""
    parts = (len(part).to_bytes(4) + part for part in (b"ssh-ed25519", key))
    return f"ssh-ed25519 {base64.b64encode(b''.join(parts)).decode()}"


schemathesis.openapi.format("ssh-public-key", strategies.binary(min_size=32, max_size=32).map(public_key))
schemathesis.openapi.format("ssh-private-key", strategies.just(WORLD["private_key"]))


def unless_long(fold):
    """Folds the lengths of a text into its pattern, unless they are long.

    With quantifiers in the ten thousands the validator takes half a second to compile one pattern, in each schema that
    has it. Unfolded, generated texts are filtered by their length instead.
    """

    def fold_short(schema, *more):
        if (schema.get("maxLength") or 0) < 4096:
            fold(schema, *more)

    return fold_short


converter.update_pattern_in_schema = unless_long(converter.update_pattern_in_schema)
coverage._update_schema_pattern = unless_long(coverage._update_schema_pattern)
draw_match = coverage.CoverageContext._try_pattern


def repeat_or_draw_match(self, schema):
    """A long text for a pattern: one character repeated where that matches, as the simplest draw is.

    A draw takes each character by itself, and again and again where the first is discarded.
    """
    length = schema.get("minLength") or 0
    if "pattern" in schema and length > 100:
        try:
            return self._long_string_matching(schema, length)
        except Unsatisfiable:
            pass
    return draw_match(self, schema)


coverage.CoverageContext._try_pattern = repeat_or_draw_match


def instant(**ahead):
    return (datetime.now(timezone.utc) + timedelta(**ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


def future_expiry(body):
    if "expiry_date" in body:
        body["expiry_date"] = instant(days=30)


def price(body):
    body["sku"] = f"test.{uuid.uuid4()}"
    if not body.get("force"):
        body["valid_from"] = instant(days=1)
    if "team_id" in body:
        body["team_id"] = WORLD["team_id"]


def usage(body):
    for event in body["events"]:
        event.update(team_id=WORLD["team_id"], workspace_id=WORLD["workspace_id"], time=instant(minutes=-1))
        event["quantity"] = round(event["quantity"], 6)
        event["source"] = event["source"].removeprefix("atoll-") or "meter"
        if event["kind"] == "gpuaas_pool":
            event.setdefault("pool_id", WORLD["pool_id"])


def pool(body):
    """The terms of a pool depend on its mechanism."""
    body.update(gpuaas_id=WORLD["gpuaas_id"], gpu_ids=[WORLD["gpu_id"]])
    mechanism = body["mechanism"]
    body["sharing_mode"] = "Temporal" if mechanism == "time_slicing" else "Spatial"
    if mechanism == "mig":
        body["profiles"] = ["1g.10gb"]
        body.pop("replicas", None)
    else:
        body.pop("profiles", None)
        body.setdefault("replicas", 4)
    if mechanism == "time_slicing":
        body.pop("allow_fallback", None)
    if not body.get("allow_fallback"):
        body.pop("temporal_replicas", None)
    elif "temporal_replicas" in body:
        body["temporal_replicas"] = 48


def subscription(body):
    if "profile" in body:
        body["profile"] = "1g.10gb"


def policy(body):
    """A repository has 255 characters at most, whatever its parts."""
    for image in body.get("objects", []):
        if len(image["reference"]) > 200:
            image["reference"] = "nginx"


def exposed_port(body):
    """A platform offers a range of ports."""
    if "external_port" in body:
        body["external_port"] = 30086 + body["external_port"] % 2682


def baremetal_node(body):
    """What is no address that may be dialled; a hook needs a secret of the platform."""
    if "host" in body:
        body["host"] = f"{uuid.uuid4()}.example"
        body["name"] = body["host"]
    body["reinstall"] = None
    if "region_id" in body:
        del body["reinstall"]


BODIES = {
    "createPrice": price,
    "exposeService": exposed_port,
    "updateExposedService": exposed_port,
    "registerBaremetalNode": baremetal_node,
    "updateBaremetalNode": baremetal_node,
    "recordUsage": usage,
    "createPool": pool,
    "subscribeToPool": subscription,
    "createImagePolicy": policy,
    "updateImagePolicy": policy,
    "issueUserKey": future_expiry,
    "issueTeamMemberKey": future_expiry,
}


def order(parameters, start, end, longest):
    """The end after the start, by no more than a report may span."""
    if start not in parameters or end not in parameters:
        return
    first, last = sorted(unquote(str(parameters[name])) for name in (start, end))
    year = int(first[:4])
    if first == last or int(last[:4]) > year + longest:
        last = f"{year + longest:04d}{first[4:]}".replace("-02-29", "-02-28")
    if int(last[:4]) > 2199:
        first, last = f"2190{first[4:]}".replace("-02-29", "-02-28"), f"2191{first[4:]}".replace("-02-29", "-02-28")
    parameters[start], parameters[end] = first, last


def whole(parameters):
    """JSON has one kind of number, in which 1.0 is an integer; in a path it is text, and no numeric id."""
    for name, value in parameters.items():
        text = str(value)
        if text.endswith(".0") and text[:-2].isdigit():
            parameters[name] = text[:-2]


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    for parameters in (case.path_parameters, case.query):
        if parameters:
            whole(parameters)
    if case.path_parameters:
        order(case.path_parameters, "start_date", "end_date", 1)
        order(case.path_parameters, "start_month", "end_month", 1)
    change = BODIES.get(case.operation.definition.raw.get("operationId"))
    if change and isinstance(case.body, dict):
        change(case.body)

