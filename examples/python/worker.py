#!/usr/bin/env python3
"""A worker in Python's standard library, against the JSON API of docs/protocol.md.

    umbel dev &
    python3 examples/python/worker.py &
    printf '%s\\n' 'to be or' 'not to be' | umbel start --activity count-words --workflow-id hamlet --wait
    umbel results hamlet --ordered

It is a program with one activity, count-words, and a model for workers of your own: import Worker, hand it a
function for each activity type, and call run. A function gets a Row and returns str or bytes. What it raises fails the
attempt; NonRetryable fails the row for good, RetryAfter says when to try again. It runs in a thread of its own and at
least once: use row.idempotency_key for side effects. Threads cannot be ended from outside, so a function that takes long
should look at row.stopped, which is set when its outcome does not count any more.

SIGTERM and Ctrl-C stop the worker: it polls no more, lets functions end for --grace, gives back the rows that are
left, which costs them no attempt, and exits. After kill -9 they go to another worker when their lease lapses.

Needs Python 3.9. The servers are --addr, else $UMBEL_ADDR: a comma-separated list.
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import queue
import random
import secrets
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.parse

MAX_RESULT_BYTES = 2 << 20  # of a row
MAX_REPORT_BYTES = 4 << 20  # of a call
MAX_CALL_ITEMS = 1_000
LEAVE_WAIT = 2  # seconds that a worker which stops waits for its open poll
POLL_WAIT = 20.0  # seconds a poll is held open; at most 50
PATIENCE = 15.0  # seconds for an answer, beyond what it was asked to wait
RENEW_EVERY = 0.9  # seconds, at most: so is a cancel noticed within a second


class NonRetryable(Exception):
    """Fails a row for good: no other attempt can help."""


class RetryAfter(Exception):
    """Fails an attempt, and says after how many seconds the next one may begin."""

    def __init__(self, seconds, message="try again later"):
        super().__init__(message)
        self.seconds = seconds


class Unavailable(Exception):
    """No server could answer. The call may have been applied; every call may be repeated."""


class Refused(Exception):
    """A server answered with an error that repeating the call does not mend."""


class Servers:
    """Makes calls: of one server, and of the next when that one is not available. Safe for threads."""

    def __init__(self, addresses):
        self.urls = []
        for address in addresses.split(","):
            url = urllib.parse.urlsplit(address.strip() if "://" in address else "http://" + address.strip())
            self.urls.append(url)
        self.current = random.randrange(len(self.urls))

    def call(self, method, request, timeout=PATIENCE):
        """Returns the reply, or raises Unavailable or Refused. Tries each server once."""
        problem = "no server"
        for _ in self.urls:
            at = self.current
            url = self.urls[at]
            kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            with contextlib.closing(kind(url.netloc, timeout=timeout)) as connection:
                try:
                    path = f"{url.path.rstrip('/')}/umbel.v1.WorkerService/{method}"
                    connection.request("POST", path, json.dumps(request), {"Content-Type": "application/json"})
                    reply = connection.getresponse()
                    body = reply.read()
                    if reply.status == 200:
                        return json.loads(body)
                    problem = f"{url.netloc}: {reply.status} {body[:300].decode(errors='replace')}"
                    if reply.status < 500:
                        raise Refused(problem)
                except (OSError, http.client.HTTPException, ValueError) as error:
                    problem = f"{url.netloc}: {error}"
            self.current = (at + 1) % len(self.urls)
        raise Unavailable(problem)


    def call_each(self, method, request, timeout=PATIENCE):
        """Makes a call of every server, whatever they answer."""
        for url in self.urls:
            with contextlib.suppress(Unavailable, Refused):
                Servers(url.geturl()).call(method, request, timeout)


def seconds(text):
    """Reads a duration such as "1.5s"."""
    return float(text[:-1])


class Row:
    """A row in this worker's hands."""

    def __init__(self, message):
        self.token = message["token"]
        self.type = message["type"]
        self.workflow_id = message["workflowId"]
        self.run_id = message["runId"]
        self.ordinal = message.get("ordinal", 0)  # what is zero or empty is left out
        self.attempt = message["attempt"]
        self.key = message.get("key", "")
        self.input = base64.b64decode(message.get("input", {}).get("data", ""))
        self.last_failure = message.get("lastFailure")
        self.idempotency_key = f"{self.workflow_id}:{self.run_id}:{self.ordinal}"
        self.stopped = threading.Event()  # the outcome does not count any more
        self.deadline = None
        if "startToClose" in message:
            self.deadline = time.monotonic() + seconds(message["startToClose"])
        self.running = False  # a thread has it
        self.decided = False  # the outcome is on its way


class Worker:
    """Runs rows of the types in activities, a dict of functions by name."""

    def __init__(self, servers, activities, concurrency=8, task_queue="default", namespace="default", grace=10.0):
        if not 1 <= concurrency <= MAX_CALL_ITEMS:
            raise ValueError(f"concurrency {concurrency}: must be from 1 to {MAX_CALL_ITEMS}")
        self.servers = servers
        self.activities = activities
        self.concurrency = concurrency
        self.scope = {"namespace": namespace, "taskQueue": task_queue}
        self.me = {"namespace": namespace, "worker": f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"}
        self.grace = grace
        self.lease = 1.0  # seconds: the least that it can be, until a poll says
        self.held = {}  # by token: the rows whose outcome is not answered yet. Guarded by changed, as are:
        self.stuck = 0  # functions that run on though their row is decided
        self.outcomes = []
        self.polling = False  # a poll is open
        self.changed = threading.Condition()
        self.todo = queue.Queue()
        self.stopping = threading.Event()
        self.broken = None  # why it can not go on

    def run(self):
        """Works until stop is called, then gives back what is in hand. Raises Refused if the server takes no polls."""
        loops = [self.poll, self.renew, self.report] + [self.work] * self.concurrency
        for loop in loops:
            threading.Thread(target=loop, daemon=True).start()
        while not self.stopping.is_set():
            time.sleep(0.1)  # rather than wait: a signal calls stop in this thread, which must hold no lock then
        self.leave()
        with self.changed:
            self.changed.wait_for(lambda: all(row.decided for row in self.held.values()), self.grace)
            left = [row for row in self.held.values() if not row.decided]
        for row in left:
            row.stopped.set()
            self.decide(row, {"outcome": "OUTCOME_RELEASED"})
        with self.changed:  # after a lease, others have taken over what could not be reported
            self.changed.wait_for(lambda: not self.held, self.lease)
        if self.broken:
            raise self.broken

    def leave(self):
        """Has the poll that is open answered: cut off, it would lose the rows that are on their way to it."""
        ended = time.monotonic() + LEAVE_WAIT
        while time.monotonic() < ended:  # again and again: the poll may reach its server after the call
            self.servers.call_each("Leave", self.me, LEAVE_WAIT)
            with self.changed:
                if self.changed.wait_for(lambda: not self.polling, 0.1):
                    return

    def stop(self, *_):
        """Ends run. It may be called by a signal."""
        self.stopping.set()

    def poll(self):
        """Keeps one poll open while there are free slots."""
        failures = 0
        while not self.stopping.is_set():
            with self.changed:
                self.changed.wait_for(lambda: self.free() > 0)
                free = self.free()
            ask = {**self.scope, **self.me, "types": list(self.activities), "maxRows": free, "wait": f"{POLL_WAIT}s"}
            with self.changed:
                if self.stopping.is_set():
                    return
                self.polling = True
            rows = []
            try:
                reply = self.servers.call("Poll", ask, POLL_WAIT + PATIENCE)
                rows = [Row(message) for message in reply.get("rows", [])]
                failures = 0
            except Unavailable as error:
                failures += 1
                log(f"cannot poll, trying again: {error}")
            except Refused as error:
                self.broken = error
                self.stop()
            with self.changed:
                if rows:
                    self.lease = seconds(reply["lease"])
                self.held.update({row.token: row for row in rows})
                self.polling = False
                self.changed.notify_all()
            if failures:
                self.stopping.wait(back_off(failures))
            for row in rows:
                if self.stopping.is_set():
                    self.decide(row, {"outcome": "OUTCOME_RELEASED"})
                else:
                    self.todo.put(row)

    def free(self):
        return self.concurrency - len(self.held) - self.stuck

    def work(self):
        """Runs one row at a time."""
        while True:
            row = self.todo.get()
            with self.changed:
                if row.decided:
                    continue
                row.running = True
            outcome = attempt(self.activities[row.type], row)
            with self.changed:
                row.running = False
                if not self.decide(row, outcome):
                    self.stuck -= 1
                    self.changed.notify_all()

    def decide(self, row, outcome):
        """Hands a row's outcome to report, unless it has one."""
        with self.changed:
            if row.decided:
                return False
            row.decided = True
            self.stuck += row.running
            self.outcomes.append({"token": row.token, **outcome})
            self.changed.notify_all()
            return True

    def renew(self):
        """Renews all leases at least every third of them, and ends what takes too long."""
        while True:
            time.sleep(min(self.lease / 3, RENEW_EVERY))
            with self.changed:
                rows = list(self.held.values())
            if not rows:
                continue
            try:
                ask = {**self.me, "tokens": [row.token for row in rows]}
                states = self.servers.call("Renew", ask, self.lease / 3).get("states", [])
            except (Unavailable, Refused) as error:  # no reason to end anything: only a state is
                log(f"cannot renew, trying again: {error}")
                states = []
            for row, state in zip(rows, states):
                if state != "HOLD_STATE_HELD":
                    row.stopped.set()
            for row in rows:
                if row.deadline is not None and time.monotonic() > row.deadline:
                    row.stopped.set()
                    self.decide(row, failed("TimedOut", "start-to-close exceeded"))

    def report(self):
        """Sends outcomes, one call at a time, each until it is answered."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.outcomes)
                items = batch(self.outcomes)
                del self.outcomes[: len(items)]
            self.send(items)

    def send(self, items):
        failures = 0
        while True:
            try:
                verdicts = self.servers.call("Report", {**self.me, "items": items}).get("verdicts", [])
                break
            except Unavailable as error:
                failures += 1
                log(f"cannot report, trying again: {error}")
                time.sleep(back_off(failures))
            except Refused as error:
                if len(items) > 1:  # so that one item does no harm to the others
                    for item in items:
                        self.send([item])
                    return
                verdicts = [{"code": "VERDICT_CODE_REFUSED", "error": {"reason": str(error)}}]
                break
        for item, verdict in zip(items, verdicts):
            if verdict.get("code") == "VERDICT_CODE_REFUSED":
                log(f"the outcome of {item['token']} was refused: {verdict.get('error', {}).get('reason')}")
        with self.changed:  # a verdict, whatever it is, is final
            for item in items:
                self.held.pop(item["token"], None)
            self.changed.notify_all()


def attempt(function, row):
    """Calls an activity's function, and returns the outcome to report."""
    try:
        result = function(row)
        content_type = "text/plain" if isinstance(result, str) else "application/octet-stream"
        data = result.encode() if isinstance(result, str) else bytes(result)
    except RetryAfter as error:
        return {**failed("RetryAfter", str(error)), "retryAfter": f"{error.seconds:.3f}s"}
    except BaseException as error:  # pylint: disable=broad-except # a thread that ends would be a slot less
        stack = traceback.format_exc()
        return failed(type(error).__name__, str(error), stack, isinstance(error, NonRetryable))
    if len(data) > MAX_RESULT_BYTES:
        return failed("InvalidResult", f"{len(data)} bytes exceed the limit of {MAX_RESULT_BYTES}", non_retryable=True)
    result = {"contentType": content_type, "data": base64.b64encode(data).decode()}
    return {"outcome": "OUTCOME_COMPLETED", "result": result}


def failed(kind, message, stack="", non_retryable=False):
    failure = {"type": kind, "message": printable(message), "stack": printable(stack), "nonRetryable": non_retryable}
    return {"outcome": "OUTCOME_FAILED", "failure": failure}


def printable(text):
    """Replaces what no JSON of ours can hold, and bounds what is sent."""
    return text.encode("utf-8", "replace").decode()[:16_384]


def batch(outcomes):
    """Returns as many of the first outcomes as fit a call; one at least."""
    size = 0
    for n, item in enumerate(outcomes[:MAX_CALL_ITEMS]):
        size += len(json.dumps(item))
        if n > 0 and size > MAX_REPORT_BYTES:
            return outcomes[:n]
    return outcomes[:MAX_CALL_ITEMS]


def back_off(failures):
    """Returns how long to wait after so many failures in a row: 0.1 s, 0.2 s, … 5 s, half of it by chance."""
    return min(5.0, 0.05 * 2 ** min(failures, 10)) * random.uniform(0.5, 1.5)


def log(text):
    print("worker:", text, file=sys.stderr, flush=True)


def count_words(row):
    """An activity: how many words a text has."""
    return str(len(row.input.split()))


def main(activities):
    """The command line of a worker with these activities."""
    flags = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    flags.add_argument("--addr", default=os.environ.get("UMBEL_ADDR") or "127.0.0.1:7890", help="servers, by commas")
    flags.add_argument("--task-queue", default="default", help="the pool that this worker belongs to")
    flags.add_argument("--concurrency", type=int, default=8, help="how many functions run at once")
    flags.add_argument("--grace", type=float, default=10.0, help="seconds that functions may still run when it stops")
    args = flags.parse_args()
    worker = Worker(Servers(args.addr), activities, args.concurrency, args.task_queue, grace=args.grace)
    signal.signal(signal.SIGTERM, worker.stop)
    signal.signal(signal.SIGINT, worker.stop)
    try:
        worker.run()
    except Refused as error:
        sys.exit(f"worker: {error}")


if __name__ == "__main__":
    main({"count-words": count_words})
