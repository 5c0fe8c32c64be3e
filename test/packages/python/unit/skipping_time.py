"""An event loop whose time goes on only when nothing else is left to do, and then at once to the next timer."""

import asyncio
import selectors


#: Seconds. No test waits for as much.
LONG_ENOUGH = 3600


class _Selector(selectors.DefaultSelector):
    """Never waits: what it would have waited is how far the time goes on."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("nothing is left that could go on: this would wait for ever")
        self.now += max(timeout, 0)
        if self.now > LONG_ENOUGH:
            raise AssertionError("what this waits for never comes")
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._skipping = _Selector()
        super().__init__(self._skipping)

    def time(self):
        return self._skipping.now


def run(work):
    """Runs a coroutine. What is left running, and what a callback raises, is an error."""
    loop = _Loop()
    raised = []
    loop.set_exception_handler(lambda _, context: raised.append(context.get("exception") or context["message"]))
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(work)
        left = [task for task in asyncio.all_tasks(loop) if not task.cancelling()] if hasattr(asyncio.Task, "cancelling") else []
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    if raised or left:
        raise AssertionError(f"raised in callbacks: {raised}; left running: {left}")
