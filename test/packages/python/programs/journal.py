"""Writes each value of a metric into a file, once: journal.py URL PASSWORD_FILE NAME METRIC JOURNAL

A line is the channel, the generation, the transaction id and the value. Half a line was not handled.
"""

import asyncio
import pathlib
import sys

import cinnabar


def opened(path):
    """The file, the channel of its last line, and how far that was."""
    journal = open(path, "a+b", buffering=0)
    journal.seek(0)
    *lines, half = journal.read().split(b"\n")
    journal.truncate(journal.tell() - len(half))
    if not lines:
        return journal, None, None
    channel, generation, transaction, _ = lines[-1].decode().split(maxsplit=3)
    return journal, int(channel), cinnabar.Place(generation, int(transaction))


async def main(url, password_file, name, metric, path):
    journal, channel, after = opened(path)
    password = pathlib.Path(password_file).read_text().strip()
    login = {"identity": "admin", "password": password}
    with journal:
        async with cinnabar.connect(url, **login, name=name, channel=channel, after=after, wait_for_server=60) as consumer:

            def write(transaction, text):
                journal.write(f"{consumer.channel} {consumer.generation} {transaction} {text}\n".encode())

            consumer.on(cinnabar.Gap, lambda gap: write(gap.transaction, f"GAP {gap.reason}"))
            await consumer.follow(metric)
            async for sample in consumer:
                write(sample.transaction, sample.number)


asyncio.run(main(*sys.argv[1:]))
