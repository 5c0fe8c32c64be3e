import { once } from 'node:events'
import { expect, test } from 'vitest'
import { type ReadableStream, readRecords } from '../../../storage/replicated/read.ts'
import type { StreamMessage } from '../../../storage/replicated/stream.ts'

const message = (sequence: number): StreamMessage => ({
  sequence,
  part: { format: 1, kind: 'batch', epoch: 1, node: 'a', record: `r${sequence}`, index: 1, count: 1 },
  data: Buffer.from(String(sequence)),
})

/** What comes of consumers, each of which has these messages and then none any more. */
function streamOf(last: number, ...consumers: readonly (readonly number[])[]) {
  const froms: number[] = []
  const stream: ReadableStream = {
    bounds: async () => ({ first: 1, last, majorityMs: 0 }),
    async *messages(from, signal) {
      const sequences = consumers[froms.length] ?? []
      froms.push(from)
      for (const sequence of sequences) yield message(sequence)
      if (!signal.aborted) await once(signal, 'abort')
    },
  }
  return { stream, froms }
}

async function read(stream: ReadableStream, count: number): Promise<number[]> {
  const found: number[] = []
  for await (const { sequence } of readRecords(stream, 0, new AbortController().signal, () => {}, { idleMs: 50 })) {
    found.push(sequence)
    if (found.length === count) break
  }
  return found
}

test('another consumer is made if one has nothing, and the log has more', async () => {
  const { stream, froms } = streamOf(4, [1, 2], [3, 4])
  expect(await read(stream, 4)).toEqual([1, 2, 3, 4])
  expect(froms).toEqual([1, 3])
})

test('another consumer is made after a gap; what is there already is skipped', async () => {
  const { stream, froms } = streamOf(5, [1, 2, 4], [1, 2, 3, 4, 5])
  expect(await read(stream, 5)).toEqual([1, 2, 3, 4, 5])
  expect(froms).toEqual([1, 3])
})

test('a message that never comes is missing', async () => {
  const { stream } = streamOf(5, [1, 2, 4], [4], [4], [4], [4], [4])
  await expect(read(stream, 5)).rejects.toMatchObject({
    code: 'BEHIND',
    message: expect.stringContaining('do not have message 3'),
  })
})

test('each record says how long the log was when it came', async () => {
  const { stream } = streamOf(3)
  const behind: ReadableStream = {
    ...stream,
    async *messages() {
      for (const sequence of [1, 2, 3]) yield { ...message(sequence), pending: 3 - sequence }
    },
  }
  const lasts: number[] = []
  for await (const { last } of readRecords(behind, 0, new AbortController().signal, () => {}, { until: 3 }))
    lasts.push(last)
  expect(lasts).toEqual([3, 3, 3])
})
