import { expect, test } from 'vitest'
import type { Message } from '../../../protocol/monitor/message.ts'
import { list, MORE, rec, runCli, type Script, string, TIME, uint64 } from '../fake-cli.ts'

/** Who the server is: the channels that it empties at others have its id in their names. */
const SELF: Message = {
  kind: 'caps',
  caps: {
    major: 1,
    minor: 1,
    auth: [],
    layer: [],
    extension: [],
    software: 'cinnabar/0',
    maxFrameBytes: 1 << 20,
    producer: { id: '0123456789abcdef', name: 'main' },
  },
}

const sensor = (name: string, state: string, detail: string, values: bigint) => [
  string('name', name),
  string('state', state),
  string('detail', detail),
  { name: 'counters', ...rec(uint64('values', values)) },
]
const channel = (name: string) => [
  string('name', name),
  uint64('queued', 1_000n),
  uint64('in_flight', 200n),
  uint64('queued_bytes', 124_000n),
  uint64('oldest', BigInt(TIME - 90e6)),
  { name: 'dropped', ...rec(uint64('overflow', 7n)) },
]

let result = 1
const script: Script = ({ of, args }) => {
  if (of === 'producer.sensors') {
    const answer = list(
      sensor('host', 'measuring', '', 1n),
      sensor('upstream/east', 'listening', 'tls://east:7650', 5_000n),
      sensor('upstream/west', 'failed', 'tls://west:7650; it does not answer', 0n),
    )
    return { followedBy: [SELF, { answer }] }
  }
  if (of !== 'producer.channels') return {}
  if (args['producer'] === 'west') return { result: ++result, followedBy: [{ answer: { type: 11, value: null } }] }
  const answer = list(channel('upstream:fedcba9876543210'), channel('upstream:0123456789abcdef'))
  return { result: ++result, followedBy: [{ answer }] }
}

test('shows each upstream with what waits there for this server, and what is wrong', async () => {
  const { code, out } = await runCli(['upstreams'], script)
  expect(code).toBe(0)
  expect(out).toEqual([
    'UPSTREAM  STATE      TAKEN  WAITING    BYTES    LAG  LOST',
    'east      listening   5000     1200  121 KiB  1 min     7  tls://east:7650',
    'west      failed         0        -        -      -     -  tls://west:7650; it does not answer',
  ])
})

test('has the same in JSON, where what is not known is left out', async () => {
  const { out } = await runCli(['upstreams', '--json'], script)
  expect(
    out
      .join('\n')
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    expect.objectContaining({ name: 'upstream/east', waiting: 1_200, waiting_bytes: 124_000, lag_ms: 90_000, lost: 7 }),
    expect.not.objectContaining({ lost: expect.anything() }),
  ])
})

test('says so where there is none', async () => {
  const { code, err } = await runCli(['upstreams'], () => ({ followedBy: [{ answer: list() }] }))
  expect([code, err]).toEqual([0, ['this server consumes no other']])
})

test('shows those of an answer that is cut', async () => {
  const cut: Script = (asked) => {
    if (asked.of !== 'producer.sensors') return script(asked)
    return { followedBy: [SELF, { answer: list(sensor('upstream/west', 'failed', 'x', 0n), MORE) }] }
  }
  expect((await runCli(['upstreams'], cut)).out).toEqual([expect.any(String), expect.stringContaining('west')])
})
